package seal_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/seal"
)

// A cookie opens only in its context, under its key and unchanged.
func TestCookie(t *testing.T) {
	keyring, other := newCookieKeyring(t), newCookieKeyring(t)
	type value struct{ Name string }
	made, err := seal.Cookie(keyring, "one use", value{"ann"})
	if err != nil || strings.Contains(made, "ann") {
		t.Fatalf("got %q, %v", made, err)
	}
	for name, tt := range map[string]struct {
		by      *seal.Keyring
		context string
		cookie  string
		want    string
	}{
		"as made":         {keyring, "one use", made, "ann"},
		"another use":     {keyring, "another use", made, ""},
		"another service": {other, "one use", made, ""},
		"changed":         {keyring, "one use", "AAAA" + made[4:], ""},
		"shortened":       {keyring, "one use", made[:len(made)-4], ""},
		"no base64":       {keyring, "one use", "!" + made, ""},
		"empty":           {keyring, "one use", "", ""},
		"too long":        {keyring, "one use", strings.Repeat("A", 4097), ""},
	} {
		var got value
		err := seal.OpenCookie(tt.by, tt.context, tt.cookie, &got)
		if got.Name != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: got %q, %v, want %q", name, got.Name, err, tt.want)
		}
	}
}

func newCookieKeyring(t *testing.T) *seal.Keyring {
	t.Helper()
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	return keyring
}
