package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// verifiers is how many proofs are asked for at a time.
const verifiers = 4

// verifyReceipts checks every acknowledged event, and returns the faults that it found. size is the newest tree's.
func (s *stage) verifyReceipts(ctx context.Context, o *organization, size id.Index) (wrong []string, err error) {
	var mu sync.Mutex
	numbers := map[uint64]id.Event{}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(verifiers)
	for _, name := range slices.Sorted(maps.Keys(o.receipts)) {
		g.Go(func() error {
			bundle, report, err := o.log().Bundle(ctx, name)
			if isAway(err) {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				err = checkReceipt(o.receipts[name], bundle, report, size)
			}
			if err == nil && numbers[bundle.SequenceNum] != "" {
				err = fmt.Errorf("has the number of %s", numbers[bundle.SequenceNum])
			}
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("event %s: %v", name, err))
				return nil
			}
			numbers[bundle.SequenceNum] = name
			return nil
		})
	}
	return wrong, g.Wait()
}

// isAway reports whether an error says nothing of the log: no node answered, or the demo ends.
func isAway(err error) bool {
	var answered *client.Error
	return errors.Is(err, context.Canceled) || errors.As(err, &answered) && answered.Status >= 500
}

// checkReceipt compares the bundle of an event with its receipt.
func checkReceipt(r client.Result, b *verify.Bundle, report verify.Report, size id.Index) error {
	switch {
	case !report.OK:
		return fmt.Errorf("the proof does not hold: %v", report.Errors)
	case report.SignatureOK == nil || !*report.SignatureOK:
		return errors.New("it does not show the agent's signature")
	case b.Inclusion.TreeSize != size:
		return fmt.Errorf("it is proved for a tree of %s, not %d", textcheck.Count(b.Inclusion.TreeSize, "leaf", "leaves"), size)
	case r.Status == client.Created && (b.SequenceNum != r.Sequence || b.EventHash != r.EventHash):
		return fmt.Errorf("it was acknowledged as #%d, and is #%d", r.Sequence, b.SequenceNum)
	}
	return nil
}

// findForks says which trees that were seen the newest one does not extend.
func (o *organization) findForks(ctx context.Context, newest tlog.Checkpoint) (forks []string, err error) {
	for _, size := range slices.Sorted(maps.Keys(o.heads)) {
		before := tlog.Checkpoint{Origin: newest.Origin, Size: size, Root: o.heads[size]}
		_, err := o.log().Consistency(ctx, before, newest)
		if isAway(err) {
			return forks, err
		}
		if err != nil {
			forks = append(forks, fmt.Sprintf("the tree of %s: %v", textcheck.Count(size, "leaf", "leaves"), err))
		}
	}
	return forks, nil
}
