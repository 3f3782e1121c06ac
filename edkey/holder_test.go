package edkey

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"filippo.io/edwards25519"
)

// brokenHolder passes each signature of a holder through change.
type brokenHolder struct {
	Holder
	change func(signature [SignatureSize]byte, calls int) ([SignatureSize]byte, error)
	calls  int
}

func (h *brokenHolder) Sign(message []byte) ([SignatureSize]byte, error) {
	h.calls++
	signature, err := h.Holder.Sign(message)
	if err != nil {
		return signature, err
	}
	return h.change(signature, h.calls)
}

// randomized returns a valid signature that differs each time.
func randomized(t *testing.T, k Private, message string) [SignatureSize]byte {
	var wide [64]byte
	rand.Read(wide[:])
	nonce, err := edwards25519.NewScalar().SetUniformBytes(wide[:])
	if err != nil {
		t.Fatal(err)
	}
	r := new(edwards25519.Point).ScalarBaseMult(nonce).Bytes()
	return [SignatureSize]byte(newForger(t, k).sign(r, nonce, message))
}

func TestCheckHolder(t *testing.T) {
	key := testKey(t, 1)
	checked, signature, err := CheckHolder(key.Holder(), []byte("m"))
	if err != nil || signature != key.Sign([]byte("m")) {
		t.Fatalf("got %x, %v", signature, err)
	}
	if got, err := checked.Sign([]byte("n")); err != nil || got != key.Sign([]byte("n")) {
		t.Errorf("got %x, %v", got, err)
	}
	failed := errors.New("no device")
	for name, tc := range map[string]struct {
		change func([SignatureSize]byte, int) ([SignatureSize]byte, error)
		want   error
	}{
		"flipped bit": {func(s [SignatureSize]byte, _ int) ([SignatureSize]byte, error) { s[0] ^= 1; return s, nil }, ErrWrongSignature},
		"other bytes": {func(s [SignatureSize]byte, n int) ([SignatureSize]byte, error) { s[63] += byte(n); return s, nil }, ErrWrongSignature},
		"randomized":  {func([SignatureSize]byte, int) ([SignatureSize]byte, error) { return randomized(t, key, "m"), nil }, ErrRandomized},
		"fails":       {func(s [SignatureSize]byte, n int) ([SignatureSize]byte, error) { return s, failed }, failed},
		"fails later": {func(s [SignatureSize]byte, n int) ([SignatureSize]byte, error) {
			if n > 1 {
				return s, failed
			}
			return s, nil
		}, failed},
	} {
		if _, _, err := CheckHolder(&brokenHolder{key.Holder(), tc.change, 0}, []byte("m")); !errors.Is(err, tc.want) {
			t.Errorf("%s: got %v, want %v", name, err, tc.want)
		}
	}
}

func TestHolderIsNeverPrinted(t *testing.T) {
	key := testKey(t, 7)
	seed := key.Seed()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		got := fmt.Sprintf(verb, key.Holder())
		if strings.Contains(got, fmt.Sprintf("%x", seed)) || strings.Contains(got, strings.Trim(fmt.Sprint(seed[:8]), "[]")) {
			t.Errorf("%s: got %s", verb, got)
		}
	}
}
