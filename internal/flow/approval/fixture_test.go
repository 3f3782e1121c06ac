package approval_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
)

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue

	ann = account.ID("acc_ann") // created the key ik_ann and the agent ann-bot
	bob = account.ID("acc_bob")
	eve = account.ID("acc_eve")
)

// world has two organizations in which refunds need approval.
type world struct {
	*ledgertest.Service
	t         testing.TB
	agents    *agent.Agents
	book      *policystore.Policies
	approvals *approval.Approvals
	webhooks  *webhook.Sender
	people    *people
	calls     *callee
	keys      map[id.Tenant]agent.Credentials // the first agent of each organization
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOn(t, ledgertest.New(t))
}

func newWorldOn(t testing.TB, s *ledgertest.Service) *world {
	t.Helper()
	w := &world{Service: s, t: t, people: newPeople(), calls: new(callee), keys: map[id.Tenant]agent.Credentials{}}
	w.people.clock = w.Clock
	w.open()
	for _, tenant := range []id.Tenant{red, blue} {
		records, credentials, err := w.agents.NewAgent(t.Context(), tenant, sysevent.Operator, agent.Wanted{})
		if err != nil {
			t.Fatal(err)
		}
		s.Found(t, tenant, records...)
		w.keys[tenant] = credentials
		w.activate(tenant, "refunds", 1)
	}
	return w
}

// open starts a new process on the stored state.
func (w *world) open() {
	w.agents = agent.New(agent.Options{Records: w.Engine, Events: w.SystemEvents, Clock: w.Clock})
	w.book = policystore.New(policystore.Options{Records: w.Engine, Events: w.SystemEvents, Clock: w.Clock})
	w.webhooks = webhook.New(webhook.Options{Records: w.Engine, Keyring: w.Keyring(), Caller: w.calls, Clock: w.Clock})
	w.approvals = approval.New(approval.Options{
		Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Policies: w.book, Agents: w.agents,
		Organizations: w.people, Members: w.people, Deputies: w.people, Keyring: w.Keyring(), Clock: w.Clock,
		Webhooks: w.webhooks,
	})
}

// activate activates a policy under which refunds need a number of approvals.
func (w *world) activate(tenant id.Tenant, name string, quorum int) {
	w.t.Helper()
	document := fmt.Appendf(nil, `{"policy_id":"%s","name":"Refunds","rules":[
		{"rule_id":"refund","tool":"acme.refund","decision":"allow_with_obligation","reason":"money leaves",
		 "obligations":[{"type":"human_approval","approvals":%d,"ttl_seconds":600}]},
		{"rule_id":"drop","tool":"acme.drop","decision":"deny"}]}`, name, quorum)
	if _, err := w.book.Create(w.t.Context(), tenant, "acc_rules", document); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.book.Activate(w.t.Context(), tenant, "acc_rules", name); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) question(tenant id.Tenant) approval.Question {
	return approval.Question{
		Agent: w.keys[tenant].Agent, Tool: "acme.refund", Payload: []byte(`{"amount":7}`), Trace: "trc_1", IngestKeyID: "ik_operator",
	}
}

func (w *world) ask(tenant id.Tenant, q approval.Question) approval.Approval {
	w.t.Helper()
	a, made, err := w.approvals.Ask(w.t.Context(), tenant, q)
	if err != nil || !made {
		w.t.Fatalf("ask: made %v, %v", made, err)
	}
	return a
}

func (w *world) vote(tenant id.Tenant, a approval.Approval, who account.ID, vote string) (approval.Approval, error) {
	return w.approvals.Vote(w.t.Context(), tenant, a.ID, approval.Ballot{
		Account: who, Email: string(who) + "@example.com", Vote: vote, Remark: approval.Remark{Comment: "so be it"}, Action: a.ActionDigest,
	})
}

func (w *world) approve(tenant id.Tenant, a approval.Approval, who account.ID) {
	w.t.Helper()
	if _, err := w.vote(tenant, a, who, approval.Approve); err != nil {
		w.t.Fatal(err)
	}
}

// claim returns a valid claim, signed by the first key of a tenant's agent.
func (w *world) claim(tenant id.Tenant, a approval.Approval) approval.Claim {
	w.t.Helper()
	proof := w.keys[tenant].Private.Sign(approval.ConsumeMessage(a.ID, a.ActionDigest))
	return approval.Claim{IngestKeyID: a.IngestKeyID, Action: a.ActionDigest, Proof: proof[:]}
}

// deliver makes the calls that are due, and returns when they have been answered.
func (w *world) deliver() {
	w.t.Helper()
	logger := slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(w.t.Context())
	defer stop()
	err := w.webhooks.Sweep(w.t.Context(), logger) // the deliveries that it starts continue after ctx ends
	stop()
	w.webhooks.Run(ctx, logger) // returns when no delivery is in flight
	if err != nil {
		w.t.Logf("deliver: %v", err)
	}
}

func (w *world) status(tenant id.Tenant, a approval.Approval) approval.Status {
	w.t.Helper()
	found, err := w.approvals.Find(w.t.Context(), tenant, a.ID)
	if err != nil {
		w.t.Fatal(err)
	}
	return found.Status
}

// transitions returns the recorded transitions of an approval, in ledger order.
func (w *world) transitions(tenant id.Tenant, a approval.Approval) []string {
	w.t.Helper()
	var all []string
	for _, said := range w.Audit(w.t, tenant) {
		if said.Kind == "ledger_approval" && contains(said.Payload, `"approval_id":"`+string(a.ID)+`"`) {
			all = append(all, between(said.Payload, `"transition":"`, `"`)+" by "+said.Principal)
		}
	}
	return all
}

func wantKind(t testing.TB, name string, err error, kind fault.Kind) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("%s: got %v, want kind %d", name, err, kind)
	}
}

// people has the members and ingest keys of both organizations.
type people struct {
	mu         sync.Mutex
	roles      map[account.ID]account.Role
	selfReview bool
	former     map[account.ID][]string
	proved     bool // all addresses are proved
	deputies   []member.Deputyship
	clock      func() time.Time
	asked      int  // how often deputies were read
	readOnce   bool // deputies end after the next reading
}

// Represented implements approval.Deputies.
func (p *people) Represented(context.Context, id.Tenant) (map[account.ID]account.ID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	found, now := map[account.ID]account.ID{}, id.InstantOf(p.clock())
	for _, d := range p.deputies {
		if role, is := p.roles[d.Deputy]; is && !approval.MayVote(role) && approval.MayVote(p.roles[d.Person]) && d.From <= now && now < d.Until {
			found[d.Deputy] = d.Person
		}
	}
	if p.readOnce {
		p.deputies = nil
	}
	return found, nil
}

// represent makes deputies vote in place of others from now until a time.
func (p *people) represent(all ...member.Deputyship) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deputies = all
}

func newPeople() *people {
	return &people{roles: map[account.ID]account.Role{ann: account.Owner, bob: account.Approver, eve: account.Admin, "acc_member": account.Member}}
}

func (p *people) set(who account.ID, r account.Role) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roles[who] = r
}

func (p *people) remove(who account.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.roles, who)
}

func (p *people) allow(selfReview bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.selfReview = selfReview
}

func (p *people) Membership(_ context.Context, t id.Tenant, who account.ID) (account.Membership, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	role, ok := p.roles[who]
	if !ok {
		return account.Membership{}, fault.New(fault.NotFound, "Not found")
	}
	return account.Membership{Account: who, Tenant: t, Role: role}, nil
}

func (p *people) ByID(_ context.Context, who account.ID) (account.Account, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.roles[who]; !ok {
		return account.Account{}, fault.New(fault.NotFound, "Not found")
	}
	proof := account.Unproved
	if p.proved {
		proof = account.ProvedByMail
	}
	return account.Account{ID: who, Email: string(who) + "@example.com", FormerEmails: p.former[who], Proof: proof}, nil
}

// moves replaces an address of a user.
func (p *people) moves(who account.ID, from string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.former == nil {
		p.former = make(map[account.ID][]string)
	}
	p.former[who] = append(p.former[who], from)
}

func (p *people) Settings(context.Context, *log.State) (*org.Settings, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &org.Settings{Active: true, SelfReview: p.selfReview}, nil
}

func (p *people) IngestKey(_ context.Context, _ id.Tenant, key string) (org.IngestKey, error) {
	if key == "ik_ann" {
		return org.IngestKey{ID: key, CreatedBy: string(ann)}, nil
	}
	made := org.IngestKey{ID: key, CreatedBy: sysevent.Operator}
	if strings.HasPrefix(key, "ik_only_") {
		made.Agents = []id.Agent{"an agent"}
	}
	return made, nil
}

// callee accepts any callback address except http addresses.
type callee struct {
	mu     sync.Mutex
	bodies []string
	names  []string // webhook-id values
}

func (c *callee) CheckURL(address string) error {
	if !strings.HasPrefix(address, "https://") {
		return egress.ErrRefused
	}
	return nil
}

func (c *callee) Post(_ context.Context, _ string, header http.Header, body []byte) (egress.Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, header.Get("Webhook-Id"))
	c.bodies = append(c.bodies, string(body))
	return egress.Answer{Status: 204}, nil
}
