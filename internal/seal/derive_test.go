package seal_test

import (
	"encoding/hex"
	"testing"

	"github.com/agentledger/agentledger/internal/seal"
)

// The expected value is HKDF-SHA256 without a salt, computed by another program from HMAC.
func TestDerive(t *testing.T) {
	key, err := seal.KeyFromSecret("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=") // bytes 0 to 31
	if err != nil {
		t.Fatal(err)
	}
	other := seal.NewKey()
	ring, err := seal.NewKeyring(key, other)
	if err != nil {
		t.Fatal(err)
	}
	derived := ring.Derive("a label")
	if len(derived) != 2 {
		t.Fatalf("got %d secrets, want one a key", len(derived))
	}
	if got, want := hex.EncodeToString(derived[0][:]), "7ec3d0c6448676ba9bb7955497a22613579552e3d90028d6733a41ad38001e4f"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if derived[0] == derived[1] || derived[0] == ring.Derive("another label")[0] {
		t.Error("two keys or two labels have the same secret")
	}
	alone, err := seal.NewKeyring(other)
	if err != nil {
		t.Fatal(err)
	}
	if alone.Derive("a label")[0] != derived[1] {
		t.Error("the same key has another secret on another ring")
	}
}
