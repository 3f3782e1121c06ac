package console

import (
	"net/url"

	"github.com/agentledger/agentledger/web/screen"
)

func (p *pages) overviewScreens() []screen.Screen {
	return []screen.Screen{{Pattern: "/console", Views: p.views, Name: "overview", Title: "Overview", Show: show,
		Script: Script, Modules: Modules()}}
}

// view is the content of the page.
type view struct {
	Organization ownOrganization
	Usage        usage
	Votes        approvals  // on which the reader may vote
	Waiting      approvals  // others that wait
	Events       []newEvent // the newest
	Faults       []openFault
	Guide        *View // nil where an agent has sent events
	LogURL       string
	Role         string
}

type ownOrganization struct {
	ID         string `json:"organization_id"`
	Name       string `json:"name"`
	Slug       string `json:"slug"`
	Origin     string `json:"origin"`
	Active     bool   `json:"active"`
	Disclosure string `json:"disclosure"`
	Fault      string `json:"fault"`
}

// usage is the use of the plan.
type usage struct {
	Plan     string `json:"plan"`
	Month    string `json:"month"`
	ResetsAt string `json:"resets_at"`
	Limits   struct {
		Events     used `json:"events_per_month"`
		Agents     used `json:"agents"`
		IngestKeys used `json:"ingest_keys"`
		Policies   used `json:"policies"`
	} `json:"limits"`
}

// used is the use of one bound; Limit is 0 for none.
type used struct {
	Used  uint64 `json:"used"`
	Limit uint64 `json:"limit"`
}

// So many approvals of a kind and so many events are listed.
const (
	fewApprovals = "5"
	fewEvents    = "10"
)

// approvals are the newest ones of a kind, and whether there are more.
type approvals struct {
	List []struct {
		ID        string `json:"approval_id"`
		Tool      string `json:"tool_name"`
		Agent     string `json:"agent_id"`
		ExpiresAt string `json:"expires_at"`
		MayVote   bool   `json:"may_vote"`
	} `json:"approvals"`
	Next string `json:"next"`
}

func show(r *screen.Request) (any, error) {
	v := view{Role: r.Person.User.Role}
	if err := r.Read("/v1/console/organization", nil, &v.Organization); err != nil {
		return nil, err
	}
	if err := r.Read("/v1/console/organization/plan-usage", nil, &v.Usage); err != nil {
		return nil, err
	}
	v.LogURL = r.Address("/log", v.Organization.Slug)
	if err := v.readApprovals(r); err != nil {
		return nil, err
	}
	if err := v.readFaults(r); err != nil {
		return nil, err
	}
	return &v, v.readEvents(r)
}

// readApprovals reads the approvals that wait, those on which the reader may vote apart.
func (v *view) readApprovals(r *screen.Request) error {
	query := url.Values{"status": {"pending"}, "limit": {fewApprovals}}
	if err := r.Read("/v1/console/approvals", query, &v.Waiting); err != nil || !r.Person.May("vote") {
		return err
	}
	query.Set("may_vote", "true")
	if err := r.Read("/v1/console/approvals", query, &v.Votes); err != nil {
		return err
	}
	others := v.Waiting.List[:0]
	for _, a := range v.Waiting.List {
		if !a.MayVote {
			others = append(others, a)
		}
	}
	v.Waiting.List = others
	return nil
}

// newEvent is one of the newest events.
type newEvent struct {
	ID         string `json:"event_id"`
	ReceivedAt string `json:"received_at"`
	Agent      string `json:"agent_id"`
	Tool       string `json:"tool_name"`
	Kind       string `json:"action_kind"`
	Decision   string `json:"effective"`
	Signer     string `json:"signer"`
	URL        string `json:"-"`
}

// readEvents reads the newest events. If no agent has sent one, the page has the guide.
func (v *view) readEvents(r *screen.Request) error {
	var found struct {
		Events []newEvent `json:"events"`
	}
	if err := r.Read("/v1/console/events", url.Values{"limit": {fewEvents}}, &found); err != nil {
		return err
	}
	v.Events = found.Events
	for i := range v.Events {
		v.Events[i].URL = r.Address("/console/events", v.Events[i].ID)
	}
	for _, signer := range []string{"agent", "bridge"} {
		found.Events = nil
		query := url.Values{"limit": {"1"}, "signer": {signer}}
		if err := r.Read("/v1/console/events", query, &found); err != nil || len(found.Events) > 0 {
			return err
		}
	}
	return v.readGuide(r)
}

// readGuide adds the guide with the values that the reader's role may know. Secrets are not among them.
func (v *view) readGuide(r *screen.Request) error {
	values := Values{OrganizationID: v.Organization.ID, Slug: v.Organization.Slug, Origin: v.Organization.Origin}
	var log struct {
		Keys []struct {
			Key string `json:"vkey"`
			Use string `json:"use"`
		} `json:"keys"`
	}
	err := r.Read("/v1/public/orgs/"+url.PathEscape(values.Slug)+"/transparency/keys", nil, &log)
	if err != nil {
		return err
	}
	for _, k := range log.Keys { // the newest last
		if k.Use == "log" {
			values.LogKey = k.Key
		}
	}
	if values.AgentID, values.KeyID, err = readAgent(r); err != nil {
		return err
	}
	v.Guide = Describe(r.Kit, values)
	return nil
}

// readAgent returns the first agent that can sign, and its key. Both are "" when there is none.
func readAgent(r *screen.Request) (agent, key string, err error) {
	var agents struct {
		Agents []struct {
			ID     string `json:"agent_id"`
			Active bool   `json:"active"`
		} `json:"agents"`
	}
	if err := r.Read("/v1/console/agents", url.Values{"limit": {"10"}}, &agents); err != nil {
		return "", "", err
	}
	for _, a := range agents.Agents {
		var keys struct {
			Keys []struct {
				ID     string `json:"key_id"`
				Status string `json:"status"`
			} `json:"keys"`
		}
		if err := r.Read("/v1/console/agents/"+url.PathEscape(a.ID)+"/keys", nil, &keys); err != nil {
			return "", "", err
		}
		for _, k := range keys.Keys {
			if a.Active && k.Status == "active" {
				return a.ID, k.ID, nil
			}
		}
	}
	return "", "", nil
}
