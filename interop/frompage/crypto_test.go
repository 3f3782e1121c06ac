package frompage

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
)

// otherKey is the key id and base64 of a verifier key with a name: a fixed key that signed nothing here.
func otherKey(t *testing.T, name string) string {
	t.Helper()
	public := ed25519.NewKeyFromSeed(make([]byte, 32)).Public().(ed25519.PublicKey)
	raw := append([]byte{1}, public...)
	sum := sha256.Sum256([]byte(name + "\n" + string(raw)))
	return hex.EncodeToString(sum[:4]) + "+" + base64.StdEncoding.EncodeToString(raw)
}

// unhex decodes hex.
func unhex(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// encode returns the encoding of a point.
func encode(c curve, a point) []byte {
	inverse := new(big.Int).ModInverse(a.z, c.p)
	x, y := c.mul(a.x, inverse), c.mul(a.y, inverse)
	out := y.FillBytes(make([]byte, 32))
	slices.Reverse(out)
	out[31] |= byte(x.Bit(0) << 7)
	return out
}

// TestRFC8032 contains the first test of RFC 8032 section 7.1, and S with L added to it.
func TestRFC8032(t *testing.T) {
	key := unhex(t, "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
	sig := unhex(t, "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b")
	if !signatureCounts(key, nil, sig) {
		t.Error("the signature was rejected")
	}
	if signatureCounts(key, []byte("x"), sig) || signatureCounts(key, nil, sig[:63]) {
		t.Error("a wrong signature was accepted")
	}
	s := slices.Clone(sig[32:])
	slices.Reverse(s)
	large := new(big.Int).Add(new(big.Int).SetBytes(s), edwards25519().l).FillBytes(make([]byte, 32))
	slices.Reverse(large)
	if signatureCounts(key, nil, append(slices.Clone(sig[:32]), large...)) {
		t.Error("S above L was accepted")
	}
}

// TestPublicKeys compares the arithmetic with crypto/ed25519, and rejects small order, torsion and other encodings.
func TestPublicKeys(t *testing.T) {
	c := edwards25519()
	base, ok := c.decode(unhex(t, "5866666666666666666666666666666666666666666666666666666666666666"))
	if !ok || !c.isIdentity(c.times(c.l, base)) {
		t.Fatal("the base point")
	}
	for i := range byte(8) {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{i}, 32)).Public().(ed25519.PublicKey)
		a, ok := c.decode(key)
		if !ok || !publicKeyCounts(key) || !bytes.Equal(encode(c, a), key) {
			t.Error("a valid key was rejected", i)
		}
	}
	eighth, ok := c.decode(unhex(t, "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"))
	if !ok {
		t.Fatal("a point of order 8")
	}
	seen := map[string]bool{}
	for n := range int64(8) {
		small := c.times(big.NewInt(n), eighth)
		encoded := encode(c, small)
		seen[string(encoded)] = true
		if publicKeyCounts(encoded) || !hasSmallOrder(encoded) {
			t.Error("small order was accepted", n)
		}
		if mixed := encode(c, c.add(base, small)); publicKeyCounts(mixed) != (n == 0) || hasSmallOrder(mixed) {
			t.Error("torsion", n)
		}
	}
	if len(seen) != 8 {
		t.Error("points of small order:", len(seen))
	}
	for _, other := range []string{ // y = 0, 1 and -1 in non-canonical encodings
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"0100000000000000000000000000000000000000000000000000000000000080",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	} {
		if _, ok := c.decode(unhex(t, other)); ok || !hasSmallOrder(unhex(t, other)) {
			t.Error("another spelling", other)
		}
	}
}

// TestProofs proves every leaf of every small tree, by the path of RFC 6962 section 2.1.1 and by no other.
func TestProofs(t *testing.T) {
	var leaves []string
	for size := range uint64(20) {
		for index := range size {
			path, root := pathOf(index, leaves), rootOf(leaves)
			for claimed := range size + 2 {
				if leadsTo(leaves[index], claimed, size, path, root) != (claimed == index) {
					t.Error("index", index, "as", claimed, "of", size)
				}
			}
			if leadsTo(leaves[index], index, size, append(path, root), root) ||
				len(path) > 0 && leadsTo(leaves[index], index, size, path[1:], root) {
				t.Error("a path of another length", index, size)
			}
		}
		leaves = append(leaves, hashOf(fmt.Sprint(size)))
	}
}

// rootOf is MTH of RFC 6962 section 2.1.
func rootOf(leaves []string) string {
	if len(leaves) < 2 {
		return strings.Join(leaves, "")
	}
	k := half(leaves)
	return node(rootOf(leaves[:k]), rootOf(leaves[k:]))
}

// pathOf is PATH of RFC 6962 section 2.1.1.
func pathOf(m uint64, leaves []string) []string {
	if len(leaves) < 2 {
		return nil
	}
	if k := half(leaves); m < uint64(k) {
		return append(pathOf(m, leaves[:k]), rootOf(leaves[k:]))
	} else {
		return append(pathOf(m-uint64(k), leaves[k:]), rootOf(leaves[:k]))
	}
}

// half is the largest power of two below the number of leaves.
func half(leaves []string) int {
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	return k
}
