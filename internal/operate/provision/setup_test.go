package provision_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/tlog"
)

// service simulates the processes of a service on one store. Its organizations consist only of a ledger.
type service struct {
	t     *testing.T
	store storagetest.Engine
	now   time.Time
	made  []string
	fails error  // error of the next founding
	amid  func() // called during the next founding
}

func newService(t *testing.T) *service {
	return &service{t: t, store: storagetest.NewModel(), now: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)}
}

func (s *service) process(name string) *provision.Setup {
	return &provision.Setup{Store: s.store, Provisioner: s, Process: name, Clock: func() time.Time { return s.now }}
}

// CreateOrganization implements provision.OrganizationCreator.
func (s *service) CreateOrganization(ctx context.Context, r provision.Request) (*provision.Result, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		s.t.Error("the founding has no bound")
	}
	fails, amid := s.fails, s.amid
	s.fails, s.amid = nil, nil
	if amid != nil {
		amid()
	}
	if fails != nil {
		return nil, fails
	}
	s.made = append(s.made, string(r.Slug))
	head := storage.Head{Root: tlog.EmptyRoot(), ConfigVersion: 1}
	return &provision.Result{Slug: r.Slug}, s.store.Append([]storage.Batch{{Tenant: id.NewTenant(), Head: head}}).Wait()[0]
}

// found sets up the service with a token and checks the status of the refusal, or 0 for success.
func (s *service) found(name string, p *provision.Setup, token, slug string, want fault.Kind) {
	s.t.Helper()
	_, err := p.FoundOrganization(s.t.Context(), token, provision.Request{Slug: id.Slug(slug)})
	if (err == nil) != (want == 0) || err != nil && !fault.Is(err, want) {
		s.t.Errorf("%s: got %v, want %v", name, err, want)
	}
}

func (s *service) token(p *provision.Setup) string {
	s.t.Helper()
	token, err := p.NewToken(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return token
}

// The token of each process is valid at every other one, until the process restarts or the time is over. Of all tokens,
// one makes one organization.
func TestTokensOfSeveralProcesses(t *testing.T) {
	s := newService(t)
	one, two, three := s.process("one"), s.process("two"), s.process("three")
	void, kept, other := s.token(one), s.token(two), s.token(three)
	again := s.token(s.process("one"))
	s.found("a token before a restart", two, void, "red", fault.Unauthorized)
	s.found("none", two, "", "red", fault.Unauthorized)
	s.found("another", two, strings.Repeat("a", 43), "red", fault.Unauthorized)
	s.fails = fault.New(fault.Invalid, "a common password")
	s.found("refused", one, kept, "red", fault.Invalid)
	s.now = s.now.Add(provision.SetupLife - time.Millisecond)
	s.found("at another process", one, kept, "red", 0)
	for _, token := range []string{kept, other, again} {
		s.found("again", three, token, "blue", fault.Conflict)
	}
	if !slices.Equal(s.made, []string{"red"}) || s.token(two) != "" {
		t.Errorf("made %v", s.made)
	}
}

func TestTokenEnds(t *testing.T) {
	s := newService(t)
	one := s.process("one")
	token := s.token(one)
	s.now = s.now.Add(provision.SetupLife)
	s.found("late", s.process("two"), token, "red", fault.Unauthorized)
	for range 65 { // processes that restart under other names do not fill the record
		token = s.token(s.process(token))
	}
	r, err := s.store.Get(t.Context(), id.Service, "setup", "")
	if err != nil || strings.Count(string(r.Value), `"hash"`) != 64 || strings.Contains(string(r.Value), `"`+token+`"`) {
		t.Errorf("got %s, %v", r.Value, err)
	}
	alone := s.token(s.process(""))
	s.found("of a process that is not alone any more", one, token, "red", fault.Unauthorized)
	s.found("alone", one, alone, "red", 0)
}

// While one process creates the organization, the others create none, even if its completion is lost.
func TestFoundingExcludesOthers(t *testing.T) {
	s := newService(t)
	one, two := s.process("one"), s.process("two")
	first, second := s.token(one), s.token(two)
	s.amid = func() {
		s.found("meanwhile", two, second, "blue", fault.Overloaded)
		s.found("meanwhile, without a token", two, "", "blue", fault.Unauthorized)
		second = s.token(s.process("two"))
		s.found("meanwhile, after a restart", two, second, "blue", fault.Overloaded)
	}
	s.fails = fault.New(fault.OutcomeUnknown, "it may exist")
	s.found("lost", one, first, "red", fault.OutcomeUnknown)
	s.found("after a lost outcome", two, second, "blue", fault.Overloaded)
	s.now = s.now.Add(time.Minute)
	s.found("a minute later", two, second, "blue", 0)
	s.found("and then", one, first, "red", fault.Conflict)
	if !slices.Equal(s.made, []string{"blue"}) {
		t.Errorf("made %v", s.made)
	}
}

// A process that serves alone and died during a founding does not wait for itself.
func TestRestartInAFounding(t *testing.T) {
	s := newService(t)
	token := s.token(s.process(""))
	s.fails = fault.New(fault.OutcomeUnknown, "it may exist")
	s.found("lost", s.process(""), token, "red", fault.OutcomeUnknown)
	s.found("started anew", s.process(""), s.token(s.process("")), "red", 0)
}

// raced is a store in which another process writes the record between a read and a write of this one.
type raced struct {
	storagetest.Engine
	amid func()
}

func (r *raced) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	if amid := r.amid; amid != nil {
		r.amid = nil
		amid()
	}
	return r.Engine.Write(ctx, t, changes)
}

func TestProcessesAtOnce(t *testing.T) {
	s := newService(t)
	store := &raced{Engine: s.store}
	one, two := s.process("one"), s.process("two")
	one.Store = store
	var second string
	store.amid = func() { second = s.token(two) }
	first := s.token(one)
	store.amid = func() { s.found("the other process", two, second, "blue", 0) }
	s.found("in the middle", one, first, "red", fault.Overloaded)
	s.found("and then", one, first, "red", fault.Conflict)
	if !slices.Equal(s.made, []string{"blue"}) {
		t.Errorf("made %v", s.made)
	}
}

// If the store cannot be read or written, there is no token; an organization that was already created is still
// returned.
func TestStoreFails(t *testing.T) {
	s := newService(t)
	p := s.process("one")
	token := s.token(p)
	frozen := s.process("one")
	frozen.ReadOnly = true
	if got := s.token(frozen); got != "" {
		t.Error("got a token of a store that takes no writes")
	}
	s.found("not renewed", p, token, "red", 0)
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := p.NewToken(t.Context()); got != "" || !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("got %q, %v", got, err)
	}
	s.found("closed", p, token, "red", fault.Unavailable)
}
