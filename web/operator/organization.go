package operator

import (
	"net/http"
	"strconv"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// organizationView is the content of an organization's page.
type organizationView struct {
	wire.OrganizationDetail
	Own    []ownLimit
	LogURL string
}

// ownLimit is a limit that overrides the plan's.
type ownLimit struct{ Name, Title, Value string }

// ownLimits returns the limits that an organization can override, with the values of l.
func ownLimits(l *wire.OwnLimits) []ownLimit {
	if l == nil {
		l = new(wire.OwnLimits)
	}
	text := func(n *uint64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatUint(*n, 10)
	}
	return []ownLimit{
		{"events_per_month", "Events in a month", text(l.EventsPerMonth)},
		{"agents", "Agents", text(l.Agents)},
		{"ingest_keys", "Ingest keys that are not revoked", text(l.IngestKeys)},
		{"policies", "Policies", text(l.Policies)},
		{"policy_versions", "Versions of a policy", text(l.PolicyVersions)},
		{"statements_per_minute", "Changes of people in a minute", text(l.StatementsPerMinute)},
	}
}

func showOrganization(r *page.Request) (any, error) {
	var v organizationView
	if err := r.Read(organizationCall(r, ""), nil, &v.OrganizationDetail); err != nil {
		return nil, err
	}
	v.Own = ownLimits(v.Limits)
	v.LogURL = r.Kit.Public + "/log/" + string(v.Slug)
	r.Title = "Organization " + string(v.Slug)
	return v, nil
}

// organizationPage redirects to the page of the form's organization.
func organizationPage(r *page.Request, notice string) page.Outcome {
	return page.GoTo(r.Address(organizationsPage, r.PathParameter("organization")), notice)
}

func changeOrganization(r *page.Request, body any) (page.Outcome, error) {
	return organizationPage(r, "saved"), r.Change(http.MethodPatch, organizationCall(r, ""), body, nil)
}

// changePlan sets the plan and all limits.
func changePlan(r *page.Request) (page.Outcome, error) {
	limits := make(map[string]*uint64)
	for _, l := range ownLimits(nil) {
		limits[l.Name] = nil
		if text := r.Value(l.Name); text != "" {
			n, err := strconv.ParseUint(text, 10, 53)
			if err != nil {
				return page.Outcome{}, fault.New(fault.Invalid,
					l.Title+": give a whole number, or none for the plan's")
			}
			limits[l.Name] = &n
		}
	}
	return changeOrganization(r, map[string]any{"plan": r.Value("plan"), "limits": limits})
}

func switchOn(r *page.Request) (page.Outcome, error) {
	return changeOrganization(r, map[string]bool{"active": true})
}

func switchOff(r *page.Request) (page.Outcome, error) {
	return changeOrganization(r, map[string]bool{"active": false})
}

// freeSignIn lifts the required sign-in method.
func freeSignIn(r *page.Request) (page.Outcome, error) {
	return changeOrganization(r, map[string]any{"sign_in": nil})
}

// keyView is the content of the page that shows a log key after a change.
type keyView struct {
	wire.LogKey
	Slug string
}

// Ends returns the tree size from which a retired key signs nothing.
func (k keyView) Ends() id.Index {
	if k.ToSize == nil {
		return 0
	}
	return *k.ToSize
}

func (p *pages) rotateKey(r *page.Request) (page.Outcome, error) {
	return p.changeKey(r, "/log-keys", "A new log key")
}

func (p *pages) retireKey(r *page.Request) (page.Outcome, error) {
	return p.changeKey(r, "/log-keys/retire", "The older log key is retired")
}

func (p *pages) changeKey(r *page.Request, call, title string) (page.Outcome, error) {
	key := keyView{Slug: r.PathParameter("organization")}
	err := r.Change(http.MethodPost, organizationCall(r, call), nil, &key.LogKey)
	return page.ShowOnce(p.views, "logkey", title, key), err
}

func askWitnesses(r *page.Request) (page.Outcome, error) {
	var found wire.AskedWitnesses
	err := r.Change(http.MethodPost, organizationCall(r, "/witnesses/ask"), nil, &found)
	if err == nil && len(found.Asked) == 0 {
		return organizationPage(r, "witnesses-none"), nil
	}
	return organizationPage(r, "witnesses-asked"), err
}

func reindex(r *page.Request) (page.Outcome, error) {
	return organizationPage(r, "reindexing"), r.Change(http.MethodPost, organizationCall(r, "/reindex"), nil, nil)
}

func correctClock(r *page.Request) (page.Outcome, error) {
	body := map[string]string{"reason": r.Value("reason")}
	return organizationPage(r, "log-clock"), r.Change(http.MethodPost, organizationCall(r, "/clock"), body, nil)
}
