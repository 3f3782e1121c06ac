package password

import (
	"crypto/sha256"
	_ "embed" // the data
	"sort"
	"strings"
	"unicode/utf8"
)

// CommonMinLength is the length of the shortest password in the list, in code points. No account may have a shorter
// one.
const CommonMinLength = 10

// CommonSize is the number of passwords in the list.
const CommonSize = 100_000

// CommonDigestSize is the number of stored bytes of the SHA-256 of each password.
const CommonDigestSize = 5

// passwords contains the digests of CommonSize passwords in ascending order, and no password as text. It is searched
// in place, so it takes no time at the start. NOTICE contains its source and license.
//
//go:embed passwords.bin
var passwords string

// IsCommon reports whether a password is one of the 100,000 most common passwords of at least CommonMinLength
// characters, ignoring case. Because only five bytes of each hash are stored, another password is mistaken for a
// common one with a probability of at most 1 in 10 million. It may be called concurrently.
func IsCommon(password string) bool {
	if utf8.RuneCountInString(password) < CommonMinLength {
		return false
	}
	digest := CommonDigest(password)
	at := func(i int) string { return passwords[i*CommonDigestSize : (i+1)*CommonDigestSize] }
	n := len(passwords) / CommonDigestSize
	i := sort.Search(n, func(i int) bool { return at(i) >= digest })
	return i < n && at(i) == digest
}

// CommonDigest returns the entry of a password in the data: CommonDigestSize bytes.
func CommonDigest(password string) string {
	hash := sha256.Sum256([]byte(strings.ToLower(password)))
	return string(hash[:CommonDigestSize])
}
