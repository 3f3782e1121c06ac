package signedvote_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/asn1"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/test/passkeytest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/verify/signedvote"
)

const (
	origin = id.Origin("log.example/o/34929490-47ca-4f7c-b79e-0ac022b29856")
	bucket = "2026-11-18T14:25:00Z"
)

var at = mustInstant("2026-11-18T14:27:01.500Z")

func mustInstant(s string) id.Instant {
	i, err := id.ParseInstant(s)
	if err != nil {
		panic(err)
	}
	return i
}

func vote() *signedvote.Vote {
	return &signedvote.Vote{Origin: origin, ApprovalID: "apr_1", ActionDigest: id.Hash{7}, Vote: "approve", Reason: "\u00e9 \"ok\"\n"}
}

func text(t testing.TB, v *signedvote.Vote, bucket string) []byte {
	t.Helper()
	b, err := v.Text(bucket)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTexts(t *testing.T) {
	v := passkeytest.NewVoter(t, "ann", "ES256")
	got := string(text(t, vote(), bucket))
	want := "agentledger/vote/v1\n" + string(origin) + "\napr_1\n07" + strings.Repeat("0", 62) + "\napprove\n" +
		// printf '{"reason":"\303\251 \\"ok\\"\\n","reason_code":null}' | sha256sum
		"b595a11b28152c1cebd98dbf4b8d66eb598bbd8b3af715728eff722e6c99968c\n" + bucket + "\n"
	if got != want {
		t.Errorf("text of a vote:\n%s", got)
	}
	key, err := signedvote.KeyText(origin, "acc_1", v.ID, v.Key, bucket)
	if err != nil {
		t.Fatal(err)
	}
	if want := "agentledger/voter-key/v1\n" + string(origin) + "\nacc_1\n" + v.ID.String() + "\n" + v.Key.Thumbprint() + "\n" + bucket +
		"\n"; string(key) != want {
		t.Errorf("text of a key:\n%s", key)
	}
}

func TestTextsCannotBeAmbiguous(t *testing.T) {
	for name, change := range map[string]func(*signedvote.Vote) string{
		"a line in approval_id":      func(v *signedvote.Vote) string { v.ApprovalID = "apr_1\napr_2"; return bucket },
		"an empty approval_id":       func(v *signedvote.Vote) string { v.ApprovalID = ""; return bucket },
		"a line in the origin":       func(v *signedvote.Vote) string { v.Origin += "\nx"; return bucket },
		"no origin":                  func(v *signedvote.Vote) string { v.Origin = ""; return bucket },
		"another vote":               func(v *signedvote.Vote) string { v.Vote = "abstain"; return bucket },
		"a time that is no bucket":   func(*signedvote.Vote) string { return "2026-11-18T14:26:00Z" },
		"a time with seconds":        func(*signedvote.Vote) string { return "2026-11-18T14:25:01Z" },
		"a time with milliseconds":   func(*signedvote.Vote) string { return "2026-11-18T14:25:00.000Z" },
		"a time without a time zone": func(*signedvote.Vote) string { return "2026-11-18T14:25:00" },
		"no time":                    func(*signedvote.Vote) string { return "" },
	} {
		v := vote()
		if b := change(v); b != "" || name == "no time" {
			if got, err := v.Text(b); !errors.Is(err, verify.ErrMalformed) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
	}
	v := passkeytest.NewVoter(t, "ann", "ES256")
	if _, err := signedvote.KeyText(origin, "acc_1\n", v.ID, v.Key, bucket); !errors.Is(err, verify.ErrMalformed) {
		t.Error("a line end in account_id:", err)
	}
}

func TestBuckets(t *testing.T) {
	for at, want := range map[string]bool{
		"2026-11-18T14:19:59.999Z": false, "2026-11-18T14:20:00.000Z": true, "2026-11-18T14:25:00.000Z": true,
		"2026-11-18T14:39:59.999Z": true, "2026-11-18T14:40:00.000Z": false,
	} {
		if got := signedvote.Fits(bucket, mustInstant(at)); got != want {
			t.Errorf("%s fits: %v", at, got)
		}
	}
	for at, want := range map[string]string{
		"2026-11-18T14:29:59.999Z": bucket, "2026-11-18T14:25:00.000Z": bucket,
		"1969-12-31T23:59:59.999Z": "1969-12-31T23:55:00Z",
	} {
		if got := signedvote.Bucket(mustInstant(at)); got != want || !signedvote.Fits(got, mustInstant(at)) {
			t.Errorf("bucket of %s is %s", at, got)
		}
	}
}

func TestCheckAcceptsWhatPasskeysSign(t *testing.T) {
	for _, algorithm := range passkeytest.Algorithms {
		for name, change := range map[string]func(*passkeytest.Voter){
			"plain":                       func(*passkeytest.Voter) {},
			"a counter":                   func(v *passkeytest.Voter) { v.Counter = 1<<32 - 1 },
			"may be backed up":            func(v *passkeytest.Voter) { v.Flags |= passkeytest.BackupEligible },
			"is backed up":                func(v *passkeytest.Voter) { v.Flags |= passkeytest.BackupEligible | passkeytest.BackedUp },
			"client data of old browsers": func(v *passkeytest.Voter) { v.Client = map[string]any{"crossOrigin": nil} },
			"client data of new browsers": func(v *passkeytest.Voter) {
				v.Client = map[string]any{"other_keys_can_be_added_here": "do not compare clientDataJSON against a template"}
			},
		} {
			v := passkeytest.NewVoter(t, "ann", algorithm)
			change(v)
			signed := text(t, vote(), bucket)
			a := v.Sign(signed, bucket)
			if err := v.Check(signed, &a, at); err != nil {
				t.Errorf("%s, %s: %v", algorithm, name, err)
			}
			encoded, err := jcs.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := signedvote.ParseAssertion(encoded); err != nil || v.Check(signed, &again, at) != nil {
				t.Errorf("%s, %s: read back: %v", algorithm, name, err)
			}
			if algorithm == "ES256" && name == "a counter" && a.Counter() != 1<<32-1 {
				t.Error("counter:", a.Counter())
			}
		}
	}
	// White space, escapes and the order of members of client data do not matter.
	v := passkeytest.NewVoter(t, "ann", "ES256")
	signed := text(t, vote(), bucket)
	challenge := signedvote.Challenge(signed)
	a := v.SignClientData(fmt.Appendf(nil, "{ \"origin\" : \"https:\\/\\/log.\\u0065xample\",\n\"type\":\"webauthn.get\",\"challenge\":%q}",
		signedvote.Bytes(challenge[:]).String()), bucket)
	if err := v.Check(signed, &a, at); err != nil {
		t.Error(err)
	}
}

// attack is a misuse of a passkey. It changes the passkey, the vote that is signed, the vote that is stored, or the
// assertion.
type attack struct {
	name string
	want error
	do   func(*forgery)
}

type forgery struct {
	voter          *passkeytest.Voter
	signed, stored *signedvote.Vote
	bucket         string // of the stored text
	at             id.Instant
	after          func(*signedvote.Assertion)
}

func attacks() []attack {
	flags := func(f byte) func(*forgery) { return func(x *forgery) { x.voter.Flags = f } }
	client := func(name string, value any) func(*forgery) {
		return func(x *forgery) { x.voter.Client = map[string]any{name: value} }
	}
	after := func(change func(*signedvote.Assertion)) func(*forgery) { return func(x *forgery) { x.after = change } }
	const up, uv, be, bs, at, ed = 0x01, 0x04, 0x08, 0x10, 0x40, 0x80
	return []attack{
		{"another action", verify.ErrMismatch, func(x *forgery) { x.stored.ActionDigest[31]++ }},
		{"another approval", verify.ErrMismatch, func(x *forgery) { x.stored.ApprovalID = "apr_2" }},
		{"another log", verify.ErrMismatch, func(x *forgery) { x.stored.Origin += "/2" }},
		{"a denial as an approval", verify.ErrMismatch, func(x *forgery) { x.signed.Vote = "deny" }},
		{"another reason", verify.ErrMismatch, func(x *forgery) { x.stored.Reason += "." }},
		{"a reason that was not given", verify.ErrMismatch, func(x *forgery) { x.signed.Reason = "" }},
		{"the reason as its code", verify.ErrMismatch, func(x *forgery) {
			x.stored.Reason, x.stored.ReasonCode = "", x.stored.Reason
		}},
		{"a replay with another bucket", verify.ErrMismatch, func(x *forgery) { x.bucket, x.at = "2026-11-18T14:30:00Z", x.at+300_000 }},
		{"a replay after its time", verify.ErrMismatch, func(x *forgery) { x.at += 900_000 }},
		{"before its time", verify.ErrMismatch, func(x *forgery) { x.at -= 900_000 }},
		{"another page", verify.ErrMismatch, func(x *forgery) { x.voter.Origin = "https://log.example.evil.example" }},
		{"another port", verify.ErrMismatch, func(x *forgery) { x.voter.Origin += ":8443" }},
		{"another relying party", verify.ErrMismatch, func(x *forgery) { x.voter.RPID = "example" }},
		{"another passkey", tlog.ErrSignature, func(x *forgery) {
			id := x.voter.ID
			*x.voter = *passkeytest.NewVoter(x.voter.TB(), "bob", "ES256")
			x.voter.ID = id
		}},
		{"the name of another passkey", verify.ErrMismatch, after(func(a *signedvote.Assertion) { a.CredentialID = []byte("other") })},
		{"a registration as an assertion", verify.ErrMismatch, client("type", "webauthn.create")},
		{"a payment", verify.ErrMismatch, client("type", "payment.get")},
		{"a frame of another site", verify.ErrMismatch, client("crossOrigin", true)},
		{"a frame with a top origin", verify.ErrMismatch, client("topOrigin", "https://evil.example")},
		{"a null crossOrigin", verify.ErrMismatch, client("crossOrigin", "false")},
		{"no challenge", verify.ErrMismatch, client("challenge", nil)},
		{"no type", verify.ErrMismatch, client("type", nil)},
		{"no origin", verify.ErrMismatch, client("origin", nil)},
		{"a padded challenge", verify.ErrMismatch, func(x *forgery) {
			text, _ := x.stored.Text(x.bucket)
			challenge := signedvote.Challenge(text)
			x.voter.Client = map[string]any{"challenge": base64.URLEncoding.EncodeToString(challenge[:])}
		}},
		{"without presence", verify.ErrMismatch, flags(uv)},
		{"without verification", verify.ErrMismatch, flags(up)},
		{"BS without BE", verify.ErrMismatch, flags(up | uv | bs)},
		{"a reserved flag, 02", verify.ErrMismatch, flags(up | uv | 0x02)},
		{"a reserved flag, 20", verify.ErrMismatch, flags(up | uv | 0x20)},
		{"the flag of attestation data", verify.ErrMismatch, flags(up | uv | at)},
		{"the flag of extensions", verify.ErrMismatch, flags(up | uv | ed)},
		{"attestation data", verify.ErrMalformed, func(x *forgery) { x.voter.Flags |= at; x.voter.After = make([]byte, 18) }},
		{"extension data", verify.ErrMalformed, func(x *forgery) { x.voter.Flags |= ed; x.voter.After = []byte{0xa0} }},
		{"a long counter", verify.ErrMalformed, func(x *forgery) { x.voter.After = []byte{0} }},
		{"a short counter", verify.ErrMalformed, after(func(a *signedvote.Assertion) { a.AuthenticatorData = a.AuthenticatorData[:36] })},
		{"a changed counter", tlog.ErrSignature, after(func(a *signedvote.Assertion) { a.AuthenticatorData[36]++ })},
		{"verification added later", tlog.ErrSignature, func(x *forgery) {
			x.voter.Flags = up
			x.after = func(a *signedvote.Assertion) { a.AuthenticatorData[32] |= uv }
		}},
		{"no signature", verify.ErrMalformed, after(func(a *signedvote.Assertion) { a.Signature = nil })},
		{"a long signature", verify.ErrMalformed, after(func(a *signedvote.Assertion) { a.Signature = make([]byte, signedvote.MaxSignature+1) })},
		{"no client data", verify.ErrMalformed, after(func(a *signedvote.Assertion) { a.ClientDataJSON = nil })},
		{"long client data", verify.ErrMalformed, client("more", strings.Repeat("x", signedvote.MaxClientData))},
	}
}

func TestAttacks(t *testing.T) {
	for _, algorithm := range passkeytest.Algorithms {
		for _, a := range attacks() {
			x := &forgery{voter: passkeytest.NewVoter(t, "ann", algorithm), signed: vote(), stored: vote(), bucket: bucket, at: at}
			registered := x.voter.Credential
			a.do(x)
			assertion := x.voter.Sign(text(t, x.signed, bucket), bucket)
			if x.after != nil {
				x.after(&assertion)
			}
			if x.bucket != bucket {
				assertion.Time = x.bucket
			}
			err := registered.Check(text(t, x.stored, x.bucket), &assertion, x.at)
			if !errors.Is(err, a.want) {
				t.Errorf("%s, %s: %v, want %v", algorithm, a.name, err, a.want)
			}
		}
	}
}

// Client data that two parsers may read differently are rejected.
func TestClientDataIsStrict(t *testing.T) {
	v := passkeytest.NewVoter(t, "ann", "ES256")
	signed := text(t, vote(), bucket)
	challenge := signedvote.Challenge(signed)
	good := fmt.Sprintf(`{"type":"webauthn.get","challenge":%q,"origin":"https://log.example","crossOrigin":false}`,
		signedvote.Bytes(challenge[:]).String())
	for name, client := range map[string]string{
		"a name twice":            strings.Replace(good, `{`, `{"origin":"https://evil.example",`, 1),
		"a name twice by escapes": strings.Replace(good, `{`, `{"\u006frigin":"https://log.example",`, 1),
		"a byte order mark":       "\ufeff" + good,
		"data after it":           good + "{}",
		"a list":                  "[" + good + "]",
		"not UTF-8":               strings.Replace(good, `{`, "{\"x\":\"\xff\",", 1),
		"a lone surrogate":        strings.Replace(good, `{`, `{"x":"\ud800",`, 1),
		"names in capitals":       strings.Replace(good, `"type"`, `"Type"`, 1),
		"an inexact number":       strings.Replace(good, `{`, `{"x":9007199254740993,`, 1),
		"deep":                    strings.Replace(good, `{`, `{"x":`+strings.Repeat("[", 64)+strings.Repeat("]", 64)+`,`, 1),
		"a null crossOrigin":      strings.Replace(good, `false`, `null`, 1),
		"a null topOrigin":        strings.Replace(good, `{`, `{"topOrigin":null,`, 1),
		"a number as a type":      strings.Replace(good, `"webauthn.get"`, `1`, 1),
	} {
		a := v.SignClientData([]byte(client), bucket)
		if err := v.Check(signed, &a, at); !errors.Is(err, verify.ErrMalformed) && !errors.Is(err, verify.ErrMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSignaturesAreStrictDER(t *testing.T) {
	v := passkeytest.NewVoter(t, "ann", "ES256")
	signed := text(t, vote(), bucket)
	a := v.Sign(signed, bucket)
	var rs struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(a.Signature, &rs); err != nil {
		t.Fatal(err)
	}
	encode := func(r, s []byte) []byte {
		return append(append(append([]byte{0x30, byte(len(r) + len(s) + 4), 2, byte(len(r))}, r...), 2, byte(len(s))), s...)
	}
	number := func(n *big.Int) []byte {
		if n.BitLen()%8 == 0 {
			return append([]byte{0}, n.Bytes()...)
		}
		return n.Bytes()
	}
	r, s, n := number(rs.R), number(rs.S), elliptic.P256().Params().N
	check := func(signature []byte) error {
		a.Signature = signature
		return v.Check(signed, &a, at)
	}
	if err := check(encode(r, s)); err != nil {
		t.Fatal(err)
	}
	for name, signature := range map[string][]byte{
		"a byte after it":      append(encode(r, s), 0),
		"a byte inside":        append([]byte{0x30, byte(len(r) + len(s) + 5)}, append(encode(r, s)[2:], 0)...),
		"a zero in front of r": encode(append([]byte{0}, r...), s),
		"a zero in front of s": encode(r, append([]byte{0}, s...)),
		"a long length":        append([]byte{0x30, 0x81, byte(len(r) + len(s) + 4)}, encode(r, s)[2:]...),
		"an indefinite length": append(append([]byte{0x30, 0x80}, encode(r, s)[2:]...), 0, 0),
		"a negative r":         encode(append([]byte{0xff}, r...), s),
		"r is 0":               encode([]byte{0}, s),
		"s is 0":               encode(r, []byte{0}),
		"an empty r":           encode(nil, s),
		"s + n":                encode(r, number(new(big.Int).Add(rs.S, n))),
		"r + n":                encode(number(new(big.Int).Add(rs.R, n)), s),
		"r and s without DER":  append(rs.R.FillBytes(make([]byte, 32)), rs.S.FillBytes(make([]byte, 32))...),
		"a set":                append([]byte{0x31}, encode(r, s)[1:]...),
		"three numbers":        append([]byte{0x30, byte(len(r) + len(s) + 7)}, append(encode(r, s)[2:], 2, 1, 1)...),
		"one number":           append([]byte{0x30, byte(len(r) + 2), 2, byte(len(r))}, r...),
		"cut":                  encode(r, s)[:len(r)+len(s)+3],
		"an empty sequence":    {0x30, 0},
		"one byte":             {0x30},
	} {
		if err := check(signature); !errors.Is(err, tlog.ErrSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeys(t *testing.T) {
	for _, algorithm := range passkeytest.Algorithms {
		key := passkeytest.NewVoter(t, "ann", algorithm).Key
		encoded, err := key.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := signedvote.ParseKey(encoded)
		if err != nil || again.Thumbprint() != key.Thumbprint() || len(key.Thumbprint()) != 43 {
			t.Errorf("%s: %v", encoded, err)
		}
	}
	// RFC 7638, section 3.1.
	n := "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMs" +
		"tn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1" +
		"n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
	key, err := signedvote.ParseKey([]byte(`{"e":"AQAB","kty":"RSA","n":"` + n + `"}`))
	if err != nil || key.Thumbprint() != "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs" {
		t.Error("thumbprint of RFC 7638:", key.Thumbprint(), err)
	}
}

func TestParseKeyRejects(t *testing.T) {
	b64 := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	ec := func(x, y string) string { return `{"crv":"P-256","kty":"EC","x":"` + x + `","y":"` + y + `"}` }
	okp := func(x []byte) string { return `{"crv":"Ed25519","kty":"OKP","x":"` + b64(x) + `"}` }
	rs := func(n []byte) string { return `{"e":"AQAB","kty":"RSA","n":"` + b64(n) + `"}` }
	point, err := passkeyPoint(t)
	if err != nil {
		t.Fatal(err)
	}
	x, y := b64(point[1:33]), b64(point[33:])
	if _, err := signedvote.ParseKey([]byte(ec(x, y))); err != nil {
		t.Fatal(err)
	}
	modulus := func(bits int, last byte) []byte {
		n := bytes.Repeat([]byte{0xa5}, (bits+7)/8)
		n[0], n[len(n)-1] = byte(1)<<((bits-1)%8), last
		return n
	}
	for _, bits := range []int{2048, 2049, 3072, 4096} {
		if _, err := signedvote.ParseKey([]byte(rs(modulus(bits, 1)))); err != nil {
			t.Errorf("%d bits: %v", bits, err)
		}
	}
	zero32 := make([]byte, 32)
	one := append([]byte{1}, make([]byte, 31)...)
	order8, _ := base64.StdEncoding.DecodeString("JuiVj8KyJ7BFw/SJ8u+Y8NXfrAXTxjM5sTgCiG1T/AU=")
	for name, text := range map[string]string{
		"a point off the curve":     ec(x, b64(zero32)),
		"the point at infinity":     ec(b64(zero32), b64(zero32)),
		"x beyond the field":        ec(b64(bytes.Repeat([]byte{255}, 32)), y),
		"a short x":                 ec(b64(point[1:32]), y),
		"a long y":                  ec(x, b64(append([]byte{0}, point[33:]...))),
		"padded":                    ec(x+"=", y),
		"another alphabet":          ec(x, strings.NewReplacer("-", "+", "_", "/").Replace(y)+"+"),
		"trailing bits":             ec(x[:42]+nextLetter(x[42]), y),
		"a line end in base64":      ec(x, y[:4]+`\n`+y[4:]),
		"P-384":                     strings.Replace(ec(x, y), "256", "384", 1),
		"a private key":             strings.Replace(ec(x, y), `"kty"`, `"d":"AQ","kty"`, 1),
		"an alg":                    strings.Replace(ec(x, y), `{`, `{"alg":"ES256",`, 1),
		"a kid":                     strings.Replace(ec(x, y), `"kty"`, `"kid":"1","kty"`, 1),
		"not canonical":             strings.Replace(ec(x, y), `,`, `, `, 1),
		"a null member":             strings.Replace(ec(x, y), `"kty"`, `"e":null,"kty"`, 1),
		"an empty member":           strings.Replace(ec(x, y), `"kty"`, `"e":"","kty"`, 1),
		"an empty n":                strings.Replace(ec(x, y), `"x"`, `"n":"","x"`, 1),
		"OKP with a y":              strings.Replace(okp(one), `"}`, `","y":"`+y+`"}`, 1),
		"Ed25519 of order 1":        okp(one),
		"Ed25519 of order 4":        okp(zero32),
		"Ed25519 of order 8":        okp(order8),
		"Ed25519 not canonical":     okp(bytes.Repeat([]byte{255}, 32)),
		"Ed25519 of 31 bytes":       okp(one[:31]),
		"Ed25519 of 0 bytes":        okp(nil),
		"X25519":                    strings.Replace(okp(one), "Ed25519", "X25519", 1),
		"RSA of 1,024 bits":         rs(modulus(1024, 1)),
		"RSA of 2,047 bits":         rs(modulus(2047, 1)),
		"RSA of 4,097 bits":         rs(modulus(4097, 1)),
		"RSA of 65,536 bits":        rs(modulus(65536, 1)),
		"RSA with an even modulus":  rs(modulus(2048, 2)),
		"RSA with a zero in front":  rs(append([]byte{0}, modulus(2048, 1)...)),
		"RSA without a modulus":     rs(nil),
		"RSA with the exponent 3":   strings.Replace(rs(modulus(2048, 1)), "AQAB", "Aw", 1),
		"RSA with the exponent 1":   strings.Replace(rs(modulus(2048, 1)), "AQAB", "AQ", 1),
		"a padded exponent":         strings.Replace(rs(modulus(2048, 1)), "AQAB", "AAEAAQ", 1),
		"a symmetric key":           `{"k":"AQ","kty":"oct"}`,
		"no member":                 `{}`,
		"no object":                 `null`,
		"no text":                   ``,
		"RSA with the name of none": strings.Replace(rs(modulus(2048, 1)), "RSA", "none", 1),
	} {
		if k, err := signedvote.ParseKey([]byte(text)); !errors.Is(err, verify.ErrMalformed) || k.Thumbprint() != (signedvote.Key{}).Thumbprint() {
			t.Errorf("%s: %v", name, err)
		}
	}
	small, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, public := range map[string]any{
		"P-384": &small.PublicKey, "a value": small.PublicKey, "nil": nil, "small order": ed25519.PublicKey(one),
		"exponent": &rsa.PublicKey{N: new(big.Int).SetBytes(modulus(2048, 1)), E: 3}, "no modulus": &rsa.PublicKey{E: 65537},
	} {
		if _, err := signedvote.NewKey(public); !errors.Is(err, verify.ErrMalformed) {
			t.Errorf("NewKey %s: %v", name, err)
		}
	}
}

// The zero key verifies nothing, and no key verifies a signature of another algorithm.
func TestOtherAlgorithms(t *testing.T) {
	signed := text(t, vote(), bucket)
	for _, by := range passkeytest.Algorithms {
		a := passkeytest.NewVoter(t, "ann", by).Sign(signed, bucket)
		for _, of := range append([]string{""}, passkeytest.Algorithms...) {
			var key signedvote.Key
			if of != "" {
				key = passkeytest.NewVoter(t, "ann", of).Key
			}
			c := signedvote.Credential{ID: a.CredentialID, Key: key, RPID: "log.example", WebOrigin: "https://log.example"}
			if err := c.Check(signed, &a, at); (err == nil) != (of == by) {
				t.Errorf("signed by %s under %q: %v", by, of, err)
			}
		}
	}
}

func nextLetter(c byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, c)+1])
}

func passkeyPoint(t *testing.T) ([]byte, error) {
	t.Helper()
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{7}, 32))
	if err != nil {
		return nil, err
	}
	return private.PublicKey.Bytes()
}
