package tlog

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/agentledger/agentledger/edkey"
)

func TestParseVerifierKeyRoundTrips(t *testing.T) {
	for _, name := range []string{"a", "log.example/o/one", "log.example:8080/p/o/one/2", "ü.example", strings.Repeat("x", MaxName)} {
		key := newSigner(t, name).Verifier()
		got, err := ParseVerifierKey(key.String())
		if err != nil || got != key || got.Name() != name || got.Public() != key.Public() || got.Hash() != key.Hash() {
			t.Errorf("%q: got %v, %v", key, got, err)
		}
		theirs, err := note.NewVerifier(key.String())
		if err != nil || theirs.Name() != name || KeyHash(theirs.KeyHash()) != key.Hash() {
			t.Errorf("%q: x/mod: %v", key, err)
		}
	}
}

func TestParseVerifierKeyRefuses(t *testing.T) {
	key := newSigner(t, "log.example/o/one").Verifier()
	good, hash := key.String(), key.Hash().String()
	encoded := good[strings.LastIndex(good, hash)+len(hash)+1:]
	vkey := func(name, hash string, key []byte) string {
		return name + "+" + hash + "+" + base64.StdEncoding.EncodeToString(key)
	}
	identity := make([]byte, 32)
	identity[0] = 1
	for name, bad := range map[string]string{
		"empty":                     "",
		"two parts":                 "log.example/o/one+" + hash,
		"no name":                   strings.TrimPrefix(good, "log.example/o/one"),
		"another name":              strings.Replace(good, "one", "two", 1),
		"name with a space":         strings.Replace(good, "one", "o ne", 1),
		"name with a plus":          strings.Replace(good, "one", "o+ne", 1),
		"name with a line end":      strings.Replace(good, "one", "one\n", 1),
		"name with a control":       strings.Replace(good, "one", "one\x01", 1),
		"name not UTF-8":            strings.Replace(good, "one", "\xff", 1),
		"another hash":              strings.Replace(good, hash, "00000000", 1),
		"hash in upper case":        strings.Replace(good, hash, strings.ToUpper(hash), 1),
		"hash with a zero":          strings.Replace(good, hash, "0"+hash, 1),
		"hash cut":                  strings.Replace(good, hash, hash[1:], 1),
		"key cut":                   strings.TrimSuffix(good, encoded) + encoded[:40],
		"key without padding":       strings.TrimSuffix(good, encoded) + encoded[:43],
		"key with a line end":       good + "\n",
		"key with a line end in it": good[:len(good)-4] + "\n" + good[len(good)-3:],
		"space before":              " " + good,
		"signature type 4":          vkey("a", "4d5f5de9", append([]byte{4}, identity...)),
		"signature type alone":      vkey("a", "00000000", []byte{1}),
		"point of small order":      vkey("a", keyHash("a", identity), append([]byte{1}, identity...)),
		"no point":                  vkey("a", keyHash("a", []byte(strings.Repeat("\xff", 32))), []byte("\x01"+strings.Repeat("\xff", 32))),
	} {
		if got, err := ParseVerifierKey(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

// keyHash returns the key hash of bytes that may not be a key.
func keyHash(name string, key []byte) string {
	vkey, err := note.NewEd25519VerifierKey(name, key)
	if err != nil {
		panic(err)
	}
	return strings.Split(vkey, "+")[1]
}

func TestNewKeysRefuse(t *testing.T) {
	public := edkey.NewPrivate().Public()
	for _, name := range []string{"", "a b", "a+b", "a\nb", "a\u2028b", "a\u0085b", "\xff", strings.Repeat("x", MaxName+1)} {
		if _, err := NewVerifierKey(name, public); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: got %v, want %v", name, err, ErrMalformed)
		}
		if _, err := NewSignerKey(name, edkey.NewPrivate()); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: got %v, want %v", name, err, ErrMalformed)
		}
	}
	if _, err := NewVerifierKey("a", edkey.Public{}); !errors.Is(err, ErrMalformed) {
		t.Errorf("no key: got %v, want %v", err, ErrMalformed)
	}
}

func TestSignerKeyIsNeverPrinted(t *testing.T) {
	key := newSigner(t, "log.example/o/one")
	holder := struct{ hidden SignerKey }{key}
	seed := sha256.Sum256([]byte("log.example/o/one"))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{key, &key, holder, &holder} {
			got := strings.ToLower(fmt.Sprintf(verb, v))
			for _, secret := range []string{hex.EncodeToString(seed[:4]), fmt.Sprintf("%d %d %d", seed[0], seed[1], seed[2]), fmt.Sprintf("0x%x, 0x%x, 0x%x", seed[0], seed[1], seed[2])} {
				if strings.Contains(got, secret) {
					t.Errorf("%s of %T prints the seed", verb, v)
				}
			}
		}
	}
}

func FuzzParseVerifierKey(f *testing.F) {
	f.Add(readVector(f).LogKey.VKey)
	f.Add("a+00000000+AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, vkey string) {
		key, err := ParseVerifierKey(vkey)
		if err != nil {
			return
		}
		if got := key.String(); got != vkey {
			t.Errorf("%q is written %q", vkey, got)
		}
		if _, err := note.NewVerifier(vkey); err != nil {
			t.Errorf("%q: x/mod: %v", vkey, err)
		}
	})
}
