package archive

import "crypto/sha256"

// Checked returns an object with these bytes behind its checksum.
func Checked(frame []byte) []byte {
	sum := sha256.Sum256(frame)
	return append(append([]byte{form}, sum[:]...), frame...)
}
