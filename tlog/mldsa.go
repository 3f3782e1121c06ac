package tlog

import (
	"encoding/binary"

	"filippo.io/mldsa"
)

// mldsaKeyText is the length of a vkey with an ML-DSA-44 key, excluding the name: two plus signs,
// the key hash, and 1,313 bytes in base64.
const mldsaKeyText = 2 + 2*keyHashSize + (1+mldsa.MLDSA44PublicKeySize+2)/3*4

// verifyMLDSASignature checks the signature of the cosigner name over the text of a checkpoint. key
// has 1,312 bytes. C2SP tlog-cosignature allows the time 0 for a tree if the cosigner has seen
// larger ones. Such a statement does not help a relying party, so it is rejected.
func verifyMLDSASignature(name, key string, seconds uint64, text string, signature []byte) bool {
	message, ok := mldsaSignedMessage(name, seconds, text)
	if !ok || seconds == 0 {
		return false
	}
	public, err := mldsa.NewPublicKey(mldsa.MLDSA44(), []byte(key))
	return err == nil && mldsa.Verify(public, message, signature, nil) == nil
}

// mldsaSignedMessage returns the message that an ML-DSA-44 cosignature of a whole tree signs (C2SP
// tlog-cosignature, ML-DSA-44 signed message). The message does not cover extension lines, so a
// text with such lines is rejected.
func mldsaSignedMessage(name string, seconds uint64, text string) (message []byte, ok bool) {
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
