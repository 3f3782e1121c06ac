package provision_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/provision"
)

func TestParseHost(t *testing.T) {
	for in, want := range map[string]provision.Host{
		"https://log.example":                 "log.example",
		"https://Log.Example":                 "log.example",
		"https://log.example//":               "log.example",
		"https://log.example:65535/.a/b..":    "log.example:65535/.a/b..",
		"https://log.example/":                "log.example",
		"http://127.0.0.1:8080":               "127.0.0.1:8080",
		"http://[::1]:8080/ledger/":           "[::1]:8080/ledger",
		"https://log.example:443/a/b-c/":      "log.example:443/a/b-c",
		"https://" + strings.Repeat("a", 216): provision.Host(strings.Repeat("a", 216)),
	} {
		if got, err := provision.ParseHost(in); got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
	for name, in := range map[string]string{
		"empty":            "",
		"no scheme":        "log.example",
		"scheme":           "ftp://log.example",
		"no host":          "https:///a",
		"port only":        "https://:8080",
		"user":             "https://ann@log.example",
		"query":            "https://log.example?a=b",
		"empty query":      "https://log.example?",
		"fragment":         "https://log.example#a",
		"capitals in path": "https://log.example/Ledger",
		"escape in path":   "https://log.example/a%2fb",
		"space":            "https://log.example/a b",
		"plus":             "https://log.example/a+b",
		"empty part":       "https://log.example/a//b",
		"dot":              "https://log.example/./a",
		"dots":             "https://log.example/a/..",
		"port 0":           "https://log.example:0",
		"port 65536":       "https://log.example:65536",
		"256 bytes":        "https://" + strings.Repeat("a", 217),
	} {
		if got, err := provision.ParseHost(in); err == nil {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestOrigin(t *testing.T) {
	h, err := provision.ParseHost("https://Log.Example:8443/x")
	if err != nil {
		t.Fatal(err)
	}
	o, err := id.ParseOrganization("8D0F6D0A-5B1C-4C55-9A52-0C8D7C6F1E11")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := h.Origin(o), id.Origin("log.example:8443/x/o/8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	longest, err := provision.ParseHost("https://" + strings.Repeat("a", 216))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(longest.Origin(o)); got != 255 {
		t.Errorf("got %d bytes, want 255", got)
	}
}

func FuzzParseHost(f *testing.F) {
	for _, seed := range []string{"https://log.example/a", "http://[::1]:80", "https://a@b", "https://é", "https:///"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := provision.ParseHost(s)
		if err != nil {
			return
		}
		if again, err := provision.ParseHost("https://" + string(h)); again != h || err != nil {
			t.Errorf("%q: got %q, then %q, %v", s, h, again, err)
		}
	})
}
