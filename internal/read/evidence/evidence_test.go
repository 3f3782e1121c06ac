package evidence_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/evidence"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

func parse(t testing.TB, query string) evidence.Wanted {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	wanted, err := evidence.ParseWanted(values)
	if err != nil {
		t.Fatal(err)
	}
	return wanted
}

// output records a pack and counts turns.
type output struct {
	bytes.Buffer
	turns int
	held  bool
	check func() error // at each write
}

func (o *output) TakeTurn(context.Context) (func(), error) {
	if o.held {
		return nil, errors.New("two turns at once")
	}
	o.turns, o.held = o.turns+1, true
	return func() { o.held = false }, nil
}

func (o *output) Write(b []byte) (int, error) {
	if o.held {
		return 0, errors.New("a write while it has a turn")
	}
	if o.check != nil {
		if err := o.check(); err != nil {
			return 0, err
		}
	}
	return o.Buffer.Write(b)
}

// export creates a pack.
func (w *world) export(t testing.TB, tenant id.Tenant, query string) string {
	t.Helper()
	var o output
	if err := w.exporter.Export(t.Context(), evidence.Asked{Tenant: tenant, Principal: "acc_1", Wanted: parse(t, query)}, &o); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return o.String()
}

// check checks a pack with the log's key.
func (w *world) check(t testing.TB, tenant id.Tenant, text string) pack.Report {
	t.Helper()
	key := w.State(t, tenant).VerifierKey()
	r, err := pack.Check(strings.NewReader(text), int64(len(text)), pack.Options{
		OpenCheckpoint: func(note []byte) (tlog.Checkpoint, error) { return tlog.OpenCheckpoint(note, key) }})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every range of a ledger, with every filter, gives a pack that verifies, shows exactly the events of a naive scan,
// and contains no text of another event.
func TestPacksAgainstAScan(t *testing.T) {
	onEngines(t, func(t *testing.T, w *world) {
		w.fill(t, red, 40)
		w.fill(t, blue, 3)
		for _, filter := range []string{"", "agent_id=agt_1", "tool=acme.orders.*", "trace_id=trc-2", "agent_id=agt_2&tool=acme.**&trace_id=trc-0",
			"on_behalf_of=user-1", "on_behalf_of=user-2&issuer=https://issuer-1.example", "on_behalf_of=user-1&agent_id=agt_2", "on_behalf_of=nobody"} {
			for _, at := range [][2]int{{0, 40}, {0, 1}, {7, 8}, {8, 31}, {16, 16}, {39, 40}, {13, 40}} {
				query := fmt.Sprintf("%s&from=%d&to=%d&envelopes=1", filter, at[0], at[1])
				text := w.export(t, red, query)
				r := w.check(t, red, text)
				want := uint64(0)
				for i, e := range w.sent[red] {
					in := at[0] <= i && i < at[1] && fits(filter, e)
					if in {
						want++
					}
					if got := strings.Contains(text, "secret-"+string(e.EventID)+"."); got != in {
						t.Errorf("%s: event %d: in the pack %v, want %v", query, i, got, in)
					}
					if !in && strings.Contains(text, e.Digest.String()) {
						t.Errorf("%s: event %d is withheld, and its digest is in the pack", query, i)
					}
				}
				if r.Shown != want || r.Withheld != uint64(at[1]-at[0])-want || strings.Contains(text, "secret-blue") {
					t.Errorf("%s: got %+v, want %d shown", query, r, want)
				}
			}
		}
	})
}

// The same request under the same head gives the same bytes. Another head changes only the checkpoint, the proofs and
// the statements about them, not the documents of the events.
func TestSameBytes(t *testing.T) {
	onEngines(t, func(t *testing.T, w *world) {
		w.fill(t, red, 12)
		w.exporter.Events = nothing{}
		first := w.export(t, red, "to=9&envelopes=1")
		if again := w.export(t, red, "to=9&envelopes=1"); again != first {
			t.Errorf("two packs of one head differ: %d and %d bytes", len(first), len(again))
		}
		if other := w.export(t, red, "to=9"); other == first {
			t.Error("another request has the same pack")
		}
		w.fill(t, red, 1)
		later := w.export(t, red, "to=9&envelopes=1")
		for name, before := range filesOf(t, first) {
			same := filesOf(t, later)[name] == before
			ofHead := name == pack.FileCheckpoint || name == pack.FileManifest || name == pack.FileReport
			if name == pack.FileManifest && same || !same && !ofHead {
				t.Errorf("%s under another head: the same %v", name, same)
			}
		}
	})
}

// filesOf returns the files of a pack by their names.
func filesOf(t *testing.T, text string) map[string]string {
	t.Helper()
	archive, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string)
	for _, f := range archive.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(content)
	}
	return files
}

// A page is flushed between two reads of the store, so that memory does not grow with the range.
func TestPagesAreBounded(t *testing.T) {
	w := newWorld(t)
	w.pad = strings.Repeat("x", 40_000)
	w.fill(t, red, 60)
	largest := 0
	o := output{}
	last := 0
	o.check = func() error {
		last = o.Len()
		return nil
	}
	err := w.exporter.Export(t.Context(), evidence.Asked{Tenant: red, Principal: "acc_1", Wanted: parse(t, "envelopes=1")}, &measured{&o, &largest})
	if err != nil {
		t.Fatal(err)
	}
	if bound := 256<<10 + 45_000 + 1000; largest > bound || last < 60*40_000 {
		t.Errorf("largest write %d bytes, bound %d; all %d", largest, bound, last)
	}
	if o.turns < 10 {
		t.Errorf("%d turns for %d bytes", o.turns, o.Len())
	}
	w.check(t, red, o.String())
}

// measured records the largest write.
type measured struct {
	*output
	largest *int
}

func (m *measured) Write(b []byte) (int, error) {
	*m.largest = max(*m.largest, len(b))
	return m.output.Write(b)
}

// A broken connection still leaves the event in the log: it is appended before the last bytes are sent.
func TestExportIsAnEvent(t *testing.T) {
	w := newWorld(t)
	w.fill(t, red, 5)
	size := w.State(t, red).Size()
	gone := errors.New("gone")
	whole := len(w.export(t, red, "to=5"))
	if got := w.State(t, red).Size(); got != size+1 {
		t.Fatalf("got %d events, want one more than %d", got, size)
	}
	for left := 0; ; left++ {
		before := w.State(t, red).Size()
		o := output{}
		n := 0
		o.check = func() error {
			if n++; n > left {
				return gone
			}
			return nil
		}
		err := w.exporter.Export(t.Context(), evidence.Asked{Tenant: red, Principal: "acc_1", Wanted: parse(t, "to=5")}, &o)
		stated := w.State(t, red).Size() - before
		switch {
		case err == nil:
			if stated != 1 || left < 8 {
				t.Errorf("after %d writes: %d events", left, stated)
			}
			return
		case !errors.Is(err, gone) || stated > 1 || stated == 1 && !strings.Contains(o.String(), pack.FileReport):
			t.Errorf("after %d writes and %d of about %d bytes: %v, %d events", left, o.Len(), whole, err, stated)
		case strings.Contains(o.String(), pack.FileManifest):
			t.Errorf("after %d writes the manifest was sent", left)
		}
	}
}

// An erased event is shown without its envelope and with the statement, even if the statement is after the range.
func TestErased(t *testing.T) {
	w := newWorld(t)
	w.fill(t, red, 10)
	w.erase(t, red, id.Range{Begin: 2, End: 4})
	w.fill(t, red, 3)
	w.erase(t, red, id.Range{Begin: 5, End: 6})
	for query, want := range map[string][3]uint64{ // shown, erased, envelopes
		"to=15&envelopes=1":                 {15, 3, 12},
		"from=0&to=5&envelopes=1":           {5, 2, 3},
		"from=0&to=5":                       {5, 2, 0},
		"from=6&to=10&envelopes=1":          {4, 0, 4},
		"from=5&to=6&envelopes=1":           {1, 1, 0},
		"agent_id=agt_1&to=10&envelopes=1":  {5, 1, 4},
		"agent_id=agt_2&to=10&envelopes=1":  {5, 2, 3},
		"agent_id=agt_none&to=10&envelopes": {0, 0, 0},
	} {
		r := w.check(t, red, w.export(t, red, strings.TrimSuffix(query, "&envelopes")))
		if got := [3]uint64{r.Shown, r.Erased, r.Envelopes}; got != want {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
}

// If an envelope is erased while the pack is sent, the pack is aborted.
func TestErasedMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.fill(t, red, 10)
	o := output{}
	once := false
	o.check = func() error {
		if !once {
			once = true
			w.erase(t, red, id.Range{Begin: 2, End: 4})
		}
		return nil
	}
	err := w.exporter.Export(t.Context(), evidence.Asked{Tenant: red, Principal: "acc_1", Wanted: parse(t, "envelopes=1")}, &o)
	if err == nil || strings.Contains(o.String(), pack.FileManifest) {
		t.Errorf("got %v and %d bytes", err, o.Len())
	}
	r := w.check(t, red, w.export(t, red, "to=10&envelopes=1"))
	if r.Erased != 2 {
		t.Errorf("got %+v", r)
	}
}
