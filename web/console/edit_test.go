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
	ann.Get(page).Want(t, "editor", http.StatusOK, `&#34;policy_id&#34;: &#34;refunds&#34;`, "draft of version 1")
	of := base(t, ann, page)
	send := func(do, document string, more ...string) servicetest.Answer {
		return ann.Post(page, append(append([]string{"do", do, "document", document}, of...), more...)...)
	}
	for name, tc := range map[string]struct{ document, problem string }{
		"no JSON":         {"{\n\"name\": \"n\",\n}", "Line 3:"},
		"cut off":         {"{\n\"name\": \"n\"", "Line 2:</b> <span id=\"cause\"><bdi>the text is not JSON from here on: the text ends too early"},
		"more text after": {document("1") + "\n{}", "there is more text after the end"},
		"a list":          {"[]", "The policy must be a JSON object"},
		"empty":           {"", "Line 1:"},
		"twice":           {"{\"name\":\"n\",\n\"name\":\"m\"}", "Line 2:"},
		"a wrong member":  {"{\"name\":\"n\",\n\"rules\":[\n{\"rule_id\":\"r\",\"tool\":\"a.b\",\"decision\":\"deny\",\n\"whem\":\"true\"}]}", "Line 4:"},
		"a wrong value":   {"{\"name\":\"n\",\n\"rules\":[{\"rule_id\":\"r\",\n\"tool\":\"a..b\",\"decision\":\"deny\"}]}", "Line 3:"},
		"a wrong rule":    {"{\"name\":\"n\",\n\"rules\":[\n{\"rule_id\":\"r\"}]}", "Line 3:"},
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
	checked.Want(t, "check", http.StatusOK, "1 rule", "1 of 1 fails", "fails: <bdi>got allow by default")
	if got := text(t, checked.Body); got != document("900") {
		t.Errorf("a check changed the text to %q", got)
	}
	send("check", document("100")).Want(t, "a good one", http.StatusOK, "1 of 1 pass", "Last week")
	ann.Get(page).WantNone(t, "a check keeps nothing", "rule_id")
	send("save", document("100")).Want(t, "save", http.StatusSeeOther)
	got := ann.Get(page)
	got.Want(t, "saved", http.StatusOK, "draft of version 1")
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
	ann.Get(page).Want(t, "the next version", http.StatusOK, "Saving creates version 2")
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
		refused.Want(t, "changed in the meantime", http.StatusConflict, "your text is not saved", "By Eve", "ann@red.example", `name="overwrite"`)
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
	ann.Post(page, append([]string{"do", "check", "document", added}, of...)...).Want(t, "check", http.StatusOK, "2 of 2 pass")
	for event, problem := range map[string]string{"": "Name an event by its ID", "nothing": "no such event", "evt-blue": "no such event"} {
		add(ann, event, document("1")).Want(t, event, http.StatusUnprocessableEntity, problem)
	}
	add(ann, "evt-1", "{").Want(t, "no JSON", http.StatusUnprocessableEntity, "the text ends too early")
	add(ann, "evt-1", `{"tests":1}`).Want(t, "no tests", http.StatusUnprocessableEntity, "correct the text first")
	eve.Get(page).WantNone(t, "a policy editor", `name="event"`)
	add(eve, "evt-1", document("1")).Want(t, "a policy editor", http.StatusUnprocessableEntity, "your role may not read it")
}

// Check names members that no act had, with the one that is probably meant, and makes a test of an act that would change.
func TestUnseenMembers(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob, eve := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner), s.SignIn(s.Red.Join("eve", "policy_editor"))
	create(t, ann)
	create(t, bob)
	s.Red.Send("evt-1", map[string]any{"tool_name": "acme.payments.refund", "payload": map[string]any{"amount_usd": 700, "<b>": 1}})
	s.Blue.Send("evt-blue", map[string]any{"tool_name": "acme.payments.refund", "payload": map[string]any{"amuont_usd": 700}})
	page := refunds + "/edit"
	check := func(p *servicetest.Person, when string) servicetest.Answer {
		text := "\n{\n\"name\":\"payload.amuont_usd\",\n\"rules\":[{\"rule_id\":\"r\",\"tool\":\"acme.payments.*\",\"decision\":\"deny\",\n\"when\":\"" + when + "\"}]}"
		return p.Post(page, append([]string{"do", "check", "document", text}, base(t, p, page)...)...)
	}
	const hint = "that was decided again had the member <code>"
	wrong := check(ann, "payload.amuont_usd > 600")
	wrong.Want(t, "a slip", http.StatusOK, "Line 5:", "no act of", "acme.payments.*", hint+"<bdi>amuont_usd</bdi>", "Did you mean <code><bdi>amount_usd</bdi>")
	check(ann, "payload.quite_another > 600").Want(t, "nothing like it", http.StatusOK, hint+"<bdi>quite_another").WantNone(t, "nothing like it", "Did you mean")
	check(ann, "payload.amount_usd > 600 && has(payload.amuont_usd)").WantNone(t, "a member that is there", hint)
	check(bob, "payload.amuont_usd > 600").WantNone(t, "the other organization", hint, "amount_usd")
	check(eve, "payload.amuont_usd > 600").Want(t, "a policy editor", http.StatusOK, hint+"<bdi>amuont_usd").
		WantNone(t, "a policy editor", "<bdi>amount_usd", "Make a test")

	denied := check(ann, "payload.amount_usd > 600")
	denied.Want(t, "an act that changes", http.StatusOK, "Would be denied", `value="add-test-of-act" formaction="?test=evt-1#findings"`)
	added := ann.Post(page+"?test=evt-1", append([]string{"do", "add-test-of-act", "event", "", "document", document("100")}, base(t, ann, page)...)...)
	added.Want(t, "a test of it", http.StatusOK)
	if got := text(t, added.Body); !strings.Contains(got, `"name": "event evt-1"`) || !strings.Contains(got, `"decision": "allow"`) {
		t.Errorf("got %s", got)
	}
	// The address of that page still names the act. The field names another one.
	s.Red.Send("evt-2", map[string]any{"tool_name": "acme.payments.refund", "payload": map[string]any{"amount_usd": 900}})
	other := ann.Post(page+"?test=evt-1", append([]string{"do", "add-test", "event", "evt-2", "document", document("100")}, base(t, ann, page)...)...)
	if got := text(t, other.Body); !strings.Contains(got, `"name": "event evt-2"`) || strings.Contains(got, "evt-1") {
		t.Errorf("the field names evt-2: got %s", got)
	}
	ann.Post(page+"?test=evt-blue", append([]string{"do", "add-test-of-act", "document", document("100")}, base(t, ann, page)...)...).
		Want(t, "the other organization's", http.StatusUnprocessableEntity, "no such event")
}

// The editor offers tools and members that the log of the organization has, as far as the reader may know them.
func TestKnownNames(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob, eve := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner), s.SignIn(s.Red.Join("eve", "policy_editor"))
	create(t, ann)
	create(t, bob)
	for i := range 5 {
		payload := map[string]any{"order_id": "A-1", "a b": 1, "<b>": 2}
		for n := range 60 {
			payload[fmt.Sprintf("m%02d_%d", n, i)] = n
		}
		s.Red.Send(fmt.Sprint("evt-", i), map[string]any{"tool_name": fmt.Sprintf("acme.tool%d", i), "payload": payload})
	}
	s.Blue.Send("evt-blue", map[string]any{"tool_name": "blue.tool", "payload": map[string]any{"blue_member": 1}})
	ann.Call(http.MethodPut, "/v1/console/columns", map[string]any{"columns": []string{"amount_usd"}}, nil)
	page := refunds + "/edit"
	const tool, column, member = `<option value="acme.tool0">`, `<option value="payload.amount_usd">`, `<option value="payload.order_id">`
	ann.Get(page).Want(t, "an owner", http.StatusOK, tool, column)
	eve.Get(page).Want(t, "a policy editor", http.StatusOK, tool)
	check := func(p *servicetest.Person) servicetest.Answer {
		return p.Post(page, append([]string{"do", "check", "document", document("100")}, base(t, p, page)...)...)
	}
	checked := check(ann)
	checked.Want(t, "a check", http.StatusOK, tool, column, member, `<option value="payload.m59_0">`)
	checked.WantNone(t, "a check", "blue", `value="payload.a b"`, `value="payload.<b>"`)
	if n := strings.Count(checked.Body, "<option value="); n != 200 { // of 5 tools, a column and 301 members
		t.Errorf("got %d names, want at most 200", n)
	}
	check(eve).WantNone(t, "a policy editor", column, member)
	check(bob).WantNone(t, "the other organization", tool, column, member)
}

// A chosen name is inserted where the text has its cursor.
func TestInsertNameInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	create(t, s.SignIn(s.Red.Owner))
	s.Red.Send("evt-1", map[string]any{"tool_name": "acme.payments.refund", "payload": map[string]any{}})
	b := s.Browser()
	b.SignIn(s.Red.Owner)
	b.Visit(refunds + "/edit")
	var got string
	b.Must(`const text = document.getElementById("field-document"), name = document.querySelector("#names input");
		text.value = "{}"; text.setSelectionRange(1, 1); name.value = document.querySelector("#known option").value;
		name.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", bubbles: true, cancelable: true}));
		return text.value + " " + document.activeElement.id + " " + document.getElementById("names").checkVisibility()`, &got)
	if want := "{acme.payments.refund} field-document true"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.WantQuiet()
}

// The confirmation counts the open approvals that another policy keeps and ends, as its activation does.
func TestOpenApprovalsOverActivation(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	policy := func(when string) map[string]any {
		return map[string]any{"policy_id": "p", "name": "P", "rules": []any{map[string]any{"rule_id": "r", "tool": "acme.**", "decision": "allow_with_obligation",
			"when": when, "obligations": []any{map[string]any{"type": "human_approval"}}}}}
	}
	for _, p := range []*servicetest.Person{ann, bob} {
		p.Call(http.MethodPost, "/v1/console/policies", policy("payload.n > 0"), nil)
		p.Call(http.MethodPost, "/v1/console/policies/p/activate", nil, nil)
	}
	for n := 1; n <= 4; n++ {
		s.Red.Ask(map[string]any{"payload": map[string]any{"n": n}, "trace_id": fmt.Sprint(n)})
	}
	ann.Call(http.MethodPatch, "/v1/console/policies/p", map[string]any{"rules": policy("payload.n > 3")["rules"]}, nil)
	ann.Get("/console/policies/p?ask=activate").Want(t, "the confirmation", http.StatusOK, "Open approvals: 1 continues, 3 will end.")
	ann.Get("/console/policies/p?version=1&ask=deactivate").Want(t, "no policy", http.StatusOK, "Open approvals: 0 continue, 4 will end.")
	bob.Get("/console/policies/p?ask=deactivate").Want(t, "the other organization", http.StatusOK, "No approval is open.")
	pending := func() int {
		var found struct{ Approvals []struct{} }
		ann.Call(http.MethodGet, "/v1/console/approvals?status=pending", nil, &found)
		return len(found.Approvals)
	}
	if n := pending(); n != 4 {
		t.Errorf("a forecast left %d approvals", n)
	}
	ann.Call(http.MethodPost, "/v1/console/policies/p/activate", nil, nil)
	if n := pending(); n != 1 {
		t.Errorf("the activation left %d approvals", n)
	}
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
