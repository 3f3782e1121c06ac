package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// A text is checked and saved without JavaScript. A rejected text is kept as typed, with the line of its error.
func TestEditor(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	create(t, ann)
	page := refunds + "/edit"
	ann.Get(page).Want(t, "editor", http.StatusOK, `&#34;policy_id&#34;: &#34;refunds&#34;`, `data-check="/v1/console/policies/check"`)
	of := base(t, ann, page)
	send := func(do, document string, more ...string) servicetest.Answer {
		return ann.Post(page, append(append([]string{"do", do, "document", document}, of...), more...)...)
	}
	for name, tc := range map[string]struct{ document, problem string }{
		"no JSON":         {"{\n\"name\": \"n\",\n}", "The policy, line 3: "},
		"cut off":         {"{\n\"name\": \"n\"", "The policy, line 2: the text ends too early"},
		"more behind":     {document("1") + "\n{}", "The policy, line 2: there is more behind the end"},
		"a list":          {"[]", "The policy must be a JSON object"},
		"empty":           {"", "The policy, line 1: "},
		"twice":           {"{\"name\":\"n\",\n\"name\":\"m\"}", "The policy, line 2: "},
		"a wrong member":  {"{\"name\":\"n\",\n\"rules\":[\n{\"rule_id\":\"r\",\"tool\":\"a.b\",\"decision\":\"deny\",\n\"whem\":\"true\"}]}", "The place is in line 4"},
		"a wrong value":   {"{\"name\":\"n\",\n\"rules\":[{\"rule_id\":\"r\",\n\"tool\":\"a..b\",\"decision\":\"deny\"}]}", "The place is in line 3"},
		"a wrong rule":    {"{\"name\":\"n\",\n\"rules\":[\n{\"rule_id\":\"r\"}]}", "The place is in line 3"},
		"a condition":     {"{\"name\":\"n\",\n\"rules\":[{\"rule_id\":\"r\",\"tool\":\"a.b\",\"decision\":\"deny\",\n\"when\":\"payload.x =\"}]}", "rules[0].when"},
		"another policy":  {`{"policy_id":"other","name":"n"}`, "policy_id cannot be changed"},
		"a name too long": {`{"name":"` + strings.Repeat("n", 257) + `"}`, "name must"},
	} {
		for _, do := range []string{"check", "save"} {
			if name == "another policy" && do == "check" {
				continue // would be a policy
			}
			got := send(do, tc.document)
			got.Want(t, name+": "+do, http.StatusUnprocessableEntity, tc.problem)
			if len(tc.document) < 1000 && text(t, got.Body) != tc.document {
				t.Errorf("%s: the text became %q", name, text(t, got.Body))
			}
		}
	}
	send("save", strings.Repeat("%", 4<<20)).Want(t, "beyond the form", http.StatusRequestEntityTooLarge)
	for _, do := range []string{"check", "save"} {
		send(do, `{"name":"n`+strings.Repeat(" ", 1<<20)+`"}`).Want(t, "beyond a MiB: "+do, http.StatusRequestEntityTooLarge, "too large", "Save as draft")
	}
	checked := send("check", document("900"))
	checked.Want(t, "check", http.StatusOK, "1 rule", "1 of its 1 test fails", "fails: <bdi>got allow by default")
	if got := text(t, checked.Body); got != document("900") {
		t.Errorf("a check changed the text to %q", got)
	}
	send("check", document("100")).Want(t, "a good one", http.StatusOK, "All of its tests pass (1)", "passes")
	ann.Get(page).WantNone(t, "a check keeps nothing", "rule_id")
	send("save", document("100")).Want(t, "save", http.StatusSeeOther)
	got := ann.Get(page)
	got.Want(t, "saved", http.StatusOK, "Version 1 is a draft")
	const want = `{
  "policy_id": "refunds",
  "name": "Refunds",
  "default": "allow",
  "rules": [
    {
      "rule_id": "cap",
      "tool": "acme.payments.refund",
      "when": "payload.amount_usd > 100",
      "requires": [
        "amount_usd"
      ],
      "decision": "deny",
      "reason": "Too much"
    }
  ],
  "tests": [
    {
      "name": "large",
      "input": {
        "tool_name": "acme.payments.refund",
        "payload": {
          "amount_usd": 500
        }
      },
      "expect": {
        "decision": "deny",
        "rule_id": "cap"
      }
    }
  ]
}`
	if got := text(t, got.Body); got != want {
		t.Errorf("the saved text is %s", got)
	}
	activate(t, ann, refunds)
	ann.Get(page).Want(t, "the next version", http.StatusOK, "Saving makes version 2")
	save(t, ann, refunds, `{"name":"Refunds"}`)
	ann.Get(refunds).Want(t, "members that are left out", http.StatusOK, "Version 2: a draft", "If no rule matches", "Run its tests (0)")
}

// If two members edit a draft, the second sees the first's changes before replacing them.
func TestConcurrentEdits(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, eve := s.SignIn(s.Red.Owner), s.SignIn(s.Red.Join("eve", "admin"))
	create(t, ann)
	page := refunds + "/edit"
	of := base(t, eve, page)
	save(t, ann, refunds, `{"name":"By Ann","tests":[{"name":"t","input":{"tool_name":"a.b"},"expect":{"decision":"allow"}}]}`)
	mine := append([]string{"do", "save", "document", `{"name":"By Eve"}`}, of...)
	for range 2 { // a second submission changes nothing
		refused := eve.Post(page, mine...)
		refused.Want(t, "changed meanwhile", http.StatusConflict, "your text is not saved", "By Eve", "ann@red.example", `name="overwrite"`)
	}
	eve.Post(page, append([]string{"do", "check", "document", `{"name":"By Eve"}`}, of...)...).Want(t, "a check", http.StatusOK, "Your text is based on another version")
	ann.Get(refunds).Want(t, "still Ann's", http.StatusOK, "By Ann")
	eve.Post(page, append(mine, "overwrite", "yes")...).Want(t, "overwrite", http.StatusSeeOther)
	ann.Get(refunds).Want(t, "Eve's", http.StatusOK, "By Eve")
	of = base(t, eve, page)
	save(t, ann, refunds, `{"name":"By Eve","tests":[{"name":"another","input":{"tool_name":"a.b"},"expect":{"decision":"allow"}}]}`)
	eve.Post(page, append([]string{"do", "save", "document", `{"name":"By Eve"}`}, of...)...).Want(t, "tests alone were changed", http.StatusConflict, "your text is not saved")
}

// A reader of payloads creates a test from a stored event.
func TestTestFromEvent(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, eve := s.SignIn(s.Red.Owner), s.SignIn(s.Red.Join("eve", "policy_editor"))
	create(t, ann)
	s.Red.Send("evt-1", map[string]any{"tool_name": "acme.payments.refund", "payload": map[string]any{"amount_usd": 700}, "policy_decision": "deny"})
	s.Red.Send("evt-2", map[string]any{"tool_name": "acme.orders.read", "action_kind": "message"})
	s.Blue.Send("evt-blue", nil)
	page := refunds + "/edit"
	of := base(t, ann, page)
	add := func(p *servicetest.Person, event, text string) servicetest.Answer {
		return p.Post(page, append([]string{"do", "add-test", "event", event, "document", text}, of...)...)
	}
	got := add(ann, "evt-1", document("100"))
	got.Want(t, "add", http.StatusOK, "event evt-1")
	added := text(t, got.Body)
	for _, part := range []string{`"name": "event evt-1"`, `"agent_id": "` + s.Red.Agent.AgentID + `"`, `"amount_usd": 700`, `"decision": "deny"`, `"name": "large"`} {
		if !strings.Contains(added, part) {
			t.Errorf("the text lacks %s: %s", part, added)
		}
	}
	ann.Post(page, append([]string{"do", "check", "document", added}, of...)...).Want(t, "check", http.StatusOK, "All of its tests pass (2)")
	for event, problem := range map[string]string{"": "Name an event by its id", "nothing": "no such event", "evt-blue": "no such event"} {
		add(ann, event, document("1")).Want(t, event, http.StatusUnprocessableEntity, problem)
	}
	add(ann, "evt-1", "{").Want(t, "no JSON", http.StatusUnprocessableEntity, "The policy, line 1")
	add(ann, "evt-1", `{"tests":1}`).Want(t, "no tests", http.StatusUnprocessableEntity, "correct the text first")
	eve.Get(page).WantNone(t, "a policy editor", `name="event"`)
	add(eve, "evt-1", document("1")).Want(t, "a policy editor", http.StatusUnprocessableEntity, "your role may not read it")
}

// A large form of an unauthenticated client is not read, and few large forms are processed at a time.
func TestLargeForms(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	create(t, ann)
	s.Stranger().Get(refunds+"/edit").Want(t, "a stranger", http.StatusSeeOther)
	large := `{"name":"n","tests":[{"name":"t","input":{"tool_name":"a.b","payload":{"text":"` + strings.Repeat("x", 1_000_000) + `"}},"expect":{"decision":"allow"}}]}`
	save(t, ann, refunds, large)
	ann.Get(refunds+"/compare").Want(t, "compare", http.StatusOK, "are the same")
	if got := text(t, ann.Get(refunds+"/edit").Body); len(got) < 1_000_000 {
		t.Errorf("the editor has %d bytes", len(got))
	}
	var many strings.Builder
	for i := range 60_000 {
		fmt.Fprintf(&many, ",%d", i%10)
	}
	save(t, ann, refunds, `{"name":"n","tests":[{"name":"t","input":{"tool_name":"a.b","payload":{"list":[1`+many.String()+`]}},"expect":{"decision":"allow"}}]}`)
	ann.Get(refunds+"/compare").Want(t, "many lines", http.StatusOK, "too long to be compared line by line")
}
