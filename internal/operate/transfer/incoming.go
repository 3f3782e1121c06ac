package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage"
)

// incoming is the import of one organization.
type incoming struct {
	*Importer
	*manifest
	ledgers  *log.Ledgers
	progress Progress
	checked  *checked
}

// prepareImport verifies the whole export, checks whether it can be imported here, and claims its names.
func (w *incoming) prepareImport(ctx context.Context) (Arrived, error) {
	head, err := w.Store.Head(ctx, w.parsedTenant())
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return Arrived{}, err
	}
	if w.checked, err = w.verifyExport(ctx, head.Size, w.reportStep("checking")); err != nil {
		return Arrived{}, err
	}
	result := Arrived{Organization: w.Organization, Before: head.Size}
	if result.There, err = w.isComplete(ctx); err != nil || result.There {
		return result, err
	}
	if w.Ended {
		return result, nil
	}
	return result, w.claimEntries(ctx, false)
}

func (w *incoming) importEvents(ctx context.Context) error {
	arriving, err := audit.BeginImport(ctx, w.ledgers, w.Store, w.parsedTenant(), w.checked.identity)
	if err != nil {
		return AsRefusal(err)
	}
	if err := w.appendEvents(ctx, arriving); err != nil {
		return err
	}
	return w.finishImport(ctx, arriving)
}

// reportStep returns a function that reports the progress of a step.
func (w *incoming) reportStep(name string) func(id.Index) {
	return func(at id.Index) {
		w.progress.Step, w.progress.Events = name, at
		w.Report(w.progress)
	}
}

// isComplete compares the organization in the store with the export, and reports whether it is already here, complete
// and open.
func (w *incoming) isComplete(ctx context.Context) (there bool, err error) {
	s, err := w.ledgers.Standing(ctx, w.parsedTenant(), w.checked.identity)
	if err != nil {
		return false, AsRefusal(err)
	}
	if s.KeyAt(w.shown).String() != w.LogKey || s.Identity.Origin != w.Origin || s.Identity.Organization != w.ID {
		return false, Damagedf("%s: the ledger's identity differs from the manifest",
			w.pieceNamed(pieceRecords).pathIn(w.manifest))
	}
	if err := w.checkPrivateKeys(ctx, s.Identity); err != nil {
		return false, err
	}
	if w.ledgers.SlugsDoubtful() {
		return false, Refusedf("names.journal of the anchors is damaged or was missing, so org_slug %q may belong to an organization that was lost: "+
			"start the service once, or run agentledger adopt --all-heads --reason TEXT", w.Slug)
	}
	if w.ledgers.SlugTaken(w.Slug, w.Origin) {
		return false, Refusedf("org_slug %q is taken here by another organization, which may have been lost", w.Slug)
	}
	if shown := w.ledgers.Shown(w.Origin); shown > w.shown {
		return false, Refusedf("its checkpoint of size %d was already published, but the export has size %d: "+
			"a newer export is needed", shown, w.shown)
	}
	switch {
	case s.Absent():
		return false, nil
	case s.Head.Size > w.Size:
		return false, Refusedf("it is already here with %s, but the export has %d", textcheck.Count(s.Head.Size, "event"), w.Size)
	case s.Head.Root != w.checked.root || s.Head.Last != w.checked.last:
		return false, Refusedf("its events in the store differ from the export, below size %d", s.Head.Size)
	}
	if w.Ended && s.Level == log.Frozen && s.Head.Size == w.Size {
		return true, nil
	}
	return w.mayContinue(s)
}

// checkPrivateKeys returns an error if a private key of the organization cannot be decrypted here.
func (w *incoming) checkPrivateKeys(ctx context.Context, identity *log.Identity) error {
	return w.forEachRecord(ctx, func(r storage.Record) error {
		for _, s := range w.Sealed {
			if s.Kind != r.Kind || r.Key != "" {
				continue
			}
			if _, _, err := s.Reseal(w.Keyring, identity.KeyOwner(), r.Value); err != nil {
				return AsRefusal(fmt.Errorf("%s: %w", r.Kind, err))
			}
		}
		return nil
	}, func(storage.Record) error { return nil })
}

// mayContinue checks whether the state of the ledger here allows the export to extend it.
func (w *incoming) mayContinue(s log.Standing) (there bool, err error) {
	switch s.Level {
	case log.Importing:
		return false, nil
	case log.Moved:
		if s.Head.Size == w.Size && !w.Reopen {
			return false, Refusedf("it was moved from here at exactly this size: use --reopen to continue it here, " +
				"if it did not continue elsewhere")
		}
		return false, nil
	case log.Healthy:
		if s.Head.Size == w.Size {
			return true, nil
		}
		return false, Refusedf("it is already here and open, with %s", textcheck.Count(s.Head.Size, "event"))
	}
	return false, Refusedf("it is already here, and its ledger has a fault: %s", s.Level)
}

// chunk is the number of events that are submitted at once, and chunksAhead the number of submitted chunks: together
// as many as fit into two appends of the sequencer.
const (
	chunk       = 512
	chunksAhead = 4
)

// appendEvents submits the events that the store does not yet have.
func (w *incoming) appendEvents(ctx context.Context, arriving *audit.Import) error {
	h := &submission{Import: arriving, report: w.reportStep("importing")}
	h.report(arriving.Head().Size)
	err := w.forEachEvent(ctx, arriving.Head().Size, func(_ *pieceReader, e storage.Event) error {
		if h.next = append(h.next, e); len(h.next) < chunk {
			return nil
		}
		return h.submitChunk(ctx)
	}, func(*pieceReader) error { return nil })
	if err == nil && len(h.next) > 0 {
		err = h.submitChunk(ctx)
	}
	for len(h.waits) > 0 {
		if failed := h.awaitOldest(ctx); err == nil {
			err = failed
		}
	}
	return err
}

// submission is a sequence of events that were submitted to the ledger and are not yet committed.
type submission struct {
	*audit.Import
	report func(id.Index)
	next   []storage.Event
	waits  []func(context.Context) error
	sizes  []id.Index // the size when each of them is committed
}

func (h *submission) submitChunk(ctx context.Context) error {
	wait, err := h.Append(ctx, h.next)
	if err != nil {
		return AsRefusal(err)
	}
	h.waits, h.sizes, h.next = append(h.waits, wait), append(h.sizes, h.Head().Size), nil
	if len(h.waits) < chunksAhead {
		return nil
	}
	return h.awaitOldest(ctx)
}

func (h *submission) awaitOldest(ctx context.Context) error {
	err := h.waits[0](ctx)
	if err == nil {
		h.report(h.sizes[0])
	}
	h.waits, h.sizes = h.waits[1:], h.sizes[1:]
	return err
}

// finishImport writes the records, then their entries in the service's own partition, and then opens the ledger with
// the step that makes the organization exist.
func (w *incoming) finishImport(ctx context.Context, arriving *audit.Import) error {
	founding, err := w.importRecords(ctx)
	if err != nil {
		return err
	}
	if w.Ended {
		return AsRefusal(arriving.End(ctx, []byte(w.Checkpoint), w.ConfigVersion, founding))
	}
	if err := w.claimEntries(ctx, true); err != nil {
		return err
	}
	return AsRefusal(arriving.Open(ctx, []byte(w.Checkpoint), w.ConfigVersion, founding))
}

// AsRefusal wraps ErrRefused around errors that depend on the state of the store.
func AsRefusal(err error) error {
	switch {
	case errors.Is(err, seal.ErrUnknownKey):
		return Refusedf("it has keys that are sealed under a master key that this service does not have: "+
			"add the master key of the exporting service: %w", err)
	case fault.Is(err, fault.Conflict), errors.Is(err, audit.ErrErasedSince):
		return Refusedf("%w", err)
	case errors.Is(err, storage.ErrStale), errors.Is(err, storage.ErrConflict):
		return Refusedf("the store was written by another process: stop it and run the import again: %w", err)
	}
	return err
}
