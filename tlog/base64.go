package tlog

import (
	"encoding/base64"

	"github.com/agentledger/agentledger/id"
)

// decodeCanonicalBase64 decodes standard base64 with padding, in the one spelling that the encoder
// writes. The standard decoder alone would ignore line ends and padding bits.
func decodeCanonicalBase64(s string) ([]byte, bool) {
	b, err := base64.StdEncoding.DecodeString(s)
	return b, err == nil && base64.StdEncoding.EncodeToString(b) == s
}

// decodeBase64Hash decodes the 44 base64 characters of a hash.
func decodeBase64Hash(s string) (id.Hash, bool) {
	if len(s) != base64.StdEncoding.EncodedLen(hashSize) {
		return id.Hash{}, false
	}
	b, ok := decodeCanonicalBase64(s)
	if !ok || len(b) != hashSize {
		return id.Hash{}, false
	}
	return id.Hash(b), true
}
