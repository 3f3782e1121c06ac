package console

import (
	"net/url"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// Script is the module of a page with the guide.
const Script = "guide.js"

// Modules returns the modules that Script imports statically.
func Modules() []string { return []string{Script, "times.js"} }

// Values fill in the guide's programs. The page does not know empty values.
type Values struct {
	OrganizationID id.Organization
	Slug           id.Slug
	Origin         id.Origin
	LogKey         string
	AgentID        id.Agent
	KeyID          id.Key

	PrivateKey, Token string // shown once
}

// View is the part of a page that contains the guide. The page's content holds it as Guide.
type View struct {
	Values
	URL    string // of the service
	Events string // call that reports the first event of an agent
	Public string // path prefix of the organization's public calls
	Checks []page.Check
}

// Describe returns the guide of an organization.
func Describe(k *page.Kit, v Values) *View {
	query := url.Values{"order": {"oldest"}, "signer": {"agent"}, "limit": {"1"}}
	return &View{Values: v, URL: k.Public, Events: k.Base + "/v1/console/events?" + query.Encode(),
		Public: k.Base + "/v1/public/orgs/" + url.PathEscape(string(v.Slug)), Checks: page.EventChecks()}
}

// foundedView is the content of a new organization's page.
type foundedView struct {
	wire.Founded
	Guide *View
}

// showFounded shows a new organization with its secrets once.
func (p *pages) showFounded(a wire.Founded) page.Outcome {
	v := foundedView{a, Describe(p.kit, Values{OrganizationID: a.Organization.ID, Slug: a.Organization.Slug,
		Origin: a.Origin, LogKey: a.LogKey, AgentID: a.Agent.AgentID, KeyID: a.Agent.KeyID,
		PrivateKey: a.Agent.PrivateB64, Token: a.IngestKey.Secret})}
	return page.ShowOnce(p.views, "founded", "Your organization", v).
		WithScript(Script, "times.js")
}
