package account_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/tenant/account"
)

// An accepted address is accepted again in its normal form, and is one bare address.
func FuzzParseEmail(f *testing.F) {
	for _, seed := range []string{"ann@example.com", "Ann <ann@example.com>", `"a b"@example.com`, "ann@[192.0.2.1]", "é@exämple.com", "a@b,c@d", "a@b (c)"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := account.ParseEmail(s)
		if err != nil {
			return
		}
		again, err := account.ParseEmail(got)
		if err != nil || again != got || strings.ContainsAny(got, "\r\n\x00") || len(s) > 254 || !strings.Contains(got, "@") {
			t.Errorf("%q: got %q, then %q, %v", s, got, again, err)
		}
	})
}
