package console_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// A version is tried on stored and on described events, without JavaScript.
func TestSimulate(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	eve := s.SignIn(s.Red.Join("eve", "policy_editor"))
	create(t, ann)
	save(t, ann, refunds, `{"name":"Refunds","rules":[
		{"rule_id":"cap","tool":"acme.payments.refund","decision":"deny","reason":"Too much","when":"payload.amount_usd > 100"},
		{"rule_id":"watch","tool":"acme.**","decision":"deny","mode":"shadow"},
		{"rule_id":"daily","tool":"acme.payments.refund","decision":"allow_with_obligation","obligations":[{"type":"human_approval"}],"limit":{"limit_id":"daily","sum":"amount_usd","by":"organization","window_seconds":86400,"max":60}}]}`)
	first := s.Red.Send
	for i, amount := range []int{50, 40, 500} {
		first(fmt.Sprint("evt-", i), map[string]any{"tool_name": "acme.payments.refund", "payload": map[string]any{"amount_usd": amount}})
	}
	page := refunds + "/simulate"
	ann.Get(page).Want(t, "page", http.StatusOK, "version 1 (draft)", `value="1000"`)
	got := eve.Post(page, "do", "history", "last", "100")
	got.Want(t, "history", http.StatusOK, "2 of 3 decisions would be others", `<a href="/console/events/evt-2">`, "<strong>deny</strong> by", "<strong>needs approval</strong>", "Too much",
		"3 of 3", "Shadow rules", `name="last" type="number" value="100"`)
	got.WantNone(t, "a policy editor reads no payloads", "Rule by rule")
	ann.Post(page, "do", "history", "last", "100").Want(t, "owner", http.StatusOK, page+"?version=1&amp;event=evt-2#input")
	ann.Post(page, "do", "history", "last", "1", "to", "2").Want(t, "below", http.StatusOK, "0 of 0 decisions", "2 to 2")
	for _, tc := range []struct{ last, to, problem string }{{"", "", "from 1 to 10000"}, {"x", "", "from 1 to 10000"}, {"0", "", "last must be from 1 to 10000"}, {"10001", "", "last must be"}, {"5", "0", "whole number from 1"}} {
		ann.Post(page, "do", "history", "last", tc.last, "to", tc.to).Want(t, tc.last+tc.to, http.StatusUnprocessableEntity, tc.problem)
	}

	ann.Post(page, "do", "input", "tool_name", "acme.payments.refund", "payload", `{"amount_usd":50}`, "limits", `{"daily":"20"}`).Want(t, "input", http.StatusOK,
		"The answer: needs approval", "1 person within 1 hour", "payload.amount_usd &gt; 100", "<code><bdi>false</bdi></code>", "watch", `<td class="num">20</td><td class="num">50</td><td class="num">60</td><td>yes</td>`, "{&#34;amount_usd&#34;:50}")
	ann.Post(page, "do", "input", "tool_name", "acme.payments.refund").Want(t, "no payload", http.StatusOK, "The answer: deny", "amount_usd is missing")
	for name, tc := range map[string]struct {
		fields  []string
		problem string
	}{
		"no tool":     {nil, "input.tool_name must be"},
		"no JSON":     {[]string{"tool_name", "a.b", "payload", "{\n]"}, "The payload, line 2"},
		"a list":      {[]string{"tool_name", "a.b", "payload", "[]"}, "The payload must be a JSON object"},
		"a time":      {[]string{"tool_name", "a.b", "now", "noon"}, "now has a value"},
		"limits":      {[]string{"tool_name", "a.b", "limits", "7"}, "The amounts of limits must be a JSON object"},
		"other limit": {[]string{"tool_name", "a.b", "limits", `{"x":1}`}, "limits must give limits of the policy"},
	} {
		ann.Post(page, append([]string{"do", "input"}, tc.fields...)...).Want(t, name, http.StatusUnprocessableEntity, tc.problem)
	}
	ann.Get(page+"?version=1&event=evt-2").Want(t, "an event", http.StatusOK, `value="acme.payments.refund"`, `&#34;amount_usd&#34;: 500`, s.Red.Agent.AgentID)
	ann.Get(page+"?event=nothing").Want(t, "no event", http.StatusOK, "no such event")
	eve.Get(page+"?event=evt-2").WantNone(t, "no payload", "500")
	ann.Get(page+"?version=2").Want(t, "no version", http.StatusNotFound)
	bob.Get(page).Want(t, "blue", http.StatusNotFound)
	bob.Post(page, "do", "history", "last", "10").Want(t, "blue", http.StatusNotFound)
}

// A rule about a subject is shown as such, tried on a described act, and tested by a stored one.
func TestSimulateSubjects(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	create(t, ann)
	save(t, ann, refunds, `{"name":"Refunds","default":"deny","rules":[
		{"rule_id":"own","tool":"acme.payments.refund","decision":"allow","on_behalf_of":{"issuer":"https://login.example","verified":true},"when":"on_behalf_of.subject == payload.customer"},
		{"rule_id":"alice","tool":"acme.payments.refund","decision":"allow_with_obligation","on_behalf_of":{"issuer":"https://login.example","subject":"<alice>"},"obligations":[{"type":"human_approval"}]},
		{"rule_id":"proved","tool":"acme.read","decision":"allow","on_behalf_of":{"verified":true}}]}`)
	shown := ann.Get(refunds)
	shown.Want(t, "the version", http.StatusOK,
		` on behalf of anyone of <code><bdi>https://login.example</bdi></code> (verified) and <code><bdi>on_behalf_of.subject == payload.customer</bdi></code>`,
		` on behalf of <code><bdi>&lt;alice&gt;</bdi></code> of <code><bdi>https://login.example</bdi></code> (claimed or verified)`,
		` on behalf of anyone (verified)`)
	page := refunds + "/simulate"
	alice := `{"issuer":"https://login.example","subject":"<alice>"}`
	input := func(more ...string) []string {
		return append([]string{"do", "input", "tool_name", "acme.payments.refund", "payload", `{"customer":"<alice>"}`}, more...)
	}
	ann.Post(page, input("on_behalf_of", alice, "on_behalf_of_verified", "on")...).Want(t, "verified", http.StatusOK, "The answer: needs approval", "<td class=\"wrap\">matched</td>", "on_behalf_of.subject", "checked")
	ann.Post(page, input("on_behalf_of", alice)...).Want(t, "claimed", http.StatusOK, "The answer: needs approval", "<td class=\"wrap\">other subject</td>")
	ann.Post(page, input()...).Want(t, "nobody", http.StatusOK, "The answer: deny", "<td class=\"wrap\">other subject</td>")
	ann.Post(page, input("on_behalf_of_verified", "on")...).Want(t, "verified nobody", http.StatusUnprocessableEntity, "input.on_behalf_of_verified needs on_behalf_of")
	ann.Post(page, input("on_behalf_of", "{")...).Want(t, "no JSON", http.StatusUnprocessableEntity, "On behalf of, line 1: the text ends too early")
	ann.Post(page, input("on_behalf_of", `{"issuer":"x","subject":"a"}`)...).Want(t, "malformed", http.StatusUnprocessableEntity, "input.on_behalf_of is malformed: on_behalf_of.issuer must be an https URL")

	s.Red.Send("evt-1", map[string]any{"tool_name": "acme.payments.refund", "payload": map[string]any{"customer": "u1"},
		"on_behalf_of": map[string]any{"issuer": "https://login.example", "subject": "u1"}})
	ann.Get(page+"?event=evt-1").Want(t, "an event", http.StatusOK, `name="on_behalf_of" type="text" value="{&#34;issuer&#34;:&#34;https://login.example&#34;,&#34;subject&#34;:&#34;u1&#34;}"`)
	document := `{"policy_id":"refunds","name":"Refunds","rules":[]}`
	added := ann.Post(refunds+"/edit", append([]string{"do", "add-test", "event", "evt-1", "document", document}, base(t, ann, refunds+"/edit")...)...)
	added.Want(t, "a test of the event", http.StatusOK, `&#34;on_behalf_of&#34;: {`, `&#34;subject&#34;: &#34;u1&#34;`, `&#34;on_behalf_of_verified&#34;: false`)
}
