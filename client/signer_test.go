package client

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

// Both forms of every vector are reproduced byte for byte.
func TestSignVectors(t *testing.T) {
	var file struct {
		PrivateKey string `json:"private_key_b64"`
		Vectors    []struct {
			Name      string            `json:"name"`
			Envelope  jsontext.Value    `json:"envelope"`
			Signature map[string]string `json:"sig_value_b64"`
		} `json:"vectors"`
	}
	text, err := os.ReadFile("../event/testdata/aps1-signing.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	organization, err := id.ParseOrganization("8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11")
	if err != nil {
		t.Fatal(err)
	}
	s, err := ParseSigner(Identity{organization, "agt_vector", "key_vector"}, file.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range file.Vectors {
		for _, form := range []event.Form{event.FormDigest, event.FormCanonical} {
			signed, err := s.Sign(v.Envelope, form)
			if err != nil {
				t.Errorf("%s: %v", v.Name, err)
				continue
			}
			e, err := event.Parse(signed, event.Options{})
			if err != nil || e.SignatureB64 != v.Signature[form.String()] || !bytes.Equal(e.Canonical, signed) {
				t.Errorf("%s, %s: got %s, %v", v.Name, form, signed, err)
			}
		}
	}
	if len(file.Vectors) == 0 {
		t.Error("no vectors")
	}
}

func TestSignCanonicalVerifies(t *testing.T) {
	o := fakeservice.Start(t, 1).Organization(0)
	s := newSigner(t, o)
	complete, err := s.Complete([]byte(`{"action_kind":"tool_call","payload":{"sig_value_b64":"AAAA"}}`))
	if err != nil {
		t.Fatal(err)
	}
	public, err := edkey.ParsePublic(publicKey(s))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []event.Form{event.FormDigest, event.FormCanonical} {
		signed, err := s.Sign(complete, want)
		if err != nil {
			t.Fatal(err)
		}
		e, err := event.Parse(signed, event.Options{Organization: o.ID})
		if err != nil {
			t.Fatal(err)
		}
		if form, ok := e.Verify(public); !ok || form != want {
			t.Errorf("got %s, %v, want %s", form, ok, want)
		}
	}
	if _, err := s.Sign(complete, 0); err == nil {
		t.Error("no form: no error")
	}
}

func publicKey(s *Signer) []byte {
	b := s.Public()
	return b[:]
}

func TestSignEventFillsIn(t *testing.T) {
	o := fakeservice.Start(t, 1).Organization(0)
	s := newSigner(t, o)
	before := time.Now().Truncate(time.Millisecond)
	signed, err := s.SignEvent(Event{ActionKind: "result", Extra: map[string]any{"span_id": "s1"}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := event.Parse(signed, event.Options{MaxBytes: math.MaxInt, Organization: o.ID})
	if err != nil {
		t.Fatal(err)
	}
	if e.AgentID != o.Agent || e.KeyID != o.Key || e.ActorType != "agent" || e.ActorPrincipal != string(o.Agent) ||
		e.Decision != id.Allow || string(e.Payload) != "{}" || e.Tool != "" || e.EmittedAt.Before(before) || e.EmittedAt.After(time.Now()) {
		t.Errorf("got %s", signed)
	}
	for _, want := range []string{`"event_id":"evt_[0-9a-f]{32}"`, `"trace_id":"trc_[0-9a-f]{32}"`, `"salt":"[A-Za-z0-9_-]{22}"`, `"span_id":"s1"`, `"emitted_at":"[^"]{19}\.\d{3}Z"`} {
		if !regexp.MustCompile(want).Match(signed) {
			t.Errorf("no %s in %s", want, signed)
		}
	}
	again, err := s.SignEvent(Event{ActionKind: "result"})
	if err != nil || bytes.Equal(again, signed) {
		t.Errorf("the same event twice: %v", err)
	}
}

func TestSignEventKeeps(t *testing.T) {
	s := newSigner(t, fakeservice.Start(t, 1).Organization(0))
	signed, err := s.SignEvent(Event{
		EventID: "evt_1", TraceID: "trc_1", EmittedAt: 1_795_176_000_123, ActorType: "human", ActorPrincipal: "Ana", ActionKind: "human_approval",
		Decision: id.Deny, Tool: "a.b", Payload: map[string]any{"n": 1.5}, Extra: map[string]any{"salt": "mine"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"action_kind":"human_approval","actor_principal":"Ana","actor_type":"human","agent_id":"agt_1","emitted_at":"2026-11-20T12:00:00.123Z",` +
		`"event_id":"evt_1","key_id":"key_1","organization_id":"ab000000-0000-0000-0000-000000000001","payload":{"n":1.5},"policy_decision":"deny",` +
		`"salt":"mine","schema_version":1,"sig_alg":"ed25519","sig_value_b64":"`
	if !strings.HasPrefix(string(signed), want) {
		t.Errorf("got %s", signed)
	}
}

func TestCompleteRefuses(t *testing.T) {
	s := newSigner(t, fakeservice.Start(t, 1).Organization(0))
	for name, unsigned := range map[string]string{
		"nothing":                  ``,
		"no object":                `[]`,
		"member twice":             `{"payload":{},"payload":{}}`,
		"another agent":            `{"agent_id":"agt_2"}`,
		"agent is a number":        `{"agent_id":1}`,
		"another key":              `{"key_id":"key_2"}`,
		"another organization":     `{"organization_id":"ab000000-0000-0000-0000-000000000002"}`,
		"malformed organization":   `{"organization_id":"mine"}`,
		"name of a statement":      `{"event_id":"ledger_run:1"}`,
		"name of a step":           `{"event_id":"stp_1"}`,
		"the same, with an escape": `{"event_id":"\u0073tp_1"}`,
		"number JSON can't hold":   `{"payload":{"n":9007199254740993}}`,
	} {
		if out, err := s.Complete([]byte(unsigned)); err == nil {
			t.Errorf("%s: got %s", name, out)
		}
	}
	if out, err := s.Complete([]byte(`{"organization_id":"AB000000-0000-0000-0000-000000000001"}`)); err != nil {
		t.Errorf("organization in upper case: got %s, %v", out, err)
	}
}

func TestSignEventRefuses(t *testing.T) {
	s := newSigner(t, fakeservice.Start(t, 1).Organization(0))
	for name, e := range map[string]Event{
		"no action kind":      {},
		"payload not JSON":    {ActionKind: "result", Payload: make(chan int)},
		"payload not object":  {ActionKind: "result", Payload: "text"},
		"tool malformed":      {ActionKind: "tool_call", Tool: ".."},
		"signature given":     {ActionKind: "result", Extra: map[string]any{"sig_alg": "ed25519"}},
		"name of a step":      {ActionKind: "result", EventID: "stp_1"},
		"another agent given": {ActionKind: "result", Extra: map[string]any{"agent_id": "other"}},
	} {
		if out, err := s.SignEvent(e); err == nil {
			t.Errorf("%s: got %s", name, out)
		}
	}
}

func TestNewSignerRefuses(t *testing.T) {
	seed := strings.Repeat("A", 43) + "="
	organization := id.Organization{1}
	for name, tc := range map[string]struct {
		who  Identity
		seed string
	}{
		"no organization":   {Identity{id.Organization{}, "a", "k"}, seed},
		"no agent":          {Identity{organization, "", "k"}, seed},
		"agent malformed":   {Identity{organization, "a b", "k"}, seed},
		"no key":            {Identity{organization, "a", ""}, seed},
		"seed empty":        {Identity{organization, "a", "k"}, ""},
		"seed short":        {Identity{organization, "a", "k"}, "QUJD"},
		"seed without pad":  {Identity{organization, "a", "k"}, seed[:43]},
		"seed in two lines": {Identity{organization, "a", "k"}, seed[:20] + "\n" + seed[20:]},
		"seed, loose bits":  {Identity{organization, "a", "k"}, seed[:42] + "B="},
		"seed of 64 bytes":  {Identity{organization, "a", "k"}, base64.StdEncoding.EncodeToString(make([]byte, 64))},
	} {
		if _, err := ParseSigner(tc.who, tc.seed); err == nil || tc.seed != "" && strings.Contains(err.Error(), tc.seed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestSignerHidesItsKey(t *testing.T) {
	o := fakeservice.Start(t, 1).Organization(0)
	s := newSigner(t, o)
	seed, err := edkey.ParseSeed(o.Seed)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{s, *s, struct{ S *Signer }{s}, struct{ s Signer }{*s}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
			got := fmt.Sprintf(verb, v)
			if strings.Contains(got, o.Seed) || strings.Contains(got, fmt.Sprintf("%x", seed)) || strings.Contains(got, fmt.Sprint(seed)) {
				t.Errorf("%s: got %s", verb, got)
			}
		}
	}
}

func TestProof(t *testing.T) {
	o := fakeservice.Start(t, 1).Organization(0)
	s := newSigner(t, o)
	text, err := s.Proof()
	if err != nil {
		t.Fatal(err)
	}
	proof, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	public, err := edkey.ParsePublic(publicKey(s))
	if err != nil {
		t.Fatal(err)
	}
	message := "APS1-KEY\nab000000-0000-0000-0000-000000000001\nagt_1\nkey_1\n" + base64.StdEncoding.EncodeToString(publicKey(s)) + "\n"
	if !public.Verify([]byte(message), proof) {
		t.Errorf("proof does not verify: %s", text)
	}
}

func TestProveKey(t *testing.T) {
	seed := make([]byte, edkey.SeedSize)
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	o := fakeservice.Start(t, 1).Organization(0)
	who := newSigner(t, o).Identity()
	for _, key := range []id.Key{"", "key_1"} {
		who.Key = key
		proof, err := ProveKey(who, seed)
		if err != nil {
			t.Fatal(err)
		}
		signature, err := base64.StdEncoding.DecodeString(proof)
		if err != nil {
			t.Fatal(err)
		}
		message := "APS1-KEY\nab000000-0000-0000-0000-000000000001\nagt_1\n" + string(key) + "\n" + private.Public().String() + "\n"
		if !private.Public().Verify([]byte(message), signature) {
			t.Errorf("key id %q: proof does not verify: %s", key, proof)
		}
	}
	for name, bad := range map[string]Identity{
		"no organization": {Agent: "agt_1"}, "no agent": {Organization: who.Organization}, "bad key id": {Organization: who.Organization, Agent: "agt_1", Key: "a b"},
	} {
		if _, err := ProveKey(bad, seed); err == nil {
			t.Errorf("%s: got a proof", name)
		}
	}
	if _, err := ProveKey(Identity{Organization: who.Organization, Agent: "agt_1"}, seed[1:]); err == nil {
		t.Error("short seed: got a proof")
	}
}

func TestSecret(t *testing.T) {
	service := fakeservice.Start(t, 2)
	one, two := newSigner(t, service.Organization(0)), newSigner(t, service.Organization(1))
	seen := map[[32]byte]string{}
	for name, secret := range map[string][32]byte{
		"one": one.Secret("salt", []byte("a")), "other key": two.Secret("salt", []byte("a")), "other label": one.Secret("sal", []byte("ta")),
		"other data": one.Secret("salt", []byte("b")), "no data": one.Secret("salt", nil),
	} {
		if before, ok := seen[secret]; ok {
			t.Errorf("%s is %s", name, before)
		}
		seen[secret] = name
	}
	first, second := one.Secret("salt", []byte("a")), one.Secret("salt", []byte("a"))
	if first != second {
		t.Error("not the same twice")
	}
}

func BenchmarkSignEvent(b *testing.B) {
	s := newSigner(b, fakeservice.Start(b, 1).Organization(0))
	e := Event{ActionKind: "tool_call", Tool: "crm.user.get", Payload: map[string]any{"note": strings.Repeat("x", 700)}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.SignEvent(e); err != nil {
			b.Fatal(err)
		}
	}
}
