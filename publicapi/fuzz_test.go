package publicapi

import (
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"

	"github.com/agentledger/agentledger/tlog"
)

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
