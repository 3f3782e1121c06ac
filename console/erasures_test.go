package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// erase completes all erasures that are due.
func (w *world) erase() {
	w.t.Helper()
	for more := true; more; {
		var err error
		if more, err = w.erasures.Sweep(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// An owner erases an event, and the console shows what remains. A search no longer finds its text.
func TestEraseEvent(t *testing.T) {
	w := newWorld(t)
	const name = "evt-secret"
	w.sendEvent(red, name, map[string]any{"payload": map[string]any{"text": "a canary"}})
	before := w.call(200, "GET", "/events/"+name, "")
	if before["envelope"] == nil || before["erased_at"] != nil {
		t.Fatalf("before: got %v", before)
	}
	if found := w.call(200, "GET", "/events?q=canary", "")["events"].([]any); len(found) != 1 {
		t.Fatalf("before: q finds %v", found)
	}
	made := w.call(202, "POST", "/events/"+name+"/erase", `{"reason":"data_subject_request"}`)["erasure_id"].(string)
	waiting := w.call(200, "GET", "/erasures/"+made, "", as("red-auditor"))
	if waiting["state"] != "waiting" || waiting["event_id"] != name || waiting["asked_by"] != "acc_red-owner" {
		t.Errorf("waiting: got %v", waiting)
	}
	w.erase()
	done := w.call(200, "GET", "/erasures", "", as("red-admin"))["erasures"].([]any)[0].(map[string]any)
	equal(t, "counts", done["counts"].(map[string]any),
		`{"matched":1,"erased":1,"already":0,"unexamined":0,"approvals":0,"deliveries":0}`)
	if done["state"] != "done" || done["ended_at"] == nil || done["from"] != nil {
		t.Errorf("done: got %v", done)
	}
	after := w.call(200, "GET", "/events/"+name, "")
	if after["envelope"] != nil || after["erased_at"] == nil || after["actor_principal"] != nil || after["record"] != before["record"] {
		t.Errorf("after: got %v", after)
	}
	if found := w.call(200, "GET", "/events?q=canary", "")["events"].([]any); len(found) != 0 {
		t.Errorf("after: q finds %v", found)
	}
	for _, path := range []string{"/events?order=oldest", "/traces/" + after["trace_id"].(string)} {
		shown := w.call(200, "GET", path, "")["events"].([]any)[0].(map[string]any)
		if shown["erased_at"] != after["erased_at"] {
			t.Errorf("%s: got %v", path, shown)
		}
	}
	w.refuses("the other organization", w.request("GET", "/erasures/"+made, "", as("blue-owner")), 404, "Not found")
	if list := w.call(200, "GET", "/erasures", "", as("blue-owner"))["erasures"].([]any); len(list) != 0 {
		t.Errorf("the other organization has %v", list)
	}
}

// Erasures are listed as they were requested, in pages.
func TestErasuresInPages(t *testing.T) {
	w := newWorld(t)
	for _, body := range []string{
		`{"agent_id":"agt_a","reason":"other","from":"2","to":"2026-11-20T13:00:00Z"}`,
		`{"trace_id":"trc","reason":"test_data","from":null}`,
		`{"principal":"Mia","reason":"consent_withdrawn"}`,
	} {
		w.call(202, "POST", "/erasures", body)
		w.Pass(time.Second)
	}
	first := w.call(200, "GET", "/erasures?limit=2", "")
	second := w.call(200, "GET", fmt.Sprintf("/erasures?limit=2&after=%v", first["next"]), "")
	all := append(first["erasures"].([]any), second["erasures"].([]any)...)
	var got []string
	for _, one := range all {
		e := one.(map[string]any)
		got = append(got, fmt.Sprintln(e["by"], e["agent_id"], e["trace_id"], e["principal"], e["from"], e["to"], e["reason"], e["tree_size"]))
	}
	want := []string{
		"principal <nil> <nil> Mia <nil> <nil> consent_withdrawn 2", "trace_id <nil> trc <nil> <nil> <nil> test_data 1",
		"agent_id agt_a <nil> <nil> 2 2026-11-20T13:00:00.000Z other 0",
	}
	for i := range want {
		if i >= len(got) || strings.Join(strings.Fields(got[i]), " ") != want[i] {
			t.Errorf("got %q, want %q", got, want)
			break
		}
	}
	if second["next"] != nil {
		t.Errorf("next: got %v", second["next"])
	}
	w.refuses("no page", w.request("GET", "/erasures?limit=0", ""), 422, "limit must be from 1 to 1000")
	w.erase()
	for _, one := range w.call(200, "GET", "/erasures", "")["erasures"].([]any) {
		if e := one.(map[string]any); e["principal"] != nil || e["state"] != "done" {
			t.Errorf("done: got %v", e)
		}
	}
}

func TestErasureRefuses(t *testing.T) {
	w := newWorld(t)
	name := string(w.secretEvent())
	for body, message := range map[string]string{
		`{"reason":"other"}`: "Give exactly one of agent_id, trace_id, principal and on_behalf_of",
		`{"agent_id":"a","principal":"b","reason":"other"}`:  "Give exactly one of agent_id, trace_id, principal and on_behalf_of",
		`{"agent_id":"a","reason":"other","from":"monday"}`:  "from must be a UTC time like 2026-01-31T12:00:00Z, or a log index",
		`{"agent_id":"a","reason":"other","to":"-1"}`:        "to must be a UTC time like 2026-01-31T12:00:00Z, or a log index",
		`{"agent_id":"a","reason":"other","note":"for Mia"}`: `Member "note" is not known`,
		`{"agent_id":"a"}`: "reason must be one of data_subject_request, consent_withdrawn, no_longer_needed, " +
			"legal_obligation, sent_by_mistake, secret_disclosed, test_data, other",
	} {
		w.refuses(body, w.request("POST", "/erasures", body), 422, message)
	}
	w.refuses("the service's own event", w.request("POST", "/events/"+w.ownEvent()+"/erase", `{"reason":"other"}`), 422,
		"System events are never erased: they contain no payload")
	w.refuses("unknown", w.request("POST", "/events/nothing/erase", `{"reason":"other"}`), 404, "Not found")
	w.refuses("another organization's", w.request("POST", "/events/"+name+"/erase", `{"reason":"other"}`, as("blue-owner")), 404, "Not found")
	w.call(200, "PATCH", "/organization", `{"legal_hold":true}`)
	const held = "The organization has a legal hold: nothing is erased until an owner ends it"
	w.refuses("an event under hold", w.request("POST", "/events/"+name+"/erase", `{"reason":"other"}`), 409, held)
	w.refuses("an agent under hold", w.request("POST", "/erasures", `{"agent_id":"a","reason":"other"}`), 409, held)
	w.call(200, "PATCH", "/organization", `{"legal_hold":false}`)
}

// ownEvent returns the ID of an event that the service itself appended.
func (w *world) ownEvent() string {
	w.t.Helper()
	w.call(200, "PATCH", "/organization", `{"name":"Red again"}`)
	all := w.call(200, "GET", "/events?signer=system&limit=1", "")["events"].([]any)
	return all[0].(map[string]any)["event_id"].(string)
}

// At the limit of waiting erasures, one more is refused, for events and for agents.
func TestTooManyErasures(t *testing.T) {
	w := newWorld(t)
	name := string(w.secretEvent())
	refused := 0
	for n := range 200 {
		g := w.do(w.request("POST", "/erasures", `{"agent_id":"a","reason":"other"}`))
		switch {
		case g.status == 429 && strings.Contains(g.text, "100 erasures are waiting"):
			refused = n
		case g.status == 429: // the pace limit of changes
			w.Pass(time.Minute)
		}
		if refused > 0 {
			break
		}
	}
	if refused < 100 {
		t.Errorf("refused at %d", refused)
	}
	w.refuses("an event", w.request("POST", "/events/"+name+"/erase", `{"reason":"other"}`), 429, "100 erasures are waiting: try again when some are done")
	w.call(202, "POST", "/erasures", `{"agent_id":"a","reason":"other"}`, as("blue-owner"))
}

// Only an owner with a recently proved factor can change retention and hold. Tokens cannot.
func TestRetentionAndHoldAreTheOwners(t *testing.T) {
	w := newWorld(t)
	_, secret := w.token("red-admin", "admin")
	for _, body := range []string{`{"legal_hold":true}`, `{"retention_days":30}`, `{"name":"n","legal_hold":false}`} {
		w.refuses("an admin: "+body, w.request("PATCH", "/organization", body, as("red-admin")), 403, "Your role does not allow this")
		w.refuses("a token: "+body, w.request("PATCH", "/organization", body, as(""), header("Authorization", "Bearer "+secret)), 403, "Tokens can't do this: sign in")
		w.refuses("a late owner: "+body, w.request("PATCH", "/organization", body, as("red-owner-late")), 401, "Confirm your identity again: step up")
	}
	for body, message := range map[string]string{
		`{"retention_days":-1}`:    "retention_days must be a whole number from 0 to 36500",
		`{"retention_days":36501}`: "retention_days must be a whole number from 0 to 36500",
		`{"retention_days":1.5}`:   `Member "retention_days" has another type or form`,
	} {
		w.refuses(body, w.request("PATCH", "/organization", body), 422, message)
	}
	got := w.call(200, "PATCH", "/organization", `{"retention_days":30,"legal_hold":true}`)
	if got["retention_days"] != 30.0 || got["legal_hold"] != true {
		t.Errorf("got %v", got)
	}
	got = w.call(200, "GET", "/organization", "", as("red-member"))
	if got["retention_days"] != 30.0 || got["legal_hold"] != true {
		t.Errorf("got %v", got)
	}
	if got = w.call(200, "GET", "/organization", "", as("blue-owner")); got["legal_hold"] != false {
		t.Errorf("the other organization: got %v", got)
	}
	statements := w.Audit(t, red)
	if last := statements[len(statements)-1]; last.Kind != "ledger_settings_changed" || !strings.Contains(last.Payload, `"names":["legal_hold","retention_days"]`) {
		t.Errorf("got %+v", last)
	}
}
