package tlog

import (
	"encoding/base64"

	"github.com/agentledger/agentledger/id"
)

// decodeBase64 reads standard base64 with padding in the one spelling that
// encoding gives back; the library alone would skip line ends.
func decodeBase64(s string) ([]byte, bool) {
	b, err := base64.StdEncoding.DecodeString(s)
	return b, err == nil && base64.StdEncoding.EncodeToString(b) == s
}

// decodeHash reads the 44 characters that a hash has in base64.
func decodeHash(s string) (id.Hash, bool) {
	if len(s) != base64.StdEncoding.EncodedLen(hashSize) {
		return id.Hash{}, false
	}
	b, ok := decodeBase64(s)
	if !ok || len(b) != hashSize {
		return id.Hash{}, false
	}
	return id.Hash(b), true
}
