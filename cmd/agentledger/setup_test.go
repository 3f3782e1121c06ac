package main

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/config"
)

// setupServer starts a server on a folder and returns what it prints about the setup.
func setupServer(t *testing.T, dir string, logs *lockedBuffer) (s *server, printed string) {
	t.Helper()
	c := testSettings(dir)
	s, err := startServer(t.Context(), c, config.Logging{LogLevel: "debug"}.NewLogger(logs))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	s.service.setup.PrintURL(t.Context(), &out, s.service.watch.logger, s.settings.PublicURL)
	return s, out.String()
}

// An empty service prints a URL, whose token works once, at the main listener, until the next start.
func TestSetupURL(t *testing.T) {
	t.Setenv(config.PlatformSecretVariable, testSecret)
	dir := t.TempDir()
	var logs lockedBuffer
	line := regexp.MustCompile(`^set up the service within 30 minutes, once: http://localhost/setup#token=([A-Za-z0-9_-]{43})\n$`)
	var tokens []string
	for range 2 {
		s, printed := setupServer(t, dir, &logs)
		found := line.FindStringSubmatch(printed)
		if found == nil {
			t.Fatalf("printed %q", printed)
		}
		tokens = append(tokens, found[1])
		if len(tokens) == 2 {
			setUpWith(t, s.mainURL(), tokens[0], "401")
			setUpWith(t, s.mainURL(), tokens[1], "")
			setUpWith(t, s.identityURL(), tokens[1], "409")
		}
		if err := s.stopServer(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}
	s, printed := setupServer(t, dir, &logs)
	defer s.stopServer(context.WithoutCancel(t.Context()))
	if printed != "" || tokens[0] == tokens[1] {
		t.Errorf("printed %q after the setup, and tokens %v before", printed, tokens)
	}
	for _, token := range tokens {
		if strings.Contains(logs.String(), token) {
			t.Error("a token is in the log")
		}
	}
}

// setUpWith sets up with a token; status is the expected error status, or "".
func setUpWith(t *testing.T, base, token, status string) {
	t.Helper()
	o, err := newOperator(base, base)
	if err != nil {
		t.Fatal(err)
	}
	err = o.callJSON(t.Context(), http.MethodPost, base+"/v1/id/setup", nil, map[string]any{"token": token,
		"organization": map[string]any{"name": "Red", "slug": "red"}, "email": "ann@example.com", "password": testPassword}, nil)
	if status == "" && err != nil || status != "" && (err == nil || !strings.Contains(err.Error(), ": "+status+" ")) {
		t.Errorf("got %v, want %q", err, status)
	}
	if status != "" {
		return
	}
	if err := o.callConsole(t.Context(), "GET", "/organization", nil, nil); err != nil {
		t.Errorf("the owner is not signed in: %v", err)
	}
}
