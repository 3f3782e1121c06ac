package identity_test

import (
	"net/http/httptest"
	"testing"

	"github.com/agentledger/agentledger/identity"
)

func TestAddressFrom(t *testing.T) {
	const header = "X-Forwarded-For"
	const peer = "192.0.2.9"
	for name, tc := range map[string]struct {
		header string
		values []string
		want   string
	}{
		"off":                        {"", []string{"203.0.113.1"}, peer},
		"no header":                  {header, nil, peer},
		"one":                        {header, []string{"203.0.113.1"}, "203.0.113.1"},
		"the last of several":        {header, []string{"10.0.0.1, 203.0.113.1"}, "203.0.113.1"},
		"the last of several fields": {header, []string{"203.0.113.1", "10.0.0.1,203.0.113.2 "}, "203.0.113.2"},
		"with a port":                {header, []string{"203.0.113.1:443"}, "203.0.113.1"},
		"version 6":                  {header, []string{"2001:db8::7"}, "2001:db8::7"},
		"version 6 in brackets":      {header, []string{"[2001:db8::7]"}, "2001:db8::7"},
		"version 6 with a port":      {header, []string{"[2001:db8::7]:443"}, "2001:db8::7"},
		"version 4 in 6":             {header, []string{"::ffff:203.0.113.1"}, "203.0.113.1"},
		"no address":                 {header, []string{"203.0.113.1, unknown"}, peer},
		"empty":                      {header, []string{""}, peer},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.RemoteAddr = peer + ":1234"
		for _, v := range tc.values {
			r.Header.Add(header, v)
		}
		if got := identity.AddressFrom(tc.header)(r).String(); got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
