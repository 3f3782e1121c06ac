package toolname

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/tlog"
)

const name = "did:web:payments.example"

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// publicKey returns the public key of a seed.
func publicKey(t testing.TB, fill byte) edkey.Public {
	t.Helper()
	private, err := edkey.PrivateFromSeed([]byte(strings.Repeat(string(rune(fill)), edkey.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	k, err := tlog.NewSignerKey("x", private)
	if err != nil {
		t.Fatal(err)
	}
	return k.Verifier().Public()
}

// answers is a host that answers every call alike, and notes the address.
type answers struct {
	status int
	body   string
	err    error
	called []string
}

func (a *answers) Get(_ context.Context, address string, _ http.Header) (egress.Answer, error) {
	a.called = append(a.called, address)
	return egress.Answer{Status: a.status, Body: []byte(a.body)}, a.err
}

func TestAddressOf(t *testing.T) {
	for name, want := range map[string]string{
		"did:web:payments.example":                         "https://payments.example/.well-known/did.json",
		"did:web:payments.example%3A8443":                  "https://payments.example:8443/.well-known/did.json",
		"did:web:payments.example:user:Alice_1":            "https://payments.example/user/Alice_1/did.json",
		"did:web:payments.example%3A3000:user":             "https://payments.example:3000/user/did.json",
		"did:web:xn--bcher-kva.example":                    "https://xn--bcher-kva.example/.well-known/did.json",
		"did:web:":                                         "",
		"did:web:Payments.example":                         "",
		"did:web:payments.example%3a8443":                  "",
		"did:web:payments.example:":                        "",
		"did:web:payments.example::a":                      "",
		"did:web:payments.example:..":                      "",
		"did:web:payments.example:.:did":                   "",
		"did:web:payments.example:a%2Fb":                   "",
		"did:web:payments.example/a":                       "",
		"did:web:payments.example#key":                     "",
		"did:web:payments.example?a":                       "",
		"did:web:a@payments.example":                       "",
		"did:web:127.0.0.1":                                "",
		"did:web:127.0.0.1%3A8080":                         "",
		"did:web:payments.example%3A0":                     "",
		"did:web:payments..example":                        "",
		"did:web:payments.example\n":                       "",
		"did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnn": "",
	} {
		got, err := addressOf(name)
		if got != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, ErrName) {
			t.Errorf("%q: got %q %v, want %q", name, got, err, want)
		}
	}
}

func TestResolve(t *testing.T) {
	one, two := publicKey(t, '1'), publicKey(t, '2')
	multikey := did.Multikey(one.Bytes())
	method := func(id, rest string) string {
		return fmt.Sprintf(`{"id":%q,"controller":%q,%s}`, id, name, rest)
	}
	plain := method(name+"#1", `"type":"Multikey","publicKeyMultibase":"`+multikey+`"`)
	doc := func(methods, assert string) string {
		return fmt.Sprintf(`{"@context":["https://www.w3.org/ns/did/v1"],"id":%q,"verificationMethod":[%s],"assertionMethod":[%s]}`, name, methods, assert)
	}
	jwk := func(rest string) string {
		return method(name+"#1", `"type":"JsonWebKey2020","publicKeyJwk":{`+rest+`}`)
	}
	// The key of the example in the method's specification.
	const specX = "0-e2i2_Ua1S5HbTYnVB0lj2Z2ytXu2-tYmDFf8f5NjU"
	named := `"` + name + `#1"`
	var many []string
	for i := range maxKeys + 1 {
		many = append(many, method(fmt.Sprint("#", i), `"type":"Multikey","publicKeyMultibase":"`+did.Multikey(publicKey(t, byte('A'+i)).Bytes())+`"`))
	}
	for what, tt := range map[string]struct {
		body string
		want int // keys
	}{
		"a key by its name":           {doc(plain, named), 1},
		"a key by its relative name":  {doc(plain, `"#1"`), 1},
		"a method with a short name":  {doc(strings.Replace(plain, name+"#1", "#1", 1), named), 1},
		"a key in the relationship":   {doc("", plain), 1},
		"the same key twice":          {doc(plain, named+","+plain), 1},
		"two keys":                    {doc(plain+","+method("#2", `"type":"Ed25519VerificationKey2020","publicKeyMultibase":"`+did.Multikey(two.Bytes())+`"`), named+`,"#2"`), 2},
		"a JWK":                       {doc(jwk(`"kty":"OKP","crv":"Ed25519","x":"`+specX+`"`), named), 1},
		"a resolution":                {`{"didDocument":` + doc(plain, named) + `,"didDocumentMetadata":{}}`, 1},
		"the most keys":               {doc("", strings.Join(many[:maxKeys], ",")), maxKeys},
		"a key that expires later":    {doc(strings.Replace(plain, `"type"`, `"expires":"2026-11-30T12:00:01Z","type"`, 1), named), 1},
		"other keys beside it":        {doc(plain+`,{"id":"#p","type":"JsonWebKey2020","controller":"`+name+`","publicKeyJwk":{"kty":"EC","crv":"P-256","x":"a","y":"b"}}`, `"#p",`+named), 1},
		"too many keys":               {doc("", strings.Join(many, ",")), 0},
		"a key for authentication":    {strings.Replace(doc(plain, named), "assertionMethod", "authentication", 1), 0},
		"a key that nothing names":    {doc(plain, `"#2"`), 0},
		"another document":            {strings.Replace(doc(plain, named), `"id":"`+name+`"`, `"id":"did:web:mail.example"`, 1), 0},
		"a key of another controller": {doc(strings.Replace(plain, `"controller":"`+name, `"controller":"did:web:mail.example`, 1), named), 0},
		"an expired key":              {doc(strings.Replace(plain, `"type"`, `"expires":"2026-11-30T12:00:00Z","type"`, 1), named), 0},
		"a key that expires some day": {doc(strings.Replace(plain, `"type"`, `"expires":"soon","type"`, 1), named), 0},
		"a revoked key":               {doc(strings.Replace(plain, `"type"`, `"revoked":"2027-11-30T12:00:00Z","type"`, 1), named), 0},
		"another curve":               {doc(jwk(`"kty":"OKP","crv":"X25519","x":"`+specX+`"`), named), 0},
		"a JWK that is too short":     {doc(jwk(`"kty":"OKP","crv":"Ed25519","x":"AAAA"`), named), 0},
		"a key of small order":        {doc(jwk(`"kty":"OKP","crv":"Ed25519","x":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"`), named), 0},
		"another type":                {doc(strings.Replace(plain, "Multikey\"", "Bls12381G2Key2020\"", 1), named), 0},
		"another multibase":           {doc(strings.Replace(plain, multikey, "f"+multikey[1:], 1), named), 0},
		"a number as a relationship":  {doc(plain, `1`), 0},
		"no relationship":             {doc(plain, ""), 0},
		"a deactivated name":          {`{"didDocument":` + doc(plain, named) + `,"didDocumentMetadata":{"deactivated":true}}`, 0},
		"a member twice":              {strings.Replace(doc(plain, named), `{"@context"`, `{"id":"`+name+`","@context"`, 1), 0},
		"no JSON":                     {"<html>", 0},
		"nothing":                     {"", 0},
		"null":                        {"null", 0},
	} {
		host := &answers{status: 200, body: tt.body}
		got, err := Resolve(t.Context(), host, name, now)
		if len(got) != tt.want || (err == nil) != (tt.want > 0) || err != nil && !errors.Is(err, ErrDocument) {
			t.Errorf("%s: got %v %v, want %d keys", what, got, err, tt.want)
		}
		for _, k := range got {
			if k.Name() != name {
				t.Errorf("%s: got the name %s", what, k.Name())
			}
		}
		if len(host.called) != 1 || host.called[0] != "https://payments.example/.well-known/did.json" {
			t.Errorf("%s: called %v", what, host.called)
		}
	}
	got, err := Resolve(t.Context(), &answers{status: 200, body: doc(plain, named)}, name, now)
	if err != nil || got[0].Public() != one {
		t.Errorf("got %v %v", got, err)
	}
	broken := errors.New("refused")
	if _, err := Resolve(t.Context(), &answers{err: broken}, name, now); !errors.Is(err, broken) {
		t.Errorf("a refused call: got %v", err)
	}
	for _, status := range []int{301, 404, 500} {
		if got, err := Resolve(t.Context(), &answers{status: status, body: doc(plain, named)}, name, now); err == nil || errors.Is(err, ErrDocument) {
			t.Errorf("status %d: got %v %v", status, got, err)
		}
	}
	host := &answers{status: 200, body: doc(plain, named)}
	if _, err := Resolve(t.Context(), host, "did:web:127.0.0.1", now); !errors.Is(err, ErrName) || host.called != nil {
		t.Errorf("an address: got %v, called %v", err, host.called)
	}
}

// The service's own documents of agents resolve to the agent's active keys.
func TestOwnDocument(t *testing.T) {
	text := `{"id":"did:web:ledger.example:v1:public:agents:agt_1","verificationMethod":[{"id":"did:web:ledger.example:v1:public:agents:agt_1#key_1","type":"Multikey",` +
		`"controller":"did:web:ledger.example:v1:public:agents:agt_1","publicKeyMultibase":"` + did.Multikey(publicKey(t, '1').Bytes()) + `"}],` +
		`"assertionMethod":["did:web:ledger.example:v1:public:agents:agt_1#key_1"]}`
	got, err := Resolve(t.Context(), &answers{status: 200, body: text}, "did:web:ledger.example:v1:public:agents:agt_1", now)
	if err != nil || len(got) != 1 {
		t.Errorf("got %v %v", got, err)
	}
}

// No document makes a key that does not have the name, or that can't be read again.
func FuzzDocument(f *testing.F) {
	f.Add([]byte(`{"id":"` + name + `","assertionMethod":[{"id":"#1","type":"Multikey","controller":"` + name + `","publicKeyMultibase":"` + did.Multikey(publicKey(f, '1').Bytes()) + `"}]}`))
	f.Add([]byte(`{"didDocument":{"id":"` + name + `"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseDocument(text, name, now)
		if (err == nil) != (len(keys) > 0) || len(keys) > maxKeys {
			t.Fatalf("got %v %v", keys, err)
		}
		for _, k := range keys {
			if again, err := tlog.ParseVerifierKey(k.String()); err != nil || again != k || k.Name() != name {
				t.Fatalf("got %v, again %v %v", k, again, err)
			}
		}
	})
}
