package transfer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
)

const password = "correct horse battery"

// resident is one organization from the perspective of its people and agents.
type resident struct {
	*house
	*provision.Result
	random *rand.Rand
	owner  string
	events []*event.Envelope // that were stored
	keys   []string          // idempotency key of each, "" for none
	made   int

	rotating bool // two log keys sign at present
	erases   bool // erases events, so an older export cannot be continued
}

// found creates an organization. Its owner may have others.
func (h *house) found(slug id.Slug, owner string, seed uint64) *resident {
	h.t.Helper()
	r := provision.Request{Name: string(slug), Slug: slug, AdminEmail: owner, AdminPassword: password}
	if _, err := h.accounts.Find(h.t.Context(), owner); err == nil {
		r.AdminPassword = ""
	}
	made, err := h.founder.CreateOrganization(h.t.Context(), r)
	if err == nil && made.Known {
		made.Membership, err = h.accounts.Accept(h.t.Context(), made.Tenant, made.Membership.Account)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return &resident{house: h, Result: made, owner: owner, random: rand.New(rand.NewPCG(seed, 7))}
}

// at returns the same organization in another place.
func (r *resident) at(h *house) *resident {
	moved := *r
	moved.house = h
	h.now = r.now
	return &moved
}

func (r *resident) name(kind string) string {
	r.made++
	return fmt.Sprintf("%s-%s-%d", r.Slug, kind, r.made)
}

// live performs a number of random acts, with some time between them.
func (r *resident) live(acts int) {
	r.t.Helper()
	for range acts {
		var err error
		switch n := r.random.IntN(20); {
		case n < 11:
			r.send(1 + r.random.IntN(60))
		case n == 11:
			_, _, err = r.agents.CreateAgent(r.t.Context(), r.Tenant, sysevent.Operator, agent.Wanted{DisplayName: r.name("agent")})
		case n == 12:
			err = r.revoke()
		case n < 15:
			err = r.activate()
		case n == 15:
			_, err = r.policies.Create(r.t.Context(), r.Tenant, "acc_x", policyOf(r.name("draft"), "acme.drop"))
		case n == 16:
			disclosure := id.Disclosure(1 + r.random.IntN(3))
			name := r.name("name")
			_, err = r.orgs.Change(r.t.Context(), r.Tenant, "acc_x", org.Patch{Disclosure: &disclosure, Name: &name})
		case n == 17:
			err = r.ingestKeys()
		case n == 18 && r.random.IntN(3) == 0:
			err = r.rotate()
		case n == 18:
			err = r.ask()
		case n == 19 && r.erases:
			err = r.erase()
		default:
			_, err = r.login()
		}
		if err != nil {
			r.t.Fatal(err)
		}
		r.now = r.now.Add(time.Duration(r.random.IntN(72)) * time.Hour)
	}
}

func policyOf(name, tool string) []byte {
	return fmt.Appendf(nil, `{"policy_id":"%s","name":"Policy","rules":[
		{"rule_id":"ask","tool":"acme.refund","decision":"allow_with_obligation","obligations":[{"type":"human_approval","ttl_seconds":600}]},
		{"rule_id":"no","tool":"%s","decision":"deny"}]}`, name, tool)
}

func (r *resident) activate() error {
	name := r.name("policy")
	if _, err := r.policies.Create(r.t.Context(), r.Tenant, "acc_x", policyOf(name, "acme.drop")); err != nil {
		return err
	}
	_, err := r.policies.Activate(r.t.Context(), r.Tenant, "acc_x", name)
	return err
}

// erase erases a range of events and the newest event.
func (r *resident) erase() error {
	eraser := erasure.EnvelopeEraser{Appender: r.systemEvents, Ledgers: r.ledgers}
	size := r.state(r.Tenant).Size()
	begin := id.Index(uint64(r.made) * 7919 % uint64(size))
	end := min(size, begin+50)
	_, err := eraser.Erase(r.t.Context(), r.Tenant, "acc_x", func(context.Context, *log.State) (erasure.Selection, error) {
		return erasure.Selection{Ranges: []id.Range{{Begin: begin, End: end}, {Begin: size - 1, End: size}}, Reason: "retention"}, nil
	})
	return err
}

func (r *resident) revoke() error {
	_, made, err := r.agents.CreateAgent(r.t.Context(), r.Tenant, sysevent.Operator, agent.Wanted{ID: id.Agent(r.name("bot"))})
	if err != nil {
		return err
	}
	from := r.state(r.Tenant).Size() / 2
	_, err = r.agents.RevokeKey(r.t.Context(), r.Tenant, "acc_x", made.Agent, made.Key, agent.Revocation{CompromisedFrom: &from, Reason: "lost"})
	return err
}

func (r *resident) ingestKeys() error {
	key, _, err := r.orgs.CreateIngestKey(r.t.Context(), r.Tenant, "acc_x", org.WantedKey{Name: r.name("key")})
	if err == nil && r.random.IntN(2) == 0 {
		err = r.orgs.RevokeIngestKey(r.t.Context(), r.Tenant, "acc_x", key.ID)
	}
	return err
}

// rotate begins the rotation of the log key, or ends it.
func (r *resident) rotate() error {
	change := r.orgs.RotateLogKey
	if r.rotating {
		change = r.orgs.RetireLogKey
	}
	r.rotating = !r.rotating
	_, err := change(r.t.Context(), r.Tenant, sysevent.Operator)
	return err
}

// ask requests an approval that the policy requires.
func (r *resident) ask() error {
	_, _, err := r.approvals.Ask(r.t.Context(), r.Tenant, approval.Question{
		Agent: r.Agent.Agent, Tool: "acme.refund", Payload: []byte(`{"amount":7}`), Trace: id.Trace(r.name("trace")), IngestKeyID: r.IngestKey.ID,
	})
	if fault.Is(err, fault.Invalid) {
		return nil
	}
	return err
}

// login opens a session of the owner.
func (r *resident) login() (*account.Session, error) {
	who, err := r.accounts.Authenticate(r.t.Context(), r.owner, password, netip.MustParseAddr("192.0.2.1"))
	if err != nil {
		return nil, err
	}
	_, s, err := r.accounts.Open(r.t.Context(), who, r.Tenant)
	return s, err
}

// send stores n events, some of them with an idempotency key.
func (r *resident) send(n int) {
	r.t.Helper()
	var prepares []log.Prepare
	for range n {
		e, key := r.envelope(r.name("event")), ""
		if r.random.IntN(3) == 0 {
			key = "key of " + string(e.EventID)
		}
		r.events, r.keys = append(r.events, e), append(r.keys, key)
		prepares = append(prepares, r.prepare(e, key))
	}
	for _, o := range r.ledgers.AppendAll(r.t.Context(), r.Tenant, prepares) {
		if o.Err != nil {
			r.t.Fatal(o.Err)
		}
	}
}

func (r *resident) prepare(e *event.Envelope, key string) log.Prepare {
	return func(ctx context.Context, s *log.State) (log.Submission, error) {
		disclosure, err := r.orgs.Disclosure(ctx, s)
		draft := log.NewDraft(s.Identity(), e, log.Attestation{
			Form: event.FormDigest, PublicKey: did.Multikey(r.Agent.Private.Public().Bytes()), Signer: event.SignerAgent, Custody: event.CustodyServer,
			IngestKeyID: r.IngestKey.ID, Policy: event.Policy{Declared: id.Allow, Effective: id.Deny},
			Disclosure: disclosure, IdempotencyKey: key,
		})
		return log.Submission{Drafts: []log.Draft{draft}}, err
	}
}

func (r *resident) envelope(name string) *event.Envelope {
	r.t.Helper()
	text := make([]rune, r.random.IntN(40))
	for i := range text {
		text[i] = []rune("aé\u2028\"\\<\U0001f600\x01\n")[r.random.IntN(9)]
	}
	return r.signed(name, string(text))
}

// signed returns an event with a text in its payload.
func (r *resident) signed(name, text string) *event.Envelope {
	r.t.Helper()
	unsigned, err := json.Marshal(map[string]any{
		"schema_version": 1, "event_id": name, "organization_id": r.State.Identity().Organization.String(),
		"trace_id": "trc", "agent_id": r.Agent.Agent, "key_id": r.Agent.Key, "emitted_at": "2026-10-20T12:00:00.000Z",
		"actor_type": "agent", "actor_principal": "svc", "action_kind": "tool_call", "tool_name": "acme.orders.read",
		"policy_decision": "allow", "payload": map[string]any{"text": text, "n": r.random.Float64()},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	signed, err := event.Sign(unsigned, r.Agent.Private)
	if err != nil {
		r.t.Fatal(err)
	}
	e, err := event.Parse(signed, event.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	return e
}

// works checks that everything works where the organization is now: stored events are replayed, keys and people are
// accepted, and the next event is stored.
func (r *resident) works() {
	r.t.Helper()
	ctx := r.t.Context()
	for i := range r.events {
		if i%7 != 0 {
			continue
		}
		queries := []log.Query{{Event: r.events[i].EventID, Key: r.keys[i], IngestKey: r.IngestKey.ID, Digest: r.events[i].Digest}}
		if r.keys[i] != "" {
			queries = append(queries, log.Query{Event: "new", Key: r.keys[i], IngestKey: r.IngestKey.ID, Digest: r.events[(i+1)%len(r.events)].Digest})
		}
		state, err := r.ledgers.State(ctx, r.Tenant)
		if err != nil {
			r.t.Fatal(err)
		}
		replays := r.ledgers.Replays(ctx, state, queries)
		if !replays[0].Known || replays[0].Err != nil {
			r.t.Fatalf("event %s: got %+v, want that it is known", r.events[i].EventID, replays[0])
		}
		if len(replays) > 1 && !fault.Is(replays[1].Err, fault.Invalid) {
			r.t.Fatalf("key %q with another event: got %+v", r.keys[i], replays[1])
		}
	}
	if caller, err := r.orgs.Authenticate(ctx, r.Token.Reveal()); err != nil || caller.Tenant != r.Tenant {
		r.t.Errorf("ingest key: got %+v, %v", caller, err)
	}
	if t, err := r.orgs.BySlug(ctx, r.Slug); err != nil || t != r.Tenant {
		r.t.Errorf("slug: got %d, %v", t, err)
	}
	if s, err := r.login(); err != nil || s.Tenant != r.Tenant || s.Role != account.Owner {
		r.t.Errorf("login: got %+v, %v", s, err)
	}
	if owner, err := r.agents.Owner(ctx, r.Agent.Agent); err != nil || owner != r.Tenant {
		r.t.Errorf("did: got owner %d, %v", owner, err)
	}
	before := r.state(r.Tenant).Size()
	r.send(3)
	if got := r.state(r.Tenant).Size(); got != before+3 {
		r.t.Errorf("got size %d after three events, want %d", got, before+3)
	}
	if err := r.activate(); err != nil {
		r.t.Errorf("activate: %v", err)
	}
}
