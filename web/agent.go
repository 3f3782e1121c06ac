package web

import (
	"net/url"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/web/page"
)

// agentView is the content of an agent's page.
type agentView struct {
	Agent    id.Agent
	Slug     id.Slug
	LogURL   string
	Document string // path of the DID document
	Keys     []agentKeyView
}

// agentKeyView is a key of an agent. Ended is "" while it is active.
type agentKeyView struct{ ID, Multikey, State, Ended string }

// showAgent serves the page of an agent. It returns fault.NotFound for agents of other organizations.
func (s *Server) showAgent(r *request) (page.Answer, error) {
	name := r.pathParameter("agent")
	if r.slug == "" || !event.ValidAgent(name) {
		return page.Answer{}, errNotFound()
	}
	keys, err := s.log.AgentKeys(r.Context(), r.tenant, id.Agent(name))
	if err != nil {
		return page.Answer{}, err
	}
	v := agentView{Agent: id.Agent(name), Slug: r.slug, LogURL: s.logURL(r.slug),
		Document: s.kit.Base + "/v1/public/agents/" + url.PathEscape(name) + "/did.json"}
	for _, k := range keys {
		v.Keys = append(v.Keys, describeAgentKey(k))
	}
	body, err := s.render(agentPage, "Agent "+name, agentScript, v)
	return page.Answer{Media: page.MediaHTML, Cache: page.Revalidate, Body: body}, err
}

func describeAgentKey(k did.Key) agentKeyView {
	v := agentKeyView{ID: string(k.KeyID), Multikey: did.Multikey(k.Public)}
	switch k.State {
	case did.Active:
		v.State = "active"
		return v
	case did.Retired:
		v.State = "retired"
	default:
		v.State = "revoked"
	}
	v.Ended = k.Ended.String()
	return v
}

// agentURL returns the path of an agent's page.
func (s *Server) agentURL(slug id.Slug, agent id.Agent) string {
	return s.logURL(slug) + "/agent/" + url.PathEscape(string(agent))
}
