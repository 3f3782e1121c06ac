package account_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"golang.org/x/crypto/argon2"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// The rules of password.Check apply to both ways of setting a password.
func TestPasswordsThatCanNotBeChosen(t *testing.T) {
	w := newWorld(t)
	w.ensure("bob@example.com", password)
	for _, p := range []string{"short", "password123", "bob@example.com", "Blue Harbour"} {
		err := w.accounts.SetPassword(t.Context(), "bob@example.com", p, "Blue Harbour")
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("set %s: got %v", p, err)
		}
		if _, _, err = w.accounts.Ensure(t.Context(), "bobann@example.com", strings.Replace(p, "bob@", "bobann@", 1), "Blue Harbour"); !fault.Is(err, fault.Invalid) {
			t.Errorf("new account with %s: got %v", p, err)
		}
	}
	w.mustSignIn("bob@example.com", password)
}

// A password that was chosen under an older rule remains valid.
func TestOlderPasswordStaysGood(t *testing.T) {
	w := newWorld(t)
	ann, longer := w.ensure(email, password), w.ensure("bob@example.com", password)
	record, err := w.store.Get(t.Context(), id.Service, "account", string(ann.ID))
	if err != nil {
		t.Fatal(err)
	}
	var stored map[string]any
	if err := json.Unmarshal(record.Value, &stored); err != nil {
		t.Fatal(err)
	}
	stored["password_hash"] = hashOfPassword(t, "12345678")
	value, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.Write(t.Context(), id.Service, []storage.Change{{Kind: "account", Key: string(ann.ID), Value: value, If: record.Version}}); err != nil {
		t.Fatal(err)
	}
	if got := w.mustSignIn(email, "12345678"); got.ID != ann.ID {
		t.Errorf("got %+v", got)
	}
	if got := w.mustSignIn("bob@example.com", password); got.ID != longer.ID {
		t.Errorf("the neighbour: got %+v", got)
	}
}

// hashOfPassword returns the Argon2id hash of a password in the stored form.
func hashOfPassword(t *testing.T, password string) string {
	t.Helper()
	salt := []byte("0123456789abcdef")
	b64 := base64.RawStdEncoding
	return "$argon2id$v=19$m=64,t=1,p=1$" + b64.EncodeToString(salt) + "$" + b64.EncodeToString(argon2.IDKey([]byte(password), salt, 1, 64, 1, 32))
}
