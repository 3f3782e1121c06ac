package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/web"
)

// The story of an event has what is disclosed, and the picture has a ring for each hash of the proof.
func TestStoryOfEvent(t *testing.T) {
	w := newWorld(t)
	intent := map[string]any{"payload": map[string]any{"phase": "intent"}}
	w.append(ledgertest.Red, id.DiscloseFull, "intent", intent)
	w.append(ledgertest.Red, id.DiscloseFull, "result", nil)
	for _, outcome := range []string{"refused", "denied", "waiting", "expired", "cancelled", "failed", "open", "unknown"} {
		w.append(ledgertest.Red, id.DiscloseFull, outcome, intent)
	}
	w.append(ledgertest.Red, id.DiscloseRecord, "record", intent)
	w.append(ledgertest.Red, id.DiscloseCommitment, "commitment", intent)
	outcomes := acts{0: {Index: 0, Outcome: "done", Result: 1}, 1: {Index: 0, Outcome: "done", Result: 1}, 10: {Index: 10, Outcome: "refused"}, 11: {Index: 11, Outcome: "refused"}}
	for i, outcome := range []string{"refused", "denied", "waiting", "expired", "cancelled", "failed", "open", "unknown"} {
		outcomes[id.Index(i+2)] = web.Act{Index: id.Index(i + 2), Outcome: outcome}
	}
	w.serve(nil, func(o *web.Options) { o.Acts, o.Names = outcomes, names{} })
	for name, c := range map[string]struct{ title, shows, hides string }{
		"intent":     {"agt_test of 11 ran acme.orders.read", "in <a href=\"" + redEvent + "result\">entry 1</a>", "Not everything"},
		"result":     {"agt_test of 11 reported what became of acme.orders.read", redEvent + "intent\">entry 0</a>", "asked to run"},
		"refused":    {"Red & Sons refused what agt_test of 11 asked for", "An approver</bdi> refused it", "Not everything"},
		"denied":     {"agt_test of 11 says that acme.orders.read was denied", "asked to run", "Not everything"},
		"waiting":    {"waits for an approval", "has to decide", "Not everything"},
		"expired":    {"The approval of what agt_test of 11 asked for expired", "The approval</bdi> expired before the act was run", "Not everything"},
		"cancelled":  {"was cancelled", "The request</bdi> was cancelled", "Not everything"},
		"failed":     {"and it failed", "asked to run", "Not everything"},
		"open":       {"asked to run", "badge o o-open", "Not everything"},
		"unknown":    {"asked to run", "badge o o-unknown", "Not everything"},
		"record":     {"An act of agt_test", "not the tool", "acme.orders.read"},
		"commitment": {"Entry 11 of Red & Sons", "only that this entry exists", "agt_test"},
	} {
		body := w.page(redEvent+name, http.StatusOK).Body.String()
		_, body, _ = strings.Cut(body, "<main")
		heading, _, _ := strings.Cut(body, "</h1>")
		if !strings.Contains(strings.ReplaceAll(heading, "&amp;", "&"), c.title) || !strings.Contains(body, c.shows) || strings.Contains(body, c.hides) {
			t.Errorf("%s: want %+v in %s", name, c, body)
		}
		if refused := strings.Contains(body, "o-refused"); refused != (name == "refused") {
			t.Errorf("%s: the outcome is shown: %t", name, refused)
		}
		hashes := fmt.Sprintf(": %d rings.", strings.Count(body, ` sib"`)/2+strings.Count(body, `"sib"`)/2) // in two drawings
		if !strings.Contains(body, hashes) {
			t.Errorf("%s: the picture has other than %s", name, hashes)
		}
	}
}

// Nothing of a result is shown that is not disclosed in full.
func TestOutcomeOfHiddenResult(t *testing.T) {
	w := newWorld(t)
	for name, result := range map[string]id.Disclosure{"full": id.DiscloseFull, "record": id.DiscloseRecord, "commitment": id.DiscloseCommitment} {
		w.append(ledgertest.Red, id.DiscloseFull, "intent-"+name, map[string]any{"payload": map[string]any{"phase": "intent"}})
		w.append(ledgertest.Red, result, "result-"+name, nil)
	}
	outcomes := acts{}
	for i := range id.Index(6) {
		outcomes[i] = web.Act{Index: i &^ 1, Outcome: "failed", Result: i | 1}
	}
	w.serve(nil, func(o *web.Options) { o.Acts = outcomes })
	for name, shown := range map[string]bool{"full": true, "record": false, "commitment": false} {
		body := w.page(redEvent+"intent-"+name, http.StatusOK).Body.String()
		_, body, _ = strings.Cut(body, "<main")
		if got := strings.Contains(body, "failed") || strings.Contains(body, "f-bad") || strings.Contains(body, "result-"+name); got != shown {
			t.Errorf("%s: the page of the intent shows the outcome: %t", name, got)
		}
	}
	_, list, _ := strings.Cut(w.page("/log/red", http.StatusOK).Body.String(), "<tbody>")
	list, _, _ = strings.Cut(list, "</tbody>")
	if n := strings.Count(list, "Failed"); n != 1 {
		t.Errorf("the list shows %d outcomes", n)
	}
}

// succeeded is the log of an organization that has a newer one.
type succeeded struct{ web.Log }

func (l succeeded) LogHead(ctx context.Context, t id.Tenant, slug id.Slug) (verify.Head, error) {
	head, err := l.Log.LogHead(ctx, t, slug)
	head.Origin += "-2"
	return head, err
}

// Acts are those of the newest log, so an event of a former one has no outcome.
func TestStoryOfFormerLog(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "intent", map[string]any{"payload": map[string]any{"phase": "intent"}})
	for _, former := range []bool{false, true} {
		w.serve(nil, func(o *web.Options) {
			o.Acts = acts{0: {Outcome: "failed"}}
			if former {
				o.Log = succeeded{o.Log}
			}
		})
		body := w.page(redEvent+"intent", http.StatusOK).Body.String()
		if shown := strings.Contains(body, "and it failed"); shown == former || !strings.Contains(body, "acme.orders.read") {
			t.Errorf("former: %t: the outcome is shown: %t", former, shown)
		}
	}
}
