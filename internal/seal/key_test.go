package seal_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/seal"
)

const secret = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

func TestFromSecretRefuses(t *testing.T) {
	for _, s := range []string{secret, secret + "\n", secret + "\r\n"} {
		if _, err := seal.KeyFromSecret(s); err != nil {
			t.Errorf("%q: %v", s, err)
		}
	}
	for name, s := range map[string]string{
		"empty":               "",
		"31 bytes":            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg==",
		"33 bytes":            "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g",
		"no padding":          strings.TrimSuffix(secret, "="),
		"bits behind the end": strings.Replace(secret, "h8=", "h9=", 1),
		"URL alphabet":        strings.Replace(secret, "AAEC", "_-EC", 1),
		"two line ends":       secret + "\n\n",
		"line end inside":     secret[:20] + "\n" + secret[20:],
		"leading space":       " " + secret,
		"hexadecimal":         strings.Repeat("00", 32),
	} {
		_, err := seal.KeyFromSecret(s)
		if !errors.Is(err, seal.ErrMalformed) {
			t.Errorf("%s: got %v, want ErrMalformed", name, err)
			continue
		}
		if strings.Contains(name, "line end") && !strings.Contains(err.Error(), "contains a line end") {
			t.Errorf("%s: got %v, which does not name the line end", name, err)
		}
		if s != "" && strings.Contains(err.Error(), s) {
			t.Errorf("%s: the error repeats the secret", name)
		}
	}
}

// No way to format a key or a ring, even inside of another struct, reveals the key.
func TestKeysAreRedacted(t *testing.T) {
	key, err := seal.KeyFromSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	r := ring(t, key)
	type holder struct {
		key  seal.Key
		ring *seal.Keyring
	}
	var out bytes.Buffer
	for _, v := range []any{key, &key, r, *r, holder{key, r}, &holder{key, r}, []seal.Key{key}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%b", "%t", "%p"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		slog.New(slog.NewTextHandler(&out, nil)).Info("key", "key", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("key", "key", v)
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(b)
	}
	fmt.Fprintln(&out, key.String(), r.String())
	// Bytes 8 to 11 of the key in each of the encodings.
	for _, leak := range []string{secret[:12], "08090a0b", "08090A0B", "8 9 10 11", "0x8, 0x9", `\b\t\n\v`, "\b\t\n\v", "1000 1001", "8,9,10"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("a printed key contains %q:\n%s", leak, out.String())
		}
	}
}
