package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/go-json-experiment/json/jsontext"
)

type vectors struct {
	Private []byte `json:"private_key_b64"`
	Public  []byte `json:"public_key_b64"`
	Vectors []struct {
		Name      string
		Envelope  json.RawMessage
		JCS       string
		Digest    string            `json:"event_digest"`
		Signature map[string]string `json:"sig_value_b64"`
	}
}

func readVectors(t testing.TB) (v vectors, key edkey.Private) {
	t.Helper()
	text, err := os.ReadFile("testdata/aps1-signing.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	key, err = edkey.PrivateFromSeed(v.Private)
	if err != nil {
		t.Fatal(err)
	}
	return v, key
}

// withoutSignature computes Signed differently: decode, delete, encode.
func withoutSignature(t testing.TB, canonical []byte) []byte {
	t.Helper()
	var m map[string]jsontext.Value
	if err := json.Unmarshal(canonical, &m); err != nil {
		t.Fatal(err)
	}
	delete(m, "sig_alg")
	delete(m, "sig_value_b64")
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	v := jsontext.Value(text)
	if err := v.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVectors(t *testing.T) {
	v, key := readVectors(t)
	pub, err := edkey.ParsePublic(v.Public)
	if err != nil || pub != key.Public() {
		t.Fatalf("public key: %v", err)
	}
	other := edkey.NewPrivate().Public()
	for _, one := range v.Vectors {
		for form, sig := range one.Signature {
			in := fmt.Appendf(nil, `{"sig_value_b64":%q,"sig_alg":"ed25519",%s`, sig, one.Envelope[1:])
			e, err := Parse(in, Options{})
			if err != nil {
				t.Fatalf("%s: %v", one.Name, err)
			}
			if got := e.Signed(); string(got) != one.JCS {
				t.Errorf("%s: got %s, want %s", one.Name, got, one.JCS)
			}
			if got := e.Digest.String(); got != one.Digest {
				t.Errorf("%s: digest: got %s, want %s", one.Name, got, one.Digest)
			}
			if got, ok := e.Verify(pub); !ok || got.String() != form {
				t.Errorf("%s: got form %v, %v, want %s", one.Name, got, ok, form)
			}
			if got, ok := e.Verify(other); ok || got != 0 {
				t.Errorf("%s: another key's signature accepted", one.Name)
			}
		}
		signed, err := Sign(one.Envelope, key)
		if err != nil {
			t.Fatalf("%s: %v", one.Name, err)
		}
		e, err := Parse(signed, Options{})
		if err != nil || e.SignatureB64 != one.Signature["digest"] || !bytes.Equal(e.Canonical, signed) {
			t.Errorf("%s: Sign returned %s, %v", one.Name, signed, err)
		}
	}
}

// Members may sort before, between and after the members of the signature.
func TestSignedRemovesOnlyTheSignature(t *testing.T) {
	key := edkey.NewPrivate()
	for _, extra := range []map[string]string{
		{},
		{"sig_b": `"x"`},
		{"sig_alg2": `1`, "sig_value": `2`},
		{"a": `{"sig_alg":"ed25519"}`, "sig": `0`, "sig_value_b640": `[]`, "zz": `null`},
		{"": `"first"`, "sig_aaa": `{}`, "sig_alz": `{}`, "ö": `1`, "😀": `2`},
		{"payload": `{"sig_alg":"ed25519","sig_value_b64":"x"}`},
	} {
		unsigned := map[string]string{"sig_alg": "", "sig_value_b64": ""}
		for name, value := range extra {
			unsigned[name] = value
		}
		signed, err := Sign(body(unsigned), key)
		if err != nil {
			t.Fatalf("%v: %v", extra, err)
		}
		e, err := Parse(signed, Options{})
		if err != nil {
			t.Fatalf("%v: %v", extra, err)
		}
		if got, want := e.Signed(), withoutSignature(t, signed); !bytes.Equal(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
		sum := sha256.Sum256([]byte("APS1\nkey_1\n" + string(e.Signed())))
		if e.Digest != sum || Digest(e.KeyID, e.Signed()) != sum {
			t.Errorf("%v: digest: got %v, want %x", extra, e.Digest, sum)
		}
		if form, ok := e.Verify(key.Public()); !ok || form != FormDigest {
			t.Errorf("%v: got %v, %v, want digest", extra, form, ok)
		}
	}
}

func TestVerifyRejectsChanges(t *testing.T) {
	key := edkey.NewPrivate()
	signed, err := Sign(body(map[string]string{"sig_alg": "", "sig_value_b64": "", "salt": `"c2FsdA"`, "payload": `{"amount":1}`}), key)
	if err != nil {
		t.Fatal(err)
	}
	canonical := func(sign func(signed []byte) []byte) []byte {
		e, err := Parse(signed, Options{})
		if err != nil {
			t.Fatal(err)
		}
		sig := key.Sign(sign(e.Signed()))
		return bytes.Replace(signed, []byte(e.SignatureB64), []byte(base64.StdEncoding.EncodeToString(sig[:])), 1)
	}
	replace := func(from, to string) []byte {
		if !bytes.Contains(signed, []byte(from)) {
			t.Fatalf("%s is not in the envelope", from)
		}
		return bytes.Replace(signed, []byte(from), []byte(to), 1)
	}
	for _, tt := range []struct {
		name string
		in   []byte
		want Form // if 0, the signature is rejected
	}{
		{"nothing", signed, FormDigest},
		{"white space", append([]byte(" "), signed...), FormDigest},
		{"canonical form", canonical(func(b []byte) []byte { return b }), FormCanonical},
		{"hex digest as the message", canonical(func(b []byte) []byte { return []byte(Digest("key_1", b).String()) }), 0},
		{"digest without its prefix", canonical(func(b []byte) []byte { h := sha256.Sum256(b); return h[:] }), 0},
		{"digest of another key id", canonical(func(b []byte) []byte { h := Digest("key_2", b); return h[:] }), 0},
		{"prefixed text as the message", canonical(func(b []byte) []byte { return append([]byte("APS1\nkey_1\n"), b...) }), 0},
		{"payload", replace(`"amount":1`, `"amount":2`), 0},
		{"payload gets a member", replace(`"amount":1`, `"amount":1,"b":1`), 0},
		{"organization", replace(orgOne, orgTwo), 0},
		{"case of the organization", replace(orgOne, strings.ToUpper(orgOne)), 0},
		{"unknown member", replace("c2FsdA", "c2FsdB"), 0},
		{"unknown member removed", replace(`,"salt":"c2FsdA"`, ""), 0},
		{"tool added", replace(`,"trace_id"`, `,"tool_name":"a.b","trace_id"`), 0},
		{"key id", replace("key_1", "key_2"), 0},
		{"decision", replace(`"allow"`, `"deny"`), 0},
		{"time in another spelling", replace("12:00:00.000Z", "12:00:00.00Z"), 0},
	} {
		e, err := Parse(tt.in, Options{})
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got, ok := e.Verify(key.Public()); got != tt.want || ok != (tt.want != 0) {
			t.Errorf("%s: got %v, %v, want %v", tt.name, got, ok, tt.want)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	key := edkey.NewPrivate()
	with := func(name, value string) []byte {
		changes := map[string]string{"sig_alg": "", "sig_value_b64": ""}
		changes[name] = value
		return body(changes)
	}
	for _, tt := range []struct {
		name    string
		in      []byte
		message string
	}{
		{"signed already", body(nil), "An envelope to be signed must not have sig_alg or sig_value_b64"},
		{"with sig_alg", with("sig_alg", `"ed25519"`), "An envelope to be signed must not have sig_alg or sig_value_b64"},
		{"empty object", []byte(`{}`), "Missing key_id"},
		{"key_id of another type", with("key_id", `7`), "key_id must match [A-Za-z0-9._:#-]{1,256}"},
		{"malformed key_id", with("key_id", `"a b"`), "key_id must match [A-Za-z0-9._:#-]{1,256}"},
		{"missing member", with("trace_id", ``), "Missing trace_id"},
		{"malformed member", with("payload", `[]`), "payload must be an object"},
		{"inexact number", with("payload", `{"t":1732105200123456789}`), `A number in member "t" is an integer that canonical JSON (RFC 8785) would change: send it as a string`},
		{"array", []byte(`[]`), "The body must be a JSON object"},
	} {
		got, err := Sign(tt.in, key)
		if got != nil || !fault.Is(err, fault.Invalid) || fault.Of(err).Message != tt.message {
			t.Errorf("%s: got %s, %v, want %s", tt.name, got, err, tt.message)
		}
	}
	for _, value := range []string{`"system_1"`, `"bridge_1"`} {
		if _, err := Sign(with("key_id", value), key); err != nil {
			t.Errorf("key %s of the server: %v", value, err)
		}
	}
}

func TestForms(t *testing.T) {
	for _, f := range []Form{FormDigest, FormCanonical} {
		if got, err := ParseForm(f.String()); err != nil || got != f {
			t.Errorf("%v: got %v, %v", f, got, err)
		}
	}
	for _, s := range []string{"", "Digest", "digest ", "jcs"} {
		if got, err := ParseForm(s); err == nil || got != 0 {
			t.Errorf("%q: got %v", s, got)
		}
	}
	if got := Form(0).String(); got != "" {
		t.Errorf("zero form: got %q", got)
	}
}

// refund returns a signed envelope of about 900 bytes.
func refund(b *testing.B) (signed []byte, key edkey.Private) {
	key = edkey.NewPrivate()
	signed, err := Sign(body(map[string]string{
		"sig_alg": "", "sig_value_b64": "", "tool_name": `"acme.payments.refund"`, "salt": `"c2FsdHNhbHRzYWx0c2FsdA"`,
		"payload": `{"amount_usd":2500.5,"currency":"USD","data_touched":["orders","customers"],"model":{"name":"large-3","temperature":0.2,"tokens_in":1834,"tokens_out":412},` +
			`"order":{"id":"ord_5531","lines":[{"price":1250.25,"qty":1,"sku":"A-1001"},{"price":1250.25,"qty":1,"sku":"A-1002"}]},` +
			`"purpose":"refund of a damaged delivery, asked for by the customer in chat and approved by the shift lead of the warehouse that sent it"}`,
	}), key)
	if err != nil {
		b.Fatal(err)
	}
	return signed, key
}

func benchmarkParse(b *testing.B, in []byte) {
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(in, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseCanonical(b *testing.B) {
	in, _ := refund(b)
	benchmarkParse(b, in)
}

func BenchmarkParseOther(b *testing.B) {
	in, _ := refund(b)
	other := jsontext.Value(append([]byte(`{"zz":1.0,`), in[1:]...))
	if err := other.Indent(jsontext.WithIndent(" ")); err != nil {
		b.Fatal(err)
	}
	benchmarkParse(b, other)
}

func BenchmarkVerify(b *testing.B) {
	in, key := refund(b)
	e, err := Parse(in, Options{})
	if err != nil {
		b.Fatal(err)
	}
	pub := key.Public()
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := e.Verify(pub); !ok {
			b.Fatal("rejected")
		}
	}
}
