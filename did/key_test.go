package did_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/multiformats/go-multibase"

	"github.com/agentledger/agentledger/did"
)

// vector is one line of the did:key method's own test vectors.
type vector struct {
	Public hexKey `json:"public_key_hex"`
	DID    string `json:"did"`
	X25519 string `json:"x25519"`
}

type hexKey [32]byte

func (k *hexKey) UnmarshalText(b []byte) error {
	_, err := hex.Decode(k[:], b)
	return err
}

func vectors(t testing.TB) []vector {
	t.Helper()
	b, err := os.ReadFile("testdata/did-key-ed25519.json")
	if err != nil {
		t.Fatal(err)
	}
	var vs []vector
	if err := json.Unmarshal(b, &vs); err != nil {
		t.Fatal(err)
	}
	if len(vs) < 3 {
		t.Fatalf("got %d vectors, want at least 3", len(vs))
	}
	return vs
}

func TestKeyVectors(t *testing.T) {
	for _, v := range vectors(t) {
		if got := did.KeyDID(v.Public); got != v.DID {
			t.Errorf("KeyDID: got %s, want %s", got, v.DID)
		}
		got, err := did.ParseKey(v.DID)
		if err != nil || got != v.Public {
			t.Errorf("ParseKey(%s): got %x, %v", v.DID, got, err)
		}
		d, err := did.KeyDocument(v.Public)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := d.KeyAgreement[0], v.DID+"#"+v.X25519; got != want {
			t.Errorf("key agreement: got %s, want %s", got, want)
		}
		if got := d.VerificationMethod[1].Multibase; got != v.X25519 {
			t.Errorf("X25519 key: got %s, want %s", got, v.X25519)
		}
	}
}

// Every Multikey has 48 characters, which the strict parser relies on.
func TestMultikeyLength(t *testing.T) {
	var least, most [32]byte
	for i := range most {
		most[i] = 0xff
	}
	for _, pub := range [][32]byte{least, most} {
		s := did.Multikey(pub)
		if len(s) != 48 || !strings.HasPrefix(s, "z6Mk") {
			t.Errorf("got %s (%d characters), want z6Mk… of 48", s, len(s))
		}
		if got, err := did.ParseMultikey(s); err != nil || got != pub {
			t.Errorf("ParseMultikey(%s): got %x, %v", s, got, err)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	good := vectors(t)[0]
	_, raw, err := multibase.Decode(strings.TrimPrefix(good.DID, "did:key:"))
	if err != nil {
		t.Fatal(err)
	}
	in := func(base multibase.Encoding, b []byte) string {
		s, err := multibase.Encode(base, b)
		if err != nil {
			t.Fatal(err)
		}
		return "did:key:" + s
	}
	for name, s := range map[string]string{
		"empty":                   "",
		"no multikey":             "did:key:",
		"bare multikey":           strings.TrimPrefix(good.DID, "did:key:"),
		"upper-case method":       strings.Replace(good.DID, "key", "KEY", 1),
		"other method":            strings.Replace(good.DID, "did:key", "did:web", 1),
		"version segment":         strings.Replace(good.DID, "key:", "key:1:", 1),
		"fragment":                good.DID + "#" + good.DID[8:],
		"trailing line feed":      good.DID + "\n",
		"leading space":           " " + good.DID,
		"one character less":      good.DID[:len(good.DID)-1],
		"character out of base58": good.DID[:len(good.DID)-1] + "0",
		"base58 of Flickr":        in(multibase.Base58Flickr, raw),
		"base64url":               in(multibase.Base64url, raw),
		"base64url padded":        in(multibase.Base64urlPad, raw),
		"hexadecimal":             in(multibase.Base16, raw),
		"X25519 key":              "did:key:" + good.X25519,
		"one byte more":           in(multibase.Base58BTC, append(raw[:34:34], 0)),
		"one byte less":           in(multibase.Base58BTC, raw[:33]),
		"codec not a short varint": in(multibase.Base58BTC,
			append([]byte{0xed, 0x81, 0x00}, raw[2:]...)),
	} {
		if pub, err := did.ParseKey(s); !errors.Is(err, did.ErrMalformed) {
			t.Errorf("%s: got %x, %v, want ErrMalformed", name, pub, err)
		}
	}
}

func TestKeyDocumentRejectsNonPoints(t *testing.T) {
	pub := [32]byte{2} // y = 2 has no x on the curve
	if d, err := did.KeyDocument(pub); err == nil {
		t.Errorf("got %v, want an error", d)
	}
}

func FuzzParseKey(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.DID)
		f.Add("did:key:" + v.X25519)
		f.Add("did:key:Z" + v.DID[9:])
	}
	f.Fuzz(func(t *testing.T, s string) {
		pub, err := did.ParseKey(s)
		if err == nil && did.KeyDID(pub) != s {
			t.Errorf("%q is parsed as %x, which is written %q", s, pub, did.KeyDID(pub))
		}
	})
}

func FuzzParseMultikey(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add(v.DID[8:])
		f.Add(v.X25519)
	}
	f.Fuzz(func(t *testing.T, s string) {
		pub, err := did.ParseMultikey(s)
		if err == nil && did.Multikey(pub) != s {
			t.Errorf("%q is parsed as %x, which is written %q", s, pub, did.Multikey(pub))
		}
	})
}
