package console

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/share"
	"github.com/agentledger/agentledger/internal/wire"
)

// sharedRole is the role with whose rights a view is read: everybody who may share views may read columns of payloads.
const sharedRole = account.Auditor

// Maximum numbers of requests for shared views in flight, in all and per organization. They are few, so that holders of links
// leave members their share. Downloads count separately, because they take as long as their readers do.
const (
	maxShared                    = 64
	maxSharedOrganization        = 8
	maxSharedStreams             = 8
	maxSharedStreamsOrganization = 2
)

// countAge is how old the counts of a view may be: to count millions of acts takes some ten milliseconds.
const countAge = 10 * time.Second

// newSharedCounts returns the cache of the counts of views.
func newSharedCounts(clock func() time.Time) *cache.Loading[share.ID, wire.Stats] {
	return cache.NewLoading(cache.LoadingOptions[share.ID, wire.Stats]{MaxAge: countAge, Clock: clock, Limit: 4096})
}

// Shared is a view of acts that the holder of a link reads, during one request.
type Shared struct {
	Organization string // its name
	Slug         id.Slug
	Origin       id.Origin
	Query        url.Values // of the view
	Agent        string     // name of the agent in the query; "" if none
	Approver     string     // name of the approver in the query; "" if none
	ExpiresAt    id.Instant

	server *Server
	tenant id.Tenant
	link   share.Link
}

// sharedClass returns how requests for shared views are admitted.
func (s *surface) sharedClass() *admission.Class {
	return &admission.Class{Control: s.Control, Limit: s.shared, Queue: s.Control.Reads, Yields: true}
}

// ReadShared calls read with the view of a link, under the load control, after it has recorded the opening of the link
// (share.Links.Open). It returns fault.NotFound if the link is not open.
func (s *Server) ReadShared(r *http.Request, secret string, read func(context.Context, *Shared) error) error {
	if err := s.openShared(r, secret); err != nil {
		return err
	}
	reading := &sharedCall{server: s, request: r, secret: secret, call: func(ctx context.Context, v *Shared) error {
		if err := v.describe(ctx); err != nil {
			return err
		}
		return read(ctx, v)
	}}
	return s.surface.sharedClass().Serve(r, reading)
}

// openShared records that a link was opened. It is a call of its own, because an append must not wait in a slot of reads.
func (s *Server) openShared(r *http.Request, secret string) error {
	class := &admission.Class{Control: s.surface.Control, Limit: s.surface.shared, Yields: true}
	opening := &sharedCall{server: s, request: r, secret: secret, call: func(ctx context.Context, v *Shared) error {
		ctx = sysevent.WithSource(ctx, sysevent.Source{Credential: sysevent.ByShare, ID: string(v.link.ID), Address: s.surface.Address(r)})
		return s.Shares.Open(ctx, v.tenant, v.link)
	}}
	return class.Serve(r, opening)
}

// sharedCall is one call of the holder of a link.
type sharedCall struct {
	server  *Server
	request *http.Request
	secret  string
	found   Shared
	call    func(context.Context, *Shared) error
}

// Identify implements admission.Call.
func (c *sharedCall) Identify() (t admission.Tenant, err error) {
	err = c.found.find(c.request.Context(), c.server, c.secret)
	return admission.Tenant{ID: c.found.tenant, Public: true}, err
}

// Handle implements admission.Call.
func (c *sharedCall) Handle() error {
	err := c.call(c.request.Context(), &c.found)
	return c.server.surface.Edge.CheckLost(err, c.found.tenant, nil)
}

// find finds the link of a secret.
func (v *Shared) find(ctx context.Context, s *Server, secret string) (err error) {
	v.server = s
	if v.tenant, v.link, err = s.Shares.Find(ctx, secret); err != nil {
		return err
	}
	return s.surface.Edge.CheckOwner(ctx, v.tenant)
}

// describe reads what the view is called.
func (v *Shared) describe(ctx context.Context) (err error) {
	if v.Query, err = url.ParseQuery(v.link.Query); err != nil {
		return err
	}
	settings, err := v.server.Orgs.CurrentSettings(ctx, v.tenant)
	if err != nil {
		return err
	}
	v.Organization, v.Slug, v.Origin, v.ExpiresAt = settings.Name, settings.Slug, id.Origin(v.Query.Get("log")), v.link.ExpiresAt
	if who := v.Query.Get("agent_id"); who != "" {
		found, err := v.server.Agents.Agent(ctx, v.tenant, id.Agent(who))
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		v.Agent = cmp.Or(found.DisplayName, who)
	}
	if who := v.Query.Get("approver"); who != "" {
		v.Approver, err = v.nameMember(ctx, account.ID(who))
	}
	return err
}

// nameMember returns the name of a member, or anApprover for every other account.
func (v *Shared) nameMember(ctx context.Context, who account.ID) (string, error) {
	var found account.Account
	_, err := v.server.Members.Accounts.StoredMembership(ctx, v.tenant, who)
	if err == nil {
		found, err = v.server.People.ByID(ctx, who)
	}
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return cmp.Or(found.DisplayName, anApprover), err
}

// anApprover names approvers without a name. Holders of links see no addresses and no accounts.
const anApprover = "An approver"

func (v *Shared) ask(after string, limit int) eventlist.Asked {
	return eventlist.Asked{Tenant: v.tenant, Role: sharedRole, Values: v.Query, After: after, Limit: limit,
		Shows: func(path string) bool { return slices.Contains(v.link.Columns, path) }}
}

// IsRange reports whether the view has all acts of a range of the log. Only then an evidence pack can prove that none is missing.
func (v *Shared) IsRange() bool {
	for name := range v.Query {
		if !slices.Contains([]string{"from", "to", "log"}, name) {
			return false
		}
	}
	return true
}

// Acts returns at most limit acts of the view after a cursor, latest first.
func (v *Shared) Acts(ctx context.Context, after string, limit int) (wire.Acts, error) {
	found, err := v.server.acts.List(ctx, v.ask(after, limit))
	for i := range found.Acts {
		redactAct(&found.Acts[i])
	}
	return found, err
}

// Columns returns the columns of payloads that the view shows: those of the link, unless the organization has removed them.
func (v *Shared) Columns(ctx context.Context) ([]string, error) {
	return v.server.acts.Columns(ctx, v.ask("", 1))
}

// IsLost reports whether the view selects by a column that the organization has removed, so that its acts can't be selected.
func (v *Shared) IsLost(ctx context.Context) (bool, error) {
	named, err := v.Columns(ctx)
	if err != nil {
		return false, err
	}
	for _, text := range v.Query["column"] {
		if c, err := column.ParseCondition(text); err == nil && !slices.Contains(named, c.Path) {
			return true, nil
		}
	}
	return false, nil
}

// Count returns the counts of the view's acts, which may be countAge old.
func (v *Shared) Count(ctx context.Context) (wire.Stats, error) {
	asked := v.ask("", 1)
	asked.Values = maps.Clone(v.Query)
	asked.Values.Set("by", "outcome")
	return v.server.counts.Get(ctx, v.link.ID, func(ctx context.Context) (wire.Stats, error) { return v.server.acts.Count(ctx, asked) })
}

// Act returns an act of the view, by the ID of its event. It returns fault.NotFound for acts that are not in the view. It asks
// the list of the view for the act, so both always agree.
func (v *Shared) Act(ctx context.Context, name string) (wire.Act, error) {
	found, err := v.server.acts.Find(ctx, v.ask("", 1), name)
	if err != nil {
		return wire.Act{}, err
	}
	if string(found.ID) != name {
		return wire.Act{}, fault.New(fault.NotFound, "Not found")
	}
	next := found.Index + 1
	page, err := v.Acts(ctx, string(eventlist.Cursor(&next)), 1)
	if err != nil {
		return wire.Act{}, err
	}
	if len(page.Acts) == 0 || page.Acts[0].ID != found.ID {
		return wire.Act{}, fault.New(fault.NotFound, "Not found")
	}
	return page.Acts[0], nil
}

// redactAct removes what holders of links do not see: addresses and accounts of those who voted, for whom the agent acted, and
// the IDs of the organization's objects, except for the agent's if it has no name.
func redactAct(a *wire.Act) {
	for i, v := range a.Votes {
		a.Votes[i] = wire.ActVote{Name: wire.Text(cmp.Or(string(v.Name), anApprover)), Vote: v.Vote}
	}
	if a.AgentName != "" {
		a.Agent = ""
	}
	a.OnBehalfOf = nil
	a.Principal, a.Trace, a.Caller, a.Approval, a.Policy, a.Digest = "", "", "", "", "", ""
}

// sharedDownload is the download of a shared view.
type sharedDownload struct {
	exchange
	server *Server
	shared *Shared
}

// Identify implements admission.Call.
func (d *sharedDownload) Identify() (t admission.Tenant, err error) {
	d.shared = new(Shared)
	err = d.shared.find(d.Context(), d.server, d.PathParameter("secret"))
	return d.forTenant(), err
}

// forTenant returns the organization of the view, as the load control counts it.
func (d *sharedDownload) forTenant() admission.Tenant {
	return admission.Tenant{ID: d.shared.tenant, Public: true}
}

// Handle implements admission.Call.
func (d *sharedDownload) Handle() (err error) {
	d.answer, err = d.shared.stream(d.Context())
	return d.surface.Edge.CheckLost(err, d.shared.tenant, nil)
}

// Send implements admission.Sender.
func (d *sharedDownload) Send() error { return d.stream(d.surface.downloads, d.forTenant()) }

// stream answers with the acts of the view as CSV.
func (v *Shared) stream(ctx context.Context) (answer, error) {
	if err := v.describe(ctx); err != nil {
		return answer{}, err
	}
	columns, err := v.Columns(ctx)
	if err != nil {
		return answer{}, err
	}
	return streamAnswer("acts", v.ask("", MaxRows), FormatCSV, List[wire.Act]{
		Columns: append([]string{"log_index", "event_id", "received_at", "agent", "tool_name", "outcome", "decision", "rule_id", "approved_by",
			"denied_by"}, columnNames(columns)...),
		Cells: func(a wire.Act) []Cell {
			return append([]Cell{NumberCell(a.Index), TextCell(a.ID), TextCell(a.ReceivedAt.String()), TextCell(cmp.Or(string(a.AgentName), string(a.Agent))),
				TextCell(a.Tool), TextCell(a.Outcome), TextCell(a.Decision.String()), TextCell(a.Rule), TextCell(joinVoters(a.Votes, "approve")),
				TextCell(joinVoters(a.Votes, "deny"))}, columnCells(&a, columns)...)
		},
		Page: func(ctx context.Context, after string, limit int) ([]wire.Act, wire.Text, error) {
			page, err := v.Acts(ctx, after, limit)
			return page.Acts, page.Next, err
		},
	}), nil
}
