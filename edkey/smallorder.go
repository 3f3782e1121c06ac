package edkey

// The little-endian y coordinates of the eight points whose order divides the cofactor, and the two
// that can also be written unreduced below 2^255. The sign bit of a point distinguishes x from -x,
// which have the same order.
const (
	yOrder1 = "\x01" + zeros30 + "\x00"
	yOrder2 = "\xec" + ones30 + "\x7f" // p-1
	yOrder4 = "\x00" + zeros30 + "\x00"
	yOrder8 = "\x26\xe8\x95\x8f\xc2\xb2\x27\xb0\x45\xc3\xf4\x89\xf2\xef\x98\xf0" +
		"\xd5\xdf\xac\x05\xd3\xc6\x33\x39\xb1\x38\x02\x88\x6d\x53\xfc\x05"
	yOrder8Negative = "\xc7\x17\x6a\x70\x3d\x4d\xd8\x4f\xba\x3c\x0b\x76\x0d\x10\x67\x0f" +
		"\x2a\x20\x53\xfa\x2c\x39\xcc\xc6\x4e\xc7\xfd\x77\x92\xac\x03\x7a"
	yOrder4Plus = "\xed" + ones30 + "\x7f" // p, the same as 0
	yOrder1Plus = "\xee" + ones30 + "\x7f" // p+1, the same as 1

	zeros10 = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	zeros30 = zeros10 + zeros10 + zeros10
	ones10  = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
	ones30  = ones10 + ones10 + ones10
)

// smallOrder reports whether the 32 bytes encode, canonically or not, a point whose order divides
// 8. crypto/ed25519 alone accepts such an R in its canonical encoding.
func smallOrder(b []byte) bool {
	y := [32]byte(b)
	y[31] &= 0x7f
	switch string(y[:]) {
	case yOrder1, yOrder2, yOrder4, yOrder8, yOrder8Negative, yOrder4Plus, yOrder1Plus:
		return true
	}
	return false
}
