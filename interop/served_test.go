package interop

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/log/anchor"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/loglist"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/publicapi"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/trust"
)

// served is a log in the embedded engine with its public surface over HTTP.
type served struct {
	ledgers *log.Ledgers
	tenant  id.Tenant
	slug    id.Slug
	prefix  *url.URL // of the tiles, with a slash at the end
	api     string   // of transparency/...
	server  *httptest.Server
	store   loglist.Store
	lists   *lists
}

// lists is the list of the service's logs, if a test creates one.
type lists struct{ list *loglist.List }

func (l *lists) Current() *loglist.Made {
	if l.list == nil {
		return nil
	}
	return l.list.Current()
}

// serve starts a service with two organizations. The log is the first one's. The second has a few entries, which must
// not appear in it.
func serve(t testing.TB) *served { return serveWitnessed(t, nil) }

// serveWitnessed is serve with the service's witnesses, or nil.
func serveWitnessed(t testing.TB, policy *trust.Policy) *served {
	t.Helper()
	keyring, err := seal.NewKeyring(seal.NewKey())
	must(t, err)
	dir := t.TempDir()
	store, err := pebblestore.Open(pebblestore.Options{Dir: filepath.Join(dir, "db")})
	must(t, err)
	t.Cleanup(func() { store.Close() })
	anchors, err := anchor.Open(filepath.Join(dir, "anchors"))
	must(t, err)
	ledgers, err := log.Open(context.Background(), log.Options{Store: store, Keyring: keyring, Anchors: anchors})
	must(t, err)
	t.Cleanup(func() { ledgers.Close() })
	known := directory{"audited": {1, id.Organization{0: 0xab, 15: 1}}, "other": {2, id.Organization{15: 2}}}
	for _, o := range known {
		_, err := ledgers.Create(context.Background(), o.tenant, log.Genesis{Organization: o.id, Origin: id.Origin("log.example/o/" + o.id.String())})
		must(t, err)
	}
	edge := &edge.Edge{}
	router := edge.Router()
	options := publicapi.Options{Edge: edge, Ledgers: ledgers, Organizations: known, Agents: nobody{}, PublicURL: "https://log.example", LogList: new(lists)}
	if policy != nil {
		options.Witnesses = ask(t, policy, store, ledgers)
	}
	publicapi.New(options).Routes(router, nil)
	server := httptest.NewServer(router)
	t.Cleanup(server.Close)
	mine := known["audited"]
	prefix, err := url.Parse(server.URL + "/o/" + mine.id.String() + "/")
	must(t, err)
	s := &served{ledgers: ledgers, tenant: mine.tenant, slug: "audited", prefix: prefix, api: server.URL + "/v1/public/orgs/audited/", server: server, store: store, lists: options.LogList.(*lists)}
	s.grow(t, known["other"].tenant, 300)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// grow appends events until the log has size entries.
func (s *served) grow(t testing.TB, tenant id.Tenant, size id.Index) {
	t.Helper()
	const most = 1000
	for s.state(t, tenant).Size() < size {
		_, err := s.ledgers.Append(t.Context(), tenant, func(_ context.Context, state *log.State) (log.Submission, error) {
			var sub log.Submission
			for i := state.Size(); i < min(size, state.Size()+most); i++ {
				sub.Drafts = append(sub.Drafts, draft(state.Identity(), fmt.Sprintf("evt-%d", i)))
			}
			return sub, nil
		})
		must(t, err)
	}
}

// draft is an event whose envelope was erased: the tree holds the hash of its record.
func draft(identity *log.Identity, name string) log.Draft {
	e := &event.Envelope{
		EventID: id.Event(name), TraceID: "trc", AgentID: "agt_interop", KeyID: "key_interop", ActionKind: "tool_call",
		Decision: id.Allow, Digest: sha256.Sum256([]byte(name)), SignatureB64: strings.Repeat("A", 86) + "==",
	}
	return log.NewDraft(identity, e, log.Attestation{
		Form: event.FormDigest, PublicKey: "z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", Signer: event.SignerAgent,
		Custody: event.CustodyAgent, IngestKeyID: "ik", Policy: event.Policy{Declared: id.Allow, Effective: id.Allow}, Disclosure: id.DiscloseRecord,
	})
}

func (s *served) state(t testing.TB, tenant id.Tenant) *log.State {
	t.Helper()
	state, err := s.ledgers.State(t.Context(), tenant)
	must(t, err)
	return state
}

// origin is the name of the log and of its key.
func (s *served) origin(t testing.TB) string { return s.key(t).Name() }

// key returns the log's key in x/mod's form.
func (s *served) key(t testing.TB) note.Verifier {
	t.Helper()
	v, err := note.NewVerifier(s.state(t, s.tenant).VerifierKey().String())
	must(t, err)
	return v
}

// directory finds organizations by their names.
type directory map[id.Slug]struct {
	tenant id.Tenant
	id     id.Organization
}

func (d directory) BySlug(_ context.Context, slug id.Slug) (id.Tenant, error) {
	if o, ok := d[slug]; ok {
		return o.tenant, nil
	}
	return 0, fault.New(fault.NotFound, "Not found")
}

func (d directory) ByID(_ context.Context, organization id.Organization) (id.Tenant, error) {
	for _, o := range d {
		if o.id == organization {
			return o.tenant, nil
		}
	}
	return 0, fault.New(fault.NotFound, "Not found")
}

func (d directory) Slug(_ context.Context, t id.Tenant) (id.Slug, error) {
	for slug, o := range d {
		if o.tenant == t {
			return slug, nil
		}
	}
	return "", fault.New(fault.NotFound, "Not found")
}

// nobody has no keys.
type nobody struct{}

func (nobody) Owner(context.Context, id.Agent) (id.Tenant, error) {
	return 0, fault.New(fault.NotFound, "Not found")
}

func (nobody) DIDKeys(context.Context, id.Tenant, id.Agent) ([]did.Key, error) { return nil, nil }

func (nobody) KeyHolders(context.Context, [32]byte) iter.Seq2[id.Tenant, error] {
	return func(func(id.Tenant, error) bool) {}
}

func (nobody) CompromisedFrom(context.Context, *log.State, id.Agent, id.Key) (id.Index, error) {
	return 1<<63 - 1, nil
}

// transport changes answers in transit; if nil, it does not.
type transport func(path string, body []byte) []byte

func (f transport) client() *http.Client {
	if f == nil {
		return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	}
	return &http.Client{Transport: bent{&http.Transport{MaxIdleConnsPerHost: 16}, f}}
}
