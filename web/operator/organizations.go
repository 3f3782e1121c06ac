package operator

import (
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/web/page"
	"github.com/agentledger/agentledger/web/screen"
)

// organization is an organization as the operator sees it.
type organization struct {
	ID     string `json:"organization_id"`
	Slug   string `json:"slug"`
	Name   string `json:"name"`
	Plan   string `json:"plan"`
	Active bool   `json:"active"`
	Fault  string `json:"fault"`
	Unread string `json:"unread"` // why its ledger can't be read
	Usage  *usage `json:"usage"`  // nil: it can't be read

	// Of one organization alone.
	Origin     string             `json:"origin"`
	CreatedAt  string             `json:"created_at"`
	Disclosure string             `json:"disclosure"`
	SignIn     string             `json:"sign_in"`
	Limits     map[string]*uint64 `json:"limits"` // its own; nil: the plan's
}

type usage struct {
	Month           string  `json:"month"`
	EventsThisMonth uint64  `json:"events_this_month"`
	EventsPerMonth  *uint64 `json:"events_per_month"` // nil: no bound
	ResetsAt        string  `json:"resets_at"`
	IngestKeys      uint64  `json:"ingest_keys"`
}

// Bound returns the number of events of a month, 0 for no bound.
func (u *usage) Bound() uint64 {
	if u.EventsPerMonth == nil {
		return 0
	}
	return *u.EventsPerMonth
}

// organizationsView is the content of the list.
type organizationsView struct {
	State         state
	Organizations []organization
	Next          string // address of the next page
}

func showOrganizations(r *screen.Request) (any, error) {
	var found struct {
		Organizations []organization `json:"organizations"`
		Next          string         `json:"next"`
	}
	if err := r.Read(organizationCalls, r.PageQuery(), &found); err != nil {
		return nil, err
	}
	now, err := readState(r)
	return organizationsView{State: now, Organizations: found.Organizations, Next: r.NextPage(found.Next)}, err
}

// newView is the content of the form for a new organization.
type newView struct{ Disclosures []page.Option }

func showNewOrganization(*screen.Request) (any, error) {
	return newView{Disclosures: page.Disclosures()}, nil
}

// foundedView is the content of the page that shows the secrets of a new organization.
type foundedView struct {
	ID      string `json:"organization_id"`
	Slug    string `json:"slug"`
	Origin  string `json:"origin"`
	LogKey  string `json:"log_key"`
	Account string `json:"account"` // created or known
	Agent   struct {
		AgentID string `json:"agent_id"`
		KeyID   string `json:"key_id"`
		Private string `json:"private_key_b64"`
	} `json:"agent"`
	IngestKey struct {
		KeyID  string `json:"key_id"`
		Secret string `json:"secret"`
	} `json:"ingest_key"`
	Owner, PublicURL string
}

func (p *pages) foundOrganization(r *screen.Request) (screen.Outcome, error) {
	made := foundedView{Owner: r.Value("admin_email"), PublicURL: p.PublicURL}
	body := map[string]string{"name": r.Value("name"), "slug": r.Value("slug"), "admin_email": made.Owner,
		"disclosure": r.Value("disclosure")}
	if plan := r.Value("plan"); plan != "" {
		body["plan"] = plan
	}
	if password := r.Form.Get("admin_password"); password != "" {
		body["admin_password"] = password
	}
	if err := r.Change(http.MethodPost, organizationCalls, body, &made); err != nil {
		return screen.Outcome{}, err
	}
	return screen.ShowOnce(p.views, "founded", "The organization is made", made), nil
}

// organizationCall returns the path of the organization that an address names, with more behind it.
func organizationCall(r *screen.Request, more string) string {
	return organizationCalls + "/" + url.PathEscape(r.PathParameter("organization")) + more
}
