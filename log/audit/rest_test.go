package audit

import "testing"

// New events get a twentieth of a core, and more if they lag.
func TestRestFactor(t *testing.T) {
	for lag, want := range map[uint64]float64{0: 19, 10_000: 19, 20_000: 14, 30_000: 9, 1 << 40: 9} {
		if got := restFactor(lag); got != want {
			t.Errorf("%d events: got %v, want %v", lag, got, want)
		}
	}
}
