package console_test

import (
	"net/http"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// An export is created, tested, changed and deleted without JavaScript. Its headers are never shown.
func TestStreamExport(t *testing.T) {
	t.Parallel()
	s, to := allowed(t), newReceiver(t)
	ann, bob := s.SignIn(s.Red.Owner), s.SignIn(s.Blue.Owner)
	const page = "/console/settings/stream-export"
	ann.Get(page).Want(t, "none", http.StatusOK, "The organization has no stream export", "Begin the export")
	save := func(more ...string) servicetest.Answer {
		return ann.Post(page, append([]string{"do", "save", "url", to.URL + "/v1/logs?key=k1", "format", "cloudevents", "encoding", "json", "active", "yes"}, more...)...)
	}
	for _, lines := range []string{"no colon", ": x", "A: b\nA: c"} {
		refused := save("header_secrets", lines)
		refused.Want(t, lines, http.StatusUnprocessableEntity, "Write each header once", `<option value="cloudevents" selected>`, "key=k1")
		refused.WantNone(t, lines, "no colon", "A: b")
	}
	save("from", "x").Want(t, "from", http.StatusUnprocessableEntity, "a whole number from 0")
	ann.Post(page, "do", "test").Want(t, "a test of none", http.StatusNotFound)
	save("header_secrets", "Authorization: Bearer concealed\n\nX-Other: 1", "from", "0").Want(t, "begin", http.StatusSeeOther)
	shown := ann.Get(page)
	shown.Want(t, "begun", http.StatusOK, "Authorization", "X-Other", "are not sent", "key=k1").WantNone(t, "begun", "concealed")
	bob.Get(page).Want(t, "blue", http.StatusOK, "The organization has no stream export")
	ann.Post(page, "do", "test").Want(t, "test", http.StatusSeeOther)
	awaitPage(t, ann, page, "status 204")
	s.Red.Send("streamed", nil)
	awaitPage(t, ann, page, "<dt>State</dt><dd>current</dd>")
	save("no_headers", "yes", "payloads", "yes").Want(t, "change", http.StatusSeeOther)
	ann.Get(page).Want(t, "changed", http.StatusOK, "<dt>Headers</dt><dd>none</dd>", "no erasure removes them")
	carl := s.SignIn(s.Red.Join("carl", "auditor"))
	carl.Get(page).Want(t, "an auditor", http.StatusOK, "no erasure").WantNone(t, "an auditor", "key=k1", `value="save"`)
	for _, do := range []string{"save", "test", "delete"} {
		carl.Post(page, "do", do, "url", to.URL).Want(t, "an auditor: "+do, http.StatusForbidden, "Your role does not allow this")
	}
	ann.Post(page, "do", "delete").Want(t, "delete", http.StatusSeeOther)
	ann.Get(page+"?notice=stream-export-deleted").Want(t, "deleted", http.StatusOK, "The export is deleted.", "The organization has no stream export")
}
