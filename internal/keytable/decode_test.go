package keytable

import (
	"testing"

	"github.com/agentledger/agentledger/did"
)

// Decode returns the right key, the first time and later, for each Multikey.
func TestDecoder(t *testing.T) {
	var d Decoder
	red, blue := signer(t, 1).Public(), signer(t, 2).Public()
	for range 2 {
		if got, err := d.Decode(did.Multikey(red.Bytes())); err != nil || got != red {
			t.Errorf("got %v, %v, want %v", got, err, red)
		}
		if got, err := d.Decode(did.Multikey(blue.Bytes())); err != nil || got != blue {
			t.Errorf("the neighbour's: got %v, %v, want %v", got, err, blue)
		}
		for _, bad := range []string{"", "z", did.Multikey(red.Bytes()) + "1", did.Multikey([32]byte{1})} { // the last has a small order
			if got, err := d.Decode(bad); err == nil {
				t.Errorf("%q: got %v", bad, got)
			}
		}
	}
	if len(d.keys) != 2 {
		t.Errorf("got %d keys kept, want 2", len(d.keys))
	}
}

// If there are more keys than the cache can hold, it starts again.
func TestDecoderIsBounded(t *testing.T) {
	var d Decoder
	for n := range maxDecoded {
		if _, err := d.Decode(did.Multikey(signer(t, n).Public().Bytes())); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := d.Decode(did.Multikey(signer(t, maxDecoded).Public().Bytes())); err != nil || len(d.keys) != 1 {
		t.Errorf("got %d keys kept, %v, want 1", len(d.keys), err)
	}
}
