package ingest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/tenant/org"
)

// A step consumes an approval over plain HTTP, compared verbatim, and only with a key that has both scopes.
func TestStepWithApproval(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	path := w.startRun(&w.red, runBody)
	bridge := w.do("GET", path, w.red.token, "").fields["agent_id"].(string)
	asked, digest := w.ask(&w.red, fields{"agent_id": bridge, "tool_name": "acme.ask", "payload": fields{"amount": 7}})
	name := strings.TrimPrefix(asked, approvalsPath+"/")
	step := `{"step_key":"pay","tool_name":"acme.ask","payload":{"amount":7},"status":"started","approval_id":"` + name + `"}`
	w.expect(w.post(path+"/steps", w.red.token, step), http.StatusConflict, "The approval is still pending")
	w.agree(&w.red, asked, digest, "acc_1", "acc_2")
	both := `[{"step_key":"x","status":"started"},` + strings.Replace(step, `"amount":7`, `"amount":8`, 1) + `]`
	w.expect(w.post(path+"/steps", w.red.token, both), http.StatusConflict, "[1].approval_id: The approval is for another agent, tool, payload or subject")
	for _, tt := range []struct {
		scopes org.Scopes
		status int
		says   string
	}{
		{1 << org.ScopeWorkflows, 403, "The ingest key does not have the scope approvals"},
		{1<<org.ScopeWorkflows | 1<<org.ScopeApprovals, 404, "Not found"}, // the run is of another key
	} {
		token := w.ingestKey(&w.red, org.WantedKey{Scopes: tt.scopes})
		w.expect(w.post(path+"/steps", token, step), tt.status, tt.says)
	}
	blue := w.startRun(&w.blue, runBody)
	w.expect(w.post(blue+"/steps", w.blue.token, step), http.StatusNotFound, "approval_id is not an approval that this ingest key requested")

	done := w.post(path+"/steps", w.red.token, step)
	w.expect(done, http.StatusCreated, "")
	used, _ := done.fields["approval"].(map[string]any)
	if done.fields["decision"] != "allow_with_obligation" || used["approval_id"] != name || used["status"] != "consumed" || used["grant"] == nil {
		t.Fatalf("got %s", done.Body)
	}
	again := w.post(path+"/steps", w.red.token, step)
	w.expect(again, http.StatusOK, "")
	w.same("again", again, strings.Replace(strings.TrimSpace(done.Body.String()), `"created"`, `"replayed"`, 1))
	if a := w.do("GET", asked, w.red.token, ""); a.fields["status"] != "consumed" {
		t.Errorf("approval: got %s", a.Body)
	}
	for _, prefix := range prefixes {
		second := strings.Replace(path, prefixes[0], prefix, 1) + "/steps"
		w.expect(w.post(second, w.red.token, strings.Replace(step, `"pay"`, `"pay2"`, 1)), http.StatusGone, "The approval was already consumed")
	}
	w.Pass(5 * time.Minute)
	late := w.post(path+"/steps", w.red.token, step)
	if used, _ := late.fields["approval"].(map[string]any); late.Code != 200 || used["grant"] != nil || used["status"] != "consumed" {
		t.Errorf("when the grant is over: got %s", late.Body)
	}
	w.expect(w.post(path+"/steps", w.red.token, `{"step_key":"z","status":"started","approval_id":"`+name+`"}`), 422, "approval_id requires tool_name")
}
