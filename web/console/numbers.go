package console

import (
	"net/url"
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// recentActs are the acts of the last day and of the days before, as the overview shows them.
type recentActs struct {
	Acts     uint64
	Outcomes wire.OutcomeCounts
	Stricter uint64        // the policy was stricter than the agent said
	From     string        // when the last day began
	Days     *outcomeChart // nil if there are no acts
}

// Stopped is the number of acts that people refused or the policy denied.
func (n *recentActs) Stopped() uint64 { return n.Outcomes.Refused + n.Outcomes.Denied }

// overviewDays are the days of the chart, today included.
const overviewDays = 7

// readRecentActs counts the acts of the last day, and of the last seven days. It returns nil if they can't be counted now.
func readRecentActs(r *page.Request) (*recentActs, error) {
	now := time.Now().UTC()
	n := &recentActs{From: daysBefore(now, 1)}
	found, counted, err := countActs(r, url.Values{"from": {n.From}, "by": {"declared,decision"}})
	if !counted {
		return nil, err
	}
	n.Acts, n.Outcomes = found.Acts, found.Outcomes
	for _, c := range found.Counts {
		if strictness(*c.Decision) > strictness(*c.Declared) {
			n.Stricter += c.Acts
		}
	}
	begin := now.Truncate(24*time.Hour).AddDate(0, 0, 1-overviewDays)
	if _, n.Days, err = countOverTime(r, url.Values{"from": {begin.Format(time.RFC3339)}}, begin, now, now); err != nil {
		return nil, unlessUncountable(err)
	}
	if n.Days != nil {
		n.Days.Tall = true
	}
	return n, nil
}

func strictness(decision string) int {
	return slices.Index([]string{"allow", "allow_with_obligation", "deny"}, decision)
}

// ageWords returns how long ago a time was.
func ageWords(at id.Instant, now time.Time) string {
	return leftWords(id.InstantOf(now.Add(now.Sub(at.Time()))), now)
}
