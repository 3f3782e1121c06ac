package evidence

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/storedzip"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

// pacedWriter buffers a page of a pack. It writes while it does not hold a processor.
type pacedWriter struct {
	to   Output
	page bytes.Buffer
	give func() // nil while it holds no processor
}

// Write implements io.Writer.
func (w *pacedWriter) Write(b []byte) (int, error) { return w.page.Write(b) }

// begin waits for a processor.
func (w *pacedWriter) begin(ctx context.Context) (err error) {
	w.give, err = w.to.TakeTurn(ctx)
	return err
}

// end releases the processor.
func (w *pacedWriter) end() {
	if w.give != nil {
		w.give()
		w.give = nil
	}
}

// flush writes the page, and waits for a processor again.
func (w *pacedWriter) flush(ctx context.Context) error {
	if err := w.send(); err != nil {
		return err
	}
	return w.begin(ctx)
}

// send releases the processor and writes the page.
func (w *pacedWriter) send() error {
	w.end()
	_, err := w.to.Write(w.page.Bytes())
	w.page.Reset()
	return err
}

// packWriter writes one pack.
type packWriter struct {
	exporter *Exporter
	plan     *plan
	out      *pacedWriter
	zip      *storedzip.Writer
	files    []pack.File
	file     fileWriter
	report   report
	accounts map[account.ID]person
}

// fileWriter is the file that is being written.
type fileWriter struct {
	io.Writer
	sum  hash.Hash
	size uint64
}

// Write implements io.Writer.
func (f *fileWriter) Write(b []byte) (int, error) {
	n, err := f.Writer.Write(b)
	f.sum.Write(b[:n])
	f.size += uint64(n)
	return n, err
}

// writeFile writes a file and records its digest.
func (w *packWriter) writeFile(name string, write func() error) error {
	to, err := w.zip.Create(name)
	if err != nil {
		return fmt.Errorf("write pack: %w", err)
	}
	w.file = fileWriter{Writer: to, sum: sha256.New()}
	if err := write(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	w.files = append(w.files, pack.File{Name: name, SHA256: id.Hash(w.file.sum.Sum(nil)), Size: w.file.size})
	return nil
}

// writeSmall writes a file whose content is in memory.
func (w *packWriter) writeSmall(ctx context.Context, name string, content []byte) error {
	return w.writeFile(name, func() error {
		if _, err := w.file.Write(content); err != nil {
			return err
		}
		return w.out.flush(ctx)
	})
}

// writePack writes all files in order.
func (w *packWriter) writePack(ctx context.Context) error {
	if err := w.out.begin(ctx); err != nil {
		return err
	}
	defer w.out.end()
	w.zip = storedzip.NewWriter(w.out)
	w.report.agents, w.report.columns = w.plan.agentNames, slices.Sorted(slices.Values(w.plan.columns()))
	manifest, err := w.beginManifest(ctx)
	if err != nil {
		return err
	}
	if err := w.writeNamed(ctx); err != nil {
		return err
	}
	if err := w.writeRange(ctx); err != nil {
		return err
	}
	if err := w.writeFile(pack.FileApprovals, func() error { return w.writeApprovals(ctx) }); err != nil {
		return err
	}
	if err := w.writeFile(pack.FileErasures, func() error { return w.writeErasures(ctx) }); err != nil {
		return err
	}
	if len(w.plan.voters.events) > 0 {
		if err := w.writeFile(pack.FileVoters, func() error { return w.writeVoters(ctx) }); err != nil {
			return err
		}
	}
	if err := w.writeFile(pack.FileActs, func() error { return w.writeActs(ctx) }); err != nil {
		return err
	}
	if err := w.writeFile(pack.FileReport, func() error { return w.writeReport(ctx) }); err != nil {
		return err
	}
	return w.finish(ctx, manifest)
}

// beginManifest proves the range.
func (w *packWriter) beginManifest(ctx context.Context) (*pack.Manifest, error) {
	x, p := w.exporter, w.plan
	m := &pack.Manifest{V: pack.Version, Origin: p.state.Identity().Origin,
		OrganizationID: p.state.Identity().Organization, Request: p.Wanted.request, Begin: p.begin, End: p.end,
		TreeSize: p.checkpoint.Size, RootHash: p.checkpoint.Root,
		Acts: &pack.ManifestActs{Columns: p.columns(), Lines: uint64(p.acts.Len())}}
	edge, last, err := x.edge(ctx, p)
	if err != nil {
		return nil, err
	}
	m.Edge = edge.Hashes()
	if p.begin < p.end {
		m.Prev = &last
	}
	if _, _, m.Consistency, err = x.Ledgers.Consistency(ctx, p.state, p.end, p.checkpoint.Size); err != nil {
		return nil, err
	}
	return m, nil
}

// edge returns the right edge of the tree before the range, and the hash that the first entry of the range contains.
// The audit path of a tree's last leaf is its edge, without that leaf and the smallest first.
func (x *Exporter) edge(ctx context.Context, p *plan) (edge tlog.Edge, last id.Hash, err error) {
	if p.begin == 0 {
		return edge, event.Genesis(p.state.Identity().Origin), nil
	}
	last, _, path, err := x.Ledgers.Inclusion(ctx, p.state, p.begin-1, p.begin)
	if err != nil {
		return edge, last, err
	}
	slices.Reverse(path)
	if edge, err = tlog.NewEdge(p.begin-1, path); err != nil {
		return edge, last, err
	}
	edge.Append(last)
	return edge, last, nil
}

// writeNamed writes the files before the entries.
func (w *packWriter) writeNamed(ctx context.Context) error {
	p := w.plan
	keys, err := describeLogKeys(p.state)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name    string
		content []byte
	}{{pack.FileCheckpoint, p.note}, {pack.FileKeys, keys}, {pack.FilePolicy, []byte(p.policyFile)},
		{pack.FileAgents, p.agentsFile}} {
		if err := w.writeSmall(ctx, f.name, f.content); err != nil {
			return err
		}
	}
	digests := slices.SortedFunc(maps.Keys(p.policies), func(a, b id.Hash) int { return bytes.Compare(a[:], b[:]) })
	for _, digest := range digests {
		document, err := w.exporter.readPolicy(ctx, p.Tenant, digest, p.policies[digest])
		if err != nil {
			return err
		}
		if err := w.writeSmall(ctx, pack.PolicyFile(digest), document.Canonical()); err != nil {
			return err
		}
		if len(w.report.policies) < maxPolicies {
			w.report.policies = append(w.report.policies, describePolicy(&document, digest, p.agentNames))
		}
	}
	return nil
}

// writeRange writes entries, records and envelopes, each in a separate pass.
func (w *packWriter) writeRange(ctx context.Context) error {
	for _, f := range []struct {
		name  string
		parts storage.Fields
		visit func(*storage.Event) (int, error)
	}{
		{pack.FileEntries, 0, func(e *storage.Event) (int, error) { return w.file.Write(e.Entry.Record[:]) }},
		{pack.FileRecords, storage.FieldRecord, w.writeRecord},
		{pack.FileEnvelopes, storage.FieldRecord | storage.FieldEnvelope, w.writeEnvelope},
	} {
		err := w.writeFile(f.name, func() error {
			if f.name == pack.FileEnvelopes && !w.plan.Wanted.request.Envelopes {
				return nil
			}
			return w.exporter.readPages(ctx, w.plan, f.parts, func() error { return w.out.flush(ctx) }, f.visit)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *packWriter) writeRecord(e *storage.Event) (int, error) {
	if !w.plan.shows(e) {
		return 0, nil
	}
	return w.writeLine(e.Record)
}

func (w *packWriter) writeEnvelope(e *storage.Event) (int, error) {
	switch {
	case !w.plan.shows(e):
		return len(e.Envelope), nil // read, though not written
	case e.ErasedBy != 0 && w.plan.erasing[e.ErasedBy]:
		return 0, nil
	case e.Envelope == nil:
		return 0, errErasedMeanwhile()
	}
	return w.writeLine(e.Envelope)
}

// writeActs writes the acts of the shown events.
func (w *packWriter) writeActs(ctx context.Context) error {
	if w.plan.acts.Len() == 0 {
		return nil
	}
	var text []byte
	visit := func(e *storage.Event) (int, error) {
		used := len(e.Record) + len(e.Envelope)
		if !w.plan.shows(e) {
			return used, nil
		}
		r, err := event.ParseRecord(e.Record)
		if err != nil {
			return 0, fmt.Errorf("record of event %d: %w", e.Index, err)
		}
		var envelope *event.Envelope
		switch erased := e.ErasedBy != 0 && w.plan.erasing[e.ErasedBy]; {
		case !w.plan.Wanted.request.Envelopes || erased:
		case e.Envelope == nil:
			return 0, errErasedMeanwhile()
		default:
			if envelope, err = parseStored(e); err != nil {
				return 0, err
			}
		}
		line, is := w.plan.acts.Line(e.Index, &r, envelope)
		if !is {
			return used, nil
		}
		w.report.addAct(&line)
		text = line.AppendText(text[:0])
		_, err = w.writeLine(text)
		return used + len(text), err
	}
	return w.exporter.readPages(ctx, w.plan, storage.FieldRecord|storage.FieldEnvelope, func() error { return w.out.flush(ctx) }, visit)
}

func errErasedMeanwhile() error {
	return fault.New(fault.Conflict, "An envelope was erased while the pack was made: try again")
}

func (w *packWriter) writeLine(text []byte) (int, error) {
	n, err := w.file.Write(text)
	if err != nil {
		return n, err
	}
	more, err := w.file.Write([]byte{'\n'})
	return n + more, err
}

// finish records the export, and writes what completes the pack.
func (w *packWriter) finish(ctx context.Context, m *pack.Manifest) error {
	w.plan.counts.Policies, w.plan.counts.Erasures = uint64(len(w.plan.policies)), uint64(len(w.plan.erasing))
	m.Counts, m.Files = w.plan.counts, w.files
	text, err := m.Text()
	if err != nil {
		return err
	}
	if err := w.out.send(); err != nil {
		return err
	}
	if err := w.exporter.state(ctx, w.plan, m, id.Hash(sha256.Sum256(text))); err != nil {
		return err
	}
	if err := w.out.begin(ctx); err != nil {
		return err
	}
	err = w.writeFile(pack.FileManifest, func() error { _, err := w.file.Write(text); return err })
	if err := cmp.Or(err, w.zip.Close()); err != nil {
		return err
	}
	return w.out.send()
}
