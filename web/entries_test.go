package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/web"
)

// acts are the acts of every organization of a test.
type acts map[id.Index]web.Act

func (a acts) ActsOf(_ context.Context, _ id.Tenant, at []id.Index) (map[id.Index]web.Act, error) {
	if a == nil {
		return nil, errors.New("the index is rebuilt")
	}
	found := make(map[id.Index]web.Act)
	for _, i := range at {
		if act, ok := a[i]; ok {
			found[i] = act
		}
	}
	return found, nil
}

// names are names of agents, and of organizations by their slugs.
type names struct{}

func (names) OrganizationName(_ context.Context, t id.Tenant) (string, error) {
	return map[id.Tenant]string{ledgertest.Red: "Red & Sons", ledgertest.Blue: "Blue"}[t], nil
}

func (names) AgentName(_ context.Context, t id.Tenant, agent id.Agent) (string, error) {
	return fmt.Sprintf("%s of %d", agent, t), nil
}

// The list shows what the events disclose, and nothing of the rest.
func TestEntriesShowWhatIsDisclosed(t *testing.T) {
	outcomes := acts{}
	for i := range id.Index(10) {
		outcomes[i] = web.Act{Index: i, Outcome: "failed"}
	}
	for _, c := range []struct {
		disclosure     id.Disclosure
		erased         bool
		shown, missing []string
	}{
		{id.DiscloseCommitment, false, []string{"only that an entry exists", "not public"}, []string{"acme.orders.read", "agt_test", "<time", "allow", "Failed"}},
		{id.DiscloseRecord, false, []string{"which agent acted", "agt_test", "<time", "allow", "not public"}, []string{"acme.orders.read", "Failed", "tool_call", "agt_test of"}},
		{id.DiscloseFull, false, []string{"agt_test of", "acme.orders.read", "Failed", "f-bad"}, []string{"not public.", "Not everything"}},
		{id.DiscloseFull, true, []string{"agt_test of", "erased"}, []string{"acme.orders.read", "tool_call"}},
	} {
		w := newWorld(t)
		w.append(ledgertest.Red, c.disclosure, "one", nil)
		if c.erased {
			w.erase(ledgertest.Red, 1)
		}
		w.serve(nil, func(o *web.Options) { o.Acts, o.Names = outcomes, names{} })
		_, body, _ := strings.Cut(w.page("/log/red", http.StatusOK).Body.String(), "<h1")
		body, _, _ = strings.Cut(body, `id="auditors"`)
		for _, part := range append(c.shown, "Red &amp; Sons") {
			if !strings.Contains(body, part) {
				t.Errorf("%v: %q is missing in %s", c.disclosure, part, body)
			}
		}
		for _, part := range c.missing {
			if strings.Contains(body, part) {
				t.Errorf("%v: %q is in %s", c.disclosure, part, body)
			}
		}
	}
}

// Pages lead back to the first entry and forward to the latest, and each entry has a link. Acts and their results are in one
// line.
func TestEntriesInPages(t *testing.T) {
	w := newWorld(t)
	const all = 123
	outcomes := acts{}
	for i := range id.Index(all) {
		w.append(ledgertest.Red, id.DiscloseFull, fmt.Sprint("e", i), nil)
		outcomes[i] = web.Act{Index: i &^ 1, Outcome: "done", Result: i | 1}
	}
	outcomes[all-1] = web.Act{Index: all - 1, Outcome: "open"}
	w.serve(nil, func(o *web.Options) { o.Acts = outcomes })
	next, linked, pages := "/log/red", map[string]bool{}, 0
	for ; next != "" && pages < 10; pages++ {
		body := w.page(strings.ReplaceAll(next, "#entries", ""), http.StatusOK).Body.String()
		_, list, _ := strings.Cut(body, "<tbody>")
		list, _, _ = strings.Cut(list, "</tbody>")
		for _, part := range strings.Split(list, redEvent)[1:] {
			name, _, _ := strings.Cut(part, `"`)
			linked[name] = true
		}
		_, after, _ := strings.Cut(body, `rel="next" href="`)
		next, _, _ = strings.Cut(after, `"`)
		if newer := strings.Contains(body, ">Newer</a>"); newer != (pages > 0) {
			t.Errorf("page %d leads to a newer one: %t", pages, newer)
		}
	}
	if len(linked) != all || pages != 3 {
		t.Errorf("%d of %d entries are linked on %d pages", len(linked), all, pages)
	}
	for target, status := range map[string]int{"0": 200, "1": 200, "99999": 200, "-1": 422, "x": 422, "18446744073709551615": 422} {
		w.page("/log/red?before="+target, status)
	}
}

// A page without outcomes says so, and is not kept.
func TestEntriesWithoutOutcomes(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	var outcomes acts
	w.serve(nil, func(o *web.Options) { o.Acts = &outcomes })
	w.want("/log/red", "Outcomes can't be shown", "acme.orders.read")
	outcomes = acts{0: {Outcome: "done"}}
	if body := w.want("/log/red", ">Done<"); strings.Contains(body, "Outcomes can't") {
		t.Error("the page without outcomes was kept")
	}
}
