package console

import (
	"net/url"
	"slices"
	"strconv"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// newKeyView is the content of the page that follows the creation of a key.
type newKeyView struct {
	Key     wire.AgentKey
	Agent   string // id
	Program environment
}

// registerKey registers a key whose private part the service never has.
func (p *pages) registerKey(r *page.Request) (page.Outcome, error) {
	v, name := visitOf(r), r.PathParameter("agent")
	made, err := v.Console.RegisterAgentKey(r.Context(), v.caller, name, newAgentKey(r))
	if err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "newkey", "The new key",
		newKeyView{made, name, newEnvironment(r, id.Agent(name), made.KeyID)}), nil
}

// keyView is the content of a key's page.
type keyView struct {
	wire.AgentKey
	Agent                string // id
	MayRetire, MayRevoke bool
}

// maxKeys is the maximum number of keys of an agent, including retired keys. They fit on one page of the interface.
const maxKeys = "1000"

// showKey shows a key. It searches the list, because there is no function for a single key.
func (p *pages) showKey(r *page.Request) (any, error) {
	found, err := visitOf(r).Console.ListAgentKeys(r.Context(), visitOf(r).caller, r.PathParameter("agent"), url.Values{"limit": {maxKeys}})
	if err != nil {
		return nil, err
	}
	name := r.PathParameter("key")
	at := slices.IndexFunc(found.Keys, func(k wire.AgentKey) bool { return string(k.KeyID) == name })
	if at < 0 {
		return nil, fault.New(fault.NotFound, "Not found")
	}
	v := keyView{AgentKey: found.Keys[at], Agent: r.PathParameter("agent")}
	v.MayRetire = v.Status == "active" && r.Person.May("manage")
	v.MayRevoke = v.Status != "revoked" && r.Person.May("revoke keys")
	r.Title = "Key " + name
	return v, nil
}

func keyPage(r *page.Request) string {
	return r.Address(agentsPage, r.PathParameter("agent"), "keys", r.PathParameter("key"))
}

func (p *pages) retireKey(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	_, err := v.Console.RetireAgentKey(r.Context(), v.caller, r.PathParameter("agent"), r.PathParameter("key"))
	return page.GoTo(keyPage(r), "key-retired"), err
}

func (p *pages) revokeKey(r *page.Request) (page.Outcome, error) {
	why := api.KeyRevocation{Reason: r.Value("reason")}
	if from := r.Value("compromised_from"); from != "" {
		at, err := strconv.ParseUint(from, 10, 63)
		if err != nil {
			return page.Outcome{}, fault.Wrap(fault.Invalid,
				"The first event that may be forged must be a log index: a whole number from 0", err)
		}
		why.CompromisedFrom = new(id.Index(at))
	}
	v := visitOf(r)
	_, err := v.Console.RevokeAgentKey(r.Context(), v.caller, r.PathParameter("agent"), r.PathParameter("key"), why)
	return page.GoTo(keyPage(r), "key-revoked"), err
}
