// Package commonpassword knows the 100,000 commonest passwords of 10 characters or more. Shorter
// ones are not listed, because no account may have one.
//
// Invariants:
//
//   - Letter case makes no difference: "Password123" is as common as "password123".
//   - Each password of the list is found. Another password is mistaken for a listed one with a
//     probability of at most 1 in 10 million, because five bytes of each hash are kept.
//   - The data holds no password as text. It is read as it lies in the program, so a search
//     allocates little and needs no time at the start.
//
// The file NOTICE beside the data says where the list comes from and its licence.
package commonpassword

import (
	"crypto/sha256"
	_ "embed" // the data
	"sort"
	"strings"
	"unicode/utf8"
)

// MinLength is the number of code points of the shortest password in the list.
const MinLength = 10

// Size is the number of passwords in the list.
const Size = 100_000

// DigestSize is how many bytes of the SHA-256 of a password the data holds.
const DigestSize = 5

// passwords holds the digests of Size passwords one after another, in ascending order.
//
//go:embed passwords.bin
var passwords string

// Contains reports whether a password is one of the commonest. It may be called
// concurrently.
func Contains(password string) bool {
	if utf8.RuneCountInString(password) < MinLength {
		return false
	}
	wanted := Digest(password)
	at := func(i int) string { return passwords[i*DigestSize : (i+1)*DigestSize] }
	n := len(passwords) / DigestSize
	i := sort.Search(n, func(i int) bool { return at(i) >= wanted })
	return i < n && at(i) == wanted
}

// Digest returns the entry of a password in the data: DigestSize bytes.
func Digest(password string) string {
	hash := sha256.Sum256([]byte(strings.ToLower(password)))
	return string(hash[:DigestSize])
}
