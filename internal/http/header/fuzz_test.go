package header

import (
	"slices"
	"strings"
	"testing"
)

// Whatever a client accepts, it gets one of the offers.
func FuzzPreferred(f *testing.F) {
	for _, seed := range []string{
		"", "*/*", "text/plain", "application/*;q=0.5, text/*", "application/json;q=0", "a/b;q=x, ,;", "text/plain;q=NaN", "TEXT/PLAIN;Q=1", "text/plain;q=1e300",
	} {
		f.Add(seed)
	}
	offers := []string{"application/json", "text/plain"}
	f.Fuzz(func(t *testing.T, accept string) {
		if got := PreferredMedia([]string{accept}, offers...); !slices.Contains(offers, got) {
			t.Errorf("%q: got %q", accept, got)
		}
		for _, offer := range offers {
			if q := mediaQuality([]string{accept}, offer); !(q >= 0 && q <= 1) {
				t.Errorf("%q: got quality %v of %s", accept, q, offer)
			}
		}
	})
}

// A client gets gzip only if it has named it or everything, with a weight above 0.
func FuzzWantsGzip(f *testing.F) {
	for _, seed := range []string{"", "gzip", "gzip;q=0", "*", "*;q=0, gzip", "identity, gzip;q=0.5", "x-gzip;q=NaN", "br,,;gzip"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		if WantsGzip([]string{accept}) && !strings.Contains(strings.ToLower(accept), "gzip") && !strings.Contains(accept, "*") {
			t.Errorf("%q: not named", accept)
		}
		if !WantsGzip([]string{accept, "gzip"}) {
			t.Errorf("%q: takes away what another value says", accept)
		}
	})
}
