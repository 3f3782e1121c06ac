package identity_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/web/console"
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

// A page looks its session up once, as a call does, also if it shows several documents.
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
	lists := map[string]int64{"/v1/id/auth/me": 1, "/account": 1, "/account/sessions": 2}
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
}
