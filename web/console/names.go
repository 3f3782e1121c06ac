package console

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/agentledger/agentledger/web/page"
)

// names are the display names of accounts.
type names map[string]string

// maxMembers is how many members are read for their names. Others are shown by their account IDs.
const maxMembers = "1000"

// maxAgentNames is how many agents are read at once for their names. Others are read one by one.
const maxAgentNames = "200"

// known are the names that the pages of a visit have read.
type known struct {
	people  names
	members map[string]string // membership IDs by account
	agents  map[string]string
}

// readNames reads the names of the organization's members.
func readNames(r *page.Request) (names, error) {
	v := visitOf(r)
	if v.named.people != nil {
		return v.named.people, nil
	}
	found, err := v.Identity.ListMembers(r.Context(), v.person, url.Values{"limit": {maxMembers}})
	if err != nil {
		return nil, err
	}
	of, members := make(names, len(found.Members)), make(map[string]string, len(found.Members))
	for _, m := range found.Members {
		of[m.AccountID], members[m.AccountID] = cmp.Or(m.DisplayName, m.Email), m.MembershipID
	}
	v.named.people, v.named.members = of, members
	return of, nil
}

// Of returns the name of a principal: an account, or an account and its token after a slash.
func (n names) Of(principal string) string {
	account, token, found := strings.Cut(principal, "/")
	name, known := n[account]
	switch {
	case !known:
		return principal
	case found:
		return name + ", token " + token
	}
	return name
}

// nameOf returns the name of an object of the reader's organization. Objects that cannot be read have their IDs as names.
func nameOf(r *page.Request, kind page.Kind, id string) page.Name {
	name := page.Name{Text: id, ID: id}
	if visitOf(r).caller == nil {
		return name
	}
	switch kind {
	case page.NamedAgent:
		nameAgent(r, &name)
	case page.NamedPerson:
		namePerson(r, &name)
	case page.NamedIngestKey:
		if k, err := visitOf(r).Console.ShowIngestKey(r.Context(), visitOf(r).caller, id); err == nil {
			name.Text, name.URL = cmp.Or(k.Name, id), r.Address(ingestKeysPage, id)
		}
	case page.NamedPolicy:
		if p, err := visitOf(r).Console.ShowPolicy(r.Context(), visitOf(r).caller, id, nil); err == nil {
			name.Text, name.URL = cmp.Or(p.Name, id), r.Address("/console/policies", id)
		}
	}
	return name
}

// systemAgent is the agent of the service's own events.
const systemAgent = "system"

func nameAgent(r *page.Request, name *page.Name) {
	if name.ID == systemAgent {
		name.Text = "the service"
		return
	}
	v := visitOf(r)
	if v.named.agents == nil {
		v.named.agents = make(map[string]string)
		found, _ := v.Console.ListAgents(r.Context(), v.caller, url.Values{"limit": {maxAgentNames}})
		for _, a := range found.Agents {
			v.named.agents[string(a.AgentID)] = a.Name()
		}
	}
	text, read := v.named.agents[name.ID]
	if !read {
		a, err := v.Console.ShowAgent(r.Context(), v.caller, name.ID)
		if err != nil {
			return
		}
		text = a.Name()
	}
	name.Text, name.URL = text, r.Address(agentsPage, name.ID)
}

func namePerson(r *page.Request, name *page.Name) {
	people, err := readNames(r)
	if err != nil {
		return
	}
	name.Text = people.Of(name.ID)
	account, _, _ := strings.Cut(name.ID, "/")
	if member := visitOf(r).named.members[account]; member != "" {
		name.URL = r.Address(membersPage, member)
	} else if k, err := visitOf(r).Console.ShowIngestKey(r.Context(), visitOf(r).caller, name.ID); err == nil {
		name.Text, name.URL = cmp.Or(k.Name, name.ID), r.Address(ingestKeysPage, name.ID)
	}
}
