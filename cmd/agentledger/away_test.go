package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// awayEngine is an engine of the program that can become unavailable.
type awayEngine struct{ *enginetest.Away }

func (awayEngine) Collector() prometheus.Collector { return collectors.NewBuildInfoCollector() }

// awayWorld consists of both listeners of a service on a store that can become unavailable, with two organizations.
type awayWorld struct {
	t              *testing.T
	store          *enginetest.Away
	main, identity http.Handler
	red, blue      foundedOrganization
	cookie         string // of red's owner
	last           *httptest.ResponseRecorder
	made           int // names used so far
}

const awayPassword = "correct horse battery"

func newAwayWorld(t *testing.T) *awayWorld {
	t.Helper()
	w := &awayWorld{t: t, store: &enginetest.Away{Engine: storagetest.NewModel()}}
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	anchors, err := anchor.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := testSettings(t.TempDir())
	watch := logOnlyObservation(slog.New(slog.DiscardHandler))
	s, err := newService(t.Context(), c, &datadir.Store{Engine: awayEngine{w.store}, Anchors: anchors, Keyring: keyring}, watch, func(err error) { t.Errorf("fatal: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	edge := watch.newEdge()
	signIn, err := s.identitySurface(c, testSecret, edge)
	if err != nil {
		t.Fatal(err)
	}
	if w.main, err = s.mainHandler(c, signIn, edge); err != nil {
		t.Fatal(err)
	}
	w.identity = s.identityHandler(signIn, edge)
	w.red, w.blue = w.found("red"), w.found("blue")
	w.login()
	w.must(http.StatusCreated, "POST", "/v1/console/policies", `{"policy_id":"p","name":"n","rules":[{"rule_id":"r","tool":"acme.ask","decision":"allow_with_obligation"}]}`)
	w.must(http.StatusOK, "POST", "/v1/console/policies/p/activate", "")
	return w
}

// do makes a request with the credential that its path needs.
func (w *awayWorld) do(method, path, body string) int {
	r := httptest.NewRequestWithContext(w.t.Context(), method, "http://localhost"+path, strings.NewReader(body))
	handler := w.main
	switch {
	case strings.HasPrefix(path, "/v1/id/platform/"):
		handler = w.identity
		r.Header.Set("X-Platform-Secret", testSecret)
	case strings.HasPrefix(path, "/v1/id/"):
		handler = w.identity
		r.Header.Set("Cookie", w.cookie)
	case strings.HasPrefix(path, "/v1/console/"):
		r.Header.Set("Cookie", w.cookie)
	default:
		r.Header.Set("Authorization", "Bearer "+w.red.IngestKey.Secret)
	}
	if strings.HasSuffix(path, "/batch") {
		r.Header.Set("Content-Type", "application/x-ndjson")
	}
	w.last = httptest.NewRecorder()
	handler.ServeHTTP(w.last, r)
	return w.last.Code
}

// must makes a request and wants its status. While a ledger reads back the outcome of an append that was cut off, it
// answers 503, and must retries.
func (w *awayWorld) must(status int, method, path, body string) map[string]any {
	w.t.Helper()
	got := w.do(method, path, body)
	for deadline := time.Now().Add(2 * time.Minute); got == http.StatusServiceUnavailable && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
		if got = w.do(method, path, body); got == http.StatusOK {
			got = status // the first attempt was stored: this is its replay
		}
	}
	if got != status {
		w.t.Fatalf("%s %s: got %d %s, want %d", method, path, got, w.last.Body, status)
	}
	var members map[string]any
	_ = json.Unmarshal(w.last.Body.Bytes(), &members)
	return members
}

func (w *awayWorld) found(slug string) (f foundedOrganization) {
	w.t.Helper()
	w.must(http.StatusCreated, "POST", "/v1/id/platform/organizations", fmt.Sprintf(`{"name":%q,"slug":%q,"admin_email":"ops@%s.example","admin_password":%q}`, slug, slug, slug, awayPassword))
	if err := json.Unmarshal(w.last.Body.Bytes(), &f); err != nil {
		w.t.Fatal(err)
	}
	return f
}

func (w *awayWorld) login() {
	w.t.Helper()
	w.must(http.StatusOK, "POST", "/v1/id/auth/login", `{"email":"ops@red.example","password":"`+awayPassword+`"}`)
	w.cookie, _, _ = strings.Cut(w.last.Header().Get("Set-Cookie"), ";")
}

// fresh returns a name that was not used before.
func (w *awayWorld) fresh() string {
	w.made++
	return fmt.Sprintf("n-%d", w.made)
}

func (w *awayWorld) event() string {
	w.t.Helper()
	red, err := newWorker("http://localhost", w.red, client.Retry{Attempts: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	body, err := red.signer.SignEvent(client.Event{EventID: id.Event(w.fresh()), TraceID: "t", ActorPrincipal: "p", ActionKind: "tool_call", Tool: "acme.read", Decision: id.Allow})
	if err != nil {
		w.t.Fatal(err)
	}
	return string(body)
}

func (w *awayWorld) question(tool string) string {
	return fmt.Sprintf(`{"organization_id":%q,"agent_id":%q,"tool_name":%q,"trace_id":%q`, w.red.OrganizationID, w.red.Agent.AgentID, tool, w.fresh())
}

// request prepares what a route needs and returns a request to it.
type request func(w *awayWorld) (method, path, body string)

func fixed(method, path, body string) request {
	return func(*awayWorld) (string, string, string) { return method, path, body }
}

// access returns an access evaluation that needs an approval, with further members.
func (w *awayWorld) access(members string) string {
	return fmt.Sprintf(`{"subject":{"type":"agent","id":%q},"action":{"name":"acme.ask"},"resource":{"type":"order","id":"1"}%s}`, w.red.Agent.AgentID, members)
}

// awayRequests contains a valid request to each route, or several if the route does several things.
func awayRequests() map[string]request {
	const console, platform = "/v1/console", "/v1/id/platform/organizations/"
	approval := func(w *awayWorld) string {
		return w.must(http.StatusCreated, "POST", "/v1/ingest/approvals", w.question("acme.ask")+"}")["approval_id"].(string)
	}
	run := func(w *awayWorld) string {
		return w.must(http.StatusCreated, "POST", "/v1/ingest/workflows/runs", `{"workflow":{"name":"n"}}`)["run_id"].(string)
	}
	policy := func(w *awayWorld) string {
		return w.must(http.StatusCreated, "POST", console+"/policies", `{"name":"n","rules":[]}`)["policy_id"].(string)
	}
	agent := func(w *awayWorld) (name, key string) {
		made := w.must(http.StatusCreated, "POST", console+"/agents", `{}`)["credentials"].(map[string]any)
		return made["agent_id"].(string), made["key_id"].(string)
	}
	public := "/v1/public/orgs/red/"
	return map[string]request{
		"event": func(w *awayWorld) (string, string, string) { return "POST", "/v1/ingest/events", w.event() },
		"batch": func(w *awayWorld) (string, string, string) {
			return "POST", "/v1/ingest/events/batch", w.event() + "\n" + w.event() + "\n"
		},
		"evaluate": func(w *awayWorld) (string, string, string) {
			return "POST", "/v1/ingest/policy/evaluate", w.question("acme.read") + "}"
		},
		"evaluate and ask": func(w *awayWorld) (string, string, string) {
			return "POST", "/v1/ingest/policy/evaluate", w.question("acme.ask") + `,"request_approval":true}`
		},
		"access evaluation": func(w *awayWorld) (string, string, string) {
			return "POST", "/access/v1/evaluation", fmt.Sprintf(
				`{"subject":{"type":"agent","id":%q},"action":{"name":"acme.read"},"resource":{"type":"order","id":"1"}}`, w.red.Agent.AgentID)
		},
		"access with an approval": func(w *awayWorld) (string, string, string) {
			return "POST", "/access/v1/evaluation", w.access(`,"context":{"approval":{"id":"` + approval(w) + `"},"approval_proof_b64":"` + strings.Repeat("A", 86) + `=="}`)
		},
		"access request": func(w *awayWorld) (string, string, string) {
			denied := w.must(http.StatusOK, "POST", "/access/v1/evaluation", w.access(""))["context"].(map[string]any)["access_request"].(map[string]any)
			return "POST", "/access/v1/requests", w.access(fmt.Sprintf(`,"denial":{"binding_token":%q,"expires_at":%q}`, denied["binding_token"], denied["expires_at"]))
		},
		"access task": func(w *awayWorld) (string, string, string) { return "GET", "/access/v1/requests/" + approval(w), "" },
		"cancel access task": func(w *awayWorld) (string, string, string) {
			return "POST", "/access/v1/requests/" + approval(w) + "/cancel", ""
		},
		"ask": func(w *awayWorld) (string, string, string) {
			return "POST", "/v1/ingest/approvals", w.question("acme.ask") + "}"
		},
		"poll": func(w *awayWorld) (string, string, string) { return "GET", "/v1/ingest/approvals/" + approval(w), "" },
		"cancel": func(w *awayWorld) (string, string, string) {
			return "POST", "/v1/ingest/approvals/" + approval(w) + "/cancel", ""
		},
		"consume": func(w *awayWorld) (string, string, string) {
			return "POST", "/v1/ingest/approvals/" + approval(w) + "/consume", `{"action_digest":"` + strings.Repeat("00", 32) + `","proof_b64":"` + strings.Repeat("A", 86) + `=="}`
		},
		"start": fixed("POST", "/workflows/runs", `{"workflow":{"name":"n"}}`),
		"step": func(w *awayWorld) (string, string, string) {
			return "POST", "/workflows/runs/" + run(w) + "/steps", `{"step_key":"a","status":"succeeded","tool_name":"acme.read"}`
		},
		"complete": func(w *awayWorld) (string, string, string) {
			return "POST", "/workflows/runs/" + run(w) + "/complete", `{"status":"succeeded"}`
		},
		"run": func(w *awayWorld) (string, string, string) { return "GET", "/workflows/runs/" + run(w), "" },

		"head": fixed("GET", public+"transparency/head", ""), "checkpoint": fixed("GET", public+"transparency/checkpoint", ""),
		"inclusion": fixed("GET", public+"transparency/inclusion?log_index=0", ""), "consistency": fixed("GET", public+"transparency/consistency?from=1", ""),
		"keys": fixed("GET", public+"transparency/keys", ""), "policy": fixed("GET", public+"transparency/policy", ""),
		"verify": func(w *awayWorld) (string, string, string) {
			event := w.event()
			w.must(http.StatusCreated, "POST", "/v1/ingest/events", event)
			return "GET", public + "verify/n-" + fmt.Sprint(w.made) + "?verify=1", ""
		},
		"did": func(w *awayWorld) (string, string, string) {
			return "GET", "/v1/public/agents/" + string(w.red.Agent.AgentID) + "/did", ""
		},
		"did.json": func(w *awayWorld) (string, string, string) {
			return "GET", "/v1/public/agents/" + string(w.red.Agent.AgentID) + "/did.json", ""
		},
		"tile": func(w *awayWorld) (string, string, string) {
			return "GET", "/o/" + w.red.OrganizationID.String() + "/tile/0/000.p/1", ""
		},
		"entries": func(w *awayWorld) (string, string, string) {
			return "GET", "/o/" + w.red.OrganizationID.String() + "/tile/entries/000.p/1", ""
		},
		"log": func(w *awayWorld) (string, string, string) {
			return "GET", "/o/" + w.red.OrganizationID.String() + "/checkpoint", ""
		},

		"ingest keys": fixed("GET", console+"/ingest-keys", ""), "ingest key": fixed("POST", console+"/ingest-keys", `{"name":"n"}`),
		"agents": fixed("GET", console+"/agents", ""), "agent": fixed("POST", console+"/agents", `{}`),
		"rename": func(w *awayWorld) (string, string, string) {
			name, _ := agent(w)
			return "PATCH", console + "/agents/" + name, `{"display_name":"x"}`
		},
		"agent keys": func(w *awayWorld) (string, string, string) {
			return "GET", console + "/agents/" + string(w.red.Agent.AgentID) + "/keys", ""
		},
		"retire": func(w *awayWorld) (string, string, string) {
			name, key := agent(w)
			return "POST", console + "/agents/" + name + "/keys/" + key + "/retire", ""
		},
		"revoke": func(w *awayWorld) (string, string, string) {
			name, key := agent(w)
			return "POST", console + "/agents/" + name + "/keys/" + key + "/revoke", ""
		},
		"policies": fixed("GET", console+"/policies", ""), "create policy": fixed("POST", console+"/policies", `{"name":"n","rules":[]}`),
		"draft policy": func(w *awayWorld) (string, string, string) {
			return "PATCH", console + "/policies/" + policy(w), `{"name":"m"}`
		},
		"delete policy": func(w *awayWorld) (string, string, string) { return "DELETE", console + "/policies/" + policy(w), "" },
		"activate policy": func(w *awayWorld) (string, string, string) {
			w.must(http.StatusOK, "PATCH", console+"/policies/p", `{"name":"`+w.fresh()+`"}`)
			return "POST", console + "/policies/p/activate", ""
		},
		"simulate":  fixed("POST", console+"/policies/p/simulate", `{"last":5}`),
		"approvals": fixed("GET", console+"/approvals?status=pending", ""),
		"vote": func(w *awayWorld) (string, string, string) {
			approval := w.must(http.StatusCreated, "POST", "/v1/ingest/approvals", w.question("acme.ask")+"}")
			return "POST", console + "/approvals/" + approval["approval_id"].(string) + "/votes", fmt.Sprintf(`{"vote":"deny","action_digest":%q}`, approval["action_digest"])
		},
		"revoke approval": func(w *awayWorld) (string, string, string) {
			return "POST", console + "/approvals/" + approval(w) + "/revoke", ""
		},
		"runs": fixed("GET", console+"/runs", ""), "webhooks": fixed("GET", console+"/webhooks", ""), "stream export": fixed("GET", console+"/stream-export", ""),
		"replay":    fixed("POST", console+"/webhooks/msg_x/replay", ""),
		"witnesses": fixed("GET", console+"/witnesses", ""), "no witnesses": fixed("DELETE", console+"/witnesses", ""),
		"usage": fixed("GET", console+"/organization/plan-usage", ""), "organization": fixed("GET", console+"/organization", ""),
		"settings": func(w *awayWorld) (string, string, string) {
			return "PATCH", console + "/organization", `{"name":"` + w.fresh() + `"}`
		},

		"found": func(w *awayWorld) (string, string, string) {
			slug := w.fresh()
			return "POST", strings.TrimSuffix(platform, "/"), fmt.Sprintf(`{"name":"n","slug":%q,"admin_email":"ops@%s.example","admin_password":%q}`, slug, slug, awayPassword)
		},
		"change": func(w *awayWorld) (string, string, string) {
			return "PATCH", platform + w.blue.OrganizationID.String(), fmt.Sprintf(`{"limits":{"events_per_month":%d}}`, 1000000+w.made)
		},
		"set password": fixed("POST", "/v1/id/platform/accounts/password", `{"email":"ops@blue.example","password":"another horse battery"}`),
		"login":        fixed("POST", "/v1/id/auth/login", `{"email":"ops@red.example","password":"`+awayPassword+`"}`),
		"me":           fixed("GET", "/v1/id/auth/me", ""),
	}
}

// mostCalls exceeds the number of store calls of any request.
const mostCalls = 400

// If the store becomes unavailable at any call of a request, the response is 503 with a code, never 500, and the
// request succeeds once the store is back.
func TestStoreBecomesUnavailable(t *testing.T) {
	w := newAwayWorld(t)
	for name, make := range awayRequests() {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.settle()
			method, path, body := make(w)
			first := w.do(method, path, body)
			if first >= 500 {
				t.Fatalf("%s %s: got %d %s with the store available", method, path, first, w.last.Body)
			}
			for calls := 0; ; calls++ {
				if calls == mostCalls {
					t.Fatalf("the request makes more than %d store calls", mostCalls)
				}
				method, path, body := make(w)
				w.store.LeaveAfter(calls)
				got := w.do(method, path, body)
				away := w.store.Return()
				if got == http.StatusInternalServerError || strings.Contains(w.last.Body.String(), "Internal error") {
					t.Errorf("%s %s, unavailable after %d calls: got %d %s", method, path, calls, got, w.last.Body)
				}
				if got == http.StatusServiceUnavailable && (!strings.Contains(w.last.Body.String(), `"code":"`) || w.last.Header().Get("Retry-After") == "") {
					t.Errorf("%s %s, unavailable after %d calls: got %v %s", method, path, calls, w.last.Header(), w.last.Body)
				}
				if !away {
					break
				}
			}
		})
	}
	w.t = t
	w.settle()
}

// settle waits until both organizations accept changes again.
func (w *awayWorld) settle() {
	w.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for w.do("POST", "/v1/ingest/events", w.event()) != http.StatusCreated {
		if time.Now().After(deadline) {
			w.t.Fatalf("the store is back: got %d %s", w.last.Code, w.last.Body)
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.must(http.StatusOK, "PATCH", "/v1/id/platform/organizations/"+w.blue.OrganizationID.String(), `{"active":true}`)
}
