package tlog

import (
	"encoding/binary"

	"filippo.io/mldsa"
)

// mldsaKeyText is the length of what follows the name in a vkey with an ML-DSA-44
// key: two plus signs, the key hash and 1,313 bytes in base64.
const mldsaKeyText = 2 + 2*keyHashSize + (1+mldsa.MLDSA44PublicKeySize+2)/3*4

// signedByMLDSA checks the signature of a cosigner called name, whose key are 1,312
// bytes, over a checkpoint's text. C2SP tlog-cosignature allows the time 0 for
// statements about trees of which the cosigner has seen larger ones; those are not
// what a witness is relied on for, and are refused.
func signedByMLDSA(name, key string, seconds uint64, text string, signature []byte) bool {
	message, ok := cosignedTree(name, seconds, text)
	if !ok || seconds == 0 {
		return false
	}
	public, err := mldsa.NewPublicKey(mldsa.MLDSA44(), []byte(key))
	return err == nil && mldsa.Verify(public, message, signature, nil) == nil
}

// cosignedTree returns the message under a cosignature of the whole tree of a
// checkpoint (C2SP tlog-cosignature, ML-DSA-44 signed message). It has nothing of
// extension lines: a text with such lines is no checkpoint here.
func cosignedTree(name string, seconds uint64, text string) (message []byte, ok bool) {
	c, err := parseCheckpoint(text)
	if err != nil || len(c.Origin) > MaxName {
		return nil, false
	}
	b := append(make([]byte, 0, 128+len(name)+len(c.Origin)), "subtree/v1\n\x00"...)
	b = append(append(b, byte(len(name))), name...)
	b = binary.BigEndian.AppendUint64(b, seconds)
	b = append(append(b, byte(len(c.Origin))), c.Origin...)
	b = binary.BigEndian.AppendUint64(b, 0) // the first leaf
	b = binary.BigEndian.AppendUint64(b, uint64(c.Size))
	return append(b, c.Root[:]...), true
}
