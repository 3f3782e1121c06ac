package page

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// After a sign-in the browser is only redirected to a page of this service.
func TestReturnPath(t *testing.T) {
	for _, tt := range []struct{ base, value, want string }{
		{"", "/console", "/console"},
		{"", "/console/events?tool=a.%2A&after=7", "/console/events?tool=a.%2A&after=7"},
		{"", "/console#part", "/console"},
		{"", "/a/../../console", "/a/../../console"}, // browsers stay on the host
		{"", "/%5cevil.example", "/%5cevil.example"}, // a path
		{"/ledger", "/ledger/console", "/ledger/console"},

		{"", "", ""},
		{"", "console", ""},
		{"", "https://evil.example/", ""},
		{"", "HTTPS://evil.example/", ""},
		{"", "https:/evil.example", ""},
		{"", "https:evil.example", ""},
		{"", "//evil.example/", ""},
		{"", "///evil.example/", ""},
		{"", "/%2fevil.example/", ""},
		{"", `/\evil.example`, ""},
		{"", `\\evil.example`, ""},
		{"", `\/evil.example`, ""},
		{"", "/\t/evil.example", ""},
		{"", "/\n/evil.example", ""},
		{"", "\t//evil.example", ""},
		{"", " //evil.example", ""},
		{"", "/ /evil.example", ""},
		{"", "/console\r\nSet-Cookie: a=b", ""},
		{"", "javascript:alert(1)", ""},
		{"", "JaVaScRiPt:alert(1)", ""},
		{"", "data:text/html,<script>alert(1)</script>", ""},
		{"", "//ann@evil.example", ""},
		{"", "/\u2028/evil.example", ""},
		{"", "/%zz", ""},
		{"", "/" + strings.Repeat("a", maxReturn), ""},
		{"/ledger", "/console", ""}, // another service on the host
		{"/ledger", "/ledgers/console", ""},
		{"/ledger", "//evil.example/ledger/", ""},
		{"/ledger", "/ledger", ""},
	} {
		if got := returnPath(tt.base, tt.value); got != tt.want {
			t.Errorf("%q below %q: got %q, want %q", tt.value, tt.base, got, tt.want)
		}
	}
}

// The form's return page takes precedence over the address, and neither can name another host.
func TestReturnPathOfARequest(t *testing.T) {
	for _, tt := range []struct{ form, query, want string }{
		{"", "", "/ledger/console"},
		{"/ledger/account", "/ledger/console/events", "/ledger/account"},
		{"", "/ledger/console/events", "/ledger/console/events"},
		{"//evil.example", "/ledger/account", "/ledger/account"},
		{"//evil.example", "https://evil.example", "/ledger/console"},
	} {
		r := &Request{Request: httptest.NewRequest(http.MethodGet, "/signin?"+url.Values{"return": {tt.query}}.Encode(), nil),
			Kit: &Kit{Base: "/ledger", Places: Places{Inside: "/console", SignIn: "/signin"}}, Form: url.Values{"return": {tt.form}}}
		if got := r.ReturnPath(); got != tt.want {
			t.Errorf("form %q, query %q: got %q, want %q", tt.form, tt.query, got, tt.want)
		}
		if tt.query != "" {
			continue
		}
		if got, want := r.SignInAddress(), "/ledger/signin?return=%2Fledger%2Fsignin%3Freturn%3D"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A refused form keeps its fields except secrets.
func TestShownForm(t *testing.T) {
	r := &Request{Form: url.Values{"name": {"a"}, "token": {"b"}, "password": {"c"}, "new_password": {"d"}, "code": {"e"}, "client_secret": {"f"}}}
	if got := r.shownForm().Encode(); got != "name=a&token=b" {
		t.Errorf("got %q", got)
	}
}
