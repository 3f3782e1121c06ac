package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/recordcheck"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage"
)

// outgoing is the export of one organization.
type outgoing struct {
	*Exporter
	tenant   id.Tenant
	progress Progress
	source   *audit.Export
	manifest manifest
	line     []byte // reused buffer
}

func (w *outgoing) exportOrganization(ctx context.Context) (listed, error) {
	if err := w.openLedger(ctx); err != nil {
		return listed{}, err
	}
	steps := []func(context.Context) error{
		w.continueExport, w.exportEvents, w.checkErased, w.exportRecords, w.source.Finish,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return listed{}, fmt.Errorf("%s: %w", w.manifest.Slug, err)
		}
	}
	end, err := w.manifest.writeManifest(w.Keyring)
	if err != nil {
		return listed{}, fmt.Errorf("%s: manifest: %w", w.manifest.Slug, err)
	}
	return listed{Organization: w.manifest.Organization, SHA256: end.SHA256}, nil
}

// openLedger reads the identity of the organization.
func (w *outgoing) openLedger(ctx context.Context) error {
	var err error
	options := log.Options{Store: w.Store, Keyring: w.Keyring, Anchors: w.Anchors, Logger: w.Logger}
	if w.source, err = audit.OpenExport(ctx, options, w.tenant); err != nil {
		return err
	}
	state := w.source.State()
	identity, head := state.Identity(), w.source.Head()
	names, err := namesOfRecord(ctx, w.Store, w.tenant)
	if err != nil {
		return Damagedf("%s: organization's record: %w", identity.Origin, err)
	}
	if names.ID != identity.Organization {
		return Damagedf("%s: organization's record belongs to another organization", identity.Origin)
	}
	w.manifest = manifest{dir: organizationDir(w.Dir, names.ID, identity.Origin), keyring: w.Keyring, details: details{
		Organization: Organization{
			ID:     names.ID,
			Slug:   names.Slug,
			Origin: identity.Origin,
			Size:   head.Size,
			Root:   head.Root,
		},
		Tenant:        handle(w.tenant),
		LogKey:        state.VerifierKey().String(),
		Last:          head.Last,
		LastReceived:  head.LastReceived,
		ConfigVersion: head.ConfigVersion,
		Checkpoint:    string(state.Checkpoint()),
		Ended:         w.source.Ended(),
		ExportedAt:    id.InstantOf(w.Clock()),
	}}
	w.progress.Organization, w.progress.Size = names.Slug, head.Size
	return createPrivateDir(w.manifest.dir)
}

// continueExport continues after the complete pieces of events in the directory that follow each other and belong to
// the store's ledger. All other pieces are written again.
func (w *outgoing) continueExport(ctx context.Context) error {
	entries, err := os.ReadDir(w.manifest.dir)
	if err != nil {
		return err
	}
	var end sum
	for _, e := range entries { // sorted by name and thus by their first event
		path := filepath.Join(w.manifest.dir, e.Name())
		switch whole := strings.TrimSuffix(e.Name(), partSuffix); {
		case slices.Contains([]string{manifestName, recordsName, serviceName}, whole),
			whole != e.Name() && strings.HasPrefix(whole, "events-"):
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		case !strings.HasPrefix(e.Name(), "events-"):
			return Refusedf("%s does not belong in an export", path)
		}
		p := listedPiece{File: eventsPieceName(end.Size), Piece: pieceEvents, Begin: end.Size}
		if e.Name() != p.File {
			return Damagedf("%s is not the piece that starts at event %d", path, end.Size)
		}
		if end, err = w.exportTail(p); err != nil {
			return err
		}
		p.SHA256 = end.SHA256
		w.manifest.pieces = append(w.manifest.pieces, p)
	}
	if end.Size == 0 {
		return nil
	}
	if end.Size > w.source.Head().Size {
		return Damagedf("%s: contains %s, but the store has %d", w.manifest.dir, textcheck.Count(end.Size, "event"), w.source.Head().Size)
	}
	return w.source.Skip(ctx, end.Size, end.Root)
}

// exportTail returns the last line of a piece that was written before. It reads the whole piece, because the manifest
// will authenticate it.
func (w *outgoing) exportTail(p listedPiece) (sum, error) {
	r, err := w.manifest.openPiece(p)
	if err != nil {
		return sum{}, err
	}
	defer r.close()
	for err == nil {
		_, err = r.nextLine()
	}
	if !errors.Is(err, io.EOF) {
		return sum{}, err
	}
	if r.end.Size <= p.Begin {
		return sum{}, r.damagedPiece("has no last line")
	}
	return r.end, nil
}

// exportEvents writes the pieces of events.
func (w *outgoing) exportEvents(ctx context.Context) error {
	for {
		at, _ := w.source.Position()
		w.progress.Events = at
		w.Report(w.progress)
		if at == w.source.Head().Size {
			return nil
		}
		if err := w.exportEventsPiece(ctx, at); err != nil {
			return err
		}
	}
}

// exportEventsPiece writes one piece. Its content is verified before the piece is sealed.
func (w *outgoing) exportEventsPiece(ctx context.Context, begin id.Index) error {
	p := listedPiece{File: eventsPieceName(begin), Piece: pieceEvents, Begin: begin}
	piece, err := createPiece(filepath.Join(w.manifest.dir, p.File), newPieceHeader(pieceEvents, w.manifest.ID, begin),
		w.Keyring)
	if err != nil {
		return err
	}
	for err == nil && piece.bytes < w.PieceBytes {
		var events []storage.Event
		if events, err = w.source.Next(ctx, w.eventsAtOnce()); err != nil || len(events) == 0 {
			break
		}
		err = w.putEvent(piece, events)
		w.progress.Events, _ = w.source.Position()
		w.Report(w.progress)
	}
	if err == nil {
		err = w.source.Check(ctx)
	}
	if err != nil {
		piece.discardPiece()
		return err
	}
	size, root := w.source.Position()
	end, err := piece.sealPiece(size, root)
	p.SHA256 = end.SHA256
	w.manifest.pieces = append(w.manifest.pieces, p)
	return err
}

// eventsAtOnce returns how many events are verified together: enough to keep all cores busy, but few compared to the
// length of a piece.
func (w *outgoing) eventsAtOnce() int {
	const most, small = 1024, 1 << 10
	return int(min(max(w.PieceBytes/small/4, 16), most))
}

func (w *outgoing) putEvent(piece *pieceWriter, events []storage.Event) error {
	var err error
	for i := range events {
		if w.line, err = appendEventLine(w.line[:0], &events[i]); err != nil {
			return err
		}
		if err := piece.writeLine(w.line); err != nil {
			return err
		}
	}
	return nil
}

// checkErased searches the pieces that were written before for texts that were erased since then.
func (w *outgoing) checkErased(ctx context.Context) error {
	erased := w.source.Erased()
	if len(erased) == 0 {
		return nil
	}
	return w.manifest.forEachEvent(ctx, 0, func(_ *pieceReader, e storage.Event) error {
		if e.Envelope == nil || event.ReservedAgent(string(e.Agent)) {
			return nil
		}
		if slices.ContainsFunc(erased, func(r id.Range) bool { return r.Contains(e.Index) }) {
			return Refusedf("%s: event %d: %w", w.manifest.dir, e.Index, audit.ErrErasedSince)
		}
		return nil
	}, func(*pieceReader) error { return nil })
}

// exportRecords writes the organization's partition and its entries in the service's own partition.
func (w *outgoing) exportRecords(ctx context.Context) error {
	own, err := createPiece(filepath.Join(w.manifest.dir, recordsName), newPieceHeader(pieceRecords, w.manifest.ID, 0),
		w.Keyring)
	if err != nil {
		return err
	}
	service, err := createPiece(filepath.Join(w.manifest.dir, serviceName),
		newPieceHeader(pieceService, w.manifest.ID, 0), w.Keyring)
	if err != nil {
		own.discardPiece()
		return err
	}
	if err := w.exportPartition(ctx, own, service); err != nil {
		own.discardPiece()
		service.discardPiece()
		return err
	}
	head := w.source.Head()
	for _, piece := range []*pieceWriter{own, service} {
		end, err := piece.sealPiece(head.Size, head.Root)
		if err != nil {
			return err
		}
		p := listedPiece{File: recordsName, Piece: pieceRecords, SHA256: end.SHA256}
		if piece == service {
			p.File, p.Piece = serviceName, pieceService
		}
		w.manifest.pieces = append(w.manifest.pieces, p)
	}
	return nil
}

func (w *outgoing) exportPartition(ctx context.Context, own, service *pieceWriter) error {
	find := func(want indexEntry) (storage.Record, bool, error) {
		return findStored(ctx, w.Store, want)
	}
	seen := func(r storage.Record) error {
		if err := recordcheck.Decode(r); err != nil {
			return Damagedf("records: %w", err)
		}
		return putRecord(service, &r)
	}
	known := []bool{false, false}
	for r, err := range storage.PartitionOf(ctx, w.Store, w.tenant) {
		if errors.Is(err, storage.ErrCorrupt) {
			return Damagedf("records: %w", err)
		}
		if err != nil {
			return err
		}
		if log.Local(r.Kind) {
			continue
		}
		if err := recordcheck.Decode(r); err != nil {
			return Damagedf("records: %w", err)
		}
		known[0] = known[0] || log.IsIdentity(r)
		known[1] = known[1] || org.IsFounding(r)
		if err := putRecord(own, &r); err != nil {
			return err
		}
		if w.manifest.Ended { // its entries there belong to its successor
			continue
		}
		if err := followEntry(w.tenant, r, find, seen); err != nil {
			return err
		}
	}
	if slices.Contains(known, false) {
		return Damagedf("records: the organization's own records are missing")
	}
	return nil
}

func putRecord(piece *pieceWriter, r *storage.Record) error {
	line, err := encodeRecord(r)
	if err != nil {
		return fmt.Errorf("%s %q: %w", r.Kind, r.Key, err)
	}
	return piece.writeLine(line)
}
