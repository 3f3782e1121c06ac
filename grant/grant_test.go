package grant_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

const origin = "log.example/o/8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"

func signer(t testing.TB, name string) tlog.SignerKey {
	t.Helper()
	private, err := edkey.PrivateFromSeed([]byte(strings.Repeat("g", 32)))
	if err != nil {
		t.Fatal(err)
	}
	key, err := tlog.NewSignerKey(name, private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sample() grant.Grant {
	return grant.Grant{
		Origin: origin, Approval: "apr_0123456789abcdefghijklmnop", Agent: "billing-bot", ActionDigest: id.Hash{1}, PolicyDigest: id.Hash{2},
		Nonce: grant.Nonce{3}, NotBefore: 1_800_000_000_000, NotAfter: 1_800_000_300_000,
	}
}

const sampleText = "agentledger/grant/v1\n" + origin + "\napr_0123456789abcdefghijklmnop\nbilling-bot\n" +
	"0100000000000000000000000000000000000000000000000000000000000000\n" +
	"0200000000000000000000000000000000000000000000000000000000000000\n" +
	"03000000000000000000000000000000\n2027-01-15T08:00:00.000Z\n2027-01-15T08:05:00.000Z\n"

func TestSignAndOpen(t *testing.T) {
	key := signer(t, origin+"/grant")
	if got := sample().Text(); got != sampleText {
		t.Errorf("text: got %q, want %q", got, sampleText)
	}
	note, err := grant.Sign(sample(), key)
	if err != nil {
		t.Fatal(err)
	}
	got, err := grant.Open(note, key.Verifier())
	if err != nil || got != sample() {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestSignRefuses(t *testing.T) {
	long := sample()
	long.NotAfter++
	spaced := sample()
	spaced.Agent = "a b"
	for name, g := range map[string]grant.Grant{"longer than its life": long, "agent id": spaced, "zero": {Origin: origin}} {
		if _, err := grant.Sign(g, signer(t, origin+"/grant")); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
	for _, name := range []string{origin, "log.example/o/other/grant", origin + "/grants"} {
		if _, err := grant.Sign(sample(), signer(t, name)); err == nil {
			t.Errorf("key %s: signed", name)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	key := signer(t, origin+"/grant")
	signed := func(text string) []byte {
		n, err := key.SignNote(text)
		if err != nil {
			t.Fatal(err)
		}
		return n.Bytes()
	}
	for name, text := range map[string]string{
		"another header":    strings.Replace(sampleText, "/v1", "/v2", 1),
		"a line less":       strings.Replace(sampleText, "billing-bot\n", "", 1),
		"a line more":       sampleText + "more\n",
		"upper-case digest": strings.Replace(sampleText, "0200", "02AA", 1),
		"upper-case nonce":  strings.Replace(sampleText, "0300", "03AA", 1),
		"short nonce":       strings.Replace(sampleText, "\n0300", "\n03", 1),
		"no milliseconds":   strings.Replace(sampleText, "08:00:00.000Z", "08:00:00Z", 1),
		"a life of 301 s":   strings.Replace(sampleText, "08:05:00", "08:05:01", 1),
		"a life of 0 s":     strings.Replace(sampleText, "08:05:00", "08:00:00", 1),
		"approval id":       strings.Replace(sampleText, "apr_", "apr/", 1),
		"another log's":     strings.Replace(sampleText, "8d0f", "8d0e", 1),
		"no such day":       strings.ReplaceAll(sampleText, "01-15", "02-30"),
		"no origin host":    strings.Replace(sampleText, "log.example", "", 1),
	} {
		if g, err := grant.Open(signed(text), key.Verifier()); err == nil {
			t.Errorf("%s: opened %+v", name, g)
		}
	}
	forged := strings.Replace(string(signed(sampleText)), "billing-bot", "killing-bot", 1)
	if _, err := grant.Open([]byte(forged), key.Verifier()); !errors.Is(err, tlog.ErrSignature) {
		t.Errorf("forged: got %v", err)
	}
	if _, err := grant.Open(signed(sampleText), signer(t, origin+"/other").Verifier()); !errors.Is(err, tlog.ErrSignature) {
		t.Errorf("another key: got %v", err)
	}
}

func TestCheck(t *testing.T) {
	g := sample()
	for _, tt := range []struct {
		name   string
		action id.Hash
		now    id.Instant
		want   error
	}{
		{"first valid moment", g.ActionDigest, g.NotBefore, nil},
		{"last valid moment", g.ActionDigest, g.NotAfter - 1, nil},
		{"too early", g.ActionDigest, g.NotBefore - 1, grant.ErrNotYet},
		{"too late", g.ActionDigest, g.NotAfter, grant.ErrExpired},
		{"another action", id.Hash{9}, g.NotBefore, grant.ErrOtherAction},
	} {
		if got := g.Check(tt.action, tt.now); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
}

// The vector of the wire contract.
func TestActionDigest(t *testing.T) {
	organization, err := id.ParseOrganization("8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11")
	if err != nil {
		t.Fatal(err)
	}
	a := grant.Action{
		Organization: organization, Agent: "agt_vector", Tool: "acme.payments.refund", Payload: []byte(`{"amount_usd":2500.5,"currency":"USD"}`),
	}
	const want = "9b4fb3cbae4f7fd9ada4d42a9d63a5157a0ee843523c7467c1d7a0110e4486c0"
	if got := a.Digest().String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	absent, empty := a, a
	absent.Payload, empty.Payload = nil, []byte("{}")
	if absent.Digest() != empty.Digest() {
		t.Error("no payload and the empty payload have different digests")
	}
	for spelled, ok := range map[string]bool{
		`{"currency":"USD","amount_usd":2500.50}`: true, "{ \"amount_usd\" : 25005e-1,\n\"currency\":\"\\u0055SD\"}": true,
		``: false, `[]`: false, `{"currency":"USD","currency":"USD"}`: false, `{"amount_usd":2500.5`: false,
	} {
		other, err := grant.NewAction(organization, a.Agent, a.Tool, []byte(spelled))
		if (err == nil) != ok || ok && other.Digest() != a.Digest() {
			t.Errorf("%q: got %s, %v", spelled, other.Digest(), err)
		}
	}
	if other, err := grant.NewAction(organization, a.Agent, a.Tool, nil); err != nil || other.Digest() != absent.Digest() {
		t.Errorf("no payload: got %s, %v", other.Digest(), err)
	}
}

// The digests of the same act on behalf of somebody. No two are equal, and none is the one without a subject.
func TestActionDigestOfSubject(t *testing.T) {
	organization, err := id.ParseOrganization("8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, subject, want string }{
		{"a subject", "{\"issuer\":\"https://login.example\",\"subject\":\"248289761001\"}", "ce8d368d8dafbb9c0ad4912509bb95630eac980a0c6411408e8a5a54d8e6f07f"},
		{"another subject", "{\"issuer\":\"https://login.example\",\"subject\":\"248289761002\"}", "68069b66489d362b4d3d3d08a5b391054ca39b7ae31ef5887e62856576e2ced0"},
		{"another issuer", "{\"issuer\":\"https://login.example.com\",\"subject\":\"248289761001\"}", "8361c7c5ab9ed48f5bb5dd669b6640b654dc70720ab22d5210579dff939f96ca"},
		{"escapes", "{\"issuer\":\"https://login.example\",\"subject\":\"\\\"é\\\\/\u2028\"}", "2c4bc1e44dc97e8dfd52ba8dd71bab1f968b14c12571c19bbdb6200104008ca4"},
		{"actors", "{\"actors\":[{\"subject\":\"spiffe://example.org/planner\"},{\"issuer\":\"https://b.example\",\"subject\":\"c\"}],\"issuer\":\"https://login.example\",\"subject\":\"248289761001\"}", "0a60ccb53bf83e42fbc84acac5c9d125e57342e7617cddd2067a6b3b41002ef8"},
		{"actors in another order", "{\"actors\":[{\"issuer\":\"https://b.example\",\"subject\":\"c\"},{\"subject\":\"spiffe://example.org/planner\"}],\"issuer\":\"https://login.example\",\"subject\":\"248289761001\"}", "f17bf2ff4f39f4ea50a0f90986473d5c67faf3ed220596cdce8907459f829025"},
	} {
		a := grant.Action{Organization: organization, Agent: "agt_vector", Tool: "acme.payments.refund", OnBehalfOf: []byte(tt.subject),
			Payload: []byte(`{"amount_usd":2500.5,"currency":"USD"}`)}
		if got := a.Digest().String(); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	key := signer(f, origin+"/grant")
	note, err := grant.Sign(sample(), key)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sampleText)
	f.Add(strings.ReplaceAll(sampleText, "0", "1"))
	f.Add(string(note))
	f.Fuzz(func(t *testing.T, text string) {
		n, err := key.SignNote(text)
		if err != nil {
			return
		}
		if g, err := grant.Open(n.Bytes(), key.Verifier()); err == nil && g.Text() != text {
			t.Errorf("%q was read as %q", text, g.Text())
		}
	})
}
