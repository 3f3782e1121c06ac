package password

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agentledger/agentledger/fault"
)

// Bounds of passwords: code points at least, bytes at most.
const (
	minPassword = CommonMinLength
	maxPassword = MaxLength
)

// Check returns fault.Invalid for a password that can't be chosen: one of
// another length, one of the commonest, the e-mail address or the part before its @,
// or one of names, which are those of the person's organizations. Letter case and
// white space around the password make no difference. The bounds apply to the normal form of the password,
// because that is hashed. Only new passwords are checked: one that was chosen under an older rule goes on to work.
func Check(password, email string, names ...string) error {
	password = Normalize(password)
	if utf8.RuneCountInString(password) < minPassword || len(password) > maxPassword || !utf8.ValidString(password) {
		return fault.New(fault.Invalid, "The password must have at least 10 characters and at most 1024 bytes")
	}
	is := func(other string) bool {
		return strings.EqualFold(strings.TrimSpace(password), strings.TrimSpace(Normalize(other)))
	}
	local, _, _ := strings.Cut(email, "@")
	switch {
	case IsCommon(password) || IsCommon(strings.TrimSpace(password)):
		return fault.New(fault.Invalid, "The password is one of the 100,000 commonest")
	case is(email) || is(local):
		return fault.New(fault.Invalid, "The password must not be the e-mail address or the part before its @")
	case slices.ContainsFunc(names, is):
		return fault.New(fault.Invalid, "The password must not be the organization's name")
	}
	return nil
}
