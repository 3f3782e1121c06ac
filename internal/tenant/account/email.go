package account

import (
	"net/mail"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// maxEmail is the maximum length of an address in bytes (RFC 5321, section 4.5.3.1).
const maxEmail = 254

// ParseEmail parses a bare e-mail address (RFC 5322 addr-spec, without display name and comments) and returns it in
// lower case, in which addresses are compared.
func ParseEmail(s string) (string, error) {
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Name != "" || parsed.Address != s || !textcheck.Name(s, 1, maxEmail) || len(s) > maxEmail {
		return "", fault.New(fault.Invalid, "The e-mail address is malformed")
	}
	return strings.ToLower(s), nil
}
