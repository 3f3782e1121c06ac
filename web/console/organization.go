package console

import (
	"strconv"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/web/page"
)

const settingsPage = "/console/settings"

func (p *pages) organizationScreens() []page.Screen {
	return []page.Screen{
		{Pattern: settingsPage, Views: p.views, Name: "organization", Title: "Settings", Show: p.showOrganization,
			Forms: p.organizationForms()},
		{Pattern: settingsPage + "/approvals", Views: p.views, Name: "settingsapprovals", Title: "Approvals",
			Show: p.showOrganization, Forms: p.organizationForms()},
		{Pattern: settingsPage + "/sign-in", Views: p.views, Name: "settingssignin", Title: "Sign-in",
			Show: p.showOrganization, Forms: p.organizationForms()},
		{Pattern: settingsPage + "/retention", Views: p.views, Name: "settingsretention", Title: "Retention",
			Show: p.showOrganization, Forms: p.organizationForms()},
	}
}

// organizationForms returns the forms of the organization's settings. Each of their pages accepts all of them.
func (p *pages) organizationForms() map[string]page.Form {
	return map[string]page.Form{"change": p.changeOrganization, "two-people": p.requireTwoPeople,
		"sign-in": p.requireSignIn, "retain": p.changeRetention, "votes": p.changeVoteRules}
}

// usedLimit is a row of the table of limits.
type usedLimit struct {
	Title string
	wire.PlanLimit
}

// limitRows returns the limits in display order.
func limitRows(l wire.PlanLimits) []usedLimit {
	return []usedLimit{
		{"Events this month", l.EventsPerMonth}, {"Agents", l.Agents}, {"Active keys of an agent", l.ActiveKeysPerAgent},
		{"Keys of an agent in all", l.KeysPerAgent}, {"Ingest keys", l.IngestKeys}, {"Policies", l.Policies},
		{"Versions of a policy", l.PolicyVersions}, {"Changes in the last minute", l.StatementsPerMinute},
	}
}

// organizationView is the content of the settings page.
type organizationView struct {
	Organization wire.Organization
	Usage        wire.PlanUsage
	Bounds       []usedLimit
	Keys         []wire.LogKey
	LogURL       string
	PublicURL    string
	Disclosures  []page.Option
	SignIns      []page.Option
	MayManage    bool
	MayOwn       bool
}

func (p *pages) showOrganization(r *page.Request) (any, error) {
	v := organizationView{MayManage: r.Person.May("manage"), MayOwn: r.Person.May("own"), PublicURL: r.Kit.Public,
		Disclosures: page.Disclosures()}
	var err error
	if v.Organization, err = visitOf(r).Console.ShowOrganization(r.Context(), visitOf(r).caller); err != nil {
		return nil, err
	}
	if v.Usage, err = visitOf(r).Console.ShowPlanUsage(r.Context(), visitOf(r).caller); err != nil {
		return nil, err
	}
	v.Bounds, v.LogURL = limitRows(v.Usage.Limits), r.Address("/log", string(v.Organization.Slug))
	if v.Keys, err = readLogKeys(r); err != nil {
		return nil, err
	}
	v.SignIns = listSignIns(r, string(v.Organization.SignIn.Require))
	return v, nil
}

// readLogKeys reads the keys that sign the log's checkpoints, latest last.
func readLogKeys(r *page.Request) ([]wire.LogKey, error) {
	found, err := visitOf(r).LogKeys(r.Context(), visitOf(r).caller.Who.Tenant)
	keys := make([]wire.LogKey, len(found))
	for i, k := range found {
		keys[i] = wire.LogKey{VKey: k.Key.String(), Use: "log", FromSize: k.From}
		if k.To < tlog.MaxSize {
			keys[i].ToSize = &k.To
		}
	}
	return keys, err
}

// listSignIns returns the sign-in methods that can be required, including the required one.
func listSignIns(r *page.Request, required string) []page.Option {
	ways := []page.Option{{Value: "", Title: "any"}, {Value: "passkey", Title: "a passkey"}}
	for _, provider := range r.Providers() {
		ways = append(ways, page.Option{Value: "oidc:" + provider.Name, Title: "the provider " + provider.Name})
	}
	for _, way := range ways {
		if way.Value == required {
			return ways
		}
	}
	return append(ways, page.Option{Value: required, Title: required})
}

// patch changes settings of the organization, and shows their page again.
func (p *pages) patch(r *page.Request, patch api.OrganizationPatch) (page.Outcome, error) {
	v := visitOf(r)
	_, err := v.Console.ChangeOrganization(r.Context(), v.caller, patch)
	return page.GoTo(r.Kit.Base+r.URL.Path, "saved"), err
}

func (p *pages) changeOrganization(r *page.Request) (page.Outcome, error) {
	patch := api.OrganizationPatch{Name: new(r.Value("name")), Disclosure: new(id.Disclosure),
		SelfReview: new(r.Checked("self_review")), Published: new(r.Checked("publish_policies")), InMail: new(r.Checked("columns_in_mail"))}
	if err := edge.ParseMember("disclosure", r.Value("disclosure"), patch.Disclosure); err != nil {
		return page.Outcome{}, err
	}
	return p.patch(r, patch)
}

func (p *pages) requireTwoPeople(r *page.Request) (page.Outcome, error) {
	return p.patch(r, api.OrganizationPatch{TwoPerson: new(r.Checked("two_person_policy"))})
}

func (p *pages) requireSignIn(r *page.Request) (page.Outcome, error) {
	return p.patch(r, api.OrganizationPatch{SignIn: &wire.RequiredSignIn{Require: wire.Text(r.Value("require"))}})
}

func (p *pages) changeVoteRules(r *page.Request) (page.Outcome, error) {
	hours, err := strconv.Atoi(r.Value("vote_hold_hours"))
	if err != nil {
		return page.Outcome{}, fault.Wrap(fault.Invalid, "vote_hold_hours must be a whole number from 0 to 2160", err)
	}
	signed := "optional"
	if r.Checked("signed_votes") {
		signed = "required"
	}
	return p.patch(r, api.OrganizationPatch{VoteHold: &hours, Signed: &signed})
}

func (p *pages) changeRetention(r *page.Request) (page.Outcome, error) {
	days, err := strconv.Atoi(r.Value("retention_days"))
	if err != nil {
		return page.Outcome{}, fault.Wrap(fault.Invalid, "retention_days must be a whole number from 0 to 36500", err)
	}
	return p.patch(r, api.OrganizationPatch{Retention: &days, LegalHold: new(r.Checked("legal_hold"))})
}
