package transfer_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// mutation damages one file of an export; other is another file of its kind, or "".
type mutation struct {
	name   string
	mutate func(t testing.TB, path, other string)
}

func mutations() []mutation {
	edit := func(f func([]byte) []byte) func(testing.TB, string, string) {
		return func(t testing.TB, path, _ string) {
			t.Helper()
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, f(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	all := []mutation{
		{"missing", func(t testing.TB, path, _ string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}},
		{"empty", edit(func([]byte) []byte { return nil })},
		{"without its last line", edit(func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] })},
		{"cut in the middle", edit(func(b []byte) []byte { return b[:len(b)/2] })},
		{"without its last byte", edit(func(b []byte) []byte { return b[:len(b)-1] })},
		{"with more behind its end", edit(func(b []byte) []byte { return append(b, "{}\n"...) })},
		{"one line twice", edit(func(b []byte) []byte {
			lines := bytes.SplitAfter(b, []byte("\n"))
			return bytes.Join(slices.Insert(lines, 2, lines[1]), nil)
		})},
		{"another version", edit(func(b []byte) []byte { return bytes.Replace(b, []byte(`"version":1`), []byte(`"version":2`), 1) })},
		{"swapped with another", func(t testing.TB, path, other string) {
			if other == "" {
				other = filepath.Join(filepath.Dir(path), "nowhere")
			}
			err := os.Rename(path, path+".x")
			if err == nil && filepath.Base(other) != "nowhere" {
				err = os.Rename(other, path)
			}
			if err == nil {
				err = os.Rename(path+".x", other)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
	}
	for _, at := range []float64{0, 0.02, 0.5, 0.98, 1} {
		all = append(all, mutation{"flipped", edit(func(b []byte) []byte {
			b[int(at*float64(len(b)-1))] ^= 1
			return b
		})})
	}
	all = append(all, mutation{"flipped in the authenticator", edit(func(b []byte) []byte {
		b[bytes.LastIndex(b, []byte(`"authenticator":"`))+20] ^= 1
		return b
	})})
	return all
}

// Each kind of file, damaged in each way, is refused with its location, and nothing is written.
func TestDamagedExport(t *testing.T) {
	here, red, _ := town(t, 60)
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "")
	pristine := files(t, dir)
	organization := red.State.Identity().Organization.String()
	last := slices.Max(slices.Collect(maps.Keys(filter(pristine, organization+"/events-"))))
	first := slices.Min(slices.Collect(maps.Keys(filter(pristine, organization+"/events-"))))
	if first == last {
		t.Fatal("the events are in one file")
	}
	for _, file := range []struct{ path, other string }{
		{"manifest.ndjson", ""}, {organization + "/manifest.ndjson", ""},
		{organization + "/records.ndjson", organization + "/service.ndjson"}, {organization + "/service.ndjson", ""},
		{first, last}, {last, ""},
	} {
		for _, m := range mutations() {
			t.Run(filepath.Base(file.path)+" "+m.name, func(t *testing.T) {
				broken := filepath.Join(t.TempDir(), "export")
				restore(t, broken, pristine)
				other := ""
				if file.other != "" {
					other = filepath.Join(broken, file.other)
				}
				m.mutate(t, filepath.Join(broken, file.path), other)
				there := newHouse(t, model(t), here.keyring)
				_, checked := there.checkExport(broken, "red")
				_, imported := there.tryImport(broken, "red")
				for _, err := range []error{checked, imported} {
					if !errors.Is(err, transfer.ErrDamaged) && !(m.name == "another version" && errors.Is(err, transfer.ErrRefused)) &&
						!(strings.HasPrefix(m.name, "flipped") && errors.Is(err, transfer.ErrUnauthenticated)) {
						t.Errorf("got %v", err)
					} else if !strings.Contains(err.Error(), broken) {
						t.Errorf("no place in %v", err)
					}
				}
				if tenants := collect(t, there.engine.Tenants(t.Context())); len(tenants) > 0 || len(serviceRecords(t, there.engine)) > 0 {
					t.Errorf("something was written: %v", tenants)
				}
			})
		}
	}
}

func filter(files map[string]string, prefix string) map[string]string {
	found := make(map[string]string)
	for name, text := range files {
		if strings.HasPrefix(name, prefix) {
			found[name] = text
		}
	}
	return found
}

func restore(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if err == nil {
			err = os.WriteFile(path, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A damaged store is not exported: the error names the location.
func TestDamagedSource(t *testing.T) {
	here, red, _ := town(t, 60)
	whole := here.engine.(*storagetest.Model)
	at := func(index id.Index, do func(*storage.Event)) *faulty {
		return &faulty{Model: whole, event: func(e *storage.Event) {
			if e.Index == index {
				do(e)
			}
		}}
	}
	service := func(kind storage.Kind, do func(*storage.Record) error) *faulty {
		return &faulty{Model: whole, record: func(r *storage.Record) error {
			if r.Kind == kind {
				return do(r)
			}
			return nil
		}}
	}
	gone := func(*storage.Record) error { return storage.ErrNotFound }
	tests := []struct {
		name  string
		store *faulty
		place string
	}{
		{"entry", at(300, func(e *storage.Event) { e.Entry.Prev[0]++ }), "entry 300"},
		{"record", at(17, func(e *storage.Event) { e.Record = bytes.Replace(e.Record, []byte("deny"), []byte("denx"), 1) }), "record 17"},
		{"record of the system", at(17, func(e *storage.Event) { e.Entry.Record[3]++ }), "17"},
		{"envelope", at(42, func(e *storage.Event) { e.Envelope[len(e.Envelope)/2] ^= 1 }), "envelope 42"},
		{"envelope missing", at(42, func(e *storage.Event) { e.Envelope = nil }), "envelope 42"},
		{"column", at(42, func(e *storage.Event) { e.Trace = "other" }), "envelope 42"},
		{"id", at(42, func(e *storage.Event) { e.ID = "other" }), "record 42"},
		{"tile", &faulty{Model: whole, tile: func(b []byte) { b[5]++ }}, "tile 0/0"},
		{"id's index", &faulty{Model: whole, lookup: func(at []id.Index) { clear(at) }}, "event id of"},
		{"two keys", &faulty{Model: whole, keys: func(k *storage.IndexedKey) { k.Index = 1 }}, "event 1 has two idempotency keys"},
		{"counter", &faulty{Model: whole, count: func(v []uint64) { v[0]++ }}, "counter events/"},
		{"claim of the slug", service("org_slug", gone), `org_slug "red" is missing`},
		{"claim of an agent", service("agent_claim", func(r *storage.Record) error { r.Value = []byte(`{"tenant":5}`); return nil }), "belongs to another"},
		{"account", service("account", gone), `account "acc_`},
		{"organization's record", service("org", gone), "records: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			anchors := here.openAnchors()
			defer anchors.Close()
			x := here.exporter(filepath.Join(t.TempDir(), "export"), anchors)
			x.Store = tt.store
			if tt.name == "organization's record" {
				tt.store.record = func(r *storage.Record) error {
					if r.Kind == "org" {
						return storage.ErrCorrupt
					}
					return nil
				}
			}
			_, err := x.Run(t.Context(), "red")
			if !errors.Is(err, transfer.ErrDamaged) || !strings.Contains(err.Error(), tt.place) {
				t.Errorf("got %v, want it to name %s", err, tt.place)
			}
		})
	}
	// Anchors that the store does not extend, and no anchors.
	anchors := here.anchors
	here.anchors = t.TempDir()
	if err := here.tryExport(filepath.Join(t.TempDir(), "export"), ""); !errors.Is(err, transfer.ErrDamaged) || !strings.Contains(err.Error(), "no anchor confirms the head") {
		t.Errorf("without anchors: got %v", err)
	}
	here.anchors = anchors
	older := here.engine
	here.engine = whole.Reopen()
	here.start()
	red.at(here).send(3)
	here.stop()
	here.engine = older
	if err := here.tryExport(filepath.Join(t.TempDir(), "export"), ""); !errors.Is(err, transfer.ErrDamaged) || !strings.Contains(err.Error(), "does not extend") {
		t.Errorf("an older store: got %v", err)
	}
}
