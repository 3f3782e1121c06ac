package index

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
)

// Dimension is a value by which events are counted.
type Dimension string

// The dimensions.
const (
	Agent    Dimension = "agent"
	Tool     Dimension = "tool"
	Decision Dimension = "decision" // effective
	Rule     Dimension = "rule"
	Hour     Dimension = "hour" // of received_at, UTC
)

// Dimensions returns all dimensions in the order in which counts have them.
func Dimensions() []Dimension { return []Dimension{Agent, Tool, Decision, Rule, Hour} }

// Group contains the values of one row of counts. Values of other dimensions are zero.
type Group struct {
	Agent    id.Agent
	Tool     id.Tool
	Decision id.Decision
	Rule     string
	Hour     id.Instant
}

// Count is the number of events that have the values of a group.
type Count struct {
	Group
	Events uint64
}

// Stats are counts of events.
type Stats struct {
	Events uint64
	Counts []Count // most events first
	End    id.Index
}

// maxGroups bounds the groups of one call.
const maxGroups = 10_000

// Stats counts the events [from, to) by dimensions. It returns fault.Invalid if there are more than maxGroups groups.
func (x *Index) Stats(ctx context.Context, t id.Tenant, from, to Bound, by []Dimension) (stats Stats, err error) {
	unknown := func(d Dimension) bool { return !slices.Contains(Dimensions(), d) }
	if len(by) > len(Dimensions()) || slices.ContainsFunc(by, unknown) {
		return Stats{}, fault.New(fault.Invalid, "by must be of agent, tool, decision, rule and hour")
	}
	err = x.inView(ctx, t, func(s *log.State, v *view) error {
		spans, err := x.spansOf(ctx, s, v, &Filter{From: from, To: to})
		if err != nil {
			return err
		}
		c := &counter{by: by, counts: make(map[Group]uint64)}
		for _, part := range spans {
			if err := x.countSpan(ctx, v, part, c); err != nil {
				return err
			}
		}
		stats = c.stats(v.end)
		return nil
	})
	return stats, err
}

// countSpan counts the events of a span: from columns below the position, and from rows after it.
func (x *Index) countSpan(ctx context.Context, v *view, s span, c *counter) error {
	indexed := s.clip(span{0, v.position})
	for begin := indexed.begin - indexed.begin%chunkEvents; begin < indexed.end; begin += chunkEvents {
		record, err := x.readRecord(ctx, v.tenant, kindColumns,
			columnsKey(v.generation.Number, uint64(begin)/chunkEvents))
		if err != nil {
			return fmt.Errorf("read columns: %w", err)
		}
		if err := visitColumns(record, begin, func(r *Row) {
			if indexed.begin <= r.Index && r.Index < indexed.end {
				c.countRow(r)
			}
		}); err != nil {
			return damaged(err)
		}
		if err := cmp.Or(ctx.Err(), c.check()); err != nil {
			return err
		}
	}
	clipped := s.clip(span{v.position, v.end})
	for at := clipped.begin; at < clipped.end; at++ {
		c.countRow(&v.tail.rows[at-v.tail.begin])
	}
	return c.check()
}

// counter counts rows by dimensions.
type counter struct {
	by     []Dimension
	events uint64
	counts map[Group]uint64
}

const hour = 60 * 60 * 1000 // in milliseconds

func (c *counter) countRow(r *Row) {
	var g Group
	for _, d := range c.by {
		switch d {
		case Agent:
			g.Agent = r.Agent
		case Tool:
			g.Tool = r.Tool
		case Decision:
			g.Decision = r.Effective
		case Rule:
			g.Rule = r.Rule
		case Hour:
			g.Hour = r.ReceivedAt - r.ReceivedAt%hour
		}
	}
	c.events++
	c.counts[g]++
}

func (c *counter) check() error {
	if len(c.counts) > maxGroups {
		return fault.New(fault.Invalid, "There are more than 10000 groups: request a shorter time or fewer dimensions")
	}
	return nil
}

func (c *counter) stats(end id.Index) Stats {
	stats := Stats{Events: c.events, End: end, Counts: make([]Count, 0, len(c.counts))}
	for g, n := range c.counts {
		stats.Counts = append(stats.Counts, Count{g, n})
	}
	slices.SortFunc(stats.Counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), a.compareGroup(b.Group))
	})
	return stats
}

func (g Group) compareGroup(other Group) int {
	return cmp.Or(cmp.Compare(g.Hour, other.Hour), strings.Compare(string(g.Agent), string(other.Agent)),
		strings.Compare(string(g.Tool), string(other.Tool)), cmp.Compare(g.Decision, other.Decision),
		strings.Compare(g.Rule, other.Rule))
}
