package publicapi

import (
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/tlog"
)

// Only one spelling of an index is accepted.
func TestQueryIndex(t *testing.T) {
	for text, ok := range map[string]bool{
		"n=0": true, "n=10": true, "n=9223372036854775807": true,
		"n=00": false, "n=01": false, "n=%2b1": false, "n=-1": false, "n=1_0": false, "n=0x1": false,
		"n=9223372036854775808": false, "n=18446744073709551616": false,
	} {
		q, err := (&edge.Route[getter]{Query: []string{"n"}}).ReadQuery(httptest.NewRequest("GET", "/?"+text, nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := indexParameter(q, "n", 1); (err == nil) != ok {
			t.Errorf("%q: got %v, want ok %v", text, err, ok)
		}
	}
}

// Only one spelling of a number is accepted.
func FuzzQueryIndex(f *testing.F) {
	for _, seed := range []string{"0", "1", "01", "-1", "+1", "9223372036854775807", "9223372036854775808", "", "1e3", "0x1", "１"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := httptest.NewRequest("GET", "/?n="+url.QueryEscape(text), nil)
		q, err := (&edge.Route[getter]{Query: []string{"n"}}).ReadQuery(r)
		if err != nil {
			return // empty
		}
		n, err := indexParameter(q, "n", 0)
		if err == nil && (strconv.FormatUint(uint64(n), 10) != text || n > tlog.MaxSize) {
			t.Errorf("%q is read as %d", text, n)
		}
	})
}
