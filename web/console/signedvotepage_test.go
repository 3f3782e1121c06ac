package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// A user registers a passkey on the account page, and signs a vote on the approval's page.
func TestSignedVoteInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	ann := s.SignIn(s.Red.Owner)
	requireApproval(ann, 1, "")
	ann.Call(http.MethodPatch, "/v1/console/organization", map[string]any{"signed_votes": "required"}, nil)
	eve := s.Red.Join("eve", "approver")
	asked := s.Red.Ask(nil)
	b := s.Browser()
	b.AddAuthenticator()
	b.SetDisplay(chromium.Display{Scheme: "light", Width: 390})
	b.SignIn(eve)
	b.Visit("/console/approvals")
	b.Press("#cards a")
	if got := b.ShownText(); !strings.Contains(got, "no passkey of yours signs votes here yet") || strings.Contains(got, "Sign and approve") {
		t.Errorf("without a voter key: got %s", got)
	}
	b.Press(`a[href*="return="]`)
	b.Fill("passkey_name", "phone")
	b.Press(`button[value="prepare"]`)
	b.Start(`button[data-passkey="prepared"]`)
	b.AwaitText("Sign votes with this passkey")
	b.Start("button[data-voter]")
	b.AwaitText("Stop signing votes")

	b.Emulate("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
	b.Open(s.URL + "/console/approvals/" + asked.ID)
	if got := b.ShownText(); !strings.Contains(got, "Signing needs JavaScript") || strings.Contains(got, "Sign and approve") || !strings.Contains(got, "Deny") {
		t.Errorf("without scripts: got %s", got)
	}
	b.Emulate("Emulation.setScriptExecutionDisabled", map[string]any{"value": false})

	// From the list, one tap leads to the whole action with its buttons, and one touch signs.
	b.Visit("/console/approvals")
	b.Press("#cards a")
	var shown bool
	b.Must(`
		const {top, bottom} = document.querySelector("button[data-sign]").getBoundingClientRect();
		return top >= 0 && bottom <= innerHeight && document.querySelector("main .kv").getBoundingClientRect().top < innerHeight;`, &shown)
	if !shown {
		t.Error("the first screen lacks the button or the payload")
	}
	b.Must(`document.querySelector("[name=reason_code]").focus();`, nil) // in which Enter does not vote
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.Emulate("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"})
	}
	b.Start(`button[data-sign]`)
	b.AwaitText("by the approver's passkey, registered on")
	ann.Get("/console/approvals/"+asked.ID).Want(t, "approved", http.StatusOK, "approved, not used yet", "registered on")
	s.Red.Consume(asked)
	verifyEverywhere(t, ann)
}
