package evidence

import (
	"cmp"
	"maps"
	"slices"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// maxGroups bounds the different values that a table counts. Events with further values are counted together.
const maxGroups = 10_000

// maxRows bounds the rows of a table in the report.
const maxRows = 200

// others is the group of events beyond maxGroups.
const others = "(others)"

// tables counts the shown events.
type tables struct {
	agents, tools, days map[string]*group
	all                 group
	first, last         id.Instant // received_at
}

// group is the events with one value.
type group struct {
	Name                            string
	Events                          uint64
	Allowed, WithObligation, Denied uint64
	Tightened                       uint64 // the policy was stricter than the agent declared
}

func newTables() tables {
	return tables{agents: make(map[string]*group), tools: make(map[string]*group), days: make(map[string]*group)}
}

// count counts a shown event.
func (t *tables) count(e *storage.Event, r *event.Record) {
	tool := string(e.Tool)
	if tool == "" {
		tool = "(no tool: " + e.ActionKind + ")"
	}
	for _, g := range []*group{&t.all, groupOf(t.agents, string(e.Agent)), groupOf(t.tools, tool),
		groupOf(t.days, r.ReceivedAt.String()[:len("2006-01-02")])} {
		g.count(&r.Policy)
	}
	if t.all.Events == 1 {
		t.first = r.ReceivedAt
	}
	t.last = r.ReceivedAt
}

func groupOf(in map[string]*group, name string) *group {
	if g := in[name]; g != nil {
		return g
	}
	if len(in) >= maxGroups {
		name = others
	}
	g := cmp.Or(in[name], &group{Name: name})
	in[name] = g
	return g
}

func (g *group) count(p *event.Policy) {
	g.Events++
	switch p.Effective {
	case id.Allow:
		g.Allowed++
	case id.Deny:
		g.Denied++
	default:
		g.WithObligation++
	}
	if p.Effective != p.Declared {
		g.Tightened++
	}
}

// table is a table of the report.
type table struct {
	Title, Column string
	Rows          []*group
	Hidden        int // rows that are not shown
}

// newest returns the groups with the most events, or in the order of their names.
func newTable(title, column string, groups map[string]*group, byName bool) table {
	rows := slices.SortedFunc(maps.Values(groups), func(a, b *group) int {
		if byName {
			return cmp.Compare(a.Name, b.Name)
		}
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(a.Name, b.Name))
	})
	shown := min(len(rows), maxRows)
	return table{title, column, rows[:shown], len(rows) - shown}
}
