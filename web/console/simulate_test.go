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
