package console_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/test/passkeytest"
	"github.com/agentledger/agentledger/storage"
)

func base64URL(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// passkey gives the account of a session a passkey without a counter.
func (w *world) passkey(session string) *passkeytest.Authenticator {
	w.t.Helper()
	name := "acc_" + session
	err := w.Engine.Write(w.t.Context(), id.Service, []storage.Change{{Kind: "account", Key: name, If: storage.AnyVersion,
		Value: []byte(`{"email":"` + session + `@example.com","generation":0,"created_at":"2026-11-20T12:00:00.000Z","proof":{"by":"mail"}}`)}})
	if err != nil {
		w.t.Fatal(err)
	}
	who, err := w.accounts.ByID(w.t.Context(), account.ID(name))
	if err != nil {
		w.t.Fatal(err)
	}
	key := passkeytest.New(w.t, "https://ledger.example")
	key.AddTo(w.factors, who)
	return key
}

// assertion answers options without incrementing the counter.
func (w *world) assertion(key *passkeytest.Authenticator, options any, time any) string {
	w.t.Helper()
	key.Counter = ^uint32(0)
	text, err := json.Marshal(key.Assert(options, time.(string)))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

func (w *world) voterKeyBody(session string, key *passkeytest.Authenticator) string {
	w.t.Helper()
	o := w.call(200, "POST", "/voter-keys/options", `{"credential_id":"`+base64URL(key.Credential)+`"}`, as(session))
	return `{"credential_id":"` + base64URL(key.Credential) + `","possession":` + w.assertion(key, o["possession"], o["time"]) + `}`
}

// registerVoter gives the account of a session a passkey that signs votes.
func (w *world) registerVoter(session string) *passkeytest.Authenticator {
	w.t.Helper()
	key := w.passkey(session)
	w.call(201, "POST", "/voter-keys", w.voterKeyBody(session, key), as(session))
	return key
}

// Voter keys are listed in pages. Members retire their own keys, and an owner those of all members.
func TestVoterKeys(t *testing.T) {
	w := newWorld(t)
	admin, approver := w.registerVoter("red-admin"), w.registerVoter("red-approver")
	first := w.call(200, "GET", "/voter-keys?limit=1", "")
	second := w.call(200, "GET", "/voter-keys?limit=1&after="+first["next"].(string), "")
	if len(first["voter_keys"].([]any)) != 1 || len(second["voter_keys"].([]any)) != 1 || second["next"] != nil {
		t.Errorf("pages: got %v, %v", first, second)
	}
	for _, name := range []string{"acc_red-admin", "acc_red-approver", "acc_red-owner", "acc_red"} {
		want := 0
		for _, k := range append(first["voter_keys"].([]any), second["voter_keys"].([]any)...) {
			if k.(map[string]any)["account_id"] == name {
				want++
			}
		}
		own := w.call(200, "GET", "/voter-keys?account_id="+name, "")["voter_keys"].([]any)
		if len(own) != want || want > 0 && own[0].(map[string]any)["account_id"] != name {
			t.Errorf("%s: got %v", name, own)
		}
		for _, after := range []any{first["next"], "acc_z"} {
			w.call(200, "GET", fmt.Sprintf("/voter-keys?limit=1&account_id=%s&after=%s", name, after), "")
		}
	}
	if blue := w.call(200, "GET", "/voter-keys", "", as("blue-owner"))["voter_keys"].([]any); len(blue) != 0 {
		t.Errorf("blue: got %v", blue)
	}
	w.refuses("registered", w.request("POST", "/voter-keys/options", `{"credential_id":"`+base64URL(admin.Credential)+`"}`, as("red-admin")), 409, "The passkey signs votes already")
	w.refuses("registered", w.request("POST", "/voter-keys", `{"credential_id":"`+base64URL(admin.Credential)+`","possession":{"credential_id":"AA","time":"2026-11-20T12:00:00Z","authenticator_data":"AA","client_data_json":"AA","signature":"AA"}}`, as("red-admin")), 409, "The passkey signs votes already")
	w.refuses("another's passkey", w.request("POST", "/voter-keys/options", `{"credential_id":"`+base64URL(admin.Credential)+`"}`, as("red-approver")), 404, "Not found")
	for _, body := range []string{`{}`, `{"credential_id":""}`} {
		w.refuses("without a passkey", w.request("POST", "/voter-keys/options", body, as("red-admin")), 422, "credential_id is required")
		w.refuses("without a passkey", w.request("POST", "/voter-keys", body, as("red-admin")), 422, "credential_id is required")
	}
	a := w.ask(red)
	ballot := `{"vote":"approve","action_digest":"` + a.ActionDigest.String() + `"}`
	path := "/approvals/" + string(a.ID) + "/votes/options"
	w.refuses("no key", w.request("POST", path, ballot, as("red-owner")), 409, "No passkey of yours signs votes here: register one first")
	w.refuses("no approval", w.request("POST", "/approvals/apr_none/votes/options", ballot, as("red-admin")), 404, "Not found")
	w.refuses("of blue", w.request("POST", path, ballot, as("blue-owner")), 404, "Not found")
	w.call(200, "POST", path, ballot, as("red-admin"))
	w.refuses("an admin for another", w.request("DELETE", "/voter-keys/"+base64URL(approver.Credential), "", as("red-admin")), 404, "Not found")
	w.refuses("blue's owner", w.request("DELETE", "/voter-keys/"+base64URL(approver.Credential), "", as("blue-owner")), 404, "Not found")
	for _, key := range []*passkeytest.Authenticator{approver, admin} {
		if g := w.do(w.request("DELETE", "/voter-keys/"+base64URL(key.Credential), "", as("red-owner"))); g.status != 204 {
			t.Errorf("the owner: got %d %s", g.status, g.text)
		}
	}
	if rest := w.call(200, "GET", "/voter-keys", "")["voter_keys"].([]any); len(rest) != 0 {
		t.Errorf("after retirement: got %v", rest)
	}
}
