package publicapi_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/publicapi"
)

// revalidated contains a target of each kind that may change, in a log with one event.
func (w *world) revalidated() []string {
	return []string{
		"/v1/public/orgs/red/transparency/head", "/v1/public/orgs/red/transparency/checkpoint",
		redInclusion + "?log_index=0", redConsistency + "?from=0", "/v1/public/orgs/red/transparency/keys",
		"/v1/public/orgs/red/transparency/policy", "/v1/public/agents/helper-red/did", "/v1/public/agents/helper-red/did.json",
		"/v1/public/did/" + did.KeyDID(w.red.agent.Private.Public().Bytes()), "/o/" + w.red.id.String() + "/checkpoint",
		"/v1/public/directory", "/v1/public/directory/events",
	}
}

// resources contains a target of each kind, in a log with one event `one`.
func (w *world) resources() []string {
	return append(w.revalidated(), "/v1/public/orgs/red/verify/one", logListPath,
		"/o/"+w.red.id.String()+"/tile/0/000.p/1", "/o/"+w.red.id.String()+"/tile/entries/000.p/1")
}

func TestHeadRequests(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one")
	for _, target := range w.resources() {
		get, head := w.get(target), w.do(http.MethodHead, target)
		if head.Code != http.StatusOK || head.Body.Len() != 0 {
			t.Errorf("HEAD %s: got %d with %d bytes", target, head.Code, head.Body.Len())
		}
		for _, name := range []string{"Content-Type", "Content-Length", "ETag", "Cache-Control", "Vary", "Access-Control-Allow-Origin"} {
			if got, want := head.Header().Get(name), get.Header().Get(name); got != want {
				t.Errorf("HEAD %s: got %s %q, want %q", target, name, got, want)
			}
		}
	}
}

func TestPreflight(t *testing.T) {
	w := newWorld(t)
	for _, target := range append(w.resources(), "/v1/public/orgs/red/transparency/keys/00000000", "/v1/public/did/x", "/o/x/y",
		"/o/x/keys/00000000", "/o/x/2/keys/00000000") {
		answer := w.do(http.MethodOptions, target, "Origin: https://page.example", "Access-Control-Request-Method: GET", "Access-Control-Request-Headers: if-none-match")
		h := answer.Header()
		if answer.Code != http.StatusNoContent || h.Get("Access-Control-Allow-Methods") != "GET, HEAD, OPTIONS" || h.Get("Access-Control-Allow-Headers") != "Accept, If-None-Match" {
			t.Errorf("OPTIONS %s: got %d %v", target, answer.Code, h)
		}
		w.public(target, answer)
	}
}

func TestOtherMethods(t *testing.T) {
	w := newWorld(t)
	for _, target := range []string{"/v1/public/orgs/red/transparency/head", "/o/" + w.red.id.String() + "/checkpoint"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			answer := w.do(method, target)
			if answer.Code != http.StatusMethodNotAllowed || answer.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: got %d, Allow %q", method, target, answer.Code, answer.Header().Get("Allow"))
			}
			w.public(target, answer)
		}
	}
}

func TestNotFoundIsAlwaysTheSame(t *testing.T) {
	w := newWorld(t)
	w.append(&w.blue, id.DiscloseRecord, "one")
	for _, target := range []string{
		"/v1/public", "/v1/public/", "/v1/public/orgs", "/v1/public/orgs/red", "/v1/public/orgs/red/transparency",
		"/v1/public/orgs/green/transparency/head", "/v1/public/orgs/green/transparency/checkpoint",
		"/v1/public/orgs/green/transparency/inclusion?log_index=x", "/v1/public/orgs/green/transparency/consistency",
		"/v1/public/orgs/green/transparency/keys", "/v1/public/orgs/green/transparency/policy",
		"/v1/public/orgs/green/verify/one?format=xml", "/v1/public/orgs/%ff/transparency/head",
		"/v1/public/agents/nobody/did", "/v1/public/did/nothing", "/o/", "/o/x", "/o/" + w.red.id.String(),
		"/o/00000000-0000-0000-0000-000000000009/checkpoint",
	} {
		w.missing(target)
	}
}

// If the store cannot be read, every request fails without the cause.
func TestUnreadableStore(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one")
	w.store.Break()
	for _, target := range w.resources() {
		switch target {
		case "/v1/public/directory", logListPath: // need no store once they are known
			continue
		case "/v1/public/directory/events":
			w.failed(target, http.StatusServiceUnavailable, "The store can't be reached\",\"code\":\"unavailable\"")
			continue
		}
		w.failed(target, http.StatusServiceUnavailable, "can't be read\",\"code\":\"unavailable\"")
	}
}

// defective agents return an error for every key.
type defective struct{ publicapi.Agents }

func (defective) DIDKeys(context.Context, id.Tenant, id.Agent) ([]did.Key, error) {
	return nil, errors.New("a cause")
}

func TestDefect(t *testing.T) {
	w := newWorld(t)
	w.serve(defective{w.agents})
	w.failed("/v1/public/agents/helper-red/did", http.StatusInternalServerError, `{"error":"Internal error"`)
}

// failed expects a status of at least 500, with a text and the request ID with which the cause can be found.
func (w *world) failed(target string, status int, text string) {
	w.Helper()
	answer := w.do(http.MethodGet, target)
	body, h := answer.Body.String(), answer.Header()
	if answer.Code != status || !strings.Contains(body, text) || !strings.Contains(body, `"request_id":"`+h.Get("X-Request-Id")+`"`) {
		w.Errorf("GET %s: got %d %s, want %d %s", target, answer.Code, body, status, text)
	}
	if got := h.Get("Cache-Control"); got != "no-store" || h.Get("ETag") != "" || h.Get("Retry-After") == "" && status == http.StatusServiceUnavailable {
		w.Errorf("GET %s: got headers %v", target, h)
	}
	w.public(target, answer)
}
