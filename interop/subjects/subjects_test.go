// Package subjects has tokens of golang-jwt, under keys that the standard library published, verified by the service.
package subjects

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/tenant/subjecttoken"
)

const issuer = "https://login.example"

// issuerOf answers with the documents of an issuer, by address.
type issuerOf map[string]any

func (s issuerOf) Get(_ context.Context, address string, _ http.Header) (egress.Answer, error) {
	text, err := json.Marshal(s[address])
	return egress.Answer{Status: http.StatusOK, Body: text}, err
}

// actor is the claim act of RFC 8693.
type actor struct {
	Subject string `json:"sub"`
	Before  *actor `json:"act,omitempty"`
}

type claims struct {
	jwt.RegisteredClaims
	Actor *actor `json:"act,omitempty"`
}

func number(n *big.Int, size int) string {
	return base64.RawURLEncoding.EncodeToString(n.FillBytes(make([]byte, size)))
}

func TestTokens(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curveKey, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	edPublic, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaJWK := map[string]any{"kty": "RSA", "kid": "r", "n": number(rsaKey.N, 256), "e": "AQAB"}
	keys := []any{
		map[string]any{"kty": "later", "kid": "r"}, rsaJWK,
		map[string]any{"kty": "EC", "kid": "e", "crv": "P-384", "x": number(curveKey.X, 48), "y": number(curveKey.Y, 48), "use": "sig"},
		map[string]any{"kty": "OKP", "kid": "o", "crv": "Ed25519", "x": base64.RawURLEncoding.EncodeToString(edPublic), "alg": "EdDSA"},
	}
	v := subjecttoken.New(issuerOf{
		issuer + "/.well-known/openid-configuration": map[string]any{"issuer": issuer, "jwks_uri": issuer + "/keys", "token_endpoint": issuer + "/token"},
		issuer + "/keys": map[string]any{"keys": keys},
	}, nil)
	of := subjecttoken.Issuer{URL: issuer, Audience: "ledger"}
	if err := v.Wait(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	stated := &event.OnBehalfOf{Issuer: issuer, Subject: "u1", Actors: []event.Actor{{Subject: "planner"}, {Subject: "spiffe://example.org/worker"}}}
	for _, tc := range []struct {
		kid    string
		method jwt.SigningMethod
		key    crypto.PrivateKey
		want   bool
	}{
		{"r", jwt.SigningMethodRS256, rsaKey, true}, {"r", jwt.SigningMethodRS512, rsaKey, true}, {"r", jwt.SigningMethodPS256, rsaKey, true},
		{"e", jwt.SigningMethodES384, curveKey, true}, {"o", jwt.SigningMethodEdDSA, edKey, true}, {"", jwt.SigningMethodES384, curveKey, true},
		{"e", jwt.SigningMethodRS256, rsaKey, false}, {"r", jwt.SigningMethodHS256, []byte("secret"), false},
		{"r", jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, false},
	} {
		now := time.Now()
		token := jwt.NewWithClaims(tc.method, claims{jwt.RegisteredClaims{Issuer: issuer, Subject: "u1", Audience: jwt.ClaimStrings{"ledger"},
			ExpiresAt: jwt.NewNumericDate(now.Add(time.Minute)), IssuedAt: jwt.NewNumericDate(now)},
			&actor{"spiffe://example.org/worker", &actor{"planner", nil}}})
		if tc.kid != "" {
			token.Header["kid"] = tc.kid
		}
		text, err := token.SignedString(tc.key)
		if err != nil {
			t.Fatal(err)
		}
		proof, err := v.Open(of, text)
		if err == nil {
			err = proof.Proves(stated)
		}
		if (err == nil) != tc.want {
			t.Errorf("%s by %q: got %v", tc.method.Alg(), tc.kid, err)
		}
	}
}
