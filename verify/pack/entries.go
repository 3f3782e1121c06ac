package pack

import (
	"bufio"
	"fmt"
	"io"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// checkEntries rebuilds the entries of the range from the hashes of their records, and checks that
// they lead from the tree of Begin leaves to the tree of the checkpoint.
func (c *checker) checkEntries() error {
	m := &c.manifest
	if uint64(c.files.byName[FileEntries].size) != uint64(m.End-m.Begin)*uint64(len(id.Hash{})) {
		return fmt.Errorf("length of %s: %w", FileEntries, verify.ErrMismatch)
	}
	edge, err := tlog.NewEdge(m.Begin, m.Edge)
	if err != nil {
		return fmt.Errorf("edge: %w", err)
	}
	if m.Begin == 0 && m.Prev != nil && *m.Prev != event.Genesis(m.Origin) {
		return fmt.Errorf("prev of the log's first entry: %w", verify.ErrMismatch)
	}
	if err := c.appendEntries(&edge); err != nil {
		return err
	}
	if m.End == 0 {
		if len(m.Consistency) > 0 {
			return fmt.Errorf("consistency: %w", tlog.ErrProof)
		}
		return nil
	}
	if err := tlog.CheckConsistency(m.End, m.TreeSize, edge.Root(), m.RootHash, m.Consistency); err != nil {
		return fmt.Errorf("entries and checkpoint: %w", err)
	}
	return nil
}

func (c *checker) appendEntries(edge *tlog.Edge) error {
	m := &c.manifest
	file := c.files.byName[FileEntries]
	content, err := file.open()
	if err != nil {
		return err
	}
	if c.entries, err = file.readerAt(); err != nil {
		return err
	}
	in := bufio.NewReaderSize(content, 64<<10)
	var entry event.Entry
	if m.Prev != nil {
		entry.Prev = *m.Prev
	}
	for i := m.Begin; i < m.End; i++ {
		if _, err := io.ReadFull(in, entry.Record[:]); err != nil {
			return err
		}
		entry.Seq = i.Sequence()
		leaf := entry.Hash()
		edge.Append(leaf)
		entry.Prev = leaf
	}
	return nil
}

// checkLogged reads the record of an event in the range and checks that the log contains it.
func (c *checker) checkLogged(text []byte) (d verify.Documents, at id.Index, err error) {
	if d.Record, err = event.ParseRecord(text); err != nil {
		return d, 0, fmt.Errorf("record: %w", verify.ErrMalformed)
	}
	m, r := &c.manifest, &d.Record
	at = id.Index(r.SequenceNum - 1)
	if r.Origin != m.Origin || r.OrganizationID != m.OrganizationID || at < m.Begin || at >= m.End {
		return d, 0, fmt.Errorf("record and the manifest's origin, organization_id, range: %w", verify.ErrMismatch)
	}
	var want id.Hash
	if n, err := c.entries.ReadAt(want[:], int64(at-m.Begin)*int64(len(want))); n < len(want) {
		return d, 0, err
	}
	if event.RecordHash(text) != want {
		return d, 0, fmt.Errorf("record and the entry at its index: %w", verify.ErrMismatch)
	}
	return d, at, nil
}
