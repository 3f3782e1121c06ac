package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// keyScript is the script of the pages that generate keys.
const keyScript = "newkey.js"

func keyModules() []string { return []string{keyScript, "edkey.js", "passkey.js", "times.js"} }

func (p *pages) agentScreens() []page.Screen {
	return []page.Screen{
		{Pattern: agentsPage, Query: tableQuery(), Views: p.views, Name: "agents", Title: "Agents", Script: keyScript,
			Modules: keyModules(), Show: p.listAgents, Forms: map[string]page.Form{
				"create": p.createAgent, "create-with-key": p.createAgentWithKey}},
		{Pattern: agentsPage + "/{agent}", Query: []string{"after"}, Views: p.views, Name: "agent", Script: keyScript,
			Modules: keyModules(), Show: p.showAgent, Forms: map[string]page.Form{
				"change": p.changeAgent, "switch": p.switchAgent, "register": p.registerKey}},
		{Pattern: agentsPage + "/{agent}/keys/{key}", Views: p.views, Name: "key", Show: p.showKey,
			Forms: map[string]page.Form{"retire": p.retireKey, "revoke": p.revokeKey}},
	}
}

const agentsPage = "/console/agents"

// agentsView is the content of the list, or the form for a new agent.
type agentsView struct {
	Table        *table
	Agents       []*agentRow
	Counted      bool   // whether acts can be counted now
	New          bool   // show the form
	Organization string // id
	Slug         id.Slug
	MayManage    bool
}

// agentRow is an agent in the list, with its acts of the last seven days.
type agentRow struct {
	wire.Agent
	Week week
}

func (p *pages) listAgents(r *page.Request) (any, error) {
	v := agentsView{Organization: r.Person.Organization.ID.String(), Slug: r.Person.Organization.Slug, MayManage: r.Person.May("manage")}
	if v.New = v.MayManage && isNew(r, "create", "create-with-key"); v.New {
		r.Title = "New agent"
		return v, nil
	}
	file, err := asFile(r)
	if err != nil {
		return nil, err
	}
	found, err := visitOf(r).Console.ListAgents(r.Context(), visitOf(r).caller, entriesQuery(r))
	if err != nil {
		return nil, err
	}
	weeks, err := readWeeks(r)
	if err != nil {
		return nil, err
	}
	v.Counted = weeks != nil
	var all []*agentRow
	for _, a := range found.Agents {
		all = append(all, &agentRow{a, weeks[a.AgentID]})
	}
	v.Agents, v.Table, err = newTable(r, all,
		func(a *agentRow) string { return a.Name() + " " + string(a.AgentID) + " " + a.State() },
		[]sortable[*agentRow]{
			{"name", func(a, b *agentRow) int { return strings.Compare(strings.ToLower(a.Name()), strings.ToLower(b.Name())) }},
			{"state", func(a, b *agentRow) int { return strings.Compare(b.State(), a.State()) }},
			{"acts", func(a, b *agentRow) int { return cmp.Compare(a.Week.Acts, b.Week.Acts) }},
			{"stopped", func(a, b *agentRow) int { return cmp.Compare(a.Week.Stopped, b.Week.Stopped) }},
			{"waiting", func(a, b *agentRow) int { return cmp.Compare(a.Week.Waiting, b.Week.Waiting) }},
			{"made", func(a, b *agentRow) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) }},
		})
	v.Table.Label, v.Table.Hint, v.Table.Further = "Search agents", "Name, ID or state", furtherEntries(r, found.Next)
	switch {
	case err != nil:
		return v, r.Correctable(err)
	case file:
		return csvFile("agents", []string{"agent_id", "name", "state", "acts_7_days", "stopped_7_days", "waiting_7_days", "created_at"},
			v.Agents, func(a *agentRow) []api.Cell {
				acts := []api.Cell{"", "", ""}
				if v.Counted {
					acts = []api.Cell{api.NumberCell(a.Week.Acts), api.NumberCell(a.Week.Stopped), api.NumberCell(a.Week.Waiting)}
				}
				row := []api.Cell{api.TextCell(a.AgentID), api.TextCell(a.DisplayName), api.TextCell(a.State())}
				return append(append(row, acts...), api.TextCell(a.CreatedAt.String()))
			}), nil
	}
	return v, nil
}

// State reports whether the agent may act.
func (a *agentRow) State() string {
	if a.Active {
		return "On"
	}
	return "Off"
}

// week counts the acts of an agent in the last seven days.
type week struct {
	Days                   [days]uint64 // today last; days are of UTC
	Acts, Stopped, Waiting uint64       // Stopped: refused or denied
}

const days = 7

// readWeeks counts the acts of each agent. It returns nil if they can't be counted now.
func readWeeks(r *page.Request) (map[id.Agent]week, error) {
	weeks := make(map[id.Agent]week)
	begin := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-days)
	for day := range days {
		query := url.Values{"by": {"agent,outcome"}, "from": {begin.AddDate(0, 0, day).Format(time.RFC3339)}}
		if day < days-1 {
			query.Set("to", begin.AddDate(0, 0, day+1).Format(time.RFC3339))
		}
		found, counted, err := countActs(r, query)
		if !counted {
			return nil, err
		}
		for _, c := range found.Counts {
			w := weeks[*c.Agent]
			w.Days[day] += c.Acts
			w.Acts += c.Acts
			switch *c.Outcome {
			case "refused", "denied":
				w.Stopped += c.Acts
			case "waiting":
				w.Waiting += c.Acts
			}
			weeks[*c.Agent] = w
		}
	}
	return weeks, nil
}

// LastAct returns the day of the latest act in words.
func (w week) LastAct() string {
	for day := days - 1; day >= 0; day-- {
		switch ago := days - 1 - day; {
		case w.Days[day] == 0:
		case ago == 0:
			return "today"
		case ago == 1:
			return "yesterday"
		default:
			return strconv.Itoa(ago) + " days ago"
		}
	}
	return "not in 7 days"
}

// dayColumn is a column of a small chart that is 20 units high.
type dayColumn struct{ X, Y, Height int }

// Columns returns the acts of each day as columns.
func (w week) Columns() (shown []dayColumn) {
	most := max(1, slices.Max(w.Days[:]))
	for day, n := range w.Days {
		height := 1 + int(17*n/most)
		shown = append(shown, dayColumn{1 + 8*day, 20 - height, height})
	}
	return shown
}

// DaysText returns the numbers of acts of each day for readers who do not see the chart.
func (w week) DaysText() string {
	texts := make([]string, days)
	for day, n := range w.Days {
		texts[day] = strconv.FormatUint(n, 10)
	}
	return "Acts by day: " + strings.Join(texts, ", ")
}

// environment contains the settings of an agent's program: those of aps, which the clients also read.
type environment struct {
	URL, Organization string
	Slug              id.Slug
	Agent             id.Agent
	Key               id.Key
}

func newEnvironment(r *page.Request, agent id.Agent, key id.Key) environment {
	return environment{URL: r.Kit.Public, Organization: r.Person.Organization.ID.String(),
		Slug: r.Person.Organization.Slug, Agent: agent, Key: key}
}

// newAgentView is the content of the page that follows the creation of an agent.
type newAgentView struct {
	Agent   wire.Agent
	Private string // generated by the service; "" if the agent has its own key
	Program environment
}

// createAgent creates an agent whose first key the service generates.
func (p *pages) createAgent(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	made, err := v.Console.CreateAgent(r.Context(), v.caller, newAgent(r))
	if err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "newagent", "The new agent", newAgentView{made.Agent, made.Credentials.PrivateB64,
		newEnvironment(r, made.Agent.AgentID, made.Credentials.KeyID)}), nil
}

func newAgent(r *page.Request) api.NewAgent {
	return api.NewAgent{AgentID: id.Agent(r.Value("agent_id")), DisplayName: r.Value("display_name")}
}

// newAgentKey returns the key that the page's script or the user put into the form.
func newAgentKey(r *page.Request) api.NewAgentKey {
	return api.NewAgentKey{PublicKeyB64: r.Value("public_key_b64"), ProofB64: r.Value("proof_b64"),
		KeyID: id.Key(r.Value("key_id"))}
}

// createAgentWithKey creates an agent with its own key.
func (p *pages) createAgentWithKey(r *page.Request) (page.Outcome, error) {
	v, wanted := visitOf(r), newAgent(r)
	wanted.NewAgentKey = newAgentKey(r)
	made, err := v.Console.CreateAgentWithKey(r.Context(), v.caller, wanted)
	if err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "newagent", "The new agent",
		newAgentView{made.Agent, "", newEnvironment(r, made.Agent.AgentID, made.Key.KeyID)}), nil
}

// agentView is the content of an agent's page.
type agentView struct {
	wire.Agent
	Keys         []wire.AgentKey
	Next         string // address of the next page of keys
	Organization string // id
	Slug         id.Slug
	PublicPage   string
	DID          string // address of the document
	MayManage    bool
	Recent       *agentActs
}

func (p *pages) showAgent(r *page.Request) (any, error) {
	v := agentView{Organization: r.Person.Organization.ID.String(), Slug: r.Person.Organization.Slug,
		MayManage: r.Person.May("manage")}
	var err error
	if v.Agent, err = visitOf(r).Console.ShowAgent(r.Context(), visitOf(r).caller, r.PathParameter("agent")); err != nil {
		return nil, err
	}
	found, err := visitOf(r).Console.ListAgentKeys(r.Context(), visitOf(r).caller, r.PathParameter("agent"), r.PageQuery())
	if err != nil {
		return nil, err
	}
	if v.Recent, err = readAgentActs(r, v.AgentID); err != nil {
		return nil, err
	}
	v.Keys, v.Next = found.Keys, r.NextPage(found.Next)
	v.PublicPage = r.Address("/log", string(r.Person.Organization.Slug), "agent", string(v.AgentID))
	v.DID = r.Address("/v1/public/agents", string(v.AgentID), "did.json")
	r.Title = v.Name()
	return v, nil
}

func (p *pages) changeAgent(r *page.Request) (page.Outcome, error) {
	v, name := visitOf(r), r.PathParameter("agent")
	_, err := v.Console.ChangeAgent(r.Context(), v.caller, name, api.AgentPatch{
		DisplayName: new(r.Value("display_name")), Bridge: new(r.Checked("bridge")), Active: new(r.Checked("active"))})
	return page.GoTo(r.Address(agentsPage, name), "saved"), err
}
