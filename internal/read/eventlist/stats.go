package eventlist

import (
	"context"
	"strings"

	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

// Count returns counts of the acts that List lists, by the dimensions in the parameter by.
func (r *ActReader) Count(ctx context.Context, a Asked) (wire.Stats, error) {
	counted, err := r.CountEach(ctx, a, a.Values.Get("by"))
	if err != nil {
		return wire.Stats{}, err
	}
	return counted[0], nil
}

// CountEach is Count for several lists of dimensions, of which it returns one result each. The acts are read once.
func (r *ActReader) CountEach(ctx context.Context, a Asked, lists ...string) ([]wire.Stats, error) {
	a.Limit = 1 // of no page
	q, err := r.parseQuery(ctx, a)
	if err != nil {
		return nil, err
	}
	line, err := r.Events.openLine(ctx, a)
	if err != nil {
		return nil, err
	}
	by := make([][]index.Dimension, len(lists))
	for i, list := range lists {
		if list == "" {
			continue
		}
		for name := range strings.SplitSeq(list, ",") {
			by[i] = append(by[i], index.Dimension(name))
		}
	}
	counted, err := r.Events.Index.Stats(ctx, line.tenant, q.Filter, by...)
	if err != nil {
		return nil, err
	}
	n := counted.Outcomes
	total := wire.Stats{Acts: counted.Acts, Approvals: describeApprovals(counted.Approvals), IndexedTo: counted.End, Predecessor: line.predecessor,
		Outcomes: wire.OutcomeCounts{Done: n[index.Done], Failed: n[index.Failed], Refused: n[index.Refused], Denied: n[index.Denied], Expired: n[index.Expired],
			Cancelled: n[index.Cancelled], Unknown: n[index.Unknown], Waiting: n[index.Waiting], Open: n[index.Open]}}
	names := nameReader{ActReader: r, tenant: a.Tenant, people: make(map[string]account.Account)}
	all := make([]wire.Stats, len(lists))
	for i, counts := range counted.Counts {
		all[i] = total
		all[i].Counts = make([]wire.ActCount, len(counts))
		for k := range counts {
			if all[i].Counts[k], err = names.describeCount(ctx, &counts[k], by[i]); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func describeApprovals(a index.Approvals) wire.ApprovalCounts {
	shown := wire.ApprovalCounts{Requested: a.Requested, Waiting: a.Waiting, Approved: a.Approved, Refused: a.Refused, Expired: a.Expired,
		Cancelled: a.Cancelled, Done: a.Done}
	if a.Median > 0 {
		shown.P50, shown.P90 = &a.Median, &a.P90
	}
	return shown
}

// describeCount describes a count with the members of its dimensions.
func (n *nameReader) describeCount(ctx context.Context, c *index.Count, by []index.Dimension) (wire.ActCount, error) {
	shown := wire.ActCount{Acts: c.Acts, Approvals: describeApprovals(c.Approvals)}
	for _, d := range by {
		switch d {
		case index.ByOutcome:
			outcome := c.Outcome.String()
			shown.Outcome = &outcome
		case index.ByAgent:
			shown.Agent = &c.Agent
		case index.ByTool:
			shown.Tool = &c.Tool
		case index.ByDecision:
			decision := c.Decision.String()
			shown.Decision = &decision
		case index.ByDeclared:
			declared := c.Declared.String()
			shown.Declared = &declared
		case index.ByRule:
			shown.Rule = &c.Rule
		case index.ByApprover:
			who, err := n.account(ctx, c.Approver)
			if err != nil {
				return wire.ActCount{}, err
			}
			shown.Approver, shown.ApproverName, shown.ApproverEmail = &c.Approver, &who.DisplayName, &who.Email
		case index.ByHour:
			shown.Hour = &c.Hour
		case index.ByDay:
			shown.Day = &c.Day
		}
	}
	return shown, nil
}
