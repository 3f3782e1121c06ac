package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// signedHead is a checkpoint that one of the log's keys signed.
type signedHead struct {
	tlog.Checkpoint
	note []byte
	from string // display name of the source
}

// openCheckpoint checks the signature of a checkpoint under the known keys.
func (m *Monitor) openCheckpoint(note []byte, from string) (signedHead, error) {
	var first error
	for _, k := range m.knownKeys() {
		c, err := tlog.OpenCheckpoint(note, k.Key)
		if err == nil && !k.Signed(c.Size) {
			err = fmt.Errorf("the key %s signs no tree of size %d, because the log has another key for it: %w",
				verify.Signer(k.Key.Name(), k.Key.Hash()), c.Size, tlog.ErrSignature)
		}
		if err == nil {
			return signedHead{Checkpoint: c, note: note, from: from}, nil
		}
		if first == nil {
			first = err
		}
	}
	return signedHead{}, m.explainUnopened(note, from, first)
}

// openShownCheckpoint is openCheckpoint after following the log's rotations. Its error names the
// source.
func (m *Monitor) openShownCheckpoint(ctx context.Context, s *state, note []byte, from, what string) (signedHead, error) {
	unstated := m.followKeys(ctx, s, note)
	if err := findingIn(unstated); err != nil {
		return signedHead{}, err
	}
	h, err := m.openCheckpoint(note, from)
	if unknown := (*UnknownKeyError)(nil); errors.As(err, &unknown) {
		unknown.Unstated = unstated
	}
	switch {
	case err == nil:
		return h, nil
	case errors.As(err, new(*UnknownKeyError)), errors.As(err, new(*AnotherLogError)):
		return h, err // the error names the source itself
	}
	return h, fmt.Errorf("%s: %s%w", from, what, err)
}

// fetchHead fetches and opens the latest checkpoint of a source.
func (m *Monitor) fetchHead(ctx context.Context, s *state, source *client.Tiles) (signedHead, error) {
	note, err := source.Checkpoint(ctx)
	if err != nil {
		return signedHead{}, fmt.Errorf("%s: %w", source.Prefix(), err)
	}
	return m.openShownCheckpoint(ctx, s, note, source.Prefix(), "")
}

// fetchOtherHeads fetches the heads of all other sources concurrently. This must happen before the
// log's own head is fetched, so that the log knows every other head by then.
func (m *Monitor) fetchOtherHeads(ctx context.Context, s *state, r *Report) (heads []signedHead, unread error) {
	notes, errs := make([][]byte, len(m.Others)), make([]error, len(m.Others))
	var wg sync.WaitGroup
	for i, other := range m.Others {
		wg.Go(func() { notes[i], errs[i] = other.Checkpoint(ctx) })
	}
	wg.Wait()
	answers := make([]signedHead, len(m.Others))
	for i, other := range m.Others {
		if errs[i] != nil {
			errs[i] = fmt.Errorf("%s: %w", other.Prefix(), errs[i])
		} else {
			answers[i], errs[i] = m.openShownCheckpoint(ctx, s, notes[i], other.Prefix(), "")
		}
		report := SourceReport{URL: other.Prefix(), TreeSize: answers[i].Size}
		if errs[i] != nil {
			report.Error = errs[i].Error()
		} else {
			heads = append(heads, answers[i])
		}
		r.Sources = append(r.Sources, report)
	}
	if err := errors.Join(errs...); err != nil {
		return heads, fmt.Errorf("compare with others: %w", err)
	}
	return heads, nil
}

// fetchNewestHead fetches the log's head. If it is smaller than a known head, it fetches again a
// few times, because nodes of a service or a cache may lag behind. After that it is a finding,
// because a log never shrinks.
func (m *Monitor) fetchNewestHead(ctx context.Context, s *state, known []signedHead) (signedHead, error) {
	for look := 1; ; look++ {
		shown, err := m.fetchHead(ctx, s, m.Log)
		var largest signedHead
		for _, k := range slices.Concat(known, s.stated) {
			if k.Size > largest.Size {
				largest = k
			}
		}
		switch {
		case err != nil:
			return signedHead{}, err
		case shown.Size >= largest.Size:
			return shown, nil
		case look >= m.Looks:
			return signedHead{}, &Finding{Kind: Rollback, Known: largest.asEvidence(), Shown: shown.asEvidence(),
				What: "the log shows a smaller signed head than before"}
		}
		if err := syncs.Sleep(ctx, m.Pause); err != nil {
			return signedHead{}, err
		}
	}
}

// checkExtends checks that the tree of shown extends the tree of known, which must not be larger.
// The proof is computed from the log's own tiles.
func (m *Monitor) checkExtends(ctx context.Context, known, shown signedHead) error {
	if known.Size == shown.Size && known.Root != shown.Root {
		return &Finding{Kind: Fork, Known: known.asEvidence(), Shown: shown.asEvidence(),
			What: "two signed heads of one size have different roots"}
	}
	if known.Size == shown.Size || known.Size == 0 {
		return nil
	}
	prover := tlog.NewProver(m.Log.At(shown.Size), nil)
	proof, err := prover.Consistency(ctx, known.Size, shown.Size)
	if err != nil {
		return err
	}
	if tlog.CheckConsistency(known.Size, shown.Size, known.Root, shown.Root, proof) == nil {
		return nil
	}
	return m.contradiction(ctx, prover, known, shown,
		verify.Consistency{From: known.Size, To: shown.Size, ToRoot: shown.Root, Hashes: proof})
}

// contradiction returns why there is no proof. Either the tiles belong to the shown head and
// contain another tree of the known size (then the two heads and a proof of that tree are
// sufficient evidence), or they belong to neither head.
func (m *Monitor) contradiction(ctx context.Context, p *tlog.Prover, known, shown signedHead,
	proof verify.Consistency) error {
	root, err := p.Root(ctx, known.Size)
	if err != nil {
		return err
	}
	proof.FromRoot = root
	if root != known.Root && tlog.CheckConsistency(known.Size, shown.Size, root, shown.Root, proof.Hashes) == nil {
		return &Finding{Kind: Fork, Known: known.asEvidence(), Shown: shown.asEvidence(), Proof: &proof,
			What: "the signed head has another tree below it than the one that was signed before"}
	}
	return &Finding{Kind: Tampering, Known: known.asEvidence(), Shown: shown.asEvidence(),
		What: "tiles do not lead to the signed root"}
}
