package eventlist

import (
	"context"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/storage"
)

// People finds accounts. account.Accounts implements it.
type People interface {
	ByID(ctx context.Context, who account.ID) (account.Account, error)
	Find(ctx context.Context, email string) (account.Account, error)
}

// ActReader runs queries about acts. All members are required.
type ActReader struct {
	Events *Reader
	Agents *agent.Agents
	People People
}

// List returns a page of acts. The parameters are those of events, outcome and approver, which is an account ID or an
// email address.
func (r *ActReader) List(ctx context.Context, a Asked) (wire.Acts, error) {
	q, err := r.parseQuery(ctx, a)
	if err != nil {
		return wire.Acts{}, err
	}
	line, err := r.Events.openLine(ctx, a)
	if err != nil {
		return wire.Acts{}, err
	}
	q.Envelopes = a.Role.May(account.ReadPayloads)
	page, err := r.Events.Index.List(ctx, line.tenant, q)
	if err != nil {
		return wire.Acts{}, err
	}
	shown := wire.Acts{Next: Cursor(page.Next), IndexedTo: page.End, Predecessor: line.predecessor}
	shown.Acts, err = r.describe(ctx, a.Tenant, line, page.Rows)
	return shown, err
}

func (r *ActReader) parseQuery(ctx context.Context, a Asked) (q index.Query, err error) {
	if q, err = ParseQuery(a.Values, a.After, a.Limit); err != nil {
		return q, err
	}
	q.Acts = true
	if name := a.Values.Get("outcome"); name != "" {
		if q.Outcome, err = index.ParseOutcome(name); err != nil {
			return q, fault.Wrap(fault.Invalid, "outcome must be done, failed, refused, denied, expired, cancelled, unknown, "+
				"waiting or open", err)
		}
	}
	if q.Approver = a.Values.Get("approver"); q.Approver == "" {
		return q, nil
	}
	who, err := r.People.Find(ctx, q.Approver)
	if err == nil {
		q.Approver = string(who.ID)
	}
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) { // not an address: an account ID
		err = nil
	}
	return q, err
}

// Find returns an act. name is the ID, log index or hash of its event. It returns fault.NotFound for an event that is not an act.
func (r *ActReader) Find(ctx context.Context, a Asked, name string) (wire.Act, error) {
	line, err := r.Events.openLine(ctx, a)
	if err != nil {
		return wire.Act{}, err
	}
	row, err := r.Events.Index.Find(ctx, line.tenant, name)
	if err != nil {
		return wire.Act{}, err
	}
	this := index.Filter{Acts: true, From: index.Bound{Given: true, Index: row.Index}, To: index.Bound{Given: true, Index: row.Index + 1}}
	page, err := r.Events.Index.List(ctx, line.tenant, index.Query{Filter: this, Limit: 1})
	if err != nil {
		return wire.Act{}, err
	}
	if row.Index >= page.End {
		return wire.Act{}, &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The event is not indexed yet"}
	}
	if len(page.Rows) == 0 {
		return wire.Act{}, fault.New(fault.NotFound, "Not found")
	}
	shown, err := r.describe(ctx, a.Tenant, line, page.Rows)
	if err != nil {
		return wire.Act{}, err
	}
	return shown[0], nil
}

// describe describes the acts of a page. Names are the current ones of the organization.
func (r *ActReader) describe(ctx context.Context, t id.Tenant, of line, rows []index.Row) ([]wire.Act, error) {
	shown, erased := make([]wire.Act, len(rows)), r.Events.erasuresOf(of.tenant)
	names := nameReader{ActReader: r, tenant: t, agents: make(map[id.Agent]string), people: make(map[string]account.Account)}
	results, err := r.readResults(ctx, of.tenant, rows)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		w := &rows[i]
		a := wire.Act{Index: w.Index, ID: w.Event, Hash: w.Hash, ReceivedAt: w.ReceivedAt, Agent: w.Agent, Tool: w.Tool, Kind: w.Kind,
			Trace: w.Trace, Principal: wire.Text(w.Principal), Outcome: w.Act.Outcome.String(), Decision: w.Effective,
			Policy: wire.Text(w.Policy), Rule: wire.Text(w.Rule), Approval: wire.Text(w.Act.Approval),
			Votes: make([]wire.ActVote, len(w.Act.Votes)), Result: results[w.Act.Result]}
		if a.AgentName, err = names.agent(ctx, w.Agent); err != nil {
			return nil, err
		}
		for n, v := range w.Act.Votes {
			if a.Votes[n], err = names.vote(ctx, v); err != nil {
				return nil, err
			}
		}
		if a.ErasedAt, err = erased.time(ctx, w.ErasedBy); err != nil {
			return nil, err
		}
		shown[i] = a
	}
	return shown, nil
}

// readResults returns the results of acts by log index.
func (r *ActReader) readResults(ctx context.Context, t id.Tenant, rows []index.Row) (map[id.Index]*wire.ActResult, error) {
	results := make(map[id.Index]*wire.ActResult)
	var at []id.Index
	for i := range rows {
		if of := rows[i].Act.Result; of != 0 {
			at = append(at, of)
		}
	}
	if len(at) == 0 {
		return results, nil
	}
	state, err := r.Events.Ledgers.State(ctx, t)
	if err != nil {
		return nil, err
	}
	slices.Sort(at)
	for e, err := range r.Events.Ledgers.EventsAt(ctx, state, at, storage.FieldColumns) {
		if err != nil {
			return nil, err
		}
		results[e.Index] = &wire.ActResult{Index: e.Index, ID: e.ID}
	}
	return results, nil
}

// nameReader reads each name once per page.
type nameReader struct {
	*ActReader
	tenant id.Tenant
	agents map[id.Agent]string
	people map[string]account.Account
}

// agent returns the display name of an agent, which may be "".
func (n *nameReader) agent(ctx context.Context, who id.Agent) (wire.Text, error) {
	name, known := n.agents[who]
	if !known {
		found, err := n.Agents.Agent(ctx, n.tenant, who)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return "", err
		}
		name = found.DisplayName
		n.agents[who] = name
	}
	return wire.Text(name), nil
}

func (n *nameReader) vote(ctx context.Context, v index.Vote) (wire.ActVote, error) {
	who, known := n.people[v.Account]
	if !known {
		var err error
		if who, err = n.People.ByID(ctx, account.ID(v.Account)); err != nil && !fault.Is(err, fault.NotFound) {
			return wire.ActVote{}, err
		}
		n.people[v.Account] = who
	}
	vote := "deny"
	if v.Approve {
		vote = "approve"
	}
	return wire.ActVote{Account: v.Account, Name: wire.Text(who.DisplayName), Email: wire.Text(who.Email), Vote: vote}, nil
}
