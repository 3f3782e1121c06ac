package audit

import "testing"

// New events get a tenth of a core, and more when they lag.
func TestRestFactor(t *testing.T) {
	for lag, want := range map[uint64]float64{0: 9, 10_000: 9, 30_000: 6.5, 50_000: 4, 1 << 40: 4} {
		if got := restFactor(lag); got != want {
			t.Errorf("%d events: got %v, want %v", lag, got, want)
		}
	}
}
