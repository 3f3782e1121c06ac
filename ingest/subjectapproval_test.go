package ingest_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/subjecttoken"
	"github.com/agentledger/agentledger/internal/test/openidtest"
)

const otherSubject = "The approval is for another agent, tool, payload or subject"

// An approval that people gave for an act on behalf of Alice is refused for Bob, and for nobody: by a proof, a step, and another event.
func TestApprovalOfOneSubject(t *testing.T) {
	w := newWorld(t)
	alice, bob := fields{"issuer": "https://login.example", "subject": "alice"}, fields{"issuer": "https://login.example", "subject": "bob"}
	of := func(m *member, subject any) string {
		a := grant.Action{Organization: m.id, Agent: m.agent.Agent, Tool: "acme.ask", Payload: []byte(`{"amount":7}`)}
		if s, ok := subject.(fields); ok {
			a.OnBehalfOf = []byte(`{"issuer":"` + s["issuer"].(string) + `","subject":"` + s["subject"].(string) + `"}`)
		}
		return a.Digest().String()
	}
	for _, m := range []*member{&w.red, &w.blue} {
		w.activate(m, "pol-1", rules)
		asked, digest := w.ask(m, but(refund, fields{"on_behalf_of": alice}))
		if digest != of(m, alice) {
			t.Errorf("action digest: got %s, want %s", digest, of(m, alice))
		}
		if a := w.post(approvalsPath, m.token, w.question(m, but(refund, fields{"on_behalf_of": alice}))); a.Code != 200 || approvalsPath+"/"+a.fields["approval_id"].(string) != asked {
			t.Errorf("asked again: got %d %s", a.Code, a.Body)
		}
		w.agree(m, asked, digest, "acc_1", "acc_2")
		for _, other := range []any{nil, bob} {
			path, another := w.ask(m, but(refund, fields{"on_behalf_of": other})) // a question of its own
			if path == asked || another != of(m, other) {
				t.Errorf("another subject: got %s %s", path, another)
			}
			w.expect(w.post(asked+"/consume", m.token, claim(m, asked, another)), http.StatusConflict, otherSubject)
		}

		run := w.startRun(m, runBody)
		bridge := w.do("GET", run, m.token, "").fields["agent_id"].(string)
		stepped, digest := w.ask(m, fields{"agent_id": bridge, "tool_name": "acme.ask", "payload": fields{"amount": 7}, "on_behalf_of": alice})
		w.agree(m, stepped, digest, "acc_1", "acc_2")
		step := func(subject string) string {
			return `{"step_key":"pay","tool_name":"acme.ask","payload":{"amount":7},"status":"started",` + subject + `"approval_id":"` +
				strings.TrimPrefix(stepped, approvalsPath+"/") + `"}`
		}
		const named = `"on_behalf_of":{"issuer":"https://login.example","subject":"%"},`
		w.expect(w.post(run+"/steps", m.token, step("")), http.StatusConflict, otherSubject)
		w.expect(w.post(run+"/steps", m.token, step(strings.Replace(named, "%", "bob", 1))), http.StatusConflict, otherSubject)
		w.expect(w.post(run+"/steps", m.token, step(`"on_behalf_of":null,`)), 422, "on_behalf_of must be an object")
		w.expect(w.post(run+"/steps", m.token, `[{"step_key":"x","status":"started"},`+step(`"on_behalf_of":{},`)+`]`), 422, "[1]: Missing on_behalf_of.subject")
		w.expect(w.post(run+"/steps", m.token, step(strings.Replace(named, "%", "alice", 1))), http.StatusCreated, "")

		first := w.mustCreate(m, "alice", but(intent("acme.ask"), fields{"on_behalf_of": alice, "trace_id": "trc-2"}), wantsApproval)
		path, digest := approvalsPath+"/"+first.fields["approval_id"].(string), first.fields["approval"].(map[string]any)["action_digest"].(string)
		w.agree(m, path, digest, "acc_1", "acc_2")
		for name, other := range map[string]any{"bob": bob, "nobody": nil} {
			second := w.mustCreate(m, name, but(intent("acme.ask"), fields{"on_behalf_of": other, "trace_id": "trc-2"}), wantsApproval)
			own := second.fields["approval"].(map[string]any)
			if own["approval_id"] == first.fields["approval_id"] || own["action_digest"] == digest || own["status"] != "pending" {
				t.Errorf("the event of %s: got %s", name, second.Body)
			}
			w.expect(w.post(path+"/consume", m.token, claim(m, path, own["action_digest"].(string))), http.StatusConflict, otherSubject)
		}
		w.expect(w.post(path+"/consume", m.token, claim(m, path, digest)), http.StatusOK, "")
	}
	w.expect(w.post(approvalsPath, w.red.token, w.question(&w.red, but(refund, fields{"on_behalf_of": "alice"}))), 422, "on_behalf_of must be an object")
	w.expect(w.post(approvalsPath, w.red.token, w.question(&w.red, but(refund, fields{"on_behalf_of": fields{"issuer": "https://login.example"}}))), 422, "Missing on_behalf_of.subject")
}

// An access request is for the subject of its denial, and its approval for nobody else.
func TestAccessRequestOfOneSubject(t *testing.T) {
	w := newWorld(t)
	of := func(m *member, subject any) fields {
		if subject == nil {
			return refundAccess(m, nil)
		}
		return refundAccess(m, fields{"on_behalf_of": fields{"issuer": "https://login.example", "subject": subject}})
	}
	for _, m := range []*member{&w.red, &w.blue} {
		w.activate(m, "pol-1", refundRules)
		request := w.request(m.token, of(m, "alice"))
		for _, other := range []any{nil, "bob"} {
			bound := of(m, other)
			bound["denial"] = request["denial"]
			w.expectProblem(w.post(requestsPath, m.token, text(t, bound)), 400, "invalid_denial_binding",
				"denial.binding_token is of another denial: subject, action, resource and context must be those that were denied to this ingest key")
		}
		task := w.task(m.token, of(m, "alice"))
		found, err := w.approvals.Find(t.Context(), m.tenant, approval.ID(task))
		if err != nil || found.OnBehalfOf == nil || found.OnBehalfOf.Subject != "alice" {
			t.Fatalf("got %+v, %v", found.OnBehalfOf, err)
		}
		digest := found.ActionDigest.String()
		w.agree(m, approvalsPath+"/"+task, digest, "acc_1")
		for _, other := range []any{nil, "bob"} {
			if got := w.denied(m.token, w.again(of(m, other), task, m, digest)); got["reason"] != "out_of_scope" || got["next_action"] != "request" {
				t.Errorf("used for %v: got %v", other, got)
			}
		}
		if a := w.post(accessPath, m.token, text(t, w.again(of(m, "alice"), task, m, digest))); a.fields["decision"] != true {
			t.Errorf("used for alice: got %d %s", a.Code, a.Body)
		}
	}
}

// The approval knows whether a token proved its subject, in a question and in an event, which may be repeated.
func TestStandingOfApproval(t *testing.T) {
	p := openidtest.New(t)
	verifier := subjecttoken.New(egress.New(egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), nil)
	w := newWorld(t, func(o *ingest.Options) { o.Subjects = verifier })
	w.activate(&w.red, "pol-1", rules)
	m := w.red
	made, token, err := w.orgs.CreateIngestKey(t.Context(), m.tenant, "acc", org.WantedKey{Name: "another"})
	if err != nil {
		t.Fatal(err)
	}
	issuer := org.SubjectIssuer{Issuer: p.URL, Audience: "https://ledger.example", Required: true} // so the first one waits for the keys
	if _, err := w.orgs.ChangeIngestKey(t.Context(), m.tenant, "acc", made.ID, org.KeyPatch{Subjects: &issuer}); err != nil {
		t.Fatal(err)
	}
	m.token = token.Reveal()
	proof := "Agentledger-Subject-Token: " + p.Sign(map[string]any{"iss": p.URL, "sub": "alice", "aud": issuer.Audience, "exp": time.Now().Add(time.Minute).Unix()})
	of := func(subject string) fields {
		return fields{"on_behalf_of": fields{"issuer": p.URL, "subject": subject}}
	}
	check := func(name string, a answer, want event.Standing) {
		t.Helper()
		w.expect(a, http.StatusCreated, "")
		found, err := w.approvals.Find(t.Context(), m.tenant, approval.ID(a.fields["approval_id"].(string)))
		if err != nil || found.OnBehalfOf == nil || found.Standing != want {
			t.Errorf("%s: got %+v %q, %v, want %q", name, found.OnBehalfOf, found.Standing, err, want)
		}
	}
	question := func(trace, subject string) string {
		return w.question(&m, but(but(refund, of(subject)), fields{"trace_id": trace}))
	}
	check("proved", w.post(approvalsPath, m.token, question("trc-1", "alice"), proof), event.Verified)
	check("no token", w.post(approvalsPath, m.token, question("trc-2", "alice")), "")
	check("the token of another subject", w.post(approvalsPath, m.token, question("trc-3", "bob"), proof), "")
	check("a key without an issuer", w.post(approvalsPath, w.red.token, w.question(&w.red, but(refund, of("alice"))), proof), "")

	envelope := w.envelope(&m, "evt", but(intent("acme.ask"), of("alice")))
	check("an event", w.send(&m, envelope, wantsApproval, proof), event.Verified)
	later := w.envelope(&m, "later", but(intent("acme.ask"), of("alice")))
	w.expect(w.send(&m, later, proof), http.StatusCreated, "")
	a := w.send(&m, later, wantsApproval) // repeated without the token
	if a.Code == http.StatusOK {
		a.Code = http.StatusCreated
	}
	check("a repeated event", a, event.Verified)
}
