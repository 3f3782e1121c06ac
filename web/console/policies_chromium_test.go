package console_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/web/console"
)

// place is where a text of TestPlaces has an error, according to both readers.
type place struct{ text, message string }

// A user writes a policy, sees an error while typing, corrects it, saves it, runs its tests, tries it on stored events,
// activates it, and sees a decision change; then compares versions and rolls back.
func TestPoliciesInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	s.Red.Send("evt-1", map[string]any{"tool_name": "acme.payments.refund", "payload": map[string]any{"amount_usd": 700}})
	decides := func(want string) {
		t.Helper()
		var answer struct {
			Decision string `json:"decision"`
		}
		s.Red.Ingest("POST", "/policy/evaluate", map[string]any{"organization_id": s.Red.ID, "agent_id": s.Red.Agent.AgentID,
			"tool_name": "acme.payments.refund", "payload": map[string]any{"amount_usd": 700}}, &answer)
		if answer.Decision != want {
			t.Errorf("a refund of 700: got %s, want %s", answer.Decision, want)
		}
	}
	b := s.Browser()
	b.SignIn(s.Red.Owner)
	b.Visit(list + "?new=1")
	b.Fill("name", "Refunds")
	b.Fill("policy_id", "refunds")
	b.Press(`button[value="create"]`)
	b.WantQuiet()
	decides("allow")

	wrong := strings.Replace(document("100"), `"decision"`, "\n\"decison\"", 1)
	b.Fill("document", wrong)
	awaitCondition(b, `document.getElementById("slip").textContent.startsWith("Line 2: rules[0].decison is not a member")`)
	b.Must(`document.getElementById("place").click();`, nil)
	var chosen string
	b.Must(`const text = document.querySelector("textarea"); return text.value.slice(text.selectionStart, text.selectionEnd);`, &chosen)
	if chosen != `"decison"` {
		t.Errorf("the place is %q", chosen)
	}
	b.Fill("document", wrong[:20])
	awaitCondition(b, `document.getElementById("slip").textContent.startsWith("Line 1: the text is not JSON")`)
	b.Fill("document", document("900"))
	awaitCondition(b, `document.querySelector("#findings [data-state=fail]")?.textContent.includes("fails: got allow")`)
	b.Fill("document", document("100"))
	awaitCondition(b, `document.querySelector("#findings [data-state=ok]")?.textContent.includes("large")`)
	for _, message := range b.Messages() { // the browser's own message about a response 422
		if !strings.Contains(message, "/console/policies/refunds/edit") || !strings.Contains(message, "422") {
			t.Errorf("console messages: %q", message)
		}
	}
	b.KeepPictures("editor")
	b.Press(`button[value="save"]`)
	if got := b.Text("#says + ol"); !strings.Contains(got, "payload.amount_usd > 100: deny it, because “Too much”") {
		t.Errorf("got %q", got)
	}
	b.Press(`a[href$="/tests?version=1"]`)
	if got := b.Text("#content .note"); !strings.Contains(got, "All of its tests pass (1)") {
		t.Errorf("got %q", got)
	}
	b.Visit(refunds + "/simulate")
	b.Press(`button[value="history"]`)
	if got := b.Text("#history-result"); got != "1 of 1 decisions would be others" {
		t.Errorf("got %q", got)
	}
	b.KeepPictures("simulate")
	decides("allow")
	b.Visit(refunds)
	b.Press(`a[href$="ask=activate"]`)
	if got := b.Text(`button[value="activate"]`); got != "Activate and deny 1 of last week's" {
		t.Errorf("the button: got %q", got)
	}
	b.KeepPictures("activate")
	b.Press(`button[value="activate"]`)
	if got := b.Text("#standing"); !strings.Contains(got, "it decides now") {
		t.Errorf("got %q", got)
	}
	decides("deny")

	b.Visit(refunds + "/edit")
	b.Fill("document", strings.Replace(document("1000"), `"amount_usd":500`, `"amount_usd":5000`, 1))
	b.Press(`button[value="save"]`)
	b.Press(`a[href$="ask=activate"]`)
	b.Press(`button[value="activate"]`)
	decides("allow")
	b.Visit(refunds + "/compare?from=1&to=2")
	if got := b.Text("#content ins"); !strings.Contains(got, `+       "when": "payload.amount_usd > 1000"`) {
		t.Errorf("got %q", got)
	}
	b.KeepPictures("compare")
	b.Visit(refunds)
	if got := b.Text(`button[value="activate"]`); got != "Back to version 1" {
		t.Errorf("the button: got %q", got)
	}
	b.Press(`button[value="activate"]`)
	decides("deny")
	b.KeepPictures("policy")
	b.Visit(list)
	b.KeepPictures("list")
	b.WantQuiet()
	checkPlaces(t, b)
}

// awaitCondition waits until a condition of the page is true.
func awaitCondition(b *servicetest.Browser, condition string) {
	b.Must(`for (let i = 0; i < 4000 && !(`+condition+`); i++) await new Promise((next) => setTimeout(next, 5));
		if (!(`+condition+`)) throw new Error(document.getElementById("slip").textContent + document.getElementById("findings").textContent);`, nil)
}

// checkPlaces compares the lines that the browser's reader of texts finds with those of the server.
func checkPlaces(t *testing.T, b *servicetest.Browser) {
	t.Helper()
	b.Visit(refunds + "/edit")
	var module string
	b.Must(`return document.querySelector("link[href$='/jsonplace.js']").href`, &module)
	const rules = "{\n\"name\":\"n\",\n\"rules\":[\n{\"rule_id\":\"a\"},\n{\"rule_id\":\"b\",\n\"when\":\"x\",\n\"limit\":{\n\"max\":[1,\n2]}}]\n}"
	for _, p := range []place{
		{rules, "name must have"}, {rules, "rules[0] is"}, {rules, "rules[1].when does not"}, {rules, "rules[1].limit.max: is"}, {rules, "rules[1].limit.max[1] is"},
		{rules, "rules[1].decision must"}, {rules, "rules[7].when is"}, {rules, "nothing is"}, {rules, `Member "rules/1/when" appears`}, {rules, "x"}, {rules, ""},
		{"", "name is"}, {"{", "name is"}, {"{\n\"name\" 1}", "name is"}, {"{\n\"name\":\n01}", "name is"}, {"[\n1,\n]", ""}, {"{}\n{}", ""}, {"{\"a\":\"\n\"}", ""}, {"\"\\x\"", ""}, {"{\"a\":-}", ""},
		{"{\n\"na\\u006de\":2}", "name is"}, {"[[[\n1]]]", "0 is"}, {"tru", ""}, {"1e", ""}, {"{,}", ""}, {"[1\n,,2]", ""},
	} {
		var got int
		b.Must(`const {findPlace, placeOf, lineAt} = await import(args[0]);
			const at = findPlace(args[1], placeOf(args[2]));
			return at === null ? 0 : (at.wrong ? -1 : 1) * lineAt(args[1], at.begin);`, &got, module, p.text, p.message)
		if want := console.LineOfPlace(p.text, p.message); got != want {
			t.Errorf("%q, %q: the browser finds line %d, the server %d", p.text, p.message, got, want)
		}
	}
}
