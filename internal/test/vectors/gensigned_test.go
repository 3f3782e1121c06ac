package vectors

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"filippo.io/edwards25519"
	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/jcs"
)

// votingKey is a public key with a function that signs messages.
type votingKey struct {
	jwk  map[string]any
	sign func(message []byte) []byte
}

func url64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func es256(t testing.TB) votingKey {
	t.Helper()
	seed := sha256.Sum256([]byte("agentledger vectors: voter"))
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	if err != nil {
		t.Fatal(err)
	}
	point, err := private.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return votingKey{map[string]any{"crv": "P-256", "kty": "EC", "x": url64(point[1:33]), "y": url64(point[33:])},
		func(message []byte) []byte {
			digest := sha256.Sum256(message)
			signature, err := private.Sign(nil, digest[:], crypto.SHA256)
			if err != nil {
				t.Fatal(err)
			}
			return signature
		}}
}

func eddsa() votingKey {
	private := ed25519.NewKeyFromSeed([]byte("agentledger vectors: EdDSA voter"))
	public := private.Public().(ed25519.PublicKey)
	return votingKey{map[string]any{"crv": "Ed25519", "kty": "OKP", "x": url64(public)},
		func(message []byte) []byte { return ed25519.Sign(private, message) }}
}

// smallOrder is the identity, for which anybody can sign.
func smallOrder(t testing.TB) votingKey {
	t.Helper()
	one := append([]byte{1}, make([]byte, 31)...)
	scalar := append([]byte{7}, make([]byte, 31)...)
	s, err := edwards25519.NewScalar().SetCanonicalBytes(scalar)
	if err != nil {
		t.Fatal(err)
	}
	signature := append(new(edwards25519.Point).ScalarBaseMult(s).Bytes(), scalar...)
	return votingKey{map[string]any{"crv": "Ed25519", "kty": "OKP", "x": url64(one)}, func(message []byte) []byte {
		if !ed25519.Verify(one, message, signature) {
			t.Fatal("the forged signature does not verify")
		}
		return signature
	}}
}

// rs256 makes an RSA key of a size and an exponent.
func rs256(t testing.TB, bits, exponent int) votingKey {
	t.Helper()
	random := rand.NewChaCha8([32]byte{byte(bits >> 8), byte(exponent)})
	one, e := big.NewInt(1), big.NewInt(int64(exponent))
	prime := func() *big.Int {
		b := make([]byte, bits/16)
		for {
			random.Read(b)
			b[0], b[len(b)-1] = b[0]|0xc0, b[len(b)-1]|1
			p := new(big.Int).SetBytes(b)
			if less := new(big.Int).Sub(p, one); p.ProbablyPrime(0) && new(big.Int).GCD(nil, nil, less, e).Cmp(one) == 0 {
				return p
			}
		}
	}
	p, q := prime(), prime()
	n := new(big.Int).Mul(p, q)
	d := new(big.Int).ModInverse(e, new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one)))
	encoded := "AQAB"
	if exponent != 65537 {
		encoded = url64(e.Bytes())
	}
	return votingKey{map[string]any{"e": encoded, "kty": "RSA", "n": url64(n.Bytes())}, func(message []byte) []byte {
		digest := sha256.Sum256(message)
		// EMSA-PKCS1-v1_5 by hand, because the library does not sign with weak keys.
		info, _ := hex.DecodeString("3031300d060960864801650304020105000420")
		padded := append([]byte{0, 1}, []byte(strings.Repeat("\xff", len(n.Bytes())-3-len(info)-len(digest)))...)
		padded = append(append(append(padded, 0), info...), digest[:]...)
		signature := new(big.Int).Exp(new(big.Int).SetBytes(padded), d, n).FillBytes(make([]byte, len(n.Bytes())))
		if bits == 2048 && exponent == 65537 &&
			rsa.VerifyPKCS1v15(&rsa.PublicKey{N: n, E: exponent}, crypto.SHA256, digest[:], signature) != nil {
			t.Fatal("the signature does not verify")
		}
		return signature
	}}
}

// signedVote is a vector before it is written.
type signedVote struct {
	key                   votingKey
	origin, page, party   string
	id                    []byte
	bucket                string
	registered, voted     string
	vote                  map[string]any // without signed
	flags                 byte
	counter               string // after the flags, 4 bytes
	client                func(good string) string
	text                  func(good string) string // returns the text that the vote signs
	registration, payload func(map[string]any)
}

func (s *signedVote) assertion(text string, forVote bool) map[string]any {
	challenge := sha256.Sum256([]byte(text))
	client := `{"type":"webauthn.get","challenge":"` + url64(challenge[:]) + `","origin":"` + s.page + `","crossOrigin":false}`
	party := sha256.Sum256([]byte(s.party))
	data := append(append(party[:], 0x05), 0, 0, 0, 0)
	if forVote {
		if s.client != nil {
			client = s.client(client)
		}
		data = append(append(party[:], s.flags), s.counter...)
	}
	hash := sha256.Sum256([]byte(client))
	signature := s.key.sign(append(data[:len(data):len(data)], hash[:]...))
	return map[string]any{"authenticator_data": url64(data), "client_data_json": url64([]byte(client)), "credential_id": url64(s.id),
		"signature": url64(signature), "time": s.bucket}
}

func (s *signedVote) input(t testing.TB) in {
	t.Helper()
	canonical := func(v any) string {
		text, err := jcs.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	thumbprint := sha256.Sum256([]byte(canonical(s.key.jwk)))
	text := strings.Join([]string{"agentledger/voter-key/v1", s.origin, "acc_1", url64(s.id), url64(thumbprint[:]), s.bucket, ""}, "\n")
	registration := map[string]any{"transition": "registered", "account_id": "acc_1", "credential_id": url64(s.id), "public_key": s.key.jwk,
		"rp_id": s.party, "web_origin": s.page, "possession": s.assertion(text, false), "consent": nil}
	if s.registration != nil {
		s.registration(registration)
	}
	orNull := func(name string) any {
		if text, _ := s.vote[name].(string); text != "" {
			return text
		}
		return nil
	}
	remark := sha256.Sum256([]byte(canonical(map[string]any{"reason": orNull("reason"), "reason_code": orNull("reason_code")})))
	text = strings.Join([]string{"agentledger/vote/v1", s.origin, s.vote["approval_id"].(string), s.vote["action_digest"].(string),
		s.vote["vote"].(string), hexOf(remark[:]), s.bucket, ""}, "\n")
	if s.text != nil {
		text = s.text(text)
	}
	s.vote["signed"] = s.assertion(text, true)
	if s.payload != nil {
		s.payload(s.vote)
	}
	return in{"origin": s.origin, "registration": canonical(registration), "registered_at": s.registered, "vote": canonical(s.vote), "voted_at": s.voted}
}

func newSignedVote(key votingKey) *signedVote {
	return &signedVote{key: key, origin: "log.example/o/34929490-47ca-4f7c-b79e-0ac022b29856", page: "https://log.example", party: "log.example",
		id: []byte("a passkey"), bucket: "2026-11-18T14:25:00Z", registered: "2026-11-18T14:26:00.000Z", voted: "2026-11-18T14:27:01.500Z",
		flags: 0x05, counter: "\x00\x00\x00\x00", vote: map[string]any{"approval_id": "apr_1", "transition": "voted", "step": 2, "vote": "approve",
			"action_digest": strings.Repeat("2d", 32), "reason": "seen \u00e9 \"\n"}}
}

func signedVotes(m *maker) {
	ec, ed, rs := es256(m.t), eddsa(), rs256(m.t, 2048, 65537)
	kinds := map[string]votingKey{"ES256": ec, "EdDSA": ed, "RS256": rs}
	same := func(*signedVote) {}
	add := func(verdict, name string, key votingKey, change func(*signedVote)) {
		s := newSignedVote(key)
		change(s)
		input := s.input(m.t)
		if verdict == Refuse {
			m.refuse(name, input)
			return
		}
		thumbprint := sha256.Sum256([]byte(mustCanonical(m.t, key.jwk)))
		m.accept(name, input, map[string]any{"thumbprint": url64(thumbprint[:])})
	}
	signature := func(change func([]byte) []byte) func(*signedVote) {
		return func(s *signedVote) {
			s.payload = func(p map[string]any) {
				a := p["signed"].(map[string]any)
				raw, err := base64.RawURLEncoding.DecodeString(a["signature"].(string))
				if err != nil {
					m.t.Fatal(err)
				}
				a["signature"] = url64(change(raw))
			}
		}
	}
	rsOf := func(raw []byte) (r, s *big.Int) {
		var v struct{ R, S *big.Int }
		if _, err := asn1.Unmarshal(raw, &v); err != nil {
			m.t.Fatal(err)
		}
		return v.R, v.S
	}
	encode := func(r, s *big.Int) []byte {
		b, err := asn1.Marshal(struct{ R, S *big.Int }{r, s})
		if err != nil {
			m.t.Fatal(err)
		}
		return b
	}
	n := elliptic.P256().Params().N
	text := func(old, text string) func(*signedVote) {
		return func(s *signedVote) { s.text = func(good string) string { return strings.Replace(good, old, text, 1) } }
	}
	client := func(old, text string) func(*signedVote) {
		return func(s *signedVote) {
			s.client = func(good string) string { return strings.Replace(good, old, text, 1) }
		}
	}
	flags := func(f byte) func(*signedVote) { return func(s *signedVote) { s.flags = f } }
	jwk := func(change func(map[string]any)) func(*signedVote) {
		return func(s *signedVote) {
			key := map[string]any{}
			for name, value := range s.key.jwk {
				key[name] = value
			}
			change(key)
			s.key.jwk = key
		}
	}

	for _, name := range []string{"ES256", "EdDSA", "RS256"} {
		add(Accept, name, kinds[name], same)
		add(Refuse, name+": another approval", kinds[name], text("apr_1", "apr_2"))
		add(Refuse, name+": a signature with a byte more", kinds[name], signature(func(b []byte) []byte { return append(b, 0) }))
		add(Refuse, name+": a signature cut", kinds[name], signature(func(b []byte) []byte { return b[:len(b)-1] }))
		add(Refuse, name+": a signature changed", kinds[name], signature(func(b []byte) []byte { b[len(b)/2]++; return b }))
	}
	add(Accept, "RS256 of 3,072 bits", rs256(m.t, 3072, 65537), same)
	add(Accept, "may be kept elsewhere, with a counter", ec, func(s *signedVote) { s.flags, s.counter = 0x0d, "\xff\xff\xff\xff" })
	add(Accept, "is kept elsewhere", ed, flags(0x1d))
	add(Accept, "the other s of ECDSA", ec, signature(func(b []byte) []byte { r, s := rsOf(b); return encode(r, new(big.Int).Sub(n, s)) }))
	add(Accept, "client data without crossOrigin", ec, client(`,"crossOrigin":false`, ``))
	add(Accept, "client data in another order, with white space and escapes", ed, func(s *signedVote) {
		s.client = func(good string) string {
			good = strings.Replace(good, `"type"`, `"other":[1.5,null], "\u0074ype"`, 1)
			return " " + strings.Replace(good, `https://`, `https:\/\/`, 1) + "\n"
		}
	})
	add(Accept, "client data of 2,048 bytes", ed, func(s *signedVote) {
		s.client = func(good string) string { return good + strings.Repeat(" ", 2048-len(good)) }
	})
	add(Accept, "a credential id of 1 byte", ed, func(s *signedVote) { s.id = []byte{0xff} })
	add(Accept, "a credential id of 1,023 bytes", ed, func(s *signedVote) { s.id = []byte(strings.Repeat("x", 1023)) })
	add(Accept, "localhost", ed, func(s *signedVote) { s.page, s.party = "http://localhost:8080", "localhost" })
	add(Accept, "a page below the relying party", ed, func(s *signedVote) { s.page = "https://approve.log.example:8443" })
	add(Accept, "the first moment of the bucket", ed, func(s *signedVote) { s.voted = "2026-11-18T14:20:00.000Z" })
	add(Accept, "the last moment of the bucket", ed, func(s *signedVote) { s.voted = "2026-11-18T14:39:59.999Z" })
	add(Accept, "a denial with a code", ed, func(s *signedVote) { s.vote["vote"], s.vote["reason"], s.vote["reason_code"] = "deny", nil, "too_much" })
	add(Accept, "an empty reason", ed, func(s *signedVote) { s.vote["reason"] = "" })

	add(Refuse, "another action", ed, text("2d2d", "2d2e"))
	add(Refuse, "another log", ed, text("/o/", "/p/"))
	add(Refuse, "a denial as an approval", ed, text("\napprove\n", "\ndeny\n"))
	add(Refuse, "another version of the text", ed, text("/v1", "/v2"))
	add(Refuse, "a text without its last line end", ed, text("00Z\n", "00Z"))
	add(Refuse, "a text with CR", ed, text("\n", "\r\n"))
	add(Refuse, "another reason", ed, func(s *signedVote) { s.payload = func(p map[string]any) { p["reason"] = "seen" } })
	add(Refuse, "a reason that is no text", ed, func(s *signedVote) { s.payload = func(p map[string]any) { p["reason"] = false } })
	add(Refuse, "another bucket", ed, func(s *signedVote) {
		s.payload = func(p map[string]any) { p["signed"].(map[string]any)["time"] = "2026-11-18T14:20:00Z" }
	})
	add(Refuse, "before the bucket", ed, func(s *signedVote) { s.voted = "2026-11-18T14:19:59.999Z" })
	add(Refuse, "after the bucket", ed, func(s *signedVote) { s.voted = "2026-11-18T14:40:00.000Z" })
	add(Refuse, "a minute that is no bucket", ed, func(s *signedVote) { s.bucket = "2026-11-18T14:26:00Z" })
	add(Refuse, "a day that does not exist", ed, func(s *signedVote) { s.bucket = "2026-02-29T14:25:00Z" })
	add(Refuse, "a registration at another time", ed, func(s *signedVote) { s.registered = "2026-11-18T14:45:00.000Z" })
	for name, f := range ordered(map[string]byte{"no flag": 0, "presence alone": 1, "verification alone": 4, "reserved flag 02": 7, "reserved flag 20": 0x25,
		"backed up, not eligible": 0x15, "attested data": 0x45, "extension data": 0x85}) {
		add(Refuse, "flags: "+name, ed, flags(f))
	}
	add(Refuse, "a counter of 5 bytes", ed, func(s *signedVote) { s.counter += "\x00" })
	add(Refuse, "a counter of 3 bytes", ed, func(s *signedVote) { s.counter = "\x00\x00\x00" })
	for name, c := range ordered(map[string][2]string{
		"a registration": {"webauthn.get", "webauthn.create"}, "another page": {"https://log.example", "https://evil.example"},
		"the page with a slash": {"https://log.example", "https://log.example/"}, "the page in capitals": {"https://log.example", "https://LOG.example"},
		"a frame of another site": {"false", "true"}, "crossOrigin null": {"false", "null"}, "crossOrigin as a text": {"false", `"false"`},
		"topOrigin": {"false", `false,"topOrigin":"https://log.example"`}, "topOrigin null": {"false", `false,"topOrigin":null`},
		"a padded challenge": {`","origin"`, `=","origin"`}, "type twice": {`{`, `{"type":"webauthn.get",`},
		"origin twice by an escape": {`{`, `{"\u006frigin":"https://log.example",`}, "a byte order mark": {`{`, "\ufeff{"},
		"data after it": {`}`, `}{}`}, "a list": {`{"type"`, `[{"type"`}, "a lone surrogate": {`{`, `{"x":"\ud800",`}, "not UTF-8": {`{`, "{\"x\":\"\xff\","},
		"an inexact number": {`{`, `{"x":9007199254740993,`}, "no type": {`"type":"webauthn.get",`, ``}, "a comment": {`{`, `{/**/`},
	}) {
		add(Refuse, "client data: "+name, ed, client(c[0], c[1]))
	}
	add(Refuse, "client data of 2,049 bytes", ed, func(s *signedVote) {
		s.client = func(good string) string { return good + strings.Repeat(" ", 2049-len(good)) }
	})
	for name, change := range ordered(map[string]func([]byte) []byte{
		"a byte inside": func(b []byte) []byte { return append([]byte{0x30, b[1] + 1}, append(b[2:], 0)...) },
		"a long length": func(b []byte) []byte { return append([]byte{0x30, 0x81}, b[1:]...) },
		"r is negative": func(b []byte) []byte { r, s := rsOf(b); return encode(new(big.Int).Neg(r), s) },
		"r + n":         func(b []byte) []byte { r, s := rsOf(b); return encode(new(big.Int).Add(r, n), s) },
		"s + n":         func(b []byte) []byte { r, s := rsOf(b); return encode(r, new(big.Int).Add(s, n)) },
		"s - n":         func(b []byte) []byte { r, s := rsOf(b); return encode(r, new(big.Int).Sub(s, n)) },
		"r is 0":        func(b []byte) []byte { _, s := rsOf(b); return encode(new(big.Int), s) },
		"s is 0":        func(b []byte) []byte { r, _ := rsOf(b); return encode(r, new(big.Int)) },
		"r and s are 0": func([]byte) []byte { return encode(new(big.Int), new(big.Int)) },
		"no DER": func(b []byte) []byte {
			r, s := rsOf(b)
			return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		},
		"a set":           func(b []byte) []byte { b[0] = 0x31; return b },
		"a zero in front": func(b []byte) []byte { return append([]byte{0x30, b[1] + 1, 2, b[3] + 1, 0}, b[4:]...) },
	}) {
		add(Refuse, "ES256: "+name, ec, signature(change))
	}
	add(Refuse, "EdDSA: S + L", ed, signature(func(b []byte) []byte {
		l, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
		for i := range 32 {
			sum := new(big.Int).Add(l, big.NewInt(int64(b[32+i])))
			b[32+i] = byte(sum.Uint64())
			l = sum.Rsh(sum, 8)
		}
		return b
	}))
	add(Refuse, "an Ed25519 key of small order", smallOrder(m.t), same)
	add(Refuse, "an RSA key of 1,024 bits", rs256(m.t, 1024, 65537), same)
	add(Refuse, "an RSA key with the exponent 3", rs256(m.t, 2048, 3), same)
	add(Refuse, "a key of P-384", ec, jwk(func(k map[string]any) { k["crv"] = "P-384" }))
	add(Refuse, "a key with an alg", ec, jwk(func(k map[string]any) { k["alg"] = "ES256" }))
	add(Refuse, "a padded x", ec, jwk(func(k map[string]any) { k["x"] = k["x"].(string) + "=" }))
	add(Refuse, "a point off the curve", ec, jwk(func(k map[string]any) { k["y"] = k["x"] }))
	add(Refuse, "an RSA modulus with a zero in front", rs, jwk(func(k map[string]any) { k["n"] = "AA" + k["n"].(string) }))
	add(Refuse, "no credential id", ed, func(s *signedVote) { s.id = nil })
	add(Refuse, "a credential id of 1,024 bytes", ed, func(s *signedVote) { s.id = []byte(strings.Repeat("x", 1024)) })
	add(Refuse, "a page without TLS", ed, func(s *signedVote) { s.page = "http://log.example" })
	add(Refuse, "a page of another site", ed, func(s *signedVote) { s.page = "https://evillog.example" })
	add(Refuse, "a page with a path", ed, func(s *signedVote) { s.page = "https://log.example/approve" })
	add(Refuse, "an approval_id of two lines", ed, func(s *signedVote) { s.vote["approval_id"] = "apr_1\napr_2" })
	add(Refuse, "an abstention", ed, func(s *signedVote) { s.vote["vote"] = "abstain" })
	for _, name := range []string{"time", "signature", "credential_id", "client_data_json", "authenticator_data"} {
		add(Refuse, "an assertion without "+name, ed, func(s *signedVote) {
			s.payload = func(p map[string]any) { delete(p["signed"].(map[string]any), name) }
		})
	}
	add(Refuse, "an assertion with a user handle", ed, func(s *signedVote) {
		s.payload = func(p map[string]any) { p["signed"].(map[string]any)["user_handle"] = "AQ" }
	})
	add(Refuse, "a registration without rp_id", ed, func(s *signedVote) { s.registration = func(r map[string]any) { delete(r, "rp_id") } })
	add(Refuse, "a registration by another account", ed, func(s *signedVote) { s.registration = func(r map[string]any) { r["account_id"] = "acc_2" } })
	add(Refuse, "a retirement", ed, func(s *signedVote) {
		s.registration = func(r map[string]any) {
			clear(r)
			r["transition"], r["account_id"], r["credential_id"] = "retired", "acc_1", url64(s.id)
		}
	})
}

func mustCanonical(t testing.TB, v any) string {
	t.Helper()
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
