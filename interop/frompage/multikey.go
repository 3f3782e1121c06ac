package frompage

import (
	"bytes"
	"math/big"
	"strings"
)

// readMultikey reads a "Multikey" of "The record": z and the base58btc of ed 01 and 32 bytes, which must be a valid
// public key. The 34 bytes begin with ed, so that there are no leading zero bytes and the number alone is the encoding.
func readMultikey(text string) ([]byte, bool) {
	const alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	digits, z := strings.CutPrefix(text, "z")
	if !z || len(text) != 48 || digits[0] == alphabet[0] { // a leading 1 would be a second spelling
		return nil, false
	}
	number := new(big.Int)
	for _, c := range []byte(digits) {
		digit := strings.IndexByte(alphabet, c)
		if digit < 0 {
			return nil, false
		}
		number.Add(number.Mul(number, big.NewInt(58)), big.NewInt(int64(digit)))
	}
	raw := number.Bytes()
	if len(raw) != 34 || !bytes.HasPrefix(raw, []byte{0xed, 0x01}) || !publicKeyCounts(raw[2:]) {
		return nil, false
	}
	return raw[2:], true
}
