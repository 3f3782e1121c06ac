package console

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// agentActs are the acts of an agent in the last 30 days.
type agentActs struct {
	Counted  bool // whether acts can be counted now
	Acts     uint64
	Outcomes wire.OutcomeCounts
	From     string
	Chart    *outcomeChart // nil if there are no acts
	Tools    []toolActs    // those with the most acts
	Last     id.Instant    // receipt of the latest event; 0 if there is none
}

// Stopped is the number of acts that people refused, that the policy denied, or that failed.
func (a *agentActs) Stopped() uint64 {
	return a.Outcomes.Refused + a.Outcomes.Denied + a.Outcomes.Failed
}

// toolActs are the acts of an agent with a tool.
type toolActs struct {
	Tool          string
	Acts, Stopped uint64
	Done, Bad     string // widths, in percent of the tool with the most acts
}

const (
	agentDays = 30
	maxTools  = 8
)

// readAgentActs counts the acts of an agent.
func readAgentActs(r *page.Request, agent id.Agent) (*agentActs, error) {
	now := time.Now().UTC()
	begin := now.Truncate(24*time.Hour).AddDate(0, 0, 1-agentDays)
	a := &agentActs{From: begin.Format(time.RFC3339)}
	query := url.Values{"agent_id": {string(agent)}, "from": {a.From}}
	found, chart, err := countOverTime(r, query, begin, now, now, "tool,outcome")
	switch {
	case err == nil:
		a.Counted, a.Acts, a.Outcomes, a.Chart, a.Tools = true, found[0].Acts, found[0].Outcomes, chart, topTools(found[1].Counts)
	case unlessUncountable(err) != nil:
		return nil, err
	}
	if chart != nil {
		chart.Tall = true
	}
	latest, err := visitOf(r).Console.ListEvents(r.Context(), visitOf(r).caller, url.Values{"agent_id": {string(agent)}, "limit": {"1"}})
	if fault.Is(err, fault.Unavailable) {
		return a, nil
	}
	if len(latest.Events) > 0 {
		a.Last = latest.Events[0].ReceivedAt
	}
	return a, err
}

// topTools sums counts by tool and outcome, and returns the tools with the most acts.
func topTools(counts []wire.ActCount) []toolActs {
	sums := make(map[string]*toolActs)
	var all []*toolActs
	for _, c := range counts {
		name := textOf(c.Tool)
		if sums[name] == nil {
			sums[name] = &toolActs{Tool: name}
			all = append(all, sums[name])
		}
		sums[name].Acts += c.Acts
		switch textOf(c.Outcome) {
		case "refused", "denied", "failed":
			sums[name].Stopped += c.Acts
		}
	}
	slices.SortFunc(all, func(a, b *toolActs) int {
		return cmp.Or(cmp.Compare(b.Acts, a.Acts), strings.Compare(a.Tool, b.Tool))
	})
	var top []toolActs
	for _, t := range all[:min(maxTools, len(all))] {
		most := float64(all[0].Acts)
		t.Done, t.Bad = percent(100*float64(t.Acts-t.Stopped)/most), percent(100*float64(t.Stopped)/most)
		top = append(top, *t)
	}
	return top
}

// switchAgent turns an agent on or off.
func (p *pages) switchAgent(r *page.Request) (page.Outcome, error) {
	v, name := visitOf(r), r.PathParameter("agent")
	_, err := v.Console.ChangeAgent(r.Context(), v.caller, name, api.AgentPatch{Active: new(r.Value("active") == "yes")})
	return page.GoTo(r.Address(agentsPage, name), "saved"), err
}
