package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// documented is an operation of the document.
type documented struct {
	ID       string                `json:"operationId"`
	Security []map[string][]string `json:"security"`
	Body     struct {
		Content map[string]any `json:"content"`
	} `json:"requestBody"`

	method, path string
}

// listOperations returns all operations of the document except CORS preflights.
func listOperations(t *testing.T) (all []documented) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal([]byte(edge.OpenAPI()), &document); err != nil {
		t.Fatal(err)
	}
	for path, members := range document.Paths {
		for method, text := range members {
			var o documented
			if json.Unmarshal(text, &o) == nil && o.ID != "" && method != "options" {
				o.method, o.path = strings.ToUpper(method), path
				all = append(all, o)
			}
		}
	}
	return all
}

// takes reports whether an operation accepts a kind of credential. One without security accepts none, and responds to
// everyone.
func (o *documented) takes(kind string) bool {
	return len(o.Security) == 0 || slices.ContainsFunc(o.Security, func(way map[string][]string) bool {
		_, ok := way[kind]
		return ok || len(way) == 0
	})
}

// Every operation is called with every kind of valid credential: a kind that the document does not list for the
// operation must be rejected.
func TestEveryOperationWithEveryCredential(t *testing.T) {
	s, c := openSmall(t)
	defer s.Close()
	const secret = "a platform secret of a test"
	shared := &edge.Edge{Logger: slog.New(slog.DiscardHandler)}
	signIn, err := s.identitySurface(c, secret, shared)
	if err != nil {
		t.Fatal(err)
	}
	public, err := s.mainHandler(c, signIn, shared)
	if err != nil {
		t.Fatal(err)
	}
	private := s.identityHandler(signIn, shared)
	calls := 0
	call := func(o documented, header http.Header) (int, []byte) {
		handler := public
		if strings.HasPrefix(o.path, "/v1/id/") {
			handler = private
		}
		body := ""
		for media := range o.Body.Content {
			body = "{}"
			header.Set("Content-Type", media)
		}
		r := httptest.NewRequestWithContext(t.Context(), o.method, o.path, strings.NewReader(body))
		maps.Copy(r.Header, header)
		calls++ // each from a different address, because guesses of the platform secret are throttled
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", calls%250)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		text, _ := io.ReadAll(w.Body)
		return w.Code, text
	}
	organizations := documented{method: "POST", path: "/v1/id/platform/organizations"}
	found := func(slug string) (ingestKey string) {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), organizations.method, organizations.path, strings.NewReader(
			`{"name":"A","slug":"`+slug+`","admin_email":"ops@`+slug+`.example","admin_password":"correct horse battery"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Platform-Secret", secret)
		w := httptest.NewRecorder()
		private.ServeHTTP(w, r)
		key := regexp.MustCompile(`apl_test_[a-z0-9_]+`).FindString(w.Body.String())
		if w.Code != http.StatusCreated || key == "" {
			t.Fatalf("got %d %s", w.Code, w.Body)
		}
		return key
	}
	ingestKey := found("red")
	found("blue")
	// Each request has its own session, because some calls end it.
	session := func() string {
		t.Helper()
		who, err := s.accounts.Find(t.Context(), "ops@red.example")
		if err != nil {
			t.Fatal(err)
		}
		tenant, err := s.orgs.BySlug(t.Context(), "red")
		if err != nil {
			t.Fatal(err)
		}
		token, _, err := s.accounts.Open(t.Context(), who, tenant)
		if err != nil {
			t.Fatal(err)
		}
		return account.CookieName(c.PublicURL) + "=" + token
	}
	make201 := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/console/tokens", strings.NewReader(
		`{"name":"ci","role":"admin","expires_at":"`+time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")+`"}`))
	make201.Header.Set("Content-Type", "application/json")
	make201.Header.Set("Cookie", session())
	made := httptest.NewRecorder()
	public.ServeHTTP(made, make201)
	token := regexp.MustCompile(`alt_[A-Za-z0-9_-]+`).FindString(made.Body.String())
	if token == "" {
		t.Fatalf("got %d %s", made.Code, made.Body)
	}
	credentials := map[string]func(http.Header){
		"none":           func(http.Header) {},
		"session":        func(h http.Header) { h.Set("Cookie", session()) },
		"consoleToken":   func(h http.Header) { h.Set("Authorization", "Bearer "+token) },
		"ingestKey":      func(h http.Header) { h.Set("Authorization", "Bearer "+ingestKey) },
		"platformSecret": func(h http.Header) { h.Set("X-Platform-Secret", secret) },
	}
	for _, o := range listOperations(t) {
		for kind, put := range credentials {
			header := http.Header{}
			put(header)
			status, text := call(o, header)
			switch {
			case status >= 500:
				t.Errorf("%s with %s: got %d %s", o.ID, kind, status, text)
			case !o.takes(kind) && kind == "consoleToken" && status == http.StatusForbidden &&
				strings.Contains(string(text), "Tokens can't do this: sign in"):
			case !o.takes(kind) && status != http.StatusUnauthorized:
				t.Errorf("%s with %s: got %d %s, want 401", o.ID, kind, status, text)
			case o.takes(kind) && len(o.Security) > 0 && status == http.StatusUnauthorized &&
				!strings.Contains(string(text), "wrong_password"): // because of the body, not the credential
				t.Errorf("%s with %s: got 401 %s", o.ID, kind, text)
			}
		}
	}
	if calls < 400 {
		t.Errorf("got %d requests", calls)
	}
}
