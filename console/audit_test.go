package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

// sentences returns the sentences of a page of the audit list.
func (w *world) sentences(query string, change ...func(*http.Request)) (all []string) {
	w.t.Helper()
	for _, act := range w.call(200, "GET", "/audit"+query, "", change...)["acts"].([]any) {
		all = append(all, act.(map[string]any)["sentence"].(string))
	}
	return all
}

// eachEngine runs a test on the engine of this package's tests and on the engines of the service.
func eachEngine(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("memory", func(t *testing.T) { test(t, newWorld(t)) })
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		test(t, newWorldOf(t, func(d ledgertest.Disclosure) *ledgertest.Service { return ledgertest.On(t, open(t), d) }))
	})
}

func TestAudit(t *testing.T) { eachEngine(t, checkAudit) }

func checkAudit(t *testing.T, w *world) {
	w.sendEvent(red, "e1", nil)
	desk := w.call(201, "POST", "/agents", `{"agent_id":"desk","display_name":"Desk {who} [x]"}`)
	key := fmt.Sprint(desk["credentials"].(map[string]any)["key_id"])
	w.call(201, "POST", "/policies", `{"policy_id":"p1","name":"P","rules":[]}`)
	w.Pass(time.Minute)
	w.call(200, "POST", "/policies/p1/activate", "", as("red-admin"), func(r *http.Request) { r.RemoteAddr = "[2001:db8::1]:9" })
	name, secret := w.token("red-admin", "admin")
	w.call(201, "POST", "/ingest-keys", `{"name":"by token"}`, bearer(secret))
	w.call(201, "POST", "/agents", `{"agent_id":"other"}`, as("blue-owner"))
	const ann = "Ann of red-owner (red-owner@example.com)"
	const admin = "Ann of red-admin (red-admin@example.com)"
	all := w.sentences("?order=oldest")
	for i, want := range []string{
		ann + " created agent desk (Desk {who} [x]) from 192.0.2.1.",
		ann + " registered key " + key + " of agent desk, held by the server, from 192.0.2.1.",
		admin + " activated policy p1 version 1 from 2001:db8::1.",
		admin + " created console token " + name + " (ci) with role admin until ",
		admin + " created ingest key ",
	} {
		if len(all) != 5 || !strings.HasPrefix(all[i], want) {
			t.Errorf("act %d: got %q, want %q", i, all, want)
		}
	}
	if last := all[4]; !strings.HasSuffix(last, " from 192.0.2.1 with token "+name+".") {
		t.Errorf("by a token: got %q", last)
	}
	for query, want := range map[string]int{
		"?actor=acc_red-owner": 2, "?actor=acc_red-admin": 3, "?actor=acc_red": 0, "?kind=ledger_policy_activated": 1,
		"?from=2026-11-20T12:01:00Z": 3, "?to=2026-11-20T12:01:00Z": 2, "?actor=acc_red-admin&kind=ledger_ingest_key_created": 1,
		"?limit=2": 2, "?kind=ledger_nothing": 0, "?actor=acc_blue-owner": 0,
	} {
		if got := w.sentences(query); len(got) != want {
			t.Errorf("%s: got %q, want %d", query, got, want)
		}
	}
	page := w.call(200, "GET", "/audit?limit=2", "")
	if rest := w.sentences("?after=" + page["next"].(string)); len(rest) != 3 || rest[2] != all[0] {
		t.Errorf("the rest: got %q", rest)
	}
	act := page["acts"].([]any)[0].(map[string]any)
	source := act["source"].(map[string]any)
	if source["credential"] != "token" || source["id"] != name || source["address"] != "192.0.2.1" {
		t.Errorf("got source %v", source)
	}
	if want := fmt.Sprintf("/v1/public/orgs/red/verify/%s", act["event_id"]); act["proof"] != want || act["actor"].(map[string]any)["token"] != name {
		t.Errorf("got %v", act)
	}
	if got := w.sentences("", as("blue-owner")); len(got) != 2 || !strings.Contains(got[1], "agent other") {
		t.Errorf("blue: got %q", got)
	}
	for query, message := range map[string]string{
		"?kind=tool_call": "kind must begin with ledger_", "?order=up": "order must be newest or oldest", "?after=x": "after must be a log index, such as next of the page before",
	} {
		w.refuses(query, w.request("GET", "/audit"+query, ""), 422, message)
	}
}

// No record, envelope or index entry contains addresses or credentials, because those may be public.
func TestSourcesAreNotPublic(t *testing.T) {
	w := newWorld(t)
	w.call(201, "POST", "/agents", `{"agent_id":"desk"}`, func(r *http.Request) { r.RemoteAddr = "198.51.100.77:9" })
	if got := w.sentences("?limit=1")[0]; !strings.Contains(got, "from 198.51.100.77") {
		t.Errorf("got %q", got)
	}
	for _, statement := range w.Audit(t, red) {
		if strings.Contains(statement.Payload+statement.Principal, "198.51") {
			t.Errorf("a statement has the address: %+v", statement)
		}
	}
	if g := w.do(w.request("GET", "/events?q=198.51.100.77", "")); strings.Contains(g.text, "ledger_agent_created") {
		t.Errorf("the texts of events have the address: %s", g.text)
	}
}
