// Package guide has the first steps of an organization: its credentials, which are shown once, the programs that send
// a first event, and the wait for that event.
//
// Invariants:
//
//   - Secrets are in the answer to the form that made the organization, and in no address.
//   - The programs are those of the clients' documents, with the organization's values filled in.
//   - The proof of the first event is checked by the browser.
package guide

import (
	"embed"
	"net/url"

	"github.com/agentledger/agentledger/web/page"
	"github.com/agentledger/agentledger/web/screen"
)

//go:embed templates
var templates embed.FS

// Script is the module of a page with the guide.
const Script = "guide.js"

// Modules returns the modules that Script imports at once.
func Modules() []string { return []string{Script, "times.js"} }

// Answer is the answer of the interface to a new organization.
type Answer struct {
	Organization screen.Place `json:"organization"`
	Origin       string       `json:"origin"`
	LogKey       string       `json:"log_key"`
	Agent        struct {
		ID         string `json:"agent_id"`
		KeyID      string `json:"key_id"`
		PrivateKey string `json:"private_key_b64"`
	} `json:"agent"`
	IngestKey struct {
		ID     string `json:"key_id"`
		Secret string `json:"secret"`
	} `json:"ingest_key"`
}

// Values fill in the programs. An empty one is not known to the page.
type Values struct {
	OrganizationID, Slug, Origin, LogKey string
	AgentID, KeyID                       string
	PrivateKey, Token                    string // shown once
}

// View is the part of a page with the guide. Its content has it as Guide.
type View struct {
	Values
	URL    string // of the service
	Events string // the call that tells the first event of an agent
	Public string // the path before the public calls of the organization
	Checks []page.Check
}

// Describe returns the guide of an organization.
func Describe(k *page.Kit, v Values) *View {
	query := url.Values{"order": {"oldest"}, "signer": {"agent"}, "limit": {"1"}}
	return &View{Values: v, URL: k.Public, Events: k.Base + "/v1/console/events?" + query.Encode(),
		Public: k.Base + "/v1/public/orgs/" + url.PathEscape(v.Slug), Checks: page.EventChecks()}
}

// Guide shows new organizations.
type Guide struct {
	kit   *page.Kit
	views *page.Views
}

// New returns the guide of a service.
func New(k *page.Kit) *Guide { return &Guide{k, k.Parse(templates, nil, []string{"founded"})} }

// foundedView is the content of the page of a new organization.
type foundedView struct {
	Answer
	Guide *View
}

// ShowFounded shows a new organization with its secrets, this once.
func (g *Guide) ShowFounded(a Answer) screen.Outcome {
	v := foundedView{a, Describe(g.kit, Values{OrganizationID: a.Organization.ID, Slug: a.Organization.Slug,
		Origin: a.Origin, LogKey: a.LogKey, AgentID: a.Agent.ID, KeyID: a.Agent.KeyID,
		PrivateKey: a.Agent.PrivateKey, Token: a.IngestKey.Secret})}
	return screen.ShowOnce(g.views, "founded", "Your organization", v).
		WithScript(Script, "times.js")
}
