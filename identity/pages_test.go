package identity_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/web/console"
	"github.com/agentledger/agentledger/web/operator"
	pages "github.com/agentledger/agentledger/web/page"
)

// membershipReads counts reads of memberships. A session that is looked up is one, and so is each list of the one
// organization of its account.
type membershipReads struct {
	storage.RecordStore
	n atomic.Int64
}

func (s *membershipReads) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	if kind == "membership" {
		s.n.Add(1)
	}
	return s.RecordStore.Get(ctx, t, kind, key)
}

// A page or a form looks its session up once, as a call does, also if it shows several documents.
func TestSessionOfAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.organization("red")
	cookie := w.cookie(w.signIn(email, password))
	store := &membershipReads{RecordStore: w.Store}
	accounts := account.New(account.Options{Records: store, Clock: w.Clock,
		Hashing: account.Hashing{MemoryKiB: 64, Passes: 1}})
	o := w.options
	o.Accounts, o.Metrics = accounts, nil
	server, err := identity.New(o)
	if err != nil {
		t.Fatal(err)
	}
	router := o.Edge.Router()
	server.PeopleRoutes(router)
	console.Mount(router, console.Options{Edge: o.Edge, Kit: pages.NewKit(publicURL),
		Control: admission.New(1), Identity: server})
	lists := map[string]int64{"/v1/id/auth/me": 1, "/account/sessions": 2}
	for path, n := range lists {
		store.n.Store(0)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Header.Set("Cookie", cookie)
		got := httptest.NewRecorder()
		router.ServeHTTP(got, r)
		if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), email) || store.n.Load() != 1+n {
			t.Errorf("%s: got status %d and %d reads, want 200 and %d: %s", path, got.Code, store.n.Load(), 1+n, got.Body)
		}
	}
	store.n.Store(0)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/account/sessions", strings.NewReader("do=end-others"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Cookie", cookie)
	got := httptest.NewRecorder()
	router.ServeHTTP(got, r)
	if got.Code != http.StatusSeeOther || store.n.Load() != 2 {
		t.Errorf("a form: got status %d and %d reads, want 303 and 2: %s", got.Code, store.n.Load(), got.Body)
	}
}

// A peer is another node, which owns every organization.
type peer struct {
	pages  http.Handler
	passed int
}

func (p *peer) Owns(context.Context, id.Tenant) bool { return false }

func (p *peer) Pass(w http.ResponseWriter, r *http.Request, _ *admission.Elsewhere) (bool, error) {
	p.passed++
	p.pages.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), passedKey{}, true)))
	return true, nil
}

type passedKey struct{}

// The owner of an organization serves the operator's pages about it, for a session of another node. It ignores a secret
// that no node has sent.
func TestOperatorPagesOfAnotherNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.organization("red")
	serve := func(e *edge.Edge) http.Handler {
		o := w.options
		o.Edge, o.Metrics = e, nil
		server, err := identity.New(o)
		if err != nil {
			t.Fatal(err)
		}
		router := e.Router()
		operator.Mount(router, operator.Options{Edge: e, Identity: server,
			Passed: func(ctx context.Context) bool { return ctx.Value(passedKey{}) != nil }})
		return router
	}
	here, owner := *w.options.Edge, *w.options.Edge
	owner.Passer = nil
	other := &peer{pages: serve(&owner)}
	here.Passer = other
	pages := serve(&here)
	post := func(h http.Handler, path, cookie, secret string, form url.Values) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Cookie", cookie)
		r.Header.Set(identity.SecretHeader, secret)
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r)
		return got
	}
	in := post(pages, "/operator/signin", "", "", url.Values{"do": {"sign-in"}, "secret": {w.options.PlatformSecret}})
	cookie, _, _ := strings.Cut(in.Header().Get("Set-Cookie"), ";")
	const page = "/operator/organizations/red"
	off := url.Values{"do": {"switch-off"}}
	got := post(pages, page, cookie, "", off)
	if to := got.Header().Get("Location"); got.Code != http.StatusSeeOther || to != page+"?notice=saved" || other.passed != 1 {
		t.Errorf("got status %d to %q, passed %d times: %s", got.Code, to, other.passed, got.Body)
	}
	tenant, err := w.options.Orgs.BySlug(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	if active, err := w.options.Orgs.Active(t.Context(), tenant); active || err != nil {
		t.Errorf("active: got %v, %v", active, err)
	}
	for name, h := range map[string]http.Handler{"here": pages, "on the owner": other.pages} {
		got := post(h, page, "", w.options.PlatformSecret, off)
		if to := got.Header().Get("Location"); !strings.HasPrefix(to, "/operator/signin") {
			t.Errorf("with the secret in a header %s: got status %d to %q", name, got.Code, to)
		}
	}
}
