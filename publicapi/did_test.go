package publicapi_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/tenant/agent"
)

func documentOf(t *testing.T, body []byte) (d did.Document) {
	t.Helper()
	if err := json.Unmarshal(body, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAgentDocumentIsOfTheNewestActiveKey(t *testing.T) {
	w := newWorld(t)
	const target = "/v1/public/agents/helper-red/did"
	shows := func(want edkey.Public) {
		t.Helper()
		expected, err := did.KeyDocument(want.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if got := w.get(target).Body.String(); got != string(mustJSON(t, expected)) {
			t.Errorf("got %s, want %s", got, mustJSON(t, expected))
		}
	}
	first := w.red.agent.Private.Public()
	shows(first)
	second, third := w.register(&w.red), w.register(&w.red)
	shows(third.Public)
	if _, err := w.agents.RetireKey(t.Context(), w.red.tenant, "acc", third.Agent, third.ID); err != nil {
		t.Fatal(err)
	}
	shows(second.Public)
	if _, err := w.agents.RevokeKey(t.Context(), w.red.tenant, "acc", second.Agent, second.ID, agent.Revocation{}); err != nil {
		t.Fatal(err)
	}
	shows(first)
	if _, err := w.agents.RetireKey(t.Context(), w.red.tenant, "acc", w.red.agent.Agent, w.red.agent.Key); err != nil {
		t.Fatal(err)
	}
	w.missing(target)
	w.get("/v1/public/agents/helper-blue/did")
}

func TestWebDocumentListsAllKeys(t *testing.T) {
	w := newWorld(t)
	retired, revoked := w.register(&w.red), w.register(&w.red)
	if _, err := w.agents.RetireKey(t.Context(), w.red.tenant, "acc", retired.Agent, retired.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.agents.RevokeKey(t.Context(), w.red.tenant, "acc", revoked.Agent, revoked.ID, agent.Revocation{}); err != nil {
		t.Fatal(err)
	}
	body := w.get("/v1/public/agents/helper-red/did.json").Body.Bytes()
	d := documentOf(t, body)
	if want := "did:web:ledger.example%3A8443:v1:public:agents:helper-red"; d.ID != want {
		t.Errorf("got %s, want %s", d.ID, want)
	}
	if len(d.VerificationMethod) != 3 || d.VerificationMethod[1].Expires == "" || d.VerificationMethod[2].Revoked == "" {
		t.Fatalf("got %s", body)
	}
	if want := []string{d.VerificationMethod[0].ID}; !slices.Equal(d.AssertionMethod, want) || !slices.Equal(d.Authentication, want) {
		t.Errorf("got relationships %v, %v; want the active key alone", d.AssertionMethod, d.Authentication)
	}
	for _, name := range []string{
		url.PathEscape(d.ID), d.ID, strings.ReplaceAll(url.PathEscape(d.ID), ":", "%3A"),
		strings.Replace(d.ID, "%3A", "%3a", 1), strings.Replace(url.PathEscape(d.ID), "%253A", "%253a", 1), strings.ReplaceAll(url.PathEscape(d.ID), ":", "%3a"),
	} {
		if got := w.get("/v1/public/did/" + name).Body.String(); got != string(body) {
			t.Errorf("%s: got %s, want %s", name, got, body)
		}
	}
}

// A did:key is found for every key that was ever registered, whatever its state is.
func TestKeyDocuments(t *testing.T) {
	w := newWorld(t)
	ended := w.register(&w.red)
	if _, err := w.agents.RevokeKey(t.Context(), w.red.tenant, "acc", ended.Agent, ended.ID, agent.Revocation{}); err != nil {
		t.Fatal(err)
	}
	for _, public := range []edkey.Public{ended.Public, w.red.agent.Private.Public(), w.blue.agent.Private.Public()} {
		name := did.KeyDID(public.Bytes())
		for _, spelled := range []string{name, strings.ReplaceAll(name, ":", "%3A")} {
			if d := documentOf(t, w.get("/v1/public/did/"+spelled).Body.Bytes()); d.ID != name {
				t.Errorf("got %s, want %s", d.ID, name)
			}
		}
	}
}

func TestOtherDIDsAreNotFound(t *testing.T) {
	w := newWorld(t)
	known := did.KeyDID(w.red.agent.Private.Public().Bytes())
	for _, name := range []string{
		did.KeyDID(edkey.NewPrivate().Public().Bytes()), known + "%23z", known[:len(known)-1], strings.ToUpper(known), "did:key:",
		"did:web:other.example:v1:public:agents:helper-red", "did:web:ledger.example:v1:public:agents:helper-red",
		"did:web:ledger.example%253A8443:v1:public:agents:nobody", "did:web:ledger.example%253a8443:v1:public:agents:nobody",
		"did:web:ledger.example%253A8443:v1:public:agents:", "did:web:ledger.example%253A8443", "did:plc:x", "did", "%2e%2e", "did:web:%2F",
	} {
		w.missing("/v1/public/did/" + name)
	}
	for _, agent := range []string{"nobody", "helper-RED", "system", "%00", "helper-red%2Fx"} {
		w.missing("/v1/public/agents/" + agent + "/did")
		w.missing("/v1/public/agents/" + agent + "/did.json")
	}
}

func TestDocumentForms(t *testing.T) {
	w := newWorld(t)
	for _, target := range []string{
		"/v1/public/agents/helper-red/did", "/v1/public/agents/helper-red/did.json",
		"/v1/public/did/" + did.KeyDID(w.red.agent.Private.Public().Bytes()),
	} {
		plain := w.get(target).Body.Bytes()
		for accept, want := range map[string]string{
			"": did.MediaJSON, "*/*": did.MediaJSON, "application/json": did.MediaJSON, "application/*": did.MediaJSON, "text/html": did.MediaJSON,
			"application/did":                           did.MediaDID,
			"application/did+json":                      did.MediaDIDJSON,
			"application/did+ld+json":                   did.MediaDIDLDJSON,
			"application/did-resolution":                did.MediaResolution,
			"application/json;q=0.1, application/did":   did.MediaDID,
			"application/did;q=0.1, */*;q=0.2":          did.MediaJSON,
			`application/did-resolution;profile="x"`:    did.MediaResolution,
			"Application/DID+JSON":                      did.MediaDIDJSON,
			"application/did+json, application/did;q=1": did.MediaDID,
		} {
			answer := w.get(target, "Accept: "+accept)
			if got := answer.Header().Get("Content-Type"); got != want || answer.Header().Get("Vary") != "Accept" {
				t.Errorf("%s with %q: got %s (Vary %q), want %s", target, accept, got, answer.Header().Get("Vary"), want)
			}
			body := answer.Body.Bytes()
			if want == did.MediaResolution {
				var resolution struct {
					Document json.RawMessage `json:"didDocument"`
				}
				if err := json.Unmarshal(body, &resolution); err != nil {
					t.Fatal(err)
				}
				body = resolution.Document
			}
			if string(body) != string(plain) {
				t.Errorf("%s with %q: got %s, want %s", target, accept, body, plain)
			}
		}
	}
}
