package did_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/id"
)

func TestWeb(t *testing.T) {
	for _, tc := range []struct {
		host  string
		agent id.Agent
		want  string
	}{
		{"ledger.example", "agt_1", "did:web:ledger.example:v1:public:agents:agt_1"},
		{"localhost:8080", "a.b-c_d", "did:web:localhost%3A8080:v1:public:agents:a.b-c_d"},
		{"ledger.example/audit/eu", "agt_1", "did:web:ledger.example:audit:eu:v1:public:agents:agt_1"},
		{"ledger.example:8443/a%20b", "agt_1", "did:web:ledger.example%3A8443:a%20b:v1:public:agents:agt_1"},
		{"ledger.example/~x", "agt_1", "did:web:ledger.example:%7Ex:v1:public:agents:agt_1"},
		{"[::1]:8080", "agt_1", "did:web:%5B%3A%3A1%5D%3A8080:v1:public:agents:agt_1"},
	} {
		got := did.Web(tc.host, tc.agent)
		if got != tc.want {
			t.Errorf("Web(%s): got %s, want %s", tc.host, got, tc.want)
		}
		agent, err := did.ParseWeb(tc.host, got)
		if err != nil || agent != tc.agent {
			t.Errorf("ParseWeb(%s): got %s, %v, want %s", got, agent, err, tc.agent)
		}
	}
}

// The case of hex digits in escapes does not matter; all other cases do.
func TestEscapesInLowerCase(t *testing.T) {
	for host, s := range map[string]string{
		"ledger.example:8443": "did:web:ledger.example%3a8443:v1:public:agents:Agt_1", "ledger.example/a%2fb": "did:web:ledger.example:a%2Fb:v1:public:agents:Agt_1",
	} {
		if agent, err := did.ParseWeb(host, s); err != nil || agent != "Agt_1" {
			t.Errorf("%s: got %q, %v", s, agent, err)
		}
		if !did.Equal(s, did.Web(host, "Agt_1")) || did.Equal(s, did.Web(host, "agt_1")) {
			t.Errorf("%s: not equal to the usual spelling, or equal to another agent's DID", s)
		}
	}
	for _, s := range []string{"", "%", "%a", "x%", "%%3a", "did:web:a%"} {
		if !did.Equal(s, s) || did.Equal(s, s+"x") {
			t.Errorf("%q: not equal to itself, or equal to a longer DID", s)
		}
	}
}

func TestParseWebRefuses(t *testing.T) {
	const host = "ledger.example:8443"
	const good = "did:web:ledger.example%3A8443:v1:public:agents:agt_1"
	if _, err := did.ParseWeb(host, good); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]string{
		"empty":                  "",
		"host alone":             "did:web:ledger.example%3A8443",
		"no agent":               strings.TrimSuffix(good, "agt_1"),
		"agent of 129":           good + strings.Repeat("a", 124),
		"another host":           strings.Replace(good, "ledger", "other", 1),
		"another port":           strings.Replace(good, "8443", "8444", 1),
		"port colon not encoded": strings.Replace(good, "%3A", ":", 1),
		"half an escape":         strings.Replace(good, "%3A", "%3", 1),
		"upper-case host":        strings.Replace(good, "ledger", "Ledger", 1),
		"another path":           strings.Replace(good, "public", "console", 1),
		"fragment":               good + "#key_1",
		"query":                  good + "?service=x",
		"further path":           good + ":x",
		"encoded agent":          strings.Replace(good, "agt_1", "agt%5F1", 1),
		"trailing line feed":     good + "\n",
	} {
		if agent, err := did.ParseWeb(host, s); !errors.Is(err, did.ErrMalformed) {
			t.Errorf("%s: got %q, %v, want ErrMalformed", name, agent, err)
		}
	}
}

func FuzzParseWeb(f *testing.F) {
	f.Add("ledger.example:8443/audit", "did:web:ledger.example%3A8443:audit:v1:public:agents:agt_1")
	f.Add("ledger.example", "did:web:ledger.example:v1:public:agents:agt_1#k")
	f.Fuzz(func(t *testing.T, host, s string) {
		agent, err := did.ParseWeb(host, s)
		if err == nil && !did.Equal(did.Web(host, agent), s) {
			t.Errorf("%q is parsed as %q, which is written %q", s, agent, did.Web(host, agent))
		}
	})
}
