package edge

import "strconv"

// maxName is how many characters of a member's name an error shows.
const maxName = 64

// quoteMemberName returns name in quotes, in printable ASCII, cut to maxName
// characters without cutting an escape.
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
