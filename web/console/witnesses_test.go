package console_test

import (
	"net/http"
	"testing"

	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/tlog"
)

// The organization gets its own witness, which cosigns the log on request.
func TestWitnesses(t *testing.T) {
	t.Parallel()
	s := allowed(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	const page = "/console/settings/witnesses"
	ann.Get(page).Want(t, "none", http.StatusOK, "No witness is asked.", "The policy is that of the service.")
	w := witnesstest.New(t, "witness.example/w1")
	key, err := tlog.ParseVerifierKey(s.Red.LogKey)
	if err != nil {
		t.Fatal(err)
	}
	w.AddLog(key)
	policy := w.PolicyLine("w1") + "quorum w1\n"
	ann.Post(page, "do", "save", "policy", "witness <b>", "fail", "closed").Want(t, "no policy", http.StatusUnprocessableEntity, "policy is not a tlog-policy", "witness &lt;b&gt;", `<option value="closed" selected>`)
	ann.Post(page, "do", "save", "policy", policy, "fail", "half").Want(t, "fail", http.StatusUnprocessableEntity, "fail must be open or closed")
	ann.Post(page, "do", "save", "policy", policy, "fail", "closed").Want(t, "save", http.StatusSeeOther)
	s.Red.Send("cosigned", nil)
	ann.Post(page, "do", "ask").Want(t, "ask", http.StatusSeeOther)
	awaitPage(t, ann, page, "<td>cosigned</td>").Want(t, "cosigned", http.StatusOK, "witness.example/w1", "The organization has a policy of its own.", w.URL, "Latest tree with its quorum")
	bob.Get(page).WantNone(t, "blue", "witness.example/w1")
	carl := s.SignIn(s.Red.Join("carl", "member"))
	carl.Get(page).Want(t, "a member", http.StatusOK, "witness.example/w1").WantNone(t, "a member", w.URL, "<textarea")
	for _, do := range []string{"ask", "save", "reset"} {
		carl.Post(page, "do", do, "policy", policy).Want(t, "a member: "+do, http.StatusForbidden, "Your role does not allow this")
	}
	ann.Post(page, "do", "reset").Want(t, "reset", http.StatusSeeOther)
	ann.Get(page+"?notice=witnesses-reset").Want(t, "reset", http.StatusOK, "The policy is that of the service.").WantNone(t, "reset", w.URL)
}
