package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// await waits until an element of the page contains a text.
func await(t *testing.T, b *servicetest.Browser, selector, text string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		got := b.Text(selector)
		if strings.Contains(got, text) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s never shows %q: %s", selector, text, got)
		}
	}
}

// An agent requests an approval, and the open inbox shows it. The approver reads, types, proves presence, and votes.
// The agent uses the approval, and the open page shows that.
func TestApprovalsInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.NewWithProvider(t)
	ann := s.SignIn(s.Red.Owner)
	requireApproval(ann, 1, "money leaves")
	s.Red.Send("before", nil)
	eve := s.Red.Join("eve", "approver")
	s.Prove(eve)
	b := s.Browser()
	b.Become(s.SignInByProvider(eve)) // a session without the time of a sign-in: a vote needs a step-up
	b.Visit("/console/approvals")
	await(t, b, "#lists", "Nothing waits for you")
	asked := s.Red.Ask(nil)
	await(t, b, "#lists", "Read and vote")
	await(t, b, "#news", "1 approval waits for you.")
	var typed string
	b.Press(`#cards a`)
	await(t, b, "h1", "acme.refund")
	if got := b.Text("main .kv"); !strings.Contains(got, "A-1001") || !strings.Contains(got, "84.5") {
		t.Errorf("payload: got %s", got)
	}

	b.Must(`for (const folded of document.querySelectorAll("main details")) folded.open = true;`, nil)

	// Another event about an approval updates the page, but not the form that is being filled in.
	b.Fill("comment", "looks right to me")
	s.Red.Send("during", map[string]any{"tool_name": "acme.during"})
	other := s.Red.Ask(map[string]any{"trace_id": "other"})
	await(t, b, "#events", "acme.during")
	b.Press(`button[value="approve"]`)
	await(t, b, "h1", "Prove that it is you")
	b.Must(`document.getElementById("step-up-password").value = args[0];`, nil, servicetest.Password)
	b.Press(`#stepup button`)
	await(t, b, "#notice", "Your vote is counted.")
	for _, said := range b.Messages() {
		if !strings.Contains(said, "the server responded with a status of 401") { // the page of the step-up
			t.Errorf("console messages: %q", said)
		}
	}
	await(t, b, "#standing", "approved, not used yet")
	if got := b.Text("#votes"); !strings.Contains(got, "looks right to me") {
		t.Errorf("the comment is lost: %s", got)
	}
	s.Red.Consume(asked)
	await(t, b, "#standing", "approved and used")
	await(t, b, "#news", "The approval is approved and used.")

	// Another approver votes. The typed comment stays, and the page reports the change.
	b.Visit("/console/approvals/" + other.ID)
	b.Fill("comment", "half a thought")
	ann.Call(http.MethodPost, "/v1/console/approvals/"+other.ID+"/revoke", nil, nil)
	await(t, b, "#standing", "revoked by a member")
	await(t, b, "#news", "This page has changed.")
	if b.Must(`return document.querySelector("[name=comment]").value`, &typed); typed != "half a thought" {
		t.Errorf("the update removed the comment: %q", typed)
	}
	b.WantQuiet()
}

// Texts of agents and members are shown as text: they run no script, add no markup and do not reorder other text.
func TestHostileApprovalsInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	requireApproval(ann, 2-1, "\u2069\u202e<script>window.pwned=1</script>reason")
	texts := servicetest.Hostile()
	payload := map[string]any{}
	for _, text := range texts {
		payload[text] = []any{text, map[string]any{text: text}}
	}
	b := s.Browser()
	b.Become(ann)
	ann.Call(http.MethodPut, "/v1/console/columns", map[string]any{"columns": []string{"n", "shown"}}, nil) // which cards show
	for i, text := range texts {
		payload["n"], payload["shown"] = i, text
		asked := s.Red.Ask(map[string]any{"payload": payload, "actor_principal": text, "trace_id": "t" + string(rune('a'+i))})
		if i%8 > 0 {
			continue // a browser is slow: the other texts are in the list
		}
		path := "/console/approvals/" + asked.ID
		want(t, text, ann.Post(path, "do", "deny", "action_digest", asked.ActionDigest, "comment", text), http.StatusSeeOther)
		b.Visit(path)
		b.WantHarmless(text)
		if facts := b.Text("main .kv"); strings.ContainsAny(facts, "\u202e\u2066\u2069\u2028") {
			t.Errorf("%q: got %q", text, facts)
		}
	}
	for list, decided := range map[string]bool{"mine": false, "decided": true} {
		b.Visit("/console/approvals?list=" + list)
		for i, text := range texts {
			if (i%8 == 0) == decided {
				b.WantHarmless(text)
			}
		}
	}
	b.WantQuiet()
}
