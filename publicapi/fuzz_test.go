package publicapi

import (
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/tlog"
)

// Whatever a client accepts, it gets one of what there is.
func FuzzPreferred(f *testing.F) {
	for _, seed := range []string{
		"", "*/*", "text/plain", "application/*;q=0.5, text/*", "application/json;q=0", "a/b;q=x, ,;", "text/plain;q=NaN", "TEXT/PLAIN;Q=1", "text/plain;q=1e300",
	} {
		f.Add(seed)
	}
	offers := []string{"application/json", "text/plain"}
	f.Fuzz(func(t *testing.T, accept string) {
		if got := preferredMedia([]string{accept}, offers...); !slices.Contains(offers, got) {
			t.Errorf("%q: got %q", accept, got)
		}
		for _, offer := range offers {
			if q := mediaQuality([]string{accept}, offer); !(q >= 0 && q <= 1) {
				t.Errorf("%q: got quality %v of %s", accept, q, offer)
			}
		}
	})
}

// Who gets gzip has named it, or everything, and not with a weight of 0.
func FuzzWantsGzip(f *testing.F) {
	for _, seed := range []string{"", "gzip", "gzip;q=0", "*", "*;q=0, gzip", "identity, gzip;q=0.5", "x-gzip;q=NaN", "br,,;gzip"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		if wantsGzip([]string{accept}) && !strings.Contains(strings.ToLower(accept), "gzip") && !strings.Contains(accept, "*") {
			t.Errorf("%q: not named", accept)
		}
		if !wantsGzip([]string{accept, "gzip"}) {
			t.Errorf("%q: takes away what another value says", accept)
		}
	})
}

// A number that is accepted has one spelling.
func FuzzQueryIndex(f *testing.F) {
	for _, seed := range []string{"0", "1", "01", "-1", "+1", "9223372036854775807", "9223372036854775808", "", "1e3", "0x1", "１"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := httptest.NewRequest("GET", "/?n="+url.QueryEscape(text), nil)
		q, err := parseQuery(r)
		if err != nil {
			t.Fatal(err)
		}
		n, err := q.indexParameter("n", 0)
		if err == nil && (strconv.FormatUint(uint64(n), 10) != text || n > tlog.MaxSize) {
			t.Errorf("%q is read as %d", text, n)
		}
	})
}
