package mcp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/cmd/aps/flags"
)

func loadText(t *testing.T, text string) (Settings, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadSettings(path)
}

// A server's own list of origins replaces the common one.
func TestOrigins(t *testing.T) {
	s, err := loadText(t, `{"allowed_origins": ["https://app.example"], "servers": {
		"common": {"command": ["a"]}, "own": {"command": ["b"], "allowed_origins": ["http://localhost:5173", "https://shop.example"]},
		"none": {"url": "https://mcp.example", "allowed_origins": []}}}`)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"common": {"https://app.example"}, "own": {"http://localhost:5173", "https://shop.example"}, "none": {},
	} {
		if got := s.originsOf(name); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if got, want := s.origins(), []string{"http://localhost:5173", "https://app.example", "https://shop.example"}; !slices.Equal(got, want) {
		t.Errorf("all: got %q, want %q", got, want)
	}
	config, err := s.gatewayConfig()
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range config.Servers {
		if !slices.Equal(server.Origins, s.originsOf(server.Name)) {
			t.Errorf("%s: the gateway allows %q", server.Name, server.Origins)
		}
	}
}

func TestSettingsRejected(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                                 "servers: at least one is needed",
		`{"servers": {"a_b": {"url": "x"}}}`: "a name has letters, digits and - only",
		`{"servers": {"a": {}}}`:             "either command or url",
		`{"servers": {"a": {"uri": "x"}}}`:   "unknown object member name",
		`{"servers": {"a": {"url": "x"}}, "wait": "0s"}`:                                "wait: must be a duration above 0",
		`{"servers": {"a": {"url": "x", "user": "mcp"}}}`:                               "user is for a command",
		`{"servers": {"a": {"url": "x", "allowed_origins": ["https://app.example/"]}}}`: "servers: a: allowed_origins",
	} {
		if _, err := loadText(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	for _, origin := range []string{"", "*", "null", "app.example", "https://", "https://app.example/", "https://app.example/x", "https://App.example",
		"https://user@app.example", "https://app.example?x", "https://app.example:443", "http://app.example:80", "https://app.example "} {
		if err := checkOrigins([]string{"https://good.example", origin}); err == nil {
			t.Errorf("%q was accepted", origin)
		}
	}
	for _, origin := range []string{"https://app.example", "http://localhost:5173", "http://[::1]:8080", "https://app.example:80", "vscode-webview://x1"} {
		if err := checkOrigins([]string{origin}); err != nil {
			t.Errorf("%q: %v", origin, err)
		}
	}
}

// Each caller has its own token, from a file or a variable. Variables with secrets are removed before servers start.
func TestCallerTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("token-a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"TOKEN_B": "token-b", "TOKEN_A": "token-a", "EMPTY": "", "UPSTREAM": "credential", "APS_TOKEN": "key"} {
		t.Setenv(name, value)
	}
	const server = `{"servers": {"a": {"url": "http://x", "headers_env": {"Authorization": "UPSTREAM"}}}, "callers": `
	for callers, want := range map[string]string{
		`{"ana": {"token_file": "` + file + `"}, "ben": {"token_env": "TOKEN_A"}}`: "the token of another caller",
		`{"ana": {"token_env": "EMPTY"}}`:                                          "the token is empty",
		`{"ana": {}}`:                                                              "either token_file or token_env",
		`{"": {"token_env": "TOKEN_B"}}`:                                           "has no name",
	} {
		s, err := loadText(t, server+callers+"}")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := readTokens(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", callers, err)
		}
	}
	s, err := loadText(t, server+`{"ana": {"token_file": "`+file+`"}, "ben": {"token_env": "TOKEN_B"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readTokens(s)
	if err != nil || len(got.callers) != 2 || got.callers["token-a"] != "ana" || got.callers["token-b"] != "ben" {
		t.Errorf("got %v, %v", got.callers, err)
	}
	t.Setenv(tokenVariable, "common")
	if _, err := readTokens(s); err == nil {
		t.Error("two kinds of tokens were accepted")
	}
	if err := s.dropSecrets(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"TOKEN_B", "UPSTREAM", "APS_TOKEN", tokenVariable} {
		if value, ok := os.LookupEnv(name); ok {
			t.Errorf("%s is still set: %q", name, value)
		}
	}
}

// A gateway acts on behalf of one subject, whose issuer is named too.
func TestSubjectFlags(t *testing.T) {
	callers := Settings{Callers: map[string]CallerSettings{"ana": {TokenEnv: "ANA"}}}
	for want, c := range map[string]serveCommand{
		"":                                   {},
		"https://login.example u1":           {OnBehalfOf: "u1", Issuer: "https://login.example"},
		"are required together":              {OnBehalfOf: "u1"},
		"--issuer are required":              {Issuer: "https://login.example"},
		"--subject-token-file requires both": {agentFlags: agentFlags{Subject: flags.Subject{SubjectTokenFile: "jwt"}}},
		"--issuer: must be an https URL":     {OnBehalfOf: "u1", Issuer: "http://login.example"},
		"--on-behalf-of: must be 1 to 255":   {OnBehalfOf: "spiffe://", Issuer: "https://login.example"},
	} {
		of, err := c.subject(Settings{})
		got := fmt.Sprint(err)
		if err == nil && of == nil {
			got = ""
		} else if err == nil {
			got = of.Issuer + " " + of.Subject
		}
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	c := serveCommand{OnBehalfOf: "u1", Issuer: "https://login.example"}
	if _, err := c.subject(callers); err == nil || !strings.Contains(err.Error(), "callers are not allowed") {
		t.Errorf("with callers: got %v", err)
	}
}
