package console

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// inboxView is the content of the list: first the approvals that wait for the reader, then the others.
type inboxView struct {
	Live     *page.Live // only on the first page
	Mine     []approval
	MoreMine string // address of the next ones; "" if none
	OnlyMine bool
	Voter    bool // the reader's role may vote
	Others   []approval
	Next     string // address of the next page
	Count    *wire.Count
	SignIns  []signInChange

	Status, Agent, Tool string // the filters
	Statuses            []page.Option
	Filtered            bool
}

// maxMine is the maximum number of approvals listed under those that wait for the reader.
const maxMine = "100"

func (p *pages) showInbox(r *page.Request) (any, error) {
	v := &inboxView{Voter: r.Person.May("vote"), OnlyMine: r.Query("mine") != "", Status: r.Query("status"),
		Agent: r.Query("agent_id"), Tool: r.Query("tool"), Statuses: statuses()}
	v.Filtered = v.Status+v.Agent+v.Tool != ""
	first := r.Query("after") == ""
	if first {
		var err error
		if v.Live, err = follow(r); err != nil {
			return nil, err
		}
	}
	if err := v.readMine(r, first); err != nil || v.OnlyMine {
		return v, err
	}
	others, err := visitOf(r).Console.ListApprovals(r.Context(), visitOf(r).caller, r.ListQuery("status", "agent_id", "tool"))
	if err = r.Correctable(err); err != nil {
		return nil, err
	}
	v.SignIns = describeSignIns(others.SignIns)
	v.Next, v.Count = r.NextPage(others.Next), others.Count
	v.Others = slices.DeleteFunc(describeApprovals(others.Approvals), v.isMine)
	return v, nil
}

// readMine reads the approvals on which the reader may vote: before the first page of all, or as a separate list.
func (v *inboxView) readMine(r *page.Request, first bool) error {
	if !v.Voter || v.Status != "" && v.Status != "pending" || !v.OnlyMine && !first {
		return nil
	}
	query := r.ListQuery("agent_id", "tool")
	query.Set("may_vote", "true")
	query.Set("limit", maxMine)
	mine, err := visitOf(r).Console.ListApprovals(r.Context(), visitOf(r).caller, query)
	if err = r.Correctable(err); err != nil {
		return err
	}
	v.Mine, v.SignIns = describeApprovals(mine.Approvals), describeSignIns(mine.SignIns)
	if v.Live != nil {
		v.Live.News = countWords(len(v.Mine), mine.Next != "")
	}
	if mine.Next != "" {
		next := r.ListQuery("status", "agent_id", "tool")
		next.Set("mine", "yes")
		next.Set("after", string(mine.Next))
		v.MoreMine = r.Address("/console/approvals") + "?" + next.Encode()
	}
	return nil
}

func countWords(n int, more bool) string {
	switch {
	case more:
		return fmt.Sprintf("More than %d approvals wait for you.", n)
	case n == 1:
		return "1 approval waits for you."
	case n == 0:
		return "No approval waits for you."
	}
	return fmt.Sprintf("%d approvals wait for you.", n)
}

// isMine reports whether an approval is listed among those that wait for the reader.
func (v *inboxView) isMine(a approval) bool {
	return slices.ContainsFunc(v.Mine, func(m approval) bool { return m.ID == a.ID })
}

// Words describes the status of the approval.
func (a *approval) Words() string { return statusWords(a.Status) }

// Refusal explains why the reader may not vote.
func (a *approval) Refusal() string { return obstacleWords(string(a.WhyNot)) }

// eventsOf returns the address of the list of an agent's or a trace's events.
func eventsOf(r *page.Request, name, value string) string {
	return r.Address("/console/events") + "?" + url.Values{name: {value}}.Encode()
}
