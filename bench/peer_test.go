package main

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire/issued"
)

func post(h http.Handler, path, token, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestTessera(t *testing.T) {
	log, err := openTessera(t.Context(), t.TempDir(), peerSettings{Batch: 1, Age: time.Millisecond, Checkpoint: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"0", "1", "2"} {
		w := post(log.Handler(), "/add", "", strings.Repeat("x", i+1))
		if w.Code != http.StatusCreated || w.Body.String() != want {
			t.Errorf("got %d %q, want index %s", w.Code, w.Body, want)
		}
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		size, err := log.published(t.Context())
		if err != nil || time.Now().After(end) {
			t.Fatalf("published: got %d, %v, want 3", size, err)
		}
		if size == 3 {
			break
		}
	}
}

// The floor is comparable only if it refuses what the service refuses.
func TestFloor(t *testing.T) {
	key := edkey.NewPrivate()
	seed, public := key.Seed(), key.Public().Bytes()
	o := issued.CreatedOrganization{OrganizationID: id.NewOrganization(), Origin: "bench.example/o/1"}
	o.Agent.AgentID, o.Agent.KeyID, o.Agent.PublicB64 = "agt_1", "key_1", base64.StdEncoding.EncodeToString(public[:])
	o.IngestKey.Secret = "secret"
	h, err := peerFloor(o)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := client.NewSigner(client.Identity{Organization: o.OrganizationID, Agent: "agt_1", Key: "key_1"}, seed[:])
	if err != nil {
		t.Fatal(err)
	}
	good, err := signer.SignEvent(client.Event{ActionKind: "tool_call", ActorPrincipal: "bench", Decision: id.Allow, Tool: "a.b"})
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := client.NewSigner(client.Identity{Organization: o.OrganizationID, Agent: "agt_1", Key: "key_2"}, seed[:])
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := stranger.SignEvent(client.Event{ActionKind: "tool_call", ActorPrincipal: "bench", Decision: id.Allow})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		token, body string
		status      int
	}{
		"good":        {"secret", string(good), 201},
		"token":       {"other", string(good), 401},
		"signature":   {"secret", strings.Replace(string(good), `"a.b"`, `"a.c"`, 1), 422},
		"unknown key": {"secret", string(unknown), 422},
		"json":        {"secret", string(good[1:]), 422},
	} {
		if w := post(h, "/v1/ingest/events", tc.token, tc.body); w.Code != tc.status {
			t.Errorf("%s: got %d %s, want %d", name, w.Code, w.Body, tc.status)
		}
	}
}

func TestStatic(t *testing.T) {
	w := post(staticPeer([]byte("body")), "/any/path", "", "question")
	if w.Code != http.StatusOK || w.Body.String() != "body" {
		t.Errorf("got %d %q", w.Code, w.Body)
	}
}
