package console

import (
	"net/url"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

func (p *pages) overviewScreens() []page.Screen {
	return []page.Screen{{Pattern: "/console", Views: p.views, Name: "overview", Title: "Overview", Show: show,
		Script: Script, Modules: Modules()}}
}

// view is the content of the page.
type view struct {
	Organization wire.Organization
	Usage        wire.PlanUsage
	Votes        wire.Approvals // on which the reader may vote
	Waiting      wire.Approvals // others that are pending
	Events       []newEvent     // the latest
	Faults       []openFault
	Guide        *View // nil once an agent has sent events
	LogURL       string
	Role         string
}

// Numbers of approvals of a kind and of events that are listed.
const (
	fewApprovals = "5"
	fewEvents    = "10"
)

func show(r *page.Request) (any, error) {
	v := view{Role: r.Person.User.Role}
	var err error
	if v.Organization, err = visitOf(r).Console.ShowOrganization(r.Context(), visitOf(r).caller); err != nil {
		return nil, err
	}
	if v.Usage, err = visitOf(r).Console.ShowPlanUsage(r.Context(), visitOf(r).caller); err != nil {
		return nil, err
	}
	v.LogURL = r.Address("/log", string(v.Organization.Slug))
	if err := v.readApprovals(r); err != nil {
		return nil, err
	}
	if err := v.readFaults(r); err != nil {
		return nil, err
	}
	return &v, v.readEvents(r)
}

// readApprovals reads the pending approvals, separating those on which the reader may vote.
func (v *view) readApprovals(r *page.Request) (err error) {
	query := url.Values{"status": {"pending"}, "limit": {fewApprovals}}
	if v.Waiting, err = visitOf(r).Console.ListApprovals(r.Context(), visitOf(r).caller, query); err != nil || !r.Person.May("vote") {
		return err
	}
	query.Set("may_vote", "true")
	if v.Votes, err = visitOf(r).Console.ListApprovals(r.Context(), visitOf(r).caller, query); err != nil {
		return err
	}
	others := v.Waiting.Approvals[:0]
	for _, a := range v.Waiting.Approvals {
		if !a.MayVote {
			others = append(others, a)
		}
	}
	v.Waiting.Approvals = others
	return nil
}

// newEvent is one of the latest events.
type newEvent struct {
	wire.Event
	URL string
}

// readEvents reads the latest events. If no agent has sent one, the page shows the guide.
func (v *view) readEvents(r *page.Request) error {
	found, err := visitOf(r).Console.ListEvents(r.Context(), visitOf(r).caller, url.Values{"limit": {fewEvents}})
	if err != nil {
		return err
	}
	for _, e := range found.Events {
		v.Events = append(v.Events, newEvent{e, r.Address("/console/events", string(e.ID))})
	}
	for _, signer := range []string{"agent", "bridge"} {
		query := url.Values{"limit": {"1"}, "signer": {signer}}
		found, err = visitOf(r).Console.ListEvents(r.Context(), visitOf(r).caller, query)
		if err != nil || len(found.Events) > 0 {
			return err
		}
	}
	return v.readGuide(r)
}

// readGuide adds the guide with the values that the reader's role may see. They contain no secrets.
func (v *view) readGuide(r *page.Request) error {
	values := Values{OrganizationID: v.Organization.ID, Slug: v.Organization.Slug, Origin: v.Organization.Origin}
	keys, err := readLogKeys(r)
	if err != nil {
		return err
	}
	if n := len(keys); n > 0 {
		values.LogKey = keys[n-1].VKey // the latest
	}
	if values.AgentID, values.KeyID, err = readAgent(r); err != nil {
		return err
	}
	v.Guide = Describe(r.Kit, values)
	return nil
}

// readAgent returns the first agent that can sign, and its key, or "" for both if there is none.
func readAgent(r *page.Request) (agent id.Agent, key id.Key, err error) {
	agents, err := visitOf(r).Console.ListAgents(r.Context(), visitOf(r).caller, url.Values{"limit": {"10"}})
	if err != nil {
		return "", "", err
	}
	for _, a := range agents.Agents {
		keys, err := visitOf(r).Console.ListAgentKeys(r.Context(), visitOf(r).caller, string(a.AgentID), nil)
		if err != nil {
			return "", "", err
		}
		for _, k := range keys.Keys {
			if a.Active && k.Status == "active" {
				return a.AgentID, k.KeyID, nil
			}
		}
	}
	return "", "", nil
}
