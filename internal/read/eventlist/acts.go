package eventlist

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
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

// List returns a page of acts. The parameters are those of events, outcome, confirmed, conditions on columns, and approver, which is an account
// ID or an email address. An address of a person who never voted in the organization selects nothing, like an unknown one.
func (r *ActReader) List(ctx context.Context, a Asked) (wire.Acts, error) {
	q, err := r.parseQuery(ctx, a)
	if err != nil {
		return wire.Acts{}, err
	}
	line, err := r.Events.openLine(ctx, a)
	if err != nil {
		return wire.Acts{}, err
	}
	q.Envelopes, q.Longest, q.TakeTurn = a.Role.May(account.ReadPayloads), a.Wait, a.TakeTurn
	page, err := r.Events.Index.List(ctx, line.tenant, q)
	if err != nil {
		return wire.Acts{}, err
	}
	shown := wire.Acts{Next: Cursor(page.Next), IndexedTo: page.End, Predecessor: line.predecessor, Searched: describeSearch(&q, &page)}
	if shown.Columns, err = r.columns(ctx, a, line); err != nil {
		return wire.Acts{}, err
	}
	if shown.Acts, err = r.describe(ctx, a.Tenant, line, page.Rows, shown.Columns); err != nil || !a.Values.Has("identifiers") {
		return shown, err
	}
	return shown, r.addIdentifiers(ctx, line.tenant, shown.Acts)
}

// Columns returns the paths of the columns that List shows.
func (r *ActReader) Columns(ctx context.Context, a Asked) ([]string, error) {
	line, err := r.Events.openLine(ctx, a)
	if err != nil {
		return nil, err
	}
	return r.columns(ctx, a, line)
}

func (r *ActReader) columns(ctx context.Context, a Asked, of line) (paths []string, err error) {
	if !a.Role.May(account.ReadPayloads) {
		return nil, nil
	}
	s, err := r.Events.Ledgers.State(ctx, of.tenant)
	if err != nil {
		return nil, err
	}
	named, err := r.Events.Organizations.Columns(ctx, s)
	for _, c := range named {
		if a.Shows == nil || a.Shows(c.Path) {
			paths = append(paths, c.Path)
		}
	}
	return paths, err
}

func (r *ActReader) parseQuery(ctx context.Context, a Asked) (q index.Query, err error) {
	if q, err = ParseQuery(a.Values, a.After, a.Limit); err != nil {
		return q, err
	}
	if q.Acts = true; a.Wait > 0 && q.Text == "" {
		return q, fault.New(fault.Invalid, "wait needs q")
	}
	if a.Values.Has("identifiers") {
		switch {
		case a.Values.Get("identifiers") != "1":
			return q, fault.New(fault.Invalid, "identifiers must be 1")
		case !a.Role.May(account.ReadPayloads):
			return q, fault.New(fault.Forbidden, "Your role does not allow this")
		}
	}
	if q.Columns, err = parseConditions(a); err != nil {
		return q, err
	}
	if name := a.Values.Get("outcome"); name != "" {
		if q.Outcome, err = index.ParseOutcome(name); err != nil {
			return q, fault.Wrap(fault.Invalid, "outcome must be done, failed, refused, denied, expired, cancelled, unknown, "+
				"waiting or open", err)
		}
	}
	switch a.Values.Get("confirmed") {
	case "":
	case "yes":
		q.Receipts = index.OnlyConfirmed
	case "no":
		q.Receipts = index.NotConfirmed
	default:
		return q, fault.New(fault.Invalid, "confirmed must be yes or no")
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
	columns, err := r.columns(ctx, a, line)
	if err != nil {
		return wire.Act{}, err
	}
	shown, err := r.describe(ctx, a.Tenant, line, page.Rows, columns)
	if err != nil {
		return wire.Act{}, err
	}
	return shown[0], nil
}

// describe describes the acts of a page. Names are the current ones of the organization.
func (r *ActReader) describe(ctx context.Context, t id.Tenant, of line, rows []index.Row, columns []string) ([]wire.Act, error) {
	shown, erased := make([]wire.Act, len(rows)), r.Events.erasuresOf(of.tenant)
	names := nameReader{ActReader: r, tenant: t, agents: make(map[id.Agent]string), people: make(map[string]account.Account)}
	results, err := r.readResults(ctx, of.tenant, rows)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		w := &rows[i]
		a := wire.Act{Index: w.Index, ID: w.Event, Hash: w.Hash, ReceivedAt: w.ReceivedAt, Agent: w.Agent, Tool: w.Tool, Kind: w.Kind,
			Trace: w.Trace, Caller: w.Caller, Principal: wire.Text(w.Principal), OnBehalfOf: describeOnBehalfOf(w), Outcome: w.Act.Outcome.String(), Decision: w.Effective,
			DecidedBy: describePolicy(w), Approval: wire.Text(w.Act.Approval),
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
		if a.Result != nil {
			a.Result.Receipt, a.Result.ConfirmedBy = w.Act.Receipt.String(), w.Act.ConfirmedBy
		}
		shown[i] = a
	}
	return shown, r.addColumns(ctx, of.tenant, shown, columns)
}

// addColumns adds the values of columns, which it reads from the envelopes.
func (r *ActReader) addColumns(ctx context.Context, t id.Tenant, shown []wire.Act, columns []string) error {
	if len(columns) == 0 || len(shown) == 0 {
		return nil
	}
	s, err := r.Events.Ledgers.State(ctx, t)
	if err != nil {
		return err
	}
	places := make(map[id.Index]int, len(shown))
	at := make([]id.Index, len(shown))
	for i := range shown {
		at[i], places[shown[i].Index] = shown[i].Index, i
	}
	slices.Sort(at)
	for e, err := range r.Events.Ledgers.EventsAt(ctx, s, at, storage.FieldEnvelope) {
		if err != nil {
			return err
		}
		a := &shown[places[e.Index]]
		a.Columns = make(map[string]jsontext.Value, len(columns))
		payload := index.PayloadOf(e.Envelope)
		for _, path := range columns {
			value, reason := index.ReadValue(payload, path)
			if e.Envelope == nil {
				reason = index.Erased
			}
			if reason == "" {
				a.Columns[path] = bytes.Clone(value)
				continue
			}
			if a.Columns[path] = jsontext.Value("null"); a.Absent == nil {
				a.Absent = make(map[string]string)
			}
			a.Absent[path] = reason
		}
	}
	return nil
}

// parseConditions parses the parameter column, which may be repeated. It returns fault.Forbidden for a role that may not read payloads.
func parseConditions(a Asked) (all []column.Condition, err error) {
	given := a.Values["column"]
	if len(given) > 0 && !a.Role.May(account.ReadPayloads) {
		return nil, fault.New(fault.Forbidden, "Your role does not allow this")
	}
	for _, text := range given {
		c, err := column.ParseCondition(text)
		if err != nil {
			return nil, err
		}
		if all = append(all, c); len(all) > column.MaxConditions {
			break // List refuses them
		}
	}
	return all, nil
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

// account returns an account, which is zero if there is none with this ID any more.
func (n *nameReader) account(ctx context.Context, name string) (who account.Account, err error) {
	if name == "" {
		return who, nil
	}
	who, known := n.people[name]
	if !known {
		if who, err = n.People.ByID(ctx, account.ID(name)); err != nil && !fault.Is(err, fault.NotFound) {
			return who, err
		}
		n.people[name] = who
	}
	return who, nil
}

func (n *nameReader) vote(ctx context.Context, v index.Vote) (wire.ActVote, error) {
	who, err := n.account(ctx, v.Account)
	if err != nil {
		return wire.ActVote{}, err
	}
	vote := "deny"
	if v.Approve {
		vote = "approve"
	}
	represented, err := n.account(ctx, v.DeputyFor)
	return wire.ActVote{Account: v.Account, Name: wire.Text(who.DisplayName), Email: wire.Text(who.Email), Vote: vote,
		DeputyFor: v.DeputyFor, DeputyForName: cmp.Or(represented.DisplayName, represented.Email)}, err
}
