package subjecttoken

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/egress"
)

const (
	issuerURL = "https://login.example/tenant"
	audience  = "https://ledger.example"
)

// issuer publishes keys. It is reached without a network.
type issuer struct {
	t  *testing.T
	mu sync.Mutex

	keys   []jose.JSONWebKey
	signer jose.SigningKey
	name   string // in the metadata
	down   bool
	calls  int
	now    time.Time
}

func newIssuer(t *testing.T) *issuer {
	s := &issuer{t: t, name: issuerURL, now: time.Unix(1_790_000_000, 0)}
	s.rotate("first")
	return s
}

// rotate publishes a new key and signs with it.
func (s *issuer) rotate(kid string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = append(s.keys, jose.JSONWebKey{Key: private.Public(), KeyID: kid, Algorithm: "ES256", Use: "sig"})
	s.signer = jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: private, KeyID: kid}}
}

func (s *issuer) Get(_ context.Context, address string, _ http.Header) (egress.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.down {
		return egress.Answer{}, errors.New("down")
	}
	var body any
	switch address {
	case issuerURL + "/.well-known/openid-configuration":
		body = map[string]any{"issuer": s.name, "jwks_uri": "https://keys.example/keys"}
	case "https://keys.example/keys":
		body = map[string]any{"keys": s.keys}
	default:
		return egress.Answer{Status: http.StatusNotFound}, nil
	}
	text, err := json.Marshal(body)
	return egress.Answer{Status: http.StatusOK, Body: text}, err
}

func (s *issuer) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *issuer) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

func (s *issuer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *issuer) sign(claims any, typ string) string {
	s.t.Helper()
	options := &jose.SignerOptions{}
	if typ != "" {
		options = options.WithType(jose.ContentType(typ))
	}
	signer, err := jose.NewSigner(s.signer, options)
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		s.t.Fatal(err)
	}
	signed, err := signer.Sign(text)
	if err != nil {
		s.t.Fatal(err)
	}
	compact, err := signed.CompactSerialize()
	if err != nil {
		s.t.Fatal(err)
	}
	return compact
}

type object = map[string]any

func (s *issuer) claims(changes object) object {
	now := s.clock().Unix()
	all := object{"iss": issuerURL, "sub": "u1", "aud": audience, "exp": now + 60, "iat": now,
		"act": object{"sub": "agent", "client_id": "ignored", "act": object{"sub": "planner", "iss": "https://other.example"}}}
	maps.Copy(all, changes)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

func stated() *event.OnBehalfOf {
	return &event.OnBehalfOf{Issuer: issuerURL, Subject: "u1",
		Actors: []event.Actor{{Issuer: "https://other.example", Subject: "planner"}, {Subject: "agent"}}}
}

func (s *issuer) ready() *Verifier {
	v := New(s, s.clock)
	if err := v.Wait(s.t.Context(), of()); err != nil {
		s.t.Fatal(err)
	}
	return v
}

// prove reports whether a token of the issuer proves what an event states.
func prove(v *Verifier, token string, stated *event.OnBehalfOf) error {
	proof, err := v.Open(of(), token)
	if err != nil {
		return err
	}
	return proof.Proves(stated)
}

func of() Issuer { return Issuer{issuerURL, audience} }

func TestClaims(t *testing.T) {
	s := newIssuer(t)
	v, now := s.ready(), s.clock().Unix()
	for name, tc := range map[string]struct {
		changes object
		typ     string
		want    bool
	}{
		"as stated":                 {nil, "", true},
		"an access token":           {nil, "at+jwt", true},
		"an access token, in full":  {nil, "application/AT+JWT", true},
		"another type":              {nil, "logout+jwt", false},
		"several audiences":         {object{"aud": []string{"a", audience}}, "", true},
		"another audience":          {object{"aud": "a"}, "", false},
		"no audience":               {object{"aud": nil}, "", false},
		"a number for an audience":  {object{"aud": 1}, "", false},
		"another issuer":            {object{"iss": issuerURL + "/"}, "", false},
		"another subject":           {object{"sub": "u2"}, "", false},
		"no subject":                {object{"sub": nil}, "", false},
		"no expiry":                 {object{"exp": nil}, "", false},
		"expired":                   {object{"exp": now - 61}, "", false},
		"expired within the skew":   {object{"exp": now - 59}, "", true},
		"not yet valid":             {object{"nbf": now + 61}, "", false},
		"valid within the skew":     {object{"nbf": now + 59}, "", true},
		"issued in the future":      {object{"iat": now + 61}, "", false},
		"no time of issue":          {object{"iat": nil}, "", true},
		"no actors":                 {object{"act": nil}, "", false},
		"the current actor alone":   {object{"act": object{"sub": "agent"}}, "", false},
		"actors in the other order": {object{"act": object{"sub": "planner", "iss": "https://other.example", "act": object{"sub": "agent"}}}, "", false},
		"an actor of the issuer":    {object{"act": object{"sub": "agent", "iss": issuerURL, "act": object{"sub": "planner", "iss": "https://other.example"}}}, "", true},
		"an actor of another":       {object{"act": object{"sub": "agent", "act": object{"sub": "planner"}}}, "", false},
		"act is a text":             {object{"act": "agent"}, "", false},
	} {
		err := prove(v, s.sign(s.claims(tc.changes), tc.typ), stated())
		if tc.want != (err == nil) || err != nil && (!fault.Is(err, fault.Invalid) || fault.Of(err).Code != "subject_not_verified") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	other := stated()
	other.Issuer = "https://other.example"
	if prove(v, s.sign(s.claims(nil), ""), other) == nil {
		t.Error("another stated issuer is proved")
	}
	alone := stated()
	alone.Actors = nil
	if err := prove(v, s.sign(s.claims(object{"act": nil}), ""), alone); err != nil {
		t.Errorf("without actors: %v", err)
	}
	var deep any
	for range 300 {
		deep = object{"sub": "agent", "act": deep}
	}
	if prove(v, s.sign(s.claims(object{"act": deep}), ""), stated()) == nil {
		t.Error("300 actors are proved")
	}
}

func TestSignatures(t *testing.T) {
	s := newIssuer(t)
	v := s.ready()
	good := s.sign(s.claims(nil), "")
	first, rest, _ := strings.Cut(good, ".")
	payload, signature, _ := strings.Cut(rest, ".")
	foreign := newIssuer(t).sign(s.claims(nil), "") // another key of the same name
	hmac := &issuer{t: t, now: s.now, signer: jose.SigningKey{Algorithm: jose.HS256, Key: []byte(strings.Repeat("k", 32))}}
	for name, token := range map[string]string{
		"empty": "", "no JWT": "a.b.c", "cut": good[:len(good)-4], "no signature": first + "." + payload + ".",
		"none":       "eyJhbGciOiJub25lIn0." + payload + ".",
		"a secret":   hmac.sign(s.claims(nil), ""),
		"of another": foreign,
		"too long":   s.sign(s.claims(object{"more": strings.Repeat("x", MaxToken)}), ""),
		"other text": first + "." + strings.ToUpper(payload) + "." + signature,
	} {
		if err := prove(v, token, stated()); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := prove(v, good, stated()); err != nil {
		t.Error(err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s.set(func() { // without kid and alg, as keys of SPIFFE may be
		s.keys = append(s.keys, jose.JSONWebKey{Key: public, Use: "jwt-svid"})
		s.signer = jose.SigningKey{Algorithm: jose.EdDSA, Key: private}
		s.now = s.now.Add(time.Minute)
	})
	if err := v.Wait(t.Context(), of()); err != nil {
		t.Fatal(err)
	}
	if err := prove(v, s.sign(s.claims(nil), "JWT"), stated()); err != nil {
		t.Errorf("without kid: %v", err)
	}
}

// Keys are read when they are needed, at most once a minute, and remain usable for a day while the issuer does not answer.
func TestKeys(t *testing.T) {
	s := newIssuer(t)
	v := New(s, s.clock)
	unreachable := func(what string) {
		t.Helper()
		err := prove(v, s.sign(s.claims(nil), ""), stated())
		if !fault.Is(err, fault.Unavailable) || fault.Of(err).Code != "issuer_unreachable" {
			t.Errorf("%s: got %v", what, err)
		}
	}
	works := func(what string) {
		t.Helper()
		if err := prove(v, s.sign(s.claims(nil), ""), stated()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	calls := func() (n int) { s.set(func() { n = s.calls }); return n }

	s.set(func() { s.down = true })
	unreachable("not read yet")
	if v.Wait(t.Context(), of()) == nil {
		t.Error("an issuer that is down is read")
	}
	before := calls()
	for range 100 {
		s.pass(100 * time.Millisecond)
		unreachable("down")
	}
	if got := calls() - before; got > 1 {
		t.Errorf("got %d calls in a minute", got)
	}
	s.set(func() { s.down = false })
	s.pass(time.Minute)
	if err := v.Wait(t.Context(), of()); err != nil {
		t.Fatal(err)
	}
	works("read")
	s.pass(time.Minute)
	s.rotate("second")
	unreachable("a new key, for the first time")
	if err := v.Wait(t.Context(), of()); err != nil {
		t.Fatal(err)
	}
	works("a new key")
	s.set(func() { s.down = true })
	s.pass(23 * time.Hour)
	works("an old key, while the issuer is down")
	if v.Wait(t.Context(), of()) != nil { // the keys of the day before are still there
		t.Error("the known keys are lost")
	}
	works("an old key, after a failure")
	s.pass(2 * time.Hour)
	_ = v.Wait(t.Context(), of())
	unreachable("a day later")
	s.set(func() { s.down, s.name = false, "https://other.example" })
	s.pass(time.Minute)
	if v.Wait(t.Context(), of()) == nil {
		t.Error("metadata of another issuer are accepted")
	}
	s.set(func() {
		s.name = issuerURL
		for range maxKeys {
			s.keys = append(s.keys, s.keys[0])
		}
	})
	s.pass(time.Minute)
	if v.Wait(t.Context(), of()) == nil {
		t.Error("too many keys are accepted")
	}
}

// Tokens that name keys which do not exist cause at most one reading a minute.
func TestUnknownKeys(t *testing.T) {
	s := newIssuer(t)
	v := s.ready()
	s.pass(time.Minute)
	other := newIssuer(t)
	for i := range 100 {
		other.rotate(fmt.Sprint("unknown-", i))
		if prove(v, other.sign(s.claims(nil), ""), stated()) == nil {
			t.Fatal("a token of nobody is proved")
		}
	}
	if err := v.Wait(t.Context(), of()); err != nil {
		t.Fatal(err)
	}
	var calls int
	if s.set(func() { calls = s.calls }); calls != 4 {
		t.Errorf("got %d calls, want 2 for each reading", calls)
	}
	if err := prove(v, s.sign(s.claims(nil), ""), stated()); err != nil {
		t.Error(err)
	}
}

// Only public keys for signatures are used, only of bounded size, and only eight for a token that names none.
func TestUsableKeys(t *testing.T) {
	s := newIssuer(t)
	secret, public := []byte(strings.Repeat("k", 32)), s.keys[0].Key.(*ecdsa.PublicKey)
	modulus := func(bits uint) *rsa.PublicKey {
		return &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), bits-1), E: 65537}
	}
	for name, tc := range map[string]struct {
		key  jose.JSONWebKey
		want bool
	}{
		"a public key":        {jose.JSONWebKey{Key: public}, true},
		"for encryption":      {jose.JSONWebKey{Key: public, Use: "enc"}, false},
		"a secret":            {jose.JSONWebKey{Key: secret}, false},
		"the largest modulus": {jose.JSONWebKey{Key: modulus(maxModulus)}, true},
		"a larger modulus":    {jose.JSONWebKey{Key: modulus(maxModulus + 1)}, false},
	} {
		if got := isUsable(&tc.key); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	_, last, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s.signer = jose.SigningKey{Algorithm: jose.EdDSA, Key: last}
	for before, want := range map[int]bool{maxTries - 1: true, maxTries: false} {
		s.keys = nil
		for i := range before {
			other, _, err := ed25519.GenerateKey(rand.Reader)
			if err != nil {
				t.Fatal(err)
			}
			s.keys = append(s.keys, jose.JSONWebKey{Key: other, KeyID: fmt.Sprint(i)})
		}
		s.keys = append(s.keys, jose.JSONWebKey{Key: last.Public(), KeyID: "last"})
		if err := prove(s.ready(), s.sign(s.claims(nil), ""), stated()); (err == nil) != want {
			t.Errorf("after %d other keys: got %v", before, err)
		}
	}
}
