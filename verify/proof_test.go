package verify

import (
	"errors"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

func (l *testLog) inclusion(index, size int) InclusionAnswer {
	c := l.checkpoint(size)
	return InclusionAnswer{LogIndex: id.Index(index), TreeSize: c.Size, LeafHash: l.events[index].leaf, RootHash: c.Root, Hashes: treePath(index, l.leaves(size))}
}

func (l *testLog) consistency(from, to int) Consistency {
	c := Consistency{From: id.Index(from), To: id.Index(to), FromRoot: l.checkpoint(from).Root, ToRoot: l.checkpoint(to).Root}
	if from > 0 {
		c.Hashes = treeGrowth(from, l.leaves(to), true)
	}
	return c
}

func TestCheckInclusionAnswer(t *testing.T) {
	l := newTestLog(t, 1, 20)
	for size := 1; size <= 20; size++ {
		for index := range size {
			err := CheckInclusionAnswer(l.inclusion(index, size), id.Index(index), l.events[index].leaf, l.checkpoint(size))
			if err != nil {
				t.Errorf("%d of %d: %v", index, size, err)
			}
		}
	}
}

func TestCheckInclusionAnswerRefuses(t *testing.T) {
	l, other := newTestLog(t, 1, 9), newTestLog(t, 2, 9)
	for _, row := range []struct {
		name string
		bend func(a *InclusionAnswer)
		want error
	}{
		{"leaf of another", func(a *InclusionAnswer) { a.LeafHash = l.events[3].leaf }, ErrMismatch},
		{"answer for another leaf", func(a *InclusionAnswer) { *a = l.inclusion(3, 9) }, ErrMismatch},
		{"another index", func(a *InclusionAnswer) { a.LogIndex = 5 }, ErrMismatch},
		{"another size", func(a *InclusionAnswer) { *a = l.inclusion(4, 8) }, ErrMismatch},
		{"another root", func(a *InclusionAnswer) { a.RootHash = id.Hash{} }, ErrMismatch},
		{"another log", func(a *InclusionAnswer) { *a = other.inclusion(4, 9) }, ErrMismatch},
		{"path at another size", func(a *InclusionAnswer) { a.Hashes = l.inclusion(4, 8).Hashes }, tlog.ErrProof},
		{"one hash too many", func(a *InclusionAnswer) { a.Hashes = append(a.Hashes, id.Hash{}) }, tlog.ErrProof},
		{"one hash too few", func(a *InclusionAnswer) { a.Hashes = a.Hashes[1:] }, tlog.ErrProof},
		{"root first", func(a *InclusionAnswer) { slices.Reverse(a.Hashes) }, tlog.ErrProof},
	} {
		a := l.inclusion(4, 9)
		row.bend(&a)
		if err := CheckInclusionAnswer(a, 4, l.events[4].leaf, l.checkpoint(9)); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
	}
}

func TestCheckConsistencyAnswer(t *testing.T) {
	l := newTestLog(t, 1, 20)
	for to := range 21 {
		for from := range to + 1 {
			if err := CheckConsistencyAnswer(l.consistency(from, to), l.checkpoint(from), l.checkpoint(to)); err != nil {
				t.Errorf("from %d to %d: %v", from, to, err)
			}
		}
	}
}

func TestCheckConsistencyAnswerRefuses(t *testing.T) {
	l, fork, other := newTestLog(t, 1, 6), newTestLog(t, 1, 4), newTestLog(t, 2, 9)
	fork.add(forgery{form: formFor(1)})
	fork.add(forgery{form: formFor(0)})
	for len(l.events) < 9 {
		l.add(forgery{})
		fork.add(forgery{})
	}
	for _, row := range []struct {
		name     string
		bend     func(a *Consistency)
		from, to tlog.Checkpoint
		want     error
	}{
		{"sizes swapped", func(a *Consistency) { a.From, a.To = a.To, a.From }, l.checkpoint(5), l.checkpoint(9), ErrMismatch},
		{"checkpoints swapped", func(*Consistency) {}, l.checkpoint(9), l.checkpoint(5), ErrMismatch},
		{"smaller than before", func(a *Consistency) { a.From, a.To, a.FromRoot, a.ToRoot = a.To, a.From, a.ToRoot, a.FromRoot },
			l.checkpoint(9), l.checkpoint(5), tlog.ErrProof},
		{"another from", func(*Consistency) {}, l.checkpoint(4), l.checkpoint(9), ErrMismatch},
		{"another to", func(*Consistency) {}, l.checkpoint(5), l.checkpoint(8), ErrMismatch},
		{"another first root", func(a *Consistency) { a.FromRoot = id.Hash{} }, l.checkpoint(5), l.checkpoint(9), ErrMismatch},
		{"another second root", func(a *Consistency) { a.ToRoot = id.Hash{} }, l.checkpoint(5), l.checkpoint(9), ErrMismatch},
		{"a fork with its own roots", func(a *Consistency) { *a = fork.consistency(5, 9) }, l.checkpoint(5), fork.checkpoint(9), ErrMismatch},
		{"a fork with the known roots", func(a *Consistency) {
			*a = fork.consistency(5, 9)
			a.FromRoot = l.checkpoint(5).Root
		}, l.checkpoint(5), fork.checkpoint(9), tlog.ErrProof},
		{"a fork of the same size", func(a *Consistency) {
			*a = Consistency{From: 9, To: 9, FromRoot: l.checkpoint(9).Root, ToRoot: fork.checkpoint(9).Root}
		}, l.checkpoint(9), fork.checkpoint(9), tlog.ErrProof},
		{"another log", func(a *Consistency) {
			a.ToRoot = other.checkpoint(9).Root
		}, l.checkpoint(5), other.checkpoint(9), ErrMismatch},
		{"one hash too many", func(a *Consistency) { a.Hashes = append(a.Hashes, id.Hash{}) }, l.checkpoint(5), l.checkpoint(9), tlog.ErrProof},
		{"one hash too few", func(a *Consistency) { a.Hashes = a.Hashes[1:] }, l.checkpoint(5), l.checkpoint(9), tlog.ErrProof},
		{"no hashes", func(a *Consistency) { a.Hashes = nil }, l.checkpoint(5), l.checkpoint(9), tlog.ErrProof},
		{"hashes from the empty log", func(a *Consistency) { *a = l.consistency(0, 9); a.Hashes = []id.Hash{{}} }, l.checkpoint(0), l.checkpoint(9), tlog.ErrProof},
	} {
		a := l.consistency(5, 9)
		row.bend(&a)
		if err := CheckConsistencyAnswer(a, row.from, row.to); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
	}
}
