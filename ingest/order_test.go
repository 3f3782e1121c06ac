package ingest_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
)

// brittle is a source of policies that can be made unreadable.
type brittle struct {
	policystore.ActiveSource
	broken atomic.Bool
}

func (b *brittle) Active(ctx context.Context, s *log.State) (*policy.Compiled, error) {
	if b.broken.Load() {
		return nil, fault.New(fault.Unavailable, "The policy can't be read")
	}
	return b.ActiveSource.Active(ctx, s)
}

// attempt is a request to which defects are added.
type attempt struct {
	token   string
	headers []string
	change  fields
	key     edkey.Private
	end     string // after the body
}

// defect is one defect of a request and the answer to a request with only this defect.
type defect struct {
	status  int
	message string
	put     func(*attempt)
}

// A request with several defects gets the answer for the first one, in the order of the checks.
func TestOrderOfChecks(t *testing.T) {
	rules := &brittle{}
	w := newWorld(t, func(o *ingest.Options) { rules.ActiveSource, o.Policies = o.Policies, rules })
	m := &w.red
	other, err := w.registered(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.agents.RetireKey(t.Context(), m.tenant, "acc", m.agent.Agent, other.Key); err != nil {
		t.Fatal(err)
	}
	unscoped := w.ingestKey(m, org.WantedKey{Scopes: mustScopes(t, "evaluate")})
	narrow := w.ingestKey(m, org.WantedKey{Agents: []id.Agent{"somebody.else"}})
	w.mustCreate(m, "known", nil, "Idempotency-Key: taken")
	limit := new(uint64)
	*limit = 1
	w.change(m, org.Patch{EventsPerMonth: &limit})
	rules.broken.Store(true)

	header := func(h string) func(*attempt) {
		return func(a *attempt) {
			name, _, _ := strings.Cut(h, ":")
			var stored []string
			for _, other := range a.headers {
				if !strings.HasPrefix(other, name+":") {
					stored = append(stored, other)
				}
			}
			a.headers = append(stored, h)
		}
	}
	set := func(name string, value any) func(*attempt) { return func(a *attempt) { a.change[name] = value } }
	defects := []defect{
		{401, "Invalid API key", func(a *attempt) { a.token = "apl_live_nobody" }},
		{403, "The ingest key does not have the scope events", func(a *attempt) { a.token = unscoped }},
		{413, "The body is too large", set("payload", fields{"text": strings.Repeat("x", 256<<10)})},
		{415, "Content-Type must be application/json", header("Content-Type: text/csv")},
		{422, "Service-Version is not known; known versions: 2026-05-18", header("Service-Version: 1")},
		{422, "Idempotency-Key must be 1 to 255 visible ASCII characters, bare or as a quoted string", header("Idempotency-Key: a b")},
		{422, "The body has data after its JSON value: send one value", func(a *attempt) { a.end = "{}" }},
		{422, "organization_id must be a UUID", set("organization_id", "x")},
		{403, "Organization mismatch for API key", set("organization_id", w.blue.id.String())},
		{422, "trace_id must match [A-Za-z0-9._:-]{1,128} and not be . or ..", set("trace_id", "..")},
		{403, "The ingest key is not for this agent", func(a *attempt) { a.token = narrow }},
		{422, "Unknown signing key", set("key_id", "nothing")},
		{422, "Invalid signature", func(a *attempt) { a.key = w.blue.agent.Private }},
		{422, "Idempotency-Key was used with another event", header("Idempotency-Key: taken")},
		{422, "emitted_at is too far in the future", set("emitted_at", "2026-11-20T13:00:00Z")},
		{422, "Signing key retired", func(a *attempt) { a.key, a.change["key_id"] = other.Private, other.Key }},
		{503, "The policy can't be read", set("tool_name", "acme.orders.read")},
		{429, "Monthly event limit reached", func(*attempt) {}},
	}
	before := w.sizes()
	for i := range defects {
		a := attempt{token: m.token, change: fields{}, key: m.agent.Private}
		for j := len(defects) - 1; j >= i; j-- {
			defects[j].put(&a)
		}
		got := w.post(eventsPath, a.token, w.sloppy(m, &a)+a.end, a.headers...)
		w.expect(got, defects[i].status, defects[i].message)
		if i == 0 {
			w.inactive(m, func() { w.expectInactive(&a, defects[2:]) })
			before[0] += 2 // the statements of both changes
		}
	}
	if after := w.sizes(); after != before {
		t.Errorf("sizes went from %v to %v, want nothing stored", before, after)
	}
}

// inactive runs f while the organization is inactive.
func (w *world) inactive(m *member, f func()) {
	w.Helper()
	active := false
	w.change(m, org.Patch{Active: &active})
	f()
	active = true
	w.change(m, org.Patch{Active: &active})
}

// expectInactive sends a request with all the defects that are checked later.
func (w *world) expectInactive(a *attempt, later []defect) {
	w.Helper()
	bad := attempt{token: w.red.token, change: fields{}, key: a.key, headers: a.headers}
	for _, d := range later {
		if d.message != "The ingest key is not for this agent" {
			d.put(&bad)
		}
	}
	w.expect(w.post(eventsPath, bad.token, w.sloppy(&w.red, &bad)+bad.end, bad.headers...), http.StatusForbidden, "The organization is inactive")
	w.expect(w.post(evaluatePath, bad.token, "x", bad.headers...), http.StatusForbidden, "The organization is inactive")
}

// sloppy is envelope for members that event.Sign rejects. The signature is valid if the other members are.
func (w *world) sloppy(m *member, a *attempt) string {
	w.Helper()
	if a.change["trace_id"] != nil || a.change["organization_id"] == "x" || a.change["payload"] != nil {
		return w.unchecked(m, "new", a.change)
	}
	return w.signed(w.unsigned(m, "new", a.change), a.key)
}

// registered registers another key of the member's agent.
func (w *world) registered(m *member) (agent.Credentials, error) {
	private := edkey.NewPrivate()
	signature := private.Sign(agent.ProofMessage(m.id, m.agent.Agent, "", private.Public()))
	key, err := w.agents.RegisterKey(context.Background(), m.tenant, "acc", m.agent.Agent, agent.Registration{
		PublicKey: private.Public().String(), Proof: base64Of(signature[:]),
	})
	return agent.Credentials{Agent: m.agent.Agent, Key: key.ID, Private: private}, err
}

func mustScopes(t *testing.T, names ...string) org.Scopes {
	t.Helper()
	scopes, err := org.ParseScopes(names)
	if err != nil {
		t.Fatal(err)
	}
	return scopes
}
