package console

import (
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// Script of the pages on which keys are made, and the modules that it imports.
const keyScript = "newkey.js"

func keyModules() []string { return []string{keyScript, "edkey.js", "passkey.js", "times.js"} }

func (p *pages) agentScreens() []page.Screen {
	return []page.Screen{
		{Pattern: agentsPage, Query: []string{"after"}, Views: p.views, Name: "agents", Title: "Agents", Script: keyScript,
			Modules: keyModules(), Show: p.listAgents, Forms: map[string]page.Form{
				"create": p.createAgent, "create-with-key": p.createAgentWithKey}},
		{Pattern: agentsPage + "/{agent}", Query: []string{"after"}, Views: p.views, Name: "agent", Script: keyScript,
			Modules: keyModules(), Show: p.showAgent, Forms: map[string]page.Form{
				"change": p.changeAgent, "register": p.registerKey}},
		{Pattern: agentsPage + "/{agent}/keys/{key}", Views: p.views, Name: "key", Show: p.showKey,
			Forms: map[string]page.Form{"retire": p.retireKey, "revoke": p.revokeKey}},
	}
}

const (
	agentsPage = "/console/agents"
	agentCalls = "/v1/console/agents"
)

// agentsView is the content of the list.
type agentsView struct {
	Agents       []wire.Agent
	Next         string // address of the next page
	Organization string // id
	MayManage    bool
}

func (p *pages) listAgents(r *page.Request) (any, error) {
	found, err := visitOf(r).Console.ListAgents(r.Context(), visitOf(r).caller, r.PageQuery())
	if err != nil {
		return nil, err
	}
	return agentsView{Agents: found.Agents, Next: r.NextPage(found.Next), Organization: r.Person.Organization.ID.String(),
		MayManage: r.Person.May("manage")}, nil
}

// environment has the settings of an agent's program: those of aps, which our clients read too.
type environment struct {
	URL, Organization string
	Agent             id.Agent
	Key               id.Key
}

func newEnvironment(r *page.Request, agent id.Agent, key id.Key) environment {
	return environment{URL: r.Kit.Public, Organization: r.Person.Organization.ID.String(), Agent: agent, Key: key}
}

// newAgentView is the content of the page after a new agent.
type newAgentView struct {
	Agent   wire.Agent
	Private string // that the service made, "" for an agent that brought its own key
	Program environment
}

// createAgent makes an agent whose first key the service makes.
func (p *pages) createAgent(r *page.Request) (page.Outcome, error) {
	var made wire.CreatedAgent
	if err := r.Change(http.MethodPost, agentCalls, newAgentBody(r), &made); err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "newagent", "The new agent", newAgentView{made.Agent, made.Credentials.PrivateB64,
		newEnvironment(r, made.Agent.AgentID, made.Credentials.KeyID)}), nil
}

// newAgentBody returns the fields of a new agent that are filled in.
func newAgentBody(r *page.Request) map[string]any {
	body := map[string]any{}
	addFilled(r, body, "agent_id", "display_name")
	return body
}

func addFilled(r *page.Request, body map[string]any, names ...string) {
	for _, name := range names {
		if value := r.Value(name); value != "" {
			body[name] = value
		}
	}
}

// createAgentWithKey makes an agent that brings its own key.
func (p *pages) createAgentWithKey(r *page.Request) (page.Outcome, error) {
	body := newAgentBody(r)
	body["public_key_b64"], body["proof_b64"] = r.Value("public_key_b64"), r.Value("proof_b64")
	addFilled(r, body, "key_id")
	var made wire.CreatedAgentWithKey
	if err := r.Change(http.MethodPost, agentCalls, body, &made); err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "newagent", "The new agent",
		newAgentView{made.Agent, "", newEnvironment(r, made.Agent.AgentID, made.Key.KeyID)}), nil
}

// agentView is the content of the page of an agent.
type agentView struct {
	wire.Agent
	Keys         []wire.AgentKey
	Next         string // address of the next page of keys
	Organization string // id
	PublicPage   string
	DID          string // address of the document
	MayManage    bool
}

func (p *pages) showAgent(r *page.Request) (any, error) {
	v := agentView{Organization: r.Person.Organization.ID.String(), MayManage: r.Person.May("manage")}
	var err error
	if v.Agent, err = visitOf(r).Console.ShowAgent(r.Context(), visitOf(r).caller, r.PathParameter("agent")); err != nil {
		return nil, err
	}
	found, err := visitOf(r).Console.ListAgentKeys(r.Context(), visitOf(r).caller, r.PathParameter("agent"), r.PageQuery())
	if err != nil {
		return nil, err
	}
	v.Keys, v.Next = found.Keys, r.NextPage(found.Next)
	v.PublicPage = r.Address("/log", string(r.Person.Organization.Slug), "agent", string(v.AgentID))
	v.DID = r.Address("/v1/public/agents", string(v.AgentID), "did.json")
	r.Title = "Agent " + v.Name()
	return v, nil
}

func agentCall(r *page.Request) string {
	return agentCalls + "/" + url.PathEscape(r.PathParameter("agent"))
}

func (p *pages) changeAgent(r *page.Request) (page.Outcome, error) {
	body := map[string]any{"display_name": r.Value("display_name"), "bridge": r.Checked("bridge"),
		"active": r.Checked("active")}
	err := r.Change(http.MethodPatch, agentCall(r), body, nil)
	return page.GoTo(r.Address(agentsPage, r.PathParameter("agent")), "saved"), err
}
