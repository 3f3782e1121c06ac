package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/tlog"
)

// Admins register the keys of tools without JavaScript, other roles read them, and another organization has none of them.
func TestToolKeysPage(t *testing.T) {
	t.Parallel()
	s := servicetest.New(t)
	key, err := tlog.NewVerifierKey("did:web:payments.example", edkey.NewPrivate().Public())
	if err != nil {
		t.Fatal(err)
	}
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	const page = "/console/settings/tool-keys"
	ann.Get(page).Want(t, "none", http.StatusOK, "No key is registered", "Verifier keys or did:web names, one per line")
	redirects(t, "register", ann.Post(page, "do", "save", "keys", "\n "+key.String()+"\r\n"), page+"?notice=saved")
	shown := strings.ReplaceAll(key.String(), "+", "&#43;")
	ann.Get(page+"?notice=saved").Want(t, "registered", http.StatusOK, "The changes are saved.", "did:web:payments.example", "<code><bdi>"+shown+"</bdi></code>", shown+"</textarea>").
		WantNone(t, "registered", "No key is registered")
	ann.Post(page, "do", "save", "keys", key.String()+"\nx").Want(t, "another text", http.StatusUnprocessableEntity, "keys[1] must be a C2SP verifier key", "x</textarea>")
	bob.Get(page).Want(t, "blue", http.StatusOK, "No key is registered").WantNone(t, "blue", shown)
	for role, may := range map[string]bool{"admin": true, "policy_editor": false, "approver": false, "auditor": false, "member": false} {
		p := s.SignIn(s.Red.Join(role, role))
		got := p.Get(page)
		got.Want(t, role, http.StatusOK, "<code><bdi>"+shown+"</bdi></code>")
		if strings.Contains(got.Body, `value="save"`) != may {
			t.Errorf("%s: may save %v", role, may)
		}
		if !may {
			p.Post(page, "do", "save", "keys", "").Want(t, role, http.StatusForbidden, "Your role does not allow this")
		}
	}
	redirects(t, "remove", ann.Post(page, "do", "save", "keys", ""), page+"?notice=saved")
	ann.Get(page).Want(t, "removed", http.StatusOK, "No key is registered")
	ann.Get("/console/activity?q=confirmed%3Ayes").Want(t, "acts", http.StatusOK, `<option value="yes" selected>`)
	ann.Get("/console/activity?q=confirmed%3Amaybe").Want(t, "another word", http.StatusUnprocessableEntity, "confirmed: must be yes or no.")
}
