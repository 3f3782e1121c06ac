package password

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentledger/agentledger/fault"
)

// Limits of passwords: the minimum in code points, the maximum in bytes.
const (
	minPassword = CommonMinLength
	maxPassword = MaxLength
)

// Check returns fault.Invalid for a password that is not allowed: too short or too long, too common, the e-mail
// address or the part before its @, or one of names, which are the names of the person's organizations. Case and
// surrounding white space are ignored. The limits apply to the normal form, because that is hashed. Only new
// passwords are checked: one that was chosen under an older rule remains valid.
func Check(password, email string, names ...string) error {
	password = Normalize(password)
	if utf8.RuneCountInString(password) < minPassword || len(password) > maxPassword || !utf8.ValidString(password) {
		return fault.New(fault.Invalid, "The password must have at least 10 characters and at most 1024 bytes")
	}
	equals := func(other string) bool {
		return strings.EqualFold(strings.TrimSpace(password), strings.TrimSpace(Normalize(other)))
	}
	local, _, _ := strings.Cut(email, "@")
	switch {
	case IsCommon(password) || IsCommon(strings.TrimSpace(password)):
		return fault.New(fault.Invalid, "The password is one of the 100,000 most common")
	case equals(email) || equals(local):
		return fault.New(fault.Invalid, "The password must not be the e-mail address or the part before its @")
	case slices.ContainsFunc(names, equals):
		return fault.New(fault.Invalid, "The password must not be the organization's name")
	}
	return nil
}
