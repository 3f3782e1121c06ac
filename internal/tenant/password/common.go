package password

import (
	"crypto/sha256"
	_ "embed" // the data
	"sort"
	"strings"
	"unicode/utf8"
)

// CommonMinLength is the number of code points of the shortest password in the list. No account may have a shorter one.
const CommonMinLength = 10

// CommonSize is the number of passwords in the list.
const CommonSize = 100_000

// CommonDigestSize is how many bytes of the SHA-256 of a password the data holds.
const CommonDigestSize = 5

// passwords holds the digests of CommonSize passwords one after another, in ascending order, and no password as text. It
// is searched where it lies in the program, so it takes no time at the start. NOTICE names the source and its licence.
//
//go:embed passwords.bin
var passwords string

// IsCommon reports whether a password is one of the 100,000 commonest of CommonMinLength characters or more. Letter case
// makes no difference. Every password of the list is found; because only five bytes of each hash are kept, another
// password is mistaken for a listed one with a probability of at most 1 in 10 million. It may be called concurrently.
func IsCommon(password string) bool {
	if utf8.RuneCountInString(password) < CommonMinLength {
		return false
	}
	wanted := CommonDigest(password)
	at := func(i int) string { return passwords[i*CommonDigestSize : (i+1)*CommonDigestSize] }
	n := len(passwords) / CommonDigestSize
	i := sort.Search(n, func(i int) bool { return at(i) >= wanted })
	return i < n && at(i) == wanted
}

// CommonDigest returns the entry of a password in the data: CommonDigestSize bytes.
func CommonDigest(password string) string {
	hash := sha256.Sum256([]byte(strings.ToLower(password)))
	return string(hash[:CommonDigestSize])
}
