package header_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/http/header"
)

func TestOf(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, "4294967295": 4294967295 * time.Second,
		"4294967296": 0, "99999999999999999999": 0, "-1": 0, "+1": 0, "1.5": 0, " 7": 0, "soon": 0,
		"Fri, 20 Nov 2026 12:00:30 GMT":    30 * time.Second,
		"Friday, 20-Nov-26 12:00:30 GMT":   30 * time.Second,
		"Fri Nov 20 12:00:30 2026":         30 * time.Second,
		"Fri, 20 Nov 2026 11:00:00 GMT":    0,
		"Fri, 20 Nov 2026 12:00:30 +01:00": 0,
	} {
		if got := header.RetryAfter(http.Header{"Retry-After": {value}}, now); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
	if got := header.RetryAfter(nil, now); got != 0 {
		t.Errorf("no header: got %v", got)
	}
}

func FuzzOf(f *testing.F) {
	f.Add("7")
	f.Add("Fri, 20 Nov 2026 12:00:30 GMT")
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, value string) {
		if got := header.RetryAfter(http.Header{"Retry-After": {value}}, now); got < 0 {
			t.Errorf("%q: got %v", value, got)
		}
	})
}
