package publicapi_test

import (
	"net/http"
	"testing"

	"github.com/agentledger/agentledger/id"
)

func TestHeadRequests(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one")
	for _, target := range []string{
		"/v1/public/orgs/red/verify/one", "/v1/public/orgs/red/transparency/head", "/v1/public/orgs/red/transparency/checkpoint",
		redInclusion + "?log_index=0", redConsistency + "?from=0", "/v1/public/orgs/red/transparency/keys",
		"/v1/public/orgs/red/transparency/policy", "/v1/public/agents/helper-red/did", "/v1/public/agents/helper-red/did.json",
		"/o/" + w.red.id.String() + "/checkpoint", "/o/" + w.red.id.String() + "/tile/0/000.p/1",
		"/o/" + w.red.id.String() + "/tile/entries/000.p/1",
	} {
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
	for _, target := range []string{"/v1/public/orgs/red/transparency/head", "/v1/public/did/x", "/o/" + w.red.id.String() + "/tile/0/000", "/o/x/y"} {
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
