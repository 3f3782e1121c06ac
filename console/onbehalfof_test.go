package console_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/wire"
)

// sendFor appends an act in the name of a subject.
func (w *world) sendFor(tenant id.Tenant, name, issuer, subject string) {
	w.t.Helper()
	w.sendDecided(tenant, name, map[string]any{"agent_id": w.first[tenant].Agent, "key_id": w.first[tenant].Key, "on_behalf_of": map[string]any{"issuer": issuer, "subject": subject, "actors": []any{map[string]any{"subject": "planner"}}}},
		event.Policy{Evaluated: true, Declared: id.Allow, Effective: id.Allow, PolicyID: "pol_1", PolicyVersion: 1, RuleID: "r", Engine: "rules"})
}

// Events and acts are found by their subject, and by the issuer of it, in one organization.
// An approval shows for whom it is, and whether that was verified, to those who see it.
func TestOnBehalfOfApproval(t *testing.T) {
	w := newWorld(t)
	plain := w.ask(red)
	want := map[string]string{"/approvals/" + string(plain.ID): "<nil>"}
	for standing, shown := range map[event.Standing]string{"": "map[actors:[map[subject:planner]] issuer:https://a.example subject:u1 verified:false]",
		event.Verified: "map[actors:[map[subject:planner]] issuer:https://a.example subject:u1 verified:true]"} {
		a, _, err := w.approvals.Ask(t.Context(), red, approval.Question{Agent: plain.Agent, Tool: plain.Tool, Payload: plain.Payload, IngestKeyID: plain.IngestKeyID,
			Trace:      id.Trace("trc" + standing),
			OnBehalfOf: &event.OnBehalfOf{Issuer: "https://a.example", Subject: "u1", Actors: []event.Actor{{Subject: "planner"}}}, Standing: standing})
		if err != nil {
			t.Fatal(err)
		}
		want["/approvals/"+string(a.ID)] = shown
	}
	for path, want := range want {
		for _, who := range []string{"red-owner", "red-member"} {
			if got := fmt.Sprint(w.call(200, "GET", path, "", as(who))["on_behalf_of"]); got != want {
				t.Errorf("%s: got %s, want %s", who, got, want)
			}
		}
		w.refuses("the other organization", w.request("GET", path, "", as("blue-owner")), 404, "Not found")
	}
}

func TestOnBehalfOf(t *testing.T) { eachEngine(t, checkOnBehalfOf) }

func checkOnBehalfOf(t *testing.T, w *world) {
	w.sendFor(red, "e1", "https://a.example", "u1")
	w.sendFor(red, "e2", "https://b.example", "u1")
	w.sendFor(red, "e3", "https://a.example", "planner")
	w.sendEvent(red, "e4", nil)
	w.sendFor(blue, "b1", "https://a.example", "u1")
	for query, want := range map[string][]string{
		"on_behalf_of=u1": {"e2", "e1"}, "on_behalf_of=u1&issuer=https%3A%2F%2Fa.example": {"e1"}, "on_behalf_of=planner": {"e3"},
		"on_behalf_of=u": nil, "on_behalf_of=u1&issuer=https%3A%2F%2Fc.example": nil,
	} {
		for _, list := range []string{"events", "acts"} {
			var got []string
			for _, e := range w.call(200, "GET", "/"+list+"?"+query, "")[list].([]any) {
				got = append(got, e.(map[string]any)["event_id"].(string))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s?%s: got %q, want %q", list, query, got, want)
			}
		}
		if got := w.call(200, "GET", "/stats?"+query, "")["acts"]; got != float64(len(want)) {
			t.Errorf("stats?%s: got %v, want %d", query, got, len(want))
		}
	}
	const want = "map[actors:[map[subject:planner]] issuer:https://a.example subject:u1 verified:false]"
	for _, path := range []string{"/events/e1", "/acts/e1"} {
		if got := fmt.Sprint(w.call(200, "GET", path, "")["on_behalf_of"]); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
	if got, has := w.call(200, "GET", "/events/e4", "")["on_behalf_of"]; has {
		t.Errorf("without the member: got %v", got)
	}
	for _, list := range []string{"events", "acts", "traces", "stats"} {
		w.refuses(list, w.request("GET", "/"+list+"?issuer=a", ""), 422, "issuer requires on_behalf_of")
	}
}

// A pack of a subject has the acts on its behalf and their approvals, in one organization. The event about the export does not name it.
func TestPackOfASubject(t *testing.T) {
	w := newWorld(t)
	w.sendFor(red, "e1", "https://a.example", "canary-subject")
	w.sendFor(red, "e2", "https://b.example", "canary-subject")
	w.sendFor(red, "e3", "https://a.example", "withheld-subject")
	w.sendFor(blue, "b1", "https://a.example", "canary-subject")
	other := w.ask(red) // an approval on nobody's behalf
	for query, want := range map[string][]string{
		"on_behalf_of=canary-subject": {"e1", "e2"}, "on_behalf_of=canary-subject&issuer=https://b.example": {"e2"}, "on_behalf_of=nobody": nil,
	} {
		g := w.do(w.request("GET", "/evidence.zip?envelopes=1&"+query, "", as("red-auditor")))
		r := w.checkPack(red, g.text)
		if r.Shown != uint64(len(want)) || r.Approvals != 0 || strings.Contains(g.text, "withheld-subject") || strings.Contains(g.text, string(other.ID)) {
			t.Errorf("%s: got %+v", query, r)
		}
		for _, name := range want {
			if !strings.Contains(g.text, `"event_id":"`+name+`"`) {
				t.Errorf("%s: the pack does not have %s", query, name)
			}
		}
	}
	if stated := fmt.Sprint(w.Audit(t, red)); strings.Contains(stated, "canary") || !strings.Contains(stated, `"on_behalf_of":"hidden"`) {
		t.Errorf("the log has %s", stated)
	}
}

// Files of events and acts have the subject, its issuer and its standing.
func TestSubjectColumns(t *testing.T) {
	w := newWorld(t)
	w.sendFor(red, "e1", "https://a.example", "u1")
	w.sendEvent(red, "e2", nil)
	for list, want := range map[string][]string{
		"events": {"actor_principal,on_behalf_of,on_behalf_of_issuer,on_behalf_of_verified\r\n", ",u1,https://a.example,false\r\n", ",,,\r\n"},
		"acts":   {"trace_id,on_behalf_of,on_behalf_of_issuer,on_behalf_of_verified\r\n", ",u1,https://a.example,false\r\n"},
	} {
		csv := w.do(w.request("GET", "/"+list+"?format=csv", "", as("red-owner")))
		for _, part := range want {
			if csv.status != 200 || !strings.Contains(csv.text, part) {
				t.Errorf("%s: got %d %s, want %q in it", list, csv.status, csv.text, part)
			}
		}
		lines := w.do(w.request("GET", "/"+list+"?format=ndjson", "", as("red-owner")))
		if part := `"on_behalf_of":{"issuer":"https://a.example","subject":"u1"`; !strings.Contains(lines.text, part) || !strings.Contains(lines.text, `"verified":false`) {
			t.Errorf("%s: got %s", list, lines.text)
		}
	}
}

// The link for a user shows the acts in the user's name without naming the user, and the log does not have the subject.
func TestLinkForASubject(t *testing.T) {
	w := newWorld(t)
	w.sendFor(red, "e1", "https://a.example", "canary-subject")
	w.sendFor(red, "e2", "https://a.example", "another")
	_, secret := w.share("red-owner", "on_behalf_of=canary-subject")
	if got, err := w.readShared(secret); err != nil || got != "e1" {
		t.Errorf("got %q, %v", got, err)
	}
	var shown wire.Act
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/share/"+secret, nil)
	err := w.surface.ReadShared(r, secret, func(ctx context.Context, v *console.Shared) (err error) {
		shown, err = v.Act(ctx, "e1")
		return err
	})
	if err != nil || shown.OnBehalfOf != nil {
		t.Errorf("got %+v, %v", shown.OnBehalfOf, err)
	}
	file := w.doWith(w.plain, httptest.NewRequestWithContext(t.Context(), "GET", "/share/"+secret+"/acts.csv", nil))
	if !strings.Contains(file.text, "e1") || strings.Contains(file.text, "canary") || strings.Contains(file.text, "e2") {
		t.Errorf("got %s", file.text)
	}
	stated := fmt.Sprint(w.Audit(t, red))
	if strings.Contains(stated, "canary") || !strings.Contains(stated, "on_behalf_of=hidden") {
		t.Errorf("the log has %s", stated)
	}
}

// The issuer of an ingest key is changed, stated and removed. A malformed one is refused by name.
func TestSubjectIssuer(t *testing.T) {
	w := newWorld(t)
	made := w.call(201, "POST", "/ingest-keys", `{"name":"k"}`)["key"].(map[string]any)
	path := "/ingest-keys/" + made["key_id"].(string)
	if _, has := made["subject_issuer"]; has {
		t.Errorf("got %v", made)
	}
	const wanted = `{"subject_issuer":{"issuer":"https://a.example","audience":"ledger","required":true}}`
	for range 2 {
		w.call(200, "PATCH", path, wanted)
		if got := fmt.Sprint(w.call(200, "GET", path, "")["subject_issuer"]); got != "map[audience:ledger issuer:https://a.example required:true]" {
			t.Errorf("got %s", got)
		}
	}
	for body, message := range map[string]string{
		`{"subject_issuer":{"issuer":"http://a.example","audience":"a"}}`: "subject_issuer.issuer must be an https URL without user, query and fragment, at most 512 bytes",
		`{"subject_issuer":{"issuer":"https://a.example","audience":""}}`: "subject_issuer.audience must have 1 to 512 characters and no control characters",
		`{"subject_issuer":{"issuer":"","audience":"a"}}`:                 "subject_issuer.issuer must be an https URL without user, query and fragment, at most 512 bytes",
	} {
		w.refuses(body, w.request("PATCH", path, body), 422, message)
	}
	w.call(200, "PATCH", path, `{"name":"other"}`)
	w.call(200, "PATCH", path, `{"subject_issuer":{"issuer":"","audience":""}}`)
	if got, has := w.call(200, "GET", path, "")["subject_issuer"]; has {
		t.Errorf("after the removal: got %v", got)
	}
	changes := 0
	for _, kind := range w.kinds(red) {
		if strings.HasPrefix(kind, "ledger_ingest_key_changed") {
			changes++
		}
	}
	if changes != 3 {
		t.Errorf("got %d changes in %q", changes, w.kinds(red))
	}
}
