package password

import (
	"crypto/sha256"
	_ "embed" // the data
	"sort"
	"strings"
	"unicode/utf8"
)

// CommonMinLength is the number of code points of the shortest password in the list.
const CommonMinLength = 10

// CommonSize is the number of passwords in the list.
const CommonSize = 100_000

// CommonDigestSize is how many bytes of the SHA-256 of a password the data holds.
const CommonDigestSize = 5

// passwords holds the digests of Size passwords one after another, in ascending order.
//
//go:embed passwords.bin
var passwords string

// IsCommon reports whether a password is one of the commonest. It may be called
// concurrently.
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

// CommonDigest returns the entry of a password in the data: DigestSize bytes.
func CommonDigest(password string) string {
	hash := sha256.Sum256([]byte(strings.ToLower(password)))
	return string(hash[:CommonDigestSize])
}
