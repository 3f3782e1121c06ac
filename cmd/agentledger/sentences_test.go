package main

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// What the settings and the README state about each level of disclosure is what strangers get in a bundle.
func TestDisclosureSentences(t *testing.T) {
	w := newCanaryWorld(t)
	_, page := w.send("GET", "/console/settings", "", w.session("red", "ops@red.example"))
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(strings.Fields(string(readme)), " "), "by default the agent and the policy decision, but neither tool nor payload") {
		t.Error("README.md does not state what the public sees by default")
	}
	stated := "" // at this level and the ones before
	for _, level := range []struct{ disclosure, slug string }{{"commitment", "bare"}, {"record", "red"}, {"full", "open"}} {
		sentence := regexp.MustCompile(`>` + level.disclosure + `: ([^<]*)<`).FindStringSubmatch(string(page))
		if sentence == nil {
			t.Fatalf("the settings do not describe %s", level.disclosure)
		}
		stated += " " + html.UnescapeString(sentence[1])
		o := w.orgs[level.slug]
		status, bundle := w.send("GET", "/v1/public/orgs/"+level.slug+"/verify/evt-canary", "", nil)
		if status != http.StatusOK {
			t.Fatalf("%s: got %d", level.slug, status)
		}
		for word, value := range map[string]string{"agent": string(o.Agent.AgentID), "key": string(o.Agent.KeyID), "decision": `\"effective\":\"allow\"`,
			"rule": string(inDecision), "tool": "acme.read", "payload": string(inPayload)} {
			if says, shows := strings.Contains(stated, word), strings.Contains(string(bundle), value); says != shows {
				t.Errorf("%s: the sentence mentions %s: %v, the bundle contains it: %v", level.disclosure, word, says, shows)
			}
		}
	}
}

// A page that states that it sets no cookie sets none, and none of its forms leads to one. Pages of the sign-in do not
// state that.
func TestCookieSentences(t *testing.T) {
	w := newCanaryWorld(t)
	o, states := w.orgs["red"], 0
	for _, handler := range []http.Handler{w.public, w.private} {
		err := chi.Walk(handler.(*edge.Router).Mux, func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			if method != http.MethodGet || strings.HasPrefix(pattern, "/assets/") {
				return nil
			}
			path := strings.NewReplacer("{slug}", "red", "{event}", "evt-canary", "{agent}", string(o.Agent.AgentID), "*", "000").Replace(pattern)
			for _, header := range []http.Header{{}, w.session("red", "ops@red.example")} {
				header.Set("Accept", "text/html")
				_, answer := w.send("GET", path, "", header)
				if !strings.Contains(string(answer), "set no cookie") {
					continue
				}
				states++
				if w.last.Get("Set-Cookie") != "" || strings.Contains(string(answer), `method="post"`) {
					t.Errorf("%s: the page sets a cookie, or has a form that does", pattern)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if states < 10 {
		t.Errorf("%d pages state that they set no cookie", states)
	}
	for _, path := range []string{"/signin", "/signin/second", "/forgot-password", "/invitation"} {
		if _, answer := w.send("GET", path, "", nil); !strings.Contains(string(answer), "They set a cookie only when you sign in.") {
			t.Errorf("%s does not mention its cookie", path)
		}
	}
}

// An address that does not exist answers a browser with a page on both listeners, and programs in JSON.
func TestUnknownAddresses(t *testing.T) {
	w := newCanaryWorld(t)
	for name, handler := range map[string]http.Handler{"main": w.public, "identity": w.private} {
		for _, path := range []string{"/none", "/console/none", "/v1/none", "/v1/id/platform/none", "/log/red/none"} {
			for accept, media := range map[string]string{
				"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": "text/html; charset=utf-8",
				"": "application/json", "*/*": "application/json", "application/json": "application/json",
			} {
				for _, method := range []string{"GET", "HEAD", "POST"} {
					r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
					if accept != "" {
						r.Header.Set("Accept", accept)
					}
					answer := httptest.NewRecorder()
					handler.ServeHTTP(answer, r)
					want := media
					if method == "POST" {
						want = "application/json"
					}
					got, _, _ := strings.Cut(answer.Header().Get("Content-Type"), ";")
					if first, _, _ := strings.Cut(want, ";"); answer.Code != http.StatusNotFound || got != first || answer.Header().Get("Vary") != "Accept" {
						t.Errorf("%s, %s %s, Accept %q: got %d %s, Vary %q", name, method, path, accept, answer.Code, got, answer.Header().Get("Vary"))
					}
				}
			}
		}
	}
}

// No flag takes a secret except the password of init.
func TestSecretFlags(t *testing.T) {
	var c commands
	parser, err := kong.New(&c, config.ParserOptions()...)
	if err != nil {
		t.Fatal(err)
	}
	secret := regexp.MustCompile(`(^|-)(password|secret|token|key|seed)$`)
	var found []string
	var walk func(*kong.Node)
	walk = func(n *kong.Node) {
		for _, f := range n.Flags {
			if secret.MatchString(f.Name) && f.Tag.Type != "path" {
				found = append(found, fmt.Sprintf("%s --%s", n.Name, f.Name))
			}
		}
		for _, child := range n.Children {
			walk(child)
		}
	}
	walk(parser.Model.Node)
	slices.Sort(found)
	if want := []string{"init --admin-password"}; !slices.Equal(found, want) {
		t.Errorf("got %q, want %q: secrets come from files or the environment", found, want)
	}
}
