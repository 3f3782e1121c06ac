package console_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// hostile returns texts that become markup, script or reordered text if a page does not escape them.
func hostile() []string {
	return []string{`<script>window.pwned=1</script>`, `</textarea><script>window.pwned=1</script>`, `"><svg onload=window.pwned=1>`,
		`'><a href="javascript:window.pwned=1">x</a>`, `</pre></bdi><iframe srcdoc="<script>parent.pwned=1</script>">`, `{{.Page}}{{template "frame"}}`,
		`<base href="https://evil.example/">`, `<!--`, "\u202egnp.exe", "\u2066<b id=x>\u2069"}
}

// Every text in a policy is shown as text on each page, also in a browser.
func TestHostilePolicyTexts(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	create(t, ann)
	var rules, tests []any
	for i, text := range hostile() {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		rules = append(rules, map[string]any{"rule_id": string(rune('a' + i)), "tool": "acme.**", "decision": "deny", "mode": "shadow", "reason": text,
			"when": "payload.text == " + string(quoted)})
		tests = append(tests, map[string]any{"name": text, "input": map[string]any{"tool_name": "acme.x", "payload": map[string]any{text: text, "text": text}},
			"expect": map[string]string{"decision": "deny"}})
	}
	text, err := json.Marshal(map[string]any{"name": hostile()[0], "rules": rules, "tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	save(t, ann, refunds, string(text))
	ann.Call(http.MethodPatch, "/v1/console/policies/refunds", map[string]any{"default": "deny"}, nil)
	edited := append([]string{"do", "check", "document", string(text)}, base(t, ann, refunds+"/edit")...)
	pages := []string{ann.Get(list).Body, ann.Get(refunds).Body, ann.Get(refunds + "/edit").Body, ann.Get(refunds + "/tests").Body, ann.Get(refunds + "/compare").Body,
		ann.Post(refunds+"/edit", edited...).Body, ann.Post(refunds+"/edit", "do", "save", "document", hostile()[1]).Body,
		ann.Post(refunds+"/simulate", "do", "input", "tool_name", "acme.x", "payload", `{"text":"<base href=x>"}`).Body,
		ann.Post(refunds+"/simulate", "do", "history", "last", hostile()[2]).Body}
	for i, body := range pages {
		for tag := range strings.SplitSeq("<script>window|<svg onload|<iframe|<base|<a href=\"javascript|<b id=x>", "|") {
			if strings.Contains(body, tag) {
				t.Errorf("page %d contains %s", i, tag)
			}
		}
	}
	if got := ann.Get(refunds).Body; strings.Contains(got, "\u202e") || !strings.Contains(got, "U&#43;202E") {
		t.Errorf("a character that reverses text is not shown by its code: %s", got)
	}
	if got := ann.Get(refunds + "/edit").Body; strings.Contains(got, "\u202e") || !strings.Contains(got, `\u202e`) {
		t.Error("the editor contains a character that reverses text")
	}
	b := s.Browser()
	b.SignIn(s.Red.Owner)
	b.Visit(refunds + "/edit")
	b.Fill("document", string(text))
	awaitCondition(b, `document.getElementById("findings").textContent.includes("of 10")`)
	var pwned bool
	if b.Must(`return window.pwned !== undefined || document.querySelector("main script, main svg, main iframe, main base") !== null`, &pwned); pwned {
		t.Error("a text of a policy became markup")
	}
	b.WantQuiet()
}
