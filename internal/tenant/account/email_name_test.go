package account_test

import (
	"testing"

	"github.com/agentledger/agentledger/internal/tenant/account"
)

// Addresses and display names contain no characters that are invisible or change the order of the text around them.
func TestMisleadingCharacters(t *testing.T) {
	for _, r := range []string{"\u202e", "\u2066", "\u200b", "\u2028", "\u2029", "\ufeff"} {
		if _, err := account.ParseEmail("a" + r + "b@example.com"); err == nil {
			t.Errorf("the address with %+q is accepted", r)
		}
		if err := account.CheckDisplayName("a" + r + "b"); err == nil {
			t.Errorf("the name with %+q is accepted", r)
		}
	}
}
