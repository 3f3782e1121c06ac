package org_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

func (w *world) viewNames() string {
	w.t.Helper()
	views, err := w.open().Views(w.t.Context(), red)
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, v := range views {
		names = append(names, v.Name+"="+v.Search)
	}
	return strings.Join(names, ", ")
}

// Views are unique regardless of case, in the order of their names, and each change is stated with the name alone.
func TestViews(t *testing.T) {
	w := newWorld(t)
	configured := w.State(t, red).ConfigVersion()
	defer func() {
		if got := w.State(t, red).ConfigVersion(); got != configured {
			t.Errorf("views changed the configuration: %d, before %d", got, configured)
		}
	}()
	save := func(name, search, renames string) error {
		return w.orgs.SaveView(t.Context(), red, ann, name, search, renames)
	}
	remove := func(name, _, _ string) error { return w.orgs.RemoveView(t.Context(), red, ann, name) }
	for _, c := range []struct {
		step                  string
		do                    func(name, search, renames string) error
		name, search, renames string
		want                  string
	}{
		{"first", save, "refunds", "tool:secret", "", "refunds=tool:secret"},
		{"second", save, "All of Zoë 🔥", "from:-7d", "", "All of Zoë 🔥=from:-7d, refunds=tool:secret"},
		{"unchanged", save, "refunds", "tool:secret", "", "All of Zoë 🔥=from:-7d, refunds=tool:secret"},
		{"replaced", save, "Refunds", "tool:secret1", "", "All of Zoë 🔥=from:-7d, Refunds=tool:secret1"},
		{"replaced again", save, "Refunds", "tool:secret2", "", "All of Zoë 🔥=from:-7d, Refunds=tool:secret2"},
		{"renamed", save, "A", "tool:secret2", "REFUNDS", "A=tool:secret2, All of Zoë 🔥=from:-7d"},
		{"other case", save, "a", "tool:secret2", "A", "a=tool:secret2, All of Zoë 🔥=from:-7d"},
		{"removed", remove, "all of zoë 🔥", "", "", "a=tool:secret2"},
		{"saved again", save, "All of Zoë 🔥", "from:-7d", "", "a=tool:secret2, All of Zoë 🔥=from:-7d"},
		{"removed again", remove, "All of Zoë 🔥", "", "", "a=tool:secret2"},
	} {
		if err := c.do(c.name, c.search, c.renames); err != nil || w.viewNames() != c.want {
			t.Errorf("%s: got %v %s, want %s", c.step, err, w.viewNames(), c.want)
		}
	}
	var got []string
	for _, s := range w.Audit(t, red) {
		got = append(got, strings.TrimPrefix(string(s.Kind), "ledger_view_")+" "+s.Payload)
	}
	text := strings.Join(got, "\n")
	for _, want := range []string{`saved`, `"name":"refunds"`, `"name":"A","number":5,"renames":"Refunds"`, `"name":"a","number":6,"renames":"A"`, `removed`, `"name":"All of Zoë 🔥"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if strings.Contains(text, "secret") || len(got) != 9 {
		t.Errorf("statements: %s", text)
	}
	refused(t, "unknown", save("b", "x", "nobody"), fault.NotFound, "Not found")
	refused(t, "unknown to remove", w.orgs.RemoveView(t.Context(), red, ann, "b"), fault.NotFound, "Not found")
	refused(t, "of another organization", w.orgs.RemoveView(t.Context(), blue, ann, "a"), fault.NotFound, "Not found")
	if err := save("b", "x", ""); err != nil {
		t.Error(err)
	}
	refused(t, "taken", save("B", "x", "a"), fault.Conflict, "Another view has this name")
	if found, err := w.orgs.Views(t.Context(), blue); err != nil || found != nil || len(w.Audit(t, blue)) != 0 {
		t.Errorf("blue has %v, %v", found, err)
	}
}

func TestViewBounds(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("é", 60)
	for _, c := range []struct{ name, search string }{
		{"", "x"}, {long + "e", "x"}, {"a\nb", "x"}, {" a", "x"}, {"a\u202eb", "x"}, {"\xff", "x"}, {"a", ""}, {"a", "x\ny"}, {"a", "\xff"},
		{"a", strings.Repeat("x", 1025)}, {"a", strings.Repeat("é", 513)},
	} {
		if err := w.orgs.SaveView(t.Context(), red, ann, c.name, c.search, ""); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q %.9q: got %v", c.name, c.search, err)
		}
	}
	if err := w.orgs.SaveView(t.Context(), red, ann, long, strings.Repeat("é", 512), ""); err != nil {
		t.Error(err)
	}
	var mutex sync.Mutex
	var saved, full int
	var group sync.WaitGroup
	for i := range org.MaxViews + 5 {
		group.Go(func() {
			err := w.orgs.SaveView(t.Context(), red, "operator", fmt.Sprint("view ", i), "x", "")
			mutex.Lock()
			defer mutex.Unlock()
			switch f := fault.Of(err); {
			case err == nil:
				saved++
			case f.Code == "view_limit":
				full++
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if views, err := w.open().Views(t.Context(), red); err != nil || len(views) != org.MaxViews || saved != org.MaxViews-1 || full != 6 {
		t.Errorf("got %d views, %v, %d saved, %d refused", len(views), err, saved, full)
	}
	if err := w.orgs.SaveView(t.Context(), red, ann, long, "another", ""); err != nil { // in place of one
		t.Error(err)
	}
}
