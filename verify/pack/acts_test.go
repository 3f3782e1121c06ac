package pack_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/packtest"
	"github.com/agentledger/agentledger/verify/pack"
)

// The acts that a naive program derives are those that the check derives.
func TestActs(t *testing.T) {
	key := packtest.NewActsLog(t).Key()
	for _, s := range packtest.ActSamples(t) {
		r, err := check(s.Parts.Bytes(t), key)
		if err != nil {
			t.Errorf("%s: %v\n%s", s.Name, err, *s.Parts.File(pack.FileActs))
			continue
		}
		sum := uint64(0)
		for _, n := range r.Acts.Outcomes {
			sum += n
		}
		if lines := uint64(strings.Count(*s.Parts.File(pack.FileActs), "\n")); r.Acts.Count != lines || sum != lines {
			t.Errorf("%s: got %+v, want %d lines", s.Name, r.Acts, lines)
		}
	}
}

func TestActLines(t *testing.T) {
	key := packtest.NewActsLog(t).Key()
	r, err := check(packtest.ActSamples(t)[0].Parts.Bytes(t), key)
	want := []string{
		"acts        47 acts: 15 done, 5 failed, 2 refused, 3 denied, 1 expired, 4 cancelled, 8 unknown, 1 waiting, 8 open; 4 approved and done; 1 done without the approval",
		"approver    acc_1 (ada@example.com, as the operator states): 2 approved, 2 refused",
		"approver    acc_2 (Ben Lindqvist, ben@example.com, as the operator states): 3 approved, 1 refused",
	}
	if got := r.ActLines(); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestWrongActsAreRefused(t *testing.T) {
	key := packtest.NewActsLog(t).Key()
	for _, w := range packtest.WrongActs(t) {
		if r, err := check(w.Bytes, key); !isWrong(err) {
			t.Errorf("%s: got %+v, %v", w.Name, r, err)
		}
	}
}

// A change of any byte of acts.ndjson is detected although the digests are correct.
func TestEachByteOfActsCounts(t *testing.T) {
	key := packtest.NewActsLog(t).Key()
	p := packtest.ActSamples(t)[8].Parts
	file := p.File(pack.FileActs)
	whole := []byte(*file)
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 1
		*file = string(changed)
		if _, err := check(p.Bytes(t), key); !isWrong(err) {
			t.Errorf("byte %d: got %v", i, err)
		}
	}
}
