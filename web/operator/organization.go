package operator

import (
	"strconv"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity/platform"
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

func (p *pages) showOrganization(r *page.Request) (any, error) {
	shown, err := p.Identity.Operator.ShowOrganization(r.Context(), r.PathParameter("organization"))
	if err != nil {
		return nil, err
	}
	r.Title = shown.Name
	return organizationView{OrganizationDetail: shown, Own: ownLimits(shown.Limits),
		LogURL: r.Kit.Public + "/log/" + string(shown.Slug)}, nil
}

// organizationPage redirects to the page of the form's organization.
func organizationPage(r *page.Request, notice string) page.Outcome {
	return page.GoTo(r.Address(organizationsPage, r.PathParameter("organization")), notice)
}

func (p *pages) changeOrganization(r *page.Request, patch platform.OrganizationPatch) (page.Outcome, error) {
	_, err := p.Identity.Operator.ChangeOrganization(r.Context(), r.PathParameter("organization"), patch)
	return organizationPage(r, "saved"), err
}

// changePlan sets the plan and all limits.
func (p *pages) changePlan(r *page.Request) (page.Outcome, error) {
	patch := platform.OrganizationPatch{Plan: new(r.Value("plan"))}
	own := &patch.Limits
	limits := map[string]*platform.Nullable[uint64]{"events_per_month": &own.EventsPerMonth, "agents": &own.Agents,
		"ingest_keys": &own.IngestKeys, "policies": &own.Policies, "policy_versions": &own.PolicyVersions,
		"statements_per_minute": &own.StatementsPerMinute}
	for _, l := range ownLimits(nil) {
		limits[l.Name].Given = true
		if text := r.Value(l.Name); text != "" {
			n, err := strconv.ParseUint(text, 10, 53)
			if err != nil {
				return page.Outcome{}, fault.New(fault.Invalid,
					l.Title+" must be a whole number, or empty for the plan's limit")
			}
			limits[l.Name].Value = &n
		}
	}
	return p.changeOrganization(r, patch)
}

func (p *pages) switchOn(r *page.Request) (page.Outcome, error) {
	return p.changeOrganization(r, platform.OrganizationPatch{Active: new(true)})
}

func (p *pages) switchOff(r *page.Request) (page.Outcome, error) {
	return p.changeOrganization(r, platform.OrganizationPatch{Active: new(false)})
}

// freeSignIn lifts the required sign-in method.
func (p *pages) freeSignIn(r *page.Request) (page.Outcome, error) {
	return p.changeOrganization(r, platform.OrganizationPatch{SignIn: platform.Nullable[struct{}]{Given: true}})
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
	key, err := p.Identity.Operator.RotateLogKey(r.Context(), r.PathParameter("organization"))
	return p.showKey(r, "A new log key", key), err
}

func (p *pages) retireKey(r *page.Request) (page.Outcome, error) {
	key, err := p.Identity.Operator.RetireLogKey(r.Context(), r.PathParameter("organization"))
	return p.showKey(r, "The older log key is retired", key), err
}

func (p *pages) showKey(r *page.Request, title string, key wire.LogKey) page.Outcome {
	return page.ShowOnce(p.views, "logkey", title, keyView{LogKey: key, Slug: r.PathParameter("organization")})
}

func (p *pages) askWitnesses(r *page.Request) (page.Outcome, error) {
	found, err := p.Identity.Operator.AskWitnesses(r.Context(), r.PathParameter("organization"))
	if err == nil && len(found.Asked) == 0 {
		return organizationPage(r, "witnesses-none"), nil
	}
	return organizationPage(r, "witnesses-asked"), err
}

func (p *pages) reindex(r *page.Request) (page.Outcome, error) {
	return organizationPage(r, "reindexing"),
		p.Identity.Operator.ReindexOrganization(r.Context(), r.PathParameter("organization"))
}

func (p *pages) correctClock(r *page.Request) (page.Outcome, error) {
	_, err := p.Identity.Operator.CorrectClock(r.Context(), r.PathParameter("organization"), r.Value("reason"))
	return organizationPage(r, "log-clock"), err
}
