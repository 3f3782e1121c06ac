package archive_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive"
)

// The two organizations of all tests.
const (
	red  id.Tenant = 0x0102030405060708
	blue id.Tenant = red + 1
)

const width = 4 // events per bundle

const both = storage.FieldRecord | storage.FieldEnvelope

// world is a store with an archive.
type world struct {
	*archive.Engine
	t       *testing.T
	open    func(testing.TB) archive.Inner
	inner   archive.Inner
	objects *memory
	weight  int // additional bytes of each envelope
	heads   map[id.Tenant]storage.Head
	want    map[id.Tenant][]storage.Event
}

func newWorld(t *testing.T, open func(testing.TB) archive.Inner) *world {
	w := &world{t: t, open: open, objects: newMemory(), heads: map[id.Tenant]storage.Head{},
		want: map[id.Tenant][]storage.Event{}}
	w.start(open(t))
	t.Cleanup(func() { _ = w.inner.Close() })
	return w
}

// start creates an archive that wraps an engine.
func (w *world) start(inner archive.Inner) {
	w.t.Helper()
	w.inner = inner
	w.Engine = newEngine(w.t, archive.Options{Engine: inner, Objects: w.objects, Check: checkEnvelope,
		Logger: slog.New(slog.DiscardHandler)}.WithWidth(width))
}

// restart replaces the process by a new one.
func (w *world) restart() {
	w.t.Helper()
	if err := w.inner.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.start(w.open(w.t))
}

// checkEnvelope is the rule of these tests: a record ends with its envelope.
func checkEnvelope(record, envelope []byte) error {
	if len(envelope) == 0 || !bytes.HasSuffix(record, envelope) {
		return errors.New("another envelope")
	}
	return nil
}

// add appends n events of a tenant, the first of which erases ranges.
func (w *world) add(t id.Tenant, n int, erases ...id.Range) {
	w.t.Helper()
	head := w.heads[t]
	b := storage.Batch{Tenant: t, Expect: head, Head: head}
	for i := range n {
		at := head.Size + id.Index(i)
		envelope := fmt.Appendf(nil, "secret %d of %d", at, t)
		envelope = append(envelope, make([]byte, w.weight)...)
		record := fmt.Appendf(nil, "record %d of %d: %s", at, t, envelope)
		b.Events = append(b.Events, storage.Event{Index: at, ID: id.Event(fmt.Sprint("event-", at)),
			Entry:  storage.Entry{Prev: id.Hash{byte(at)}, Record: sha256.Sum256(record)},
			Record: record, Envelope: envelope,
			Columns: storage.Columns{ReceivedAt: 1_700_000_000_000, Agent: "agent", Tool: "tool", Effective: id.Allow}})
	}
	b.Head.Size += id.Index(n)
	b.Head.Root = id.Hash{byte(b.Head.Size), byte(b.Head.Size >> 8), 1}
	b.Head.Epoch, b.Head.ConfigVersion = 1, 1
	if n > 0 {
		b.Events[0].Erases = erases
	}
	if err := w.Append([]storage.Batch{b}).Wait()[0]; err != nil {
		w.t.Fatal(err)
	}
	w.heads[t] = b.Head
	for _, r := range erases {
		for at := r.Begin; at < r.End; at++ {
			if e := &w.want[t][at]; e.ErasedBy == 0 {
				e.Envelope, e.ErasedBy = nil, head.Size
			}
		}
	}
	for _, e := range b.Events {
		e.Erases = nil
		w.want[t] = append(w.want[t], e)
	}
}

func (w *world) pass() {
	w.t.Helper()
	if err := w.Pass(w.t.Context()); err != nil {
		w.t.Fatalf("pass: %v", err)
	}
}

// check reads all events of a tenant in three ways.
func (w *world) check(t id.Tenant, step string) {
	w.t.Helper()
	w.checkEach(t, step, 0, 1)
}

// checkEach reads all events of a tenant together and apart, and alone each n-th one from first on.
func (w *world) checkEach(t id.Tenant, step string, first, n id.Index) {
	w.t.Helper()
	var all, alone, wantAlone []storage.Event
	var at []id.Index
	for e, err := range w.Events(w.t.Context(), t, 0, storage.NoIndex, both) {
		if err != nil {
			w.t.Fatalf("%s: tenant %d: %v", step, t-red, err)
		}
		all, at = append(all, e), append(at, e.Index)
	}
	for i := first; i < id.Index(len(w.want[t])); i += n {
		for only, err := range w.Events(w.t.Context(), t, i, i+1, both) {
			if err != nil {
				w.t.Fatalf("%s: tenant %d: %v", step, t-red, err)
			}
			alone = append(alone, only)
		}
		wantAlone = append(wantAlone, w.want[t][i])
	}
	apart, err := w.EventsAt(w.t.Context(), t, at, both)
	if err != nil {
		w.t.Fatalf("%s: tenant %d: %v", step, t-red, err)
	}
	for _, read := range []struct {
		how       string
		got, want []storage.Event
	}{{"together", all, w.want[t]}, {"alone", alone, wantAlone}, {"apart", apart, w.want[t]}} {
		if !reflect.DeepEqual(read.got, read.want) {
			w.t.Errorf("%s: tenant %d, read %s: got\n%+v\nwant\n%+v", step, t-red, read.how, read.got, read.want)
		}
	}
}

// archived counts the events whose texts the inner engine has dropped.
func (w *world) archived(t id.Tenant) (n int) {
	w.t.Helper()
	for e, err := range w.inner.Events(w.t.Context(), t, 0, storage.NoIndex, both) {
		if err != nil {
			w.t.Fatal(err)
		}
		if e.Archived {
			n++
			if e.Record != nil || e.Envelope != nil {
				w.t.Errorf("event %d is archived and has texts", e.Index)
			}
		}
	}
	return n
}

// firstError reads one event and returns the error.
func (w *world) readError(t id.Tenant, at id.Index, of storage.Fields) error {
	for _, err := range w.Events(w.t.Context(), t, at, at+1, of) {
		return err
	}
	return nil
}
