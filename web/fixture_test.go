package web_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/openapitest"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/publicapi"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/web"
)

var traffic = openapitest.Of("pages")

func TestMain(m *testing.M) { os.Exit(servicetest.Main(recorded{m})) }

// recorded runs the tests of the package and compares their traffic with the description.
type recorded struct{ m *testing.M }

// Run implements servicetest.Runner.
func (r recorded) Run() int { return traffic.Main(r.m) }

const (
	browsers = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
	redEvent = "/v1/public/orgs/red/verify/"
)

// slugs are the organizations of every test.
type slugs map[id.Slug]id.Tenant

func (s slugs) BySlug(_ context.Context, slug id.Slug) (id.Tenant, error) {
	if t, ok := s[slug]; ok {
		return t, nil
	}
	return 0, fault.New(fault.NotFound, "Not found")
}

func (slugs) ByID(context.Context, id.Organization) (id.Tenant, error) {
	return 0, fault.New(fault.NotFound, "Not found")
}

func (slugs) Slug(context.Context, id.Tenant) (id.Slug, error) {
	return "", fault.New(fault.NotFound, "Not found")
}

// keys are the public keys of agents without any claims.
type keys struct{ publicapi.Agents }

// Owner derives the organization of a helper from its name.
func (keys) Owner(_ context.Context, agent id.Agent) (id.Tenant, error) {
	t, ok := map[id.Agent]id.Tenant{"helper-red": ledgertest.Red, "helper-blue": ledgertest.Blue}[agent]
	if !ok {
		return 0, fault.New(fault.NotFound, "Not found")
	}
	return t, nil
}

func (keys) DIDKeys(_ context.Context, owner id.Tenant, _ id.Agent) ([]did.Key, error) {
	first := [32]byte{byte(owner)}
	return []did.Key{{Public: first, KeyID: "key_old", State: did.Revoked, Ended: 1_790_000_000_000},
		{Public: [32]byte{2: byte(owner)}, KeyID: "key_mid", State: did.Retired, Ended: 1_790_000_000_001},
		{Public: [32]byte{1: byte(owner)}, KeyID: "key_new", State: did.Active}}, nil
}

func (keys) CompromisedFrom(context.Context, *log.State, id.Agent, id.Key) (id.Index, error) {
	return tlog.MaxSize, nil
}

type noGrants struct{}

func (noGrants) GrantKey(context.Context, id.Tenant) (tlog.VerifierKey, id.Index, bool, error) {
	return tlog.VerifierKey{}, 0, false, nil
}

// world is the pages and the public interface on real ledgers of two organizations.
type world struct {
	testing.TB
	*ledgertest.Service
	key     edkey.Private
	handler http.Handler
	bare    http.Handler // handler without the comparison with openapi.json
	public  publicapi.Reader
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, Service: ledgertest.New(t), key: edkey.NewPrivate()}
	w.Found(t, ledgertest.Red)
	w.Found(t, ledgertest.Blue)
	w.serve(nil)
	return w
}

// serve starts the surfaces. Pages read from documents; if nil, from the public interface.
func (w *world) serve(documents web.Log, more ...func(*web.Options)) {
	e := &edge.Edge{Passer: traffic.Passer(), Logger: slog.New(slog.NewTextHandler(w.Output(), nil))}
	router, organizations := e.Router(), slugs{"red": ledgertest.Red, "blue": ledgertest.Blue}
	api := publicapi.New(publicapi.Options{Edge: e, Ledgers: w.Ledgers, Organizations: organizations, Agents: keys{},
		GrantKeys: noGrants{}, PublicURL: "https://log.example", Clock: w.Clock})
	w.public = api.Reader()
	if documents == nil {
		documents = w.public
	}
	options := web.Options{Edge: e, Organizations: organizations, Log: documents, PublicURL: "https://log.example"}
	for _, change := range more {
		change(&options)
	}
	pages := web.New(options)
	pages.Routes(router)
	api.Routes(router, pages.EventPage)
	w.bare, w.handler = router, traffic.Watch(w.TB, router)
}

// askUnwatched makes a request without comparing the answer with the interface's description, for benchmarks.
func (w *world) askUnwatched(method, target string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	w.bare.ServeHTTP(answer, httptest.NewRequestWithContext(w.Context(), method, target, nil))
	return answer
}

// broken fails every read.
type broken struct {
	publicapi.Reader
	err error
}

func (b broken) EventBundle(context.Context, id.Tenant, id.Slug, string, id.Origin) (*verify.Bundle, error) {
	return nil, b.err
}

// append stores an event with overridden members of the envelope.
func (w *world) append(tenant id.Tenant, disclosure id.Disclosure, name string, more map[string]any) {
	w.Helper()
	unsigned := map[string]any{
		"schema_version": 1, "event_id": name, "organization_id": ledgertest.Organization(tenant).String(),
		"trace_id": "trc", "agent_id": "agt_test", "key_id": "key_test", "emitted_at": "2026-11-20T12:00:00.000Z",
		"actor_type": "agent", "actor_principal": "svc", "action_kind": "tool_call", "tool_name": "acme.orders.read",
		"policy_decision": "allow", "payload": map[string]any{"secret": name},
	}
	for member, value := range more {
		unsigned[member] = value
	}
	text, err := json.Marshal(unsigned)
	if err != nil {
		w.Fatal(err)
	}
	e, err := event.SignEnvelope(text, w.key)
	if err != nil {
		w.Fatal(err)
	}
	attestation := log.Attestation{Form: event.FormDigest, PublicKey: did.Multikey(w.key.Public().Bytes()),
		Signer: event.SignerAgent, Custody: event.CustodyAgent, IngestKeyID: "ik", Disclosure: disclosure,
		Policy: event.Policy{Declared: id.Allow, Effective: id.Allow}}
	_, err = w.Ledgers.Append(w.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, attestation)}}, nil
	})
	if err != nil {
		w.Fatal(err)
	}
}

// erase removes the envelopes below an index from a log.
func (w *world) erase(tenant id.Tenant, end id.Index) {
	w.Helper()
	eraser := erasure.EnvelopeEraser{Appender: w.SystemEvents, Ledgers: w.Ledgers}
	_, err := eraser.Erase(w.Context(), tenant, "acc_1", func(context.Context, *log.State) (erasure.Selection, error) {
		return erasure.Selection{Ranges: []id.Range{{End: end}}, Reason: "person_request"}, nil
	})
	if err != nil {
		w.Fatal(err)
	}
}

// ask makes a request; headers are "Name: value".
func (w *world) ask(method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(w.Context(), method, target, nil)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	return answer
}

// page makes GET and HEAD requests as a browser does, and checks what every page must have.
func (w *world) page(target string, status int, headers ...string) *httptest.ResponseRecorder {
	w.Helper()
	headers = append(headers, "Accept: "+browsers)
	head, answer := w.ask(http.MethodHead, target, headers...), w.ask(http.MethodGet, target, headers...)
	if answer.Code != status || head.Code != status || head.Body.Len() != 0 {
		w.Fatalf("GET %s: got %d, HEAD %d with %d bytes, want %d: %s", target, answer.Code, head.Code, head.Body.Len(), status, answer.Body)
	}
	h := answer.Header()
	for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Set-Cookie": "",
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"} {
		if got := h.Get(name); got != want {
			w.Errorf("GET %s: got %s %q, want %q", target, name, got, want)
		}
	}
	return answer
}

// withoutPages returns the same world with only the public interface.
func (w *world) withoutPages() *world {
	e := &edge.Edge{Logger: slog.New(slog.NewTextHandler(w.Output(), nil))}
	router := e.Router()
	api := publicapi.New(publicapi.Options{Edge: e, Ledgers: w.Ledgers,
		Organizations: slugs{"red": ledgertest.Red, "blue": ledgertest.Blue}, Agents: keys{}, GrantKeys: noGrants{},
		PublicURL: "https://log.example", Clock: w.Clock})
	api.Routes(router, nil)
	bare := *w
	bare.handler = router
	return &bare
}
