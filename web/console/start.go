package console

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/clients"
	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/internal/wire/issued"
	"github.com/agentledger/agentledger/web/page"
)

// startPage leads an organization from its keys to its first policy.
const startPage = "/console/start"

// provedStep is the number of the step that only the browser can do.
const provedStep = 3

// startScript is the module of the start page and of the page with its secrets.
const startScript = "start.js"

func (p *pages) startScreens() []page.Screen {
	return []page.Screen{{Pattern: startPage, Query: []string{"way", "agent"}, Views: p.views, Name: "start", Title: "First steps",
		Script: startScript, Modules: []string{startScript, "times.js"}, Show: showStart,
		Forms: map[string]page.Form{"secrets": p.makeSecrets}}}
}

// way is a way to send an event, as a tab of the start page.
type way struct{ Name, Title string }

// ways returns the ways to send an event, the first one by default.
func ways() []way {
	return []way{{"agent", "Coding agent"}, {"mcp", "MCP client"}, {"python", "Python"}, {"typescript", "TypeScript"}, {"curl", "curl"}}
}

// startView is the content of the start page. Its steps are done as far as the organization is; whether the first event is
// proved is for the browser to find out.
type startView struct {
	Way      string
	Ways     []way
	Agent    string // whose file the reader was just shown; "" if unknown
	EnvFile  string // name of the file with the settings and secrets of the agent of Key
	Key      *signingKey
	Kept     bool   // the secrets of Key: the reader was just shown them, or an agent has used its secrets
	Sent     bool   // an agent has sent an event
	Approver string // name of a member who may approve what the reader asks for; "" if none
	Policy   *wire.ListedPolicy
	Now      int // number of the first step that is not done; 0 if all are

	Package clients.Package // of the way; empty if the way needs none

	URL    string // of the service
	Origin id.Origin
	Events string // call that reports the first event of an agent
	Public string // path prefix of the organization's public calls
	Checks []page.Check

	MayManage, MayInvite, MayEdit bool
}

// signingKey is a key with which an agent can sign, in an organization that has an ingest key.
type signingKey struct {
	Agent id.Agent
	Since id.Instant
}

// envFile returns the name of the file with the settings and secrets of an agent. Each agent has its own, so that a second file
// does not replace the only copy of the first agent's private key.
func envFile(slug id.Slug, agent id.Agent) string { return fmt.Sprintf("%s-%s.env", slug, agent) }

func showStart(r *page.Request) (any, error) {
	place := r.Person.Organization
	v := startView{Way: r.Query("way"), Ways: ways(), Agent: r.Query("agent"), EnvFile: envFile(place.Slug, "AGENT"), Checks: page.EventChecks(),
		URL: r.Kit.Public, Public: r.Kit.Base + "/v1/public/orgs/" + url.PathEscape(string(place.Slug)),
		MayManage: r.Person.May("manage"), MayInvite: r.Person.May("invite"), MayEdit: r.Person.May("edit policies")}
	if v.Way == "" {
		v.Way = v.Ways[0].Name
	}
	if !slices.ContainsFunc(v.Ways, func(w way) bool { return w.Name == v.Way }) {
		return nil, fault.New(fault.Invalid, "way must be agent, mcp, python, typescript or curl")
	}
	switch v.Way {
	case "python":
		v.Package = clients.Read().Find(clients.Wheel)
	case "typescript":
		v.Package = clients.Read().Find(clients.NPM)
	}
	r.Title = place.Name + " is ready"
	organization, err := visitOf(r).Console.ShowOrganization(r.Context(), visitOf(r).caller)
	if err != nil {
		return nil, err
	}
	v.Origin = organization.Origin
	signer, err := firstSigner(r)
	if err != nil {
		return nil, err
	}
	v.Sent = signer != ""
	v.Events = r.Kit.Base + "/v1/console/events?" + firstEventQuery(cmp.Or(signer, "agent")).Encode()
	if err := v.readKey(r); err != nil {
		return nil, err
	}
	if v.Key != nil {
		v.EnvFile = envFile(place.Slug, v.Key.Agent)
		v.Kept = v.Sent || v.Agent != ""
	}
	if v.Approver, err = otherApprover(r); err != nil {
		return nil, err
	}
	if v.Policy, err = readActivePolicy(r); err != nil {
		return nil, err
	}
	done := []bool{v.Kept, v.Sent, v.Sent, v.Approver != "", v.Policy != nil}
	v.Now = 1 + slices.Index(done, false) // 0 if all are done
	return &v, nil
}

// Class returns the class of a step: done, the next one, or neither. A step is done if a value is not zero.
func (v *startView) Class(step int, done any) string {
	switch truth, _ := template.IsTrue(done); {
	case truth:
		return "step ok"
	case step == v.Now, step == provedStep && v.Sent:
		return "step now"
	}
	return "step"
}

// firstEventQuery selects the first event of agents or of bridges.
func firstEventQuery(signer string) url.Values {
	return url.Values{"order": {"oldest"}, "signer": {signer}, "limit": {"1"}}
}

// firstSigner returns "agent" if an agent of the organization has sent an event, "bridge" if only bridges have, and "" if none has.
func firstSigner(r *page.Request) (string, error) {
	for _, signer := range []string{"agent", "bridge"} {
		found, err := visitOf(r).Console.ListEvents(r.Context(), visitOf(r).caller, firstEventQuery(signer))
		if err != nil {
			return "", err
		}
		if len(found.Events) > 0 {
			return signer, nil
		}
	}
	return "", nil
}

// fewAgents is the maximum number of agents in which the page looks for a key.
const fewAgents = 10

// readKey finds the latest key with which an agent can sign, if the organization has an ingest key. It looks at the agent that the
// address names, or at the agents that were created last.
func (v *startView) readKey(r *page.Request) error {
	tokens, err := visitOf(r).Console.ListIngestKeys(r.Context(), visitOf(r).caller, url.Values{"limit": {maxEntries}})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(tokens.Keys, func(k wire.IngestKey) bool { return (&ingestKeyRow{k}).State() == "active" }) {
		return nil
	}
	agents, err := readSigners(r)
	if err != nil {
		return err
	}
	for _, a := range agents {
		keys, err := visitOf(r).Console.ListAgentKeys(r.Context(), visitOf(r).caller, string(a.AgentID), nil)
		if err != nil {
			return err
		}
		for _, k := range keys.Keys {
			if k.Status == "active" && (v.Key == nil || k.RegisteredAt > v.Key.Since) {
				v.Key = &signingKey{a.AgentID, k.RegisteredAt}
			}
		}
	}
	return nil
}

// readSigners returns the active agents in which the page looks for a key.
func readSigners(r *page.Request) ([]wire.Agent, error) {
	var agents []wire.Agent
	if name := r.Query("agent"); name != "" {
		found, err := visitOf(r).Console.ShowAgent(r.Context(), visitOf(r).caller, name)
		if err != nil {
			return nil, err
		}
		agents = append(agents, found)
	} else {
		found, err := visitOf(r).Console.ListAgents(r.Context(), visitOf(r).caller, url.Values{"limit": {maxEntries}})
		if err != nil {
			return nil, err
		}
		agents = found.Agents
	}
	agents = slices.DeleteFunc(agents, func(a wire.Agent) bool { return !a.Active })
	slices.SortStableFunc(agents, func(a, b wire.Agent) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return agents[:min(fewAgents, len(agents))], nil
}

// otherApprover returns the name of a member who may vote on what the reader asks for, or "" if there is none.
func otherApprover(r *page.Request) (string, error) {
	found, err := visitOf(r).Identity.ListMembers(r.Context(), visitOf(r).person, url.Values{"limit": {mostMembers}})
	for _, m := range found.Members {
		if m.MembershipID != r.Person.User.MembershipID && (member{m}).State() == "active" && account.Role(m.Role).May(account.Vote) {
			return (member{m}).Name(), nil
		}
	}
	return "", err
}

// readActivePolicy returns the policy that decides, or nil.
func readActivePolicy(r *page.Request) (*wire.ListedPolicy, error) {
	found, err := visitOf(r).Console.ListPolicies(r.Context(), visitOf(r).caller, url.Values{"limit": {maxEntries}})
	for i := range found.Policies {
		if found.Policies[i].ActiveVersion != 0 {
			return &found.Policies[i], nil
		}
	}
	return nil, err
}

// secretsView is the content of the page that shows the secrets of an agent once.
type secretsView struct {
	EnvFile string // name of the file
	Env     string // its content
	Origin  id.Origin
	Agent   id.Agent
}

// newSecretsView returns the page's content. The file is a script that a POSIX shell and aps (APS_ENV_FILE) read.
func newSecretsView(k *page.Kit, place wire.Place, origin id.Origin, logKey string, agent issued.Credentials, token string) secretsView {
	var b strings.Builder
	b.WriteString("# Settings and secrets of an agent. Only its owner may read this file.\n")
	for _, setting := range [][2]string{{"URL", k.Public}, {"ORG", place.ID.String()}, {"SLUG", string(place.Slug)}, {"LOG_KEY", logKey},
		{"AGENT", string(agent.AgentID)}, {"KEY_ID", string(agent.KeyID)}, {"KEY", agent.PrivateB64}, {"TOKEN", token}} {
		fmt.Fprintf(&b, "export APS_%s='%s'\n", setting[0], strings.ReplaceAll(setting[1], "'", `'\''`))
	}
	return secretsView{envFile(place.Slug, agent.AgentID), b.String(), origin, agent.AgentID}
}

// showFounded shows the secrets of a new organization once.
func (p *pages) showFounded(a issued.Founded) page.Outcome {
	v := newSecretsView(p.kit, a.Organization, a.Origin, a.LogKey, a.Agent, a.IngestKey.Secret)
	return p.showSecrets(a.Organization.Name+" is ready", v)
}

func (p *pages) showSecrets(title string, v secretsView) page.Outcome {
	return page.ShowOnce(p.views, "founded", title, v).WithScript(startScript, "times.js")
}

// makeSecrets creates an agent with a key and an ingest key, and shows both secrets once.
func (p *pages) makeSecrets(r *page.Request) (page.Outcome, error) {
	v, name := visitOf(r), r.Value("display_name")
	organization, err := v.Console.ShowOrganization(r.Context(), v.caller)
	if err != nil {
		return page.Outcome{}, err
	}
	keys, err := readLogKeys(r)
	if err != nil {
		return page.Outcome{}, err
	}
	token, err := v.Console.CreateIngestKey(r.Context(), v.caller, api.NewIngestKey{Name: name})
	if err != nil {
		return page.Outcome{}, err
	}
	made, err := v.Console.CreateAgent(r.Context(), v.caller, api.NewAgent{DisplayName: name})
	if err != nil { // the ingest key would be of no use, because nobody has seen its secret
		_ = v.Console.RevokeIngestKey(context.WithoutCancel(r.Context()), v.caller, token.Key.KeyID)
		return page.Outcome{}, err
	}
	return p.showSecrets("Keep two secrets", newSecretsView(p.kit, r.Person.Organization, organization.Origin, keys[len(keys)-1].VKey,
		made.Credentials, token.Secret)), nil
}
