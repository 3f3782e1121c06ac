package ingest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

const accessPath = "/access/v1/evaluation"

// access returns the members of a valid access evaluation, with changes.
func access(m *member, tool string, change fields) fields {
	f := fields{
		"subject": fields{"type": "agent", "id": m.agent.Agent}, "action": fields{"name": tool}, "resource": fields{"type": "order", "id": "4711"},
	}
	for name, value := range change {
		if f[name] = value; value == nil {
			delete(f, name)
		}
	}
	return f
}

// nativeOf returns the question of the native API for an access evaluation. It is a naive version of the mapping.
func nativeOf(m *member, f fields) fields {
	part := func(name string) fields { p, _ := f[name].(fields); return p }
	payload, resource := fields{}, fields{"type": part("resource")["type"], "id": part("resource")["id"]}
	if p, ok := part("action")["properties"].(fields); ok {
		for name, value := range p {
			payload[name] = value
		}
	}
	orEmpty := func(f fields, name string) any {
		if v, ok := f[name]; ok {
			return v
		}
		return fields{}
	}
	resource["properties"] = orEmpty(part("resource"), "properties")
	payload["authzen"] = fields{"resource": resource, "subject": fields{"properties": orEmpty(part("subject"), "properties")}, "context": orEmpty(f, "context")}
	return fields{"organization_id": m.id.String(), "agent_id": part("subject")["id"], "tool_name": part("action")["name"], "payload": payload}
}

func text(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// requestable is the member with which a denial may be followed by a request.
var requestable = regexp.MustCompile(`,"access_request":{"endpoint":"https://log.test/access/v1/requests","expires_at":"[^"]+","binding_token":"[^"]+"(,"display":{"description":"([^"\\]|\\.)*"})?}`)

// withoutRequests returns a body without the members that are tested in accessrequest_test.go.
func withoutRequests(a answer) string { return requestable.ReplaceAllString(a.Body.String(), "") }

// wantAccess returns the answer to an access evaluation by asking the native API. reason is its reason.
func (w *world) wantAccess(m *member, f fields) string {
	w.Helper()
	a := w.post(evaluatePath, m.token, text(w, nativeOf(m, f)))
	if a.Code != http.StatusOK {
		w.Fatalf("%v: evaluate answers %d %s", f, a.Code, a.Body)
	}
	if a.fields["decision"] == "allow" {
		return `{"decision":true}`
	}
	_, after, _ := strings.Cut(a.Body.String(), `"reason":`)
	reason, _, _ := strings.Cut(after, `,"engine"`)
	if a.fields["decision"] == "allow_with_obligation" {
		reason = `"approval_required"`
	}
	return `{"decision":false,"context":{"reason":` + reason + `,"evaluation":` + a.Body.String() + `}}`
}

// Each answer is the native API's for the same act. Neither organization's policy or agents matter to the other.
func TestAccessEvaluation(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", `[
		{"rule_id":"no","tool":"acme.deny","decision":"deny","reason":"not <this> \"one\""},
		{"rule_id":"ask","tool":"acme.ask","decision":"allow_with_obligation","obligations":[{"type":"human_approval","approvals":2}]},
		{"rule_id":"amount","tool":"acme.pay","decision":"deny","when":"payload.amount > 10"},
		{"rule_id":"vault","tool":"**","decision":"deny","when":"payload.authzen.resource.type == 'vault'"},
		{"rule_id":"owner","tool":"**","decision":"deny","requires":[],"when":"has(payload.authzen.resource.properties.owner) && payload.authzen.resource.properties.owner == 'bob'"},
		{"rule_id":"night","tool":"**","decision":"deny","requires":[],"when":"has(payload.authzen.context.shift) && payload.authzen.context.shift == 'night'"},
		{"rule_id":"team","tool":"**","decision":"deny","requires":[],"when":"has(payload.authzen.subject.properties.team) && payload.authzen.subject.properties.team == 'sales'"}]`)
	before := w.sizes()
	order := func(properties fields) fields { return fields{"type": "order", "id": "é/1", "properties": properties} }
	pay := func(amount any) fields {
		return fields{"action": fields{"name": "acme.pay", "properties": fields{"amount": amount, "zone": 1}}}
	}
	for _, c := range []struct {
		m      *member
		tool   string
		change fields
		rule   string // "" if it is allowed
	}{
		{&w.red, "acme.allow", nil, ""},
		{&w.red, "acme.deny", nil, "no"},
		{&w.red, "acme.ask", nil, "ask"},
		{&w.red, "can_read", nil, ""},
		{&w.red, "", pay(10), ""},
		{&w.red, "", pay(10.5), "amount"},
		{&w.red, "x", fields{"resource": fields{"type": "vault", "id": ""}}, "vault"},
		{&w.red, "x", fields{"resource": order(fields{"owner": "ann"})}, ""},
		{&w.red, "x", fields{"resource": order(fields{"owner": "bob"})}, "owner"},
		{&w.red, "x", fields{"context": fields{"shift": "day"}}, ""},
		{&w.red, "x", fields{"context": fields{"shift": "night"}}, "night"},
		{&w.red, "x", fields{"context": fields{}}, ""},
		{&w.red, "x", fields{"subject": fields{"type": "agent", "id": "never.seen", "properties": fields{"team": "sales"}}}, "team"},
		{&w.blue, "acme.deny", nil, ""},
	} {
		f := access(c.m, c.tool, c.change)
		want := w.wantAccess(c.m, f)
		a := w.post(accessPath, c.m.token, text(t, f))
		if a.Code != http.StatusOK || withoutRequests(a) != want {
			t.Errorf("%v: got %d %s, want %s", f, a.Code, a.Body, want)
		}
		if decides := strings.Contains(want, `"rule_id":"`+c.rule+`"`); decides != (c.rule != "") || (want == `{"decision":true}`) != (c.rule == "") {
			t.Errorf("%v: got %s, want rule %q", f, want, c.rule)
		}
		f["future"], f["resource"].(fields)["unknown"], f["action"].(fields)["unknown"], f["subject"].(fields)["unknown"] = 1, 1, 1, 1
		if again := w.post(accessPath, c.m.token, text(t, f)); withoutRequests(again) != want {
			t.Errorf("with unknown members: got %s, want %s", again.Body, want)
		}
	}
	if after := w.sizes(); after != before {
		t.Errorf("sizes went from %v to %v, want nothing stored", before, after)
	}
}

// accessDefects are defects of one access evaluation and their messages.
func accessDefects(m *member) map[string]fields {
	agent := func(change fields) fields {
		f := fields{"type": "agent", "id": m.agent.Agent}
		for name, value := range change {
			if f[name] = value; value == nil {
				delete(f, name)
			}
		}
		return fields{"subject": f}
	}
	resource := func(f fields) fields { return fields{"resource": f} }
	action := func(f fields) fields { return fields{"action": f} }
	const badTool = "action.name must be segments of [A-Za-z0-9_:/-]+ with dots between them, at most 256 characters"
	return map[string]fields{
		"subject is missing": {"subject": nil}, "subject must be an object": {"subject": "alice"},
		"subject.type is missing": agent(fields{"type": nil}), "subject.type must be a string": agent(fields{"type": 1}),
		"subject.type must be agent: the policy decides on acts of agents": agent(fields{"type": "user"}),
		"subject.id is missing": agent(fields{"id": nil}), "subject.id must be a string": agent(fields{"id": []int{}}),
		"subject.id must match [A-Za-z0-9._-]{1,128}": agent(fields{"id": "alice@example.com"}),
		"subject.properties must be an object":        agent(fields{"properties": []int{1}}),
		"action is missing":                           {"action": nil}, "action must be an object": {"action": []int{}},
		"action.name is missing": action(fields{}), "action.name must be a string": action(fields{"name": fields{}}), badTool: action(fields{"name": "a b"}),
		"action.properties must be an object":                  action(fields{"name": "a", "properties": 1}),
		"action.properties.authzen is reserved for the server": action(fields{"name": "a", "properties": fields{"a": 1, "authzen": fields{}}}),
		"resource is missing":                                  {"resource": nil},
		"resource must be an object":                           {"resource": json.RawMessage("null")},
		"resource.type is missing":                             resource(fields{"id": "1"}),
		"resource.type must be a string":                       resource(fields{"id": "1", "type": true}),
		"resource.id is missing":                               resource(fields{"type": "a"}),
		"resource.id must be a string":                         resource(fields{"type": "a", "id": 1}),
		"resource.properties must be an object":                resource(fields{"type": "a", "id": "1", "properties": "x"}),
		"context must be an object":                            {"context": "x"},
	}
}

// What cannot be evaluated is refused by name, alone by a status and among others by a denial with the same message.
func TestAccessRefused(t *testing.T) {
	w := newWorld(t)
	other := w.ingestKey(&w.red, org.WantedKey{Scopes: 1 << org.ScopeEvents})
	before := w.sizes()
	for message, change := range accessDefects(&w.red) {
		f := access(&w.red, "acme.allow", change)
		a := w.post(accessPath, w.red.token, text(t, f), "X-Request-ID: id "+message)
		w.expect(a, http.StatusBadRequest, message)
		if got := a.Header().Get("X-Request-Id"); got != "id "+message {
			t.Errorf("%s: got X-Request-ID %q", message, got)
		}
		several := w.post(accessPath+"s", w.red.token, text(t, fields{"evaluations": []any{f, access(&w.red, "acme.allow", nil)}}))
		want := fmt.Sprintf(`{"evaluations":[{"decision":false,"context":{"error":{"status":400,"message":%q}}},{"decision":true}]}`, message)
		if several.Code != http.StatusOK || several.Body.String() != want {
			t.Errorf("got %d %s, want %s", several.Code, several.Body, want)
		}
	}
	good := text(t, access(&w.red, "acme.allow", nil))
	for _, path := range []string{accessPath, accessPath + "s"} {
		for _, c := range []struct {
			token, body string
			headers     []string
			status      int
			message     string
		}{
			{"", good, nil, 401, "Invalid ingest API key"},
			{"apl_live_x", good, nil, 401, "Invalid ingest API key"},
			{other, good, nil, 403, "The ingest key does not have the scope evaluate"},
			{w.red.token, "", nil, 400, "The body is empty: send a JSON value"},
			{w.red.token, "{}", nil, 400, "subject is missing"},
			{w.red.token, "[]", nil, 400, "The body must be a JSON object"},
			{w.red.token, good[1:], nil, 400, "The body is not valid JSON"},
			{w.red.token, good, []string{"Service-Version: x"}, 400, "Service-Version is not known; known versions: 2026-05-18"},
			{w.red.token, good, []string{"Content-Type: text/plain"}, 415, "Content-Type must be application/json"},
			{w.red.token, strings.Repeat("x", 257<<10), nil, 413, "The body is too large"},
		} {
			a := w.post(path, c.token, c.body, append(c.headers, "X-Request-ID: 7/é")...)
			if c.body == "" || c.message == "The body is not valid JSON" {
				c.message, _ = a.fields["error"].(string) // of package jcs
			}
			w.expect(a, c.status, c.message)
			if got := a.Header().Get("X-Request-Id"); got != "7/é" {
				t.Errorf("%d: got X-Request-ID %q", c.status, got)
			}
			if challenge := a.Header().Get("WWW-Authenticate"); (challenge == "Bearer") != (c.status == 401) {
				t.Errorf("%d: got WWW-Authenticate %q", c.status, challenge)
			}
		}
		for _, ids := range [][]string{{"X-Request-ID: "}, {"X-Request-ID: a", "X-Request-ID: b"}, {"X-Request-ID: " + strings.Repeat("x", 257)}} {
			a := w.post(path, w.red.token, good, ids...)
			w.expect(a, 400, "X-Request-ID must be one value of 1 to 256 bytes")
			if got := a.Header().Get("X-Request-Id"); len(got) != 24 {
				t.Errorf("got X-Request-ID %q, want a generated one", got)
			}
		}
		w.expect(w.post(path+"?q=1", w.red.token, good, "X-Request-ID: 8"), 400, `Unknown query parameter "q": there are none here`)
		w.expect(w.do("PUT", path, w.red.token, good), 405, "Method not allowed")
		if got := w.post(path, w.red.token, good, "X-Request-ID: "+strings.Repeat("x", 256)); got.Code != 200 || len(got.Header().Get("X-Request-Id")) != 256 {
			t.Errorf("got %d, X-Request-ID %q", got.Code, got.Header().Get("X-Request-Id"))
		}
	}
	a := w.post(accessPath+"s", w.red.token, `{"evaluations":[[]]}`)
	if want := `{"evaluations":[{"decision":false,"context":{"error":{"status":400,"message":"An evaluation must be an object"}}}]}`; a.Body.String() != want {
		t.Errorf("got %d %s, want %s", a.Code, a.Body, want)
	}
	if after := w.sizes(); after != before {
		t.Errorf("sizes went from %v to %v, want nothing stored", before, after)
	}
}

// A key for some agents only learns about those. An agent that is switched off is denied. A policy that cannot be read
// is no decision.
func TestAccessOfOthersAgents(t *testing.T) {
	source := &brittle{}
	w := newWorld(t, func(o *ingest.Options) { source.ActiveSource, o.Policies = o.Policies, source })
	narrow := w.ingestKey(&w.red, org.WantedKey{Agents: []id.Agent{w.red.agent.Agent}})
	own, foreign := access(&w.red, "acme.allow", nil), access(&w.blue, "acme.allow", nil)
	w.expect(w.post(accessPath, narrow, text(t, foreign)), 403, "The ingest key is not for this agent")
	a := w.post(accessPath+"s", narrow, text(t, fields{"evaluations": []any{foreign, own}}))
	if want := `{"evaluations":[{"decision":false,"context":{"error":{"status":403,"message":"The ingest key is not for this agent"}}},{"decision":true}]}`; a.Body.String() != want {
		t.Errorf("got %s, want %s", a.Body, want)
	}
	off := false
	if _, err := w.agents.Change(t.Context(), w.red.tenant, "acc", w.red.agent.Agent, agent.Patch{Active: &off}); err != nil {
		t.Fatal(err)
	}
	const inactive = `{"decision":false,"context":{"reason":"The agent is switched off","code":"agent_inactive"}}`
	if a := w.post(accessPath, w.red.token, text(t, own)); a.Code != 200 || a.Body.String() != inactive {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	if a := w.post(accessPath+"s", w.red.token, text(t, fields{"evaluations": []any{own}})); a.Code != 200 || a.Body.String() != `{"evaluations":[`+inactive+`]}` {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	if a := w.post(accessPath, w.blue.token, text(t, foreign)); a.Body.String() != `{"decision":true}` {
		t.Errorf("the other organization: got %d %s", a.Code, a.Body)
	}
	source.broken.Store(true)
	a = w.post(accessPath, w.blue.token, text(t, foreign), "X-Request-ID: mine")
	w.expect(a, 503, "The policy can't be read")
	if id, _ := a.fields["request_id"].(string); len(id) != 24 || a.Header().Get("X-Request-Id") != "mine" {
		t.Errorf("got %s, X-Request-ID %q", a.Body, a.Header().Get("X-Request-Id"))
	}
	w.expect(w.post(accessPath+"s", w.blue.token, text(t, fields{"evaluations": []any{foreign, foreign}})), 503, "The policy can't be read")
}

// A member of an evaluation replaces the whole default. The semantics end the evaluations at the decision that they
// name. Without evaluations it is a single one.
func TestAccessEvaluations(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", `[{"rule_id":"no","tool":"*","decision":"deny","when":"payload.authzen.resource.id == 'no' || has(payload.authzen.context.no)"},
		{"rule_id":"ask","tool":"*","decision":"allow_with_obligation","when":"payload.authzen.resource.id == 'ask'","obligations":[{"type":"human_approval"}]}]`)
	item := func(id string) fields { return fields{"resource": fields{"type": "t", "id": id}} }
	items := func(ids ...string) (list []any) {
		for _, id := range ids {
			list = append(list, item(id))
		}
		return list
	}
	semantic := func(s any) fields { return fields{"options": fields{"evaluations_semantic": s, "other": 1}} }
	for _, c := range []struct {
		name   string
		change fields // of a request with the defaults subject and action
		want   string // decisions: y, n, or e for an error; without brackets for a single one
	}{
		{"no array", item("yes"), "y"},
		{"no array, denied", item("no"), "n"},
		{"an empty array", fields{"evaluations": []any{}, "resource": item("no")["resource"]}, "n"},
		{"all by default", fields{"evaluations": items("yes", "no", "ask", "yes")}, "[ynny]"},
		{"all", fields{"evaluations": items("no", "yes"), "options": semantic("execute_all")["options"]}, "[ny]"},
		{"no options", fields{"evaluations": items("no", "yes"), "options": fields{}}, "[ny]"},
		{"deny", fields{"evaluations": items("yes", "yes", "no", "yes"), "options": semantic("deny_on_first_deny")["options"]}, "[yyn]"},
		{"an obligation is no access", fields{"evaluations": items("yes", "ask", "yes"), "options": semantic("deny_on_first_deny")["options"]}, "[yn]"},
		{"an error is a denial", fields{"evaluations": append(items("yes"), fields{}, item("yes")), "options": semantic("deny_on_first_deny")["options"]}, "[ye]"},
		{"never denied", fields{"evaluations": items("yes", "yes"), "options": semantic("deny_on_first_deny")["options"]}, "[yy]"},
		{"permit", fields{"evaluations": append(append(items("no"), 7), items("ask", "yes", "no")...), "options": semantic("permit_on_first_permit")["options"]}, "[neny]"},
		{"never permitted", fields{"evaluations": items("no", "no"), "options": semantic("permit_on_first_permit")["options"]}, "[nn]"},
		{"a default resource", fields{"resource": item("no")["resource"], "evaluations": []any{fields{}, item("yes"), item("no")}}, "[nyn]"},
		{"no deep merge", fields{"resource": fields{"type": "t", "id": "yes"}, "evaluations": []any{fields{}, fields{"resource": fields{"type": "t"}}}}, "[ye]"},
		{"a default context", fields{"context": fields{"no": 1}, "evaluations": []any{item("yes"), fields{"resource": item("yes")["resource"], "context": fields{"a": 1}}}}, "[ny]"},
		{"another action", fields{"evaluations": []any{fields{"action": fields{"name": "a.b"}, "resource": item("no")["resource"]}, item("no")}}, "[yn]"},
		{"a bad default", fields{"resource": 5, "evaluations": []any{fields{}, item("yes")}}, "[ey]"},
		{"no object", fields{"evaluations": []any{nil, "x", []int{1}, item("yes")}}, "[eeey]"},
		{"evaluations within", fields{"evaluations": []any{fields{"resource": item("yes")["resource"], "evaluations": 1, "options": 1}}}, "[y]"},
	} {
		f := access(&w.red, "act", c.change)
		if c.change["resource"] == nil {
			delete(f, "resource")
		}
		a := w.post(accessPath+"s", w.red.token, text(t, f))
		list, several := a.fields["evaluations"].([]any)
		if !several {
			list = []any{a.fields}
			if fmt.Sprint(a.fields["decision"]) == "<nil>" {
				t.Errorf("%s: got %s", c.name, a.Body)
			}
		}
		var got strings.Builder
		for _, one := range list {
			f, ok := one.(map[string]any)
			if fields, named := one.(fields); named {
				f, ok = fields, true
			}
			inner, _ := f["context"].(map[string]any)
			switch {
			case !ok:
				got.WriteString("?")
			case inner["error"] != nil:
				got.WriteString("e")
			case f["decision"] == true:
				got.WriteString("y")
			default:
				got.WriteString("n")
			}
		}
		want := strings.Trim(c.want, "[]")
		if a.Code != http.StatusOK || got.String() != want || several != strings.HasPrefix(c.want, "[") {
			t.Errorf("%s: got %d %s, want %s", c.name, a.Code, a.Body, c.want)
		}
	}
	const badSemantic = "options.evaluations_semantic must be execute_all, deny_on_first_deny or permit_on_first_permit"
	for message, change := range map[string]fields{
		"evaluations must be an array": {"evaluations": fields{}}, "options must be an object": {"options": []int{}}, badSemantic: semantic("all"),
	} {
		w.expect(w.post(accessPath+"s", w.red.token, text(t, access(&w.red, "act", change))), 400, message)
	}
	w.expect(w.post(accessPath+"s", w.red.token, text(t, access(&w.red, "act", semantic(1)))), 400, badSemantic)
}

// The number of evaluations, their bytes together with the defaults, and the nesting are bounded.
func TestAccessBounds(t *testing.T) {
	w := newWorld(t)
	many := func(n int, size int) string {
		f := access(&w.red, "act", fields{"context": fields{"s": strings.Repeat("x", size)}})
		f["evaluations"] = make([]any, n)
		for i := range n {
			f["evaluations"].([]any)[i] = fields{}
		}
		return text(t, f)
	}
	a := w.post(accessPath+"s", w.red.token, many(100, 1))
	if list, _ := a.fields["evaluations"].([]any); a.Code != 200 || len(list) != 100 {
		t.Errorf("100 evaluations: got %d %.200s", a.Code, a.Body)
	}
	w.expect(w.post(accessPath+"s", w.red.token, many(101, 1)), 413, "evaluations has more than 100 members")
	w.expect(w.post(accessPath+"s", w.red.token, many(100, 11<<10)), 413, "The evaluations with their defaults are too large")
	if a := w.post(accessPath+"s", w.red.token, many(100, 9<<10)); a.Code != 200 {
		t.Errorf("100 evaluations of 9 KiB: got %d %.200s", a.Code, a.Body)
	}
	deep := func(levels int) string {
		nested := json.RawMessage(strings.Repeat("[", levels) + strings.Repeat("]", levels))
		return text(t, access(&w.red, "act", fields{"context": fields{"a": nested}}))
	}
	for levels, want := range map[int]int{1: 200, 60: 200, 61: 400, 62: 400, 63: 400} {
		a := w.post(accessPath, w.red.token, deep(levels))
		native := nativeOf(&w.red, access(&w.red, "act", fields{"context": fields{"a": json.RawMessage(strings.Repeat("[", levels) + strings.Repeat("]", levels))}}))
		if direct := w.post(evaluatePath, w.red.token, text(t, native)); a.Code != want || (direct.Code == 200) != (want == 200) {
			t.Errorf("%d levels: got %d %s, the native API %d, want %d", levels, a.Code, a.Body, direct.Code, want)
		}
	}
}

// One organization has the most expensive policy evaluated many times. Each of its evaluations is denied for its cost,
// and the other organization is answered in the meantime.
func TestDearAccessBesideNeighbour(t *testing.T) {
	w := newWorld(t, func(o *ingest.Options) {
		o.Policies = &older{ActiveSource: o.Policies, tenant: ledgertest.Red, compiled: dear(t, 9, "a{0,490}z")}
	})
	f := access(&w.red, "act", fields{"action": fields{"name": "act", "properties": fields{"s": strings.Repeat("a", 60_000)}}})
	f["evaluations"] = []any{fields{}, fields{}, fields{}, fields{}, fields{}, fields{}, fields{}, fields{}}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			a := w.post(accessPath+"s", w.red.token, text(w, f))
			if n := strings.Count(a.Body.String(), "costs too much"); a.Code != http.StatusOK || n < 8 {
				w.Errorf("got %d %.300s", a.Code, a.Body)
			}
		})
	}
	for range 20 {
		if a := w.post(accessPath, w.blue.token, text(t, access(&w.blue, "acme.deny", nil))); a.Body.String() != `{"decision":true}` {
			w.Errorf("the other organization: got %d %s", a.Code, a.Body)
		}
	}
	group.Wait()
}

// For random policies and acts, the answer is the native API's.
func TestAccessIsEvaluate(t *testing.T) {
	g := rand.New(rand.NewPCG(7, 11))
	w := newWorld(t)
	pick := func(from ...string) string { return from[g.IntN(len(from))] }
	value := func() any { return []any{1, 2.5, "x", true, nil, []any{1}, fields{"k": 1.0}}[g.IntN(7)] }
	properties := func() fields {
		f := fields{}
		for range g.IntN(3) {
			f[pick("n", "s", "zz", "authz", "authzenz", "é", "owner")] = value()
		}
		return f
	}
	conditions := []string{"true", "payload.n > 1", "payload.authzen.resource.type == 't'", "payload.authzen.resource.id == '1'", "has(payload.authzen.context)",
		"payload.authzen.context.n == 1", "payload.authzen.resource.properties.owner == 'x'", "has(payload.authzen.subject)", "agent_id == 'a'", "action_kind == 'tool_call'"}
	counts := map[string]int{}
	for round := range 12 {
		var list []string
		for i := range 1 + g.IntN(6) {
			list = append(list, fmt.Sprintf(`{"rule_id":"r%d","tool":%q,"decision":%q,"when":%q}`, i, pick("**", "a", "a.*", "b"), pick("allow", "deny", "allow_with_obligation"), pick(conditions...)))
		}
		m := []*member{&w.red, &w.blue}[round%2]
		w.activate(m, fmt.Sprintf("pol-%d", round), "["+strings.ReplaceAll(strings.Join(list, ","), `"allow_with_obligation"`, `"allow_with_obligation","obligations":[{"type":"human_approval"}]`)+"]")
		for range 25 {
			f := fields{"subject": fields{"type": "agent", "id": pick("a", "b")}, "action": fields{"name": pick("a", "a.x", "b")}, "resource": fields{"type": pick("t", "u"), "id": pick("1", "")}}
			for _, name := range []string{"subject", "action", "resource"} {
				if g.IntN(2) == 0 {
					f[name].(fields)["properties"] = properties()
				}
			}
			if g.IntN(2) == 0 {
				f["context"] = properties()
			}
			want := w.wantAccess(m, f)
			if a := w.post(accessPath, m.token, text(t, f)); a.Code != 200 || withoutRequests(a) != want {
				t.Fatalf("%s: got %d %s, want %s", text(t, f), a.Code, a.Body, want)
			}
			counts[want[:16]]++
		}
	}
	if counts[`{"decision":true`] < 20 || counts[`{"decision":fals`] < 20 {
		t.Errorf("got decisions %v, want enough of both", counts)
	}
}

func TestAccessConfiguration(t *testing.T) {
	w := newWorld(t)
	a := w.do("GET", "/.well-known/authzen-configuration", "", "")
	want := fields{"policy_decision_point": "https://log.test", "access_evaluation_endpoint": "https://log.test/access/v1/evaluation",
		"access_evaluations_endpoint": "https://log.test/access/v1/evaluations", "access_request_endpoint": "https://log.test/access/v1/requests",
		"capabilities": []any{"urn:openid:authzen:capability:access-request"}}
	if a.Code != http.StatusOK || !reflect.DeepEqual(a.fields, want) || a.Header().Get("Content-Type") != "application/json" {
		t.Errorf("got %d %s, %v", a.Code, a.Body, a.Header())
	}
}
