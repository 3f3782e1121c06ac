package edge

import "strconv"

// maxName is the maximum number of characters of a member's name in an error message.
const maxName = 64

// quoteMemberName returns name in quotes and printable ASCII, truncated to maxName
// characters, but never within an escape.
func quoteMemberName(name string) string {
	quoted := []byte{'"'}
	for _, r := range name {
		next := strconv.QuoteToASCII(string(r))
		next = next[1 : len(next)-1]
		if len(quoted)-1+len(next) > maxName {
			break
		}
		quoted = append(quoted, next...)
	}
	return string(append(quoted, '"'))
}
