package edkey

// recode16 splits a little-endian scalar below 2^253 into 64 digits: the scalar is the sum of
// digit[i]·16^i, and each digit is in [-8, 8).
//
// Proof. Let h[i] be the half bytes, so the scalar is the sum of h[i]·16^i with h[i] in [0, 16).
// Let c[0] = 0 and v = h[i] + c[i]. If v < 8, the digit is v and c[i+1] = 0; otherwise the digit is
// v-16 and c[i+1] = 1. In both cases v = digit[i] + 16·c[i+1], so the sum keeps its value. v is in
// [0, 16], so the digit is in [-8, 8). The scalar is below 2^253, so h[63] is 0 or 1, v is at most
// 2, and there is no carry out of the last digit.
func recode16(scalar *[32]byte) (digits [64]int8) {
	carry := int8(0)
	for i, b := range scalar {
		for j, half := range [2]int8{int8(b & 15), int8(b >> 4)} {
			v := half + carry
			carry = (v + 8) >> 4
			digits[2*i+j] = v - carry<<4
		}
	}
	return digits
}

// recode256 splits a little-endian scalar below 2^253 into 32 digits: the scalar is the sum of
// digit[i]·256^i, and each digit is in [-128, 128).
//
// The proof is the same as for recode16, with bytes instead of half bytes. The last byte is below
// 2^5, so there is no carry out of the last digit.
func recode256(scalar *[32]byte) (digits [32]int16) {
	carry := int16(0)
	for i, b := range scalar {
		v := int16(b) + carry
		carry = (v + 128) >> 8
		digits[i] = v - carry<<8
	}
	return digits
}
