package transfer

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/recordcheck"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// checked is the result of reading all pieces of an organization.
type checked struct {
	identity storage.Record // of the ledger
	founding storage.Record // of the organization
	at       id.Index       // the requested size
	root     id.Hash        // at that size
	last     id.Hash
	stated   recordcheck.Statements // stated by all events
}

// verifyExport reads all of an organization and compares it with its checkpoint: file hashes, hash chain, record
// hashes, tree, and that it contains nothing of another organization. at is a size whose root the caller needs.
func (m *manifest) verifyExport(ctx context.Context, at id.Index, report func(id.Index)) (*checked, error) {
	c := &checked{at: at}
	if err := m.checkSignedHead(); err != nil {
		return nil, err
	}
	if m.ConfigVersion > recordcheck.MaxNumber {
		return nil, Damagedf("%s: config_version %d is too large", m.dir, m.ConfigVersion)
	}
	if err := m.checkEvents(ctx, c, report); err != nil {
		return nil, err
	}
	return c, m.checkRecords(ctx, c)
}

// checkSignedHead compares the manifest with its checkpoint.
func (m *manifest) checkSignedHead() error {
	key, err := tlog.ParseVerifierKey(m.LogKey)
	if err != nil {
		return Damagedf("%s: log key: %w", m.dir, err)
	}
	c, err := tlog.OpenCheckpoint([]byte(m.Checkpoint), key)
	if err != nil {
		return Damagedf("%s: checkpoint: %w", m.dir, err)
	}
	m.shown = c.Size
	if c.Origin != m.Origin || !m.Ended && (c.Size != m.Size || c.Root != m.Root) {
		return Damagedf("%s: the checkpoint is for another head", m.dir)
	}
	return nil
}

func (m *manifest) checkEvents(ctx context.Context, c *checked, report func(id.Index)) error {
	tree, last := new(tlog.Builder), event.Genesis(m.Origin)
	note := func() {
		if tree.Size() == c.at {
			c.root, c.last = tree.Root(), last
		}
	}
	note()
	var full []tlog.FullTile
	erased := make(erasures)
	err := m.forEachEvent(ctx, 0, func(r *pieceReader, e storage.Event) error {
		switch {
		case e.Index != tree.Size():
			return r.damagedPiece("line %d: got event %d, want %d", r.read+1, e.Index, tree.Size())
		case e.Entry.Prev != last:
			return r.damagedPiece("line %d: entry %d does not link to the previous entry", r.read+1, e.Index)
		case event.RecordHash(e.Record) != e.Entry.Record:
			return r.damagedPiece("line %d: record %d does not match its entry", r.read+1, e.Index)
		}
		if err := erased.noteEvent(&e); err != nil {
			return r.damagedPiece("line %d: %w", r.read+1, err)
		}
		if err := c.stated.Note(&e); err != nil {
			return r.damagedPiece("line %d: %w", r.read+1, err)
		}
		last = log.EntryOf(e).Hash()
		full = tree.Append(full[:0], last)
		if note(); tree.Size()%chunk == 0 {
			report(tree.Size())
		}
		return nil
	}, func(r *pieceReader) error {
		if r.end.Size != tree.Size() || r.end.Root != tree.Root() {
			return r.damagedPiece("the root of its events differs from the root in its last line")
		}
		return nil
	})
	if err == nil && (tree.Size() != m.Size || tree.Root() != m.Root || last != m.Last) {
		err = Damagedf("%s: the events have size %d and root %v, but the checkpoint has size %d and root %v", m.dir,
			tree.Size(), tree.Root(), m.Size, m.Root)
	}
	if err == nil {
		if missing := erased.end(); missing != nil {
			err = Damagedf("%s: %w", m.dir, missing)
		}
	}
	report(tree.Size())
	return err
}

// forEachEvent calls see for the events from begin on, and whole at the end of each piece.
func (m *manifest) forEachEvent(
	ctx context.Context, begin id.Index, see func(*pieceReader, storage.Event) error, whole func(*pieceReader) error,
) error {
	pieces := slices.DeleteFunc(slices.Clone(m.pieces), func(p listedPiece) bool { return p.Piece != pieceEvents })
	for i, p := range pieces {
		if i+1 < len(pieces) && pieces[i+1].Begin <= begin {
			continue
		}
		err := m.forEachLine(ctx, p, func(r *pieceReader, line []byte) error {
			e, err := parseEventLine(line)
			if err != nil {
				return r.damagedPiece("line %d: %w", r.read+1, err)
			}
			if e.Index < begin {
				return nil
			}
			return see(r, e)
		}, whole)
		if err != nil {
			return err
		}
	}
	return nil
}

// forEachLine calls see for each line of a piece, and whole at its end.
func (m *manifest) forEachLine(
	ctx context.Context, p listedPiece, see func(*pieceReader, []byte) error, whole func(*pieceReader) error,
) error {
	r, err := m.openPiece(p)
	if err != nil {
		return err
	}
	defer r.close()
	for {
		line, err := r.nextLine()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = see(r, line)
		}
		if err != nil {
			return err
		}
	}
	if err := m.closeLine(r, p); err != nil {
		return err
	}
	return whole(r)
}

// checkRecords reads both pieces of records in step: for each record of the organization, the other piece must
// contain exactly the record's entries in the service's own partition, in the same order.
func (m *manifest) checkRecords(ctx context.Context, c *checked) error {
	compared := c.stated.Compare(m.Origin)
	err := m.forEachRecord(ctx, func(r storage.Record) error {
		switch {
		case log.IsIdentity(r):
			c.identity = r
		case org.IsFounding(r):
			c.founding = r
		}
		if err := recordcheck.Decode(r); err != nil {
			return err
		}
		return compared.See(r)
	}, recordcheck.Decode)
	if err != nil {
		return err
	}
	if found := compared.End(); len(found) > 0 && !m.Ended { // the successor's records may differ
		return Damagedf("%s: the records contradict the log in %s; the first: %s",
			m.pieceNamed(pieceRecords).pathIn(m), textcheck.Count(len(found), "place"), found[0])
	}
	names, err := org.NamesOf(c.founding)
	if err != nil || c.identity.Value == nil || names.ID != m.ID || names.Slug != m.Slug {
		return Damagedf("%s: the organization's own records are missing or belong to another organization",
			m.pieceNamed(pieceRecords).pathIn(m))
	}
	return nil
}

func (p listedPiece) pathIn(m *manifest) string { return m.dir + "/" + p.File }

// forEachRecord calls own for the records of the organization's partition, and service for their entries in the
// service's own partition.
func (m *manifest) forEachRecord(ctx context.Context, own, service func(storage.Record) error) error {
	other, err := m.openPiece(m.pieceNamed(pieceService))
	if err != nil {
		return err
	}
	defer other.close()
	peeked := bufferedReader{r: other}
	var before storage.Record
	err = m.forEachLine(ctx, m.pieceNamed(pieceRecords), func(r *pieceReader, line []byte) error {
		record, err := parseRecordLine(line)
		switch {
		case err != nil:
			return r.damagedPiece("line %d: %w", r.read+1, err)
		case log.Local(record.Kind) || before.Kind != "" && compareRecords(before, record) >= 0:
			return r.damagedPiece("line %d: %s %q does not belong there", r.read+1, record.Kind, record.Key)
		}
		before = record
		if err := own(record); err != nil {
			return damagedUnlessKnown(r, err)
		}
		if m.Ended {
			return nil
		}
		if err := followEntry(m.parsedTenant(), record, peeked.findEntry, service); err != nil {
			return damagedUnlessKnown(r, err)
		}
		return nil
	}, func(*pieceReader) error { return nil })
	if err != nil {
		return err
	}
	if err := peeked.checkExhausted(); err != nil {
		return err
	}
	return m.closeLine(other, m.pieceNamed(pieceService))
}

// damagedUnlessKnown adds the position to an error of a record's owner.
func damagedUnlessKnown(r *pieceReader, err error) error {
	if errors.Is(err, storage.ErrCorrupt) || errors.Is(err, storage.ErrNotFound) {
		return r.damagedPiece("line %d: %w", r.read+1, err)
	}
	return err
}
