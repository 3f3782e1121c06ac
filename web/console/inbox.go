package console

import (
	"fmt"
	"net/url"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// The lists of approvals.
const (
	listMine    = "mine"    // wait for the reader's vote, oldest first
	listPending = "pending" // all that wait, oldest first
	listDecided = "decided" // all others, newest first
)

// inboxView is the content of the list of approvals.
type inboxView struct {
	List      string
	Live      *page.Live // only on the first page
	Lists     []page.Link
	Approvals []approval
	Next      string // address of the next page
	Found     string // how many are in the list, such as "12" or "more than 12"; "" if they are not counted
	Elsewhere int    // how many wait for others, on the first page of those that wait for the reader
	SignIns   []signInChange

	Status, Agent, Tool string // the filters
	Statuses            []page.Option
	Filtered            bool
}

// maxCards is the maximum number of approvals of a page.
const maxCards = "50"

func (p *pages) showInbox(r *page.Request) (any, error) {
	v := &inboxView{List: r.Query("list"), Status: r.Query("status"), Agent: r.Query("agent_id"), Tool: r.Query("tool"), Statuses: statuses()}
	voter := r.Person.May("vote")
	switch {
	case v.Status == "pending", v.List == listPending, v.List != listDecided && v.Status == "" && !voter:
		v.List = listPending
	case v.List == listDecided, v.Status != "":
		v.List = listDecided
	default:
		v.List = listMine
	}
	v.Filtered = v.Status+v.Agent+v.Tool != ""
	var err error
	if r.Query("after") == "" {
		if v.Live, err = follow(r); err != nil {
			return nil, err
		}
	}
	if err := v.read(r); err != nil {
		return nil, err
	}
	return v, v.readCounts(r, voter)
}

// read reads a page of the list.
func (v *inboxView) read(r *page.Request) error {
	query := r.ListQuery("status", "agent_id", "tool")
	query.Set("limit", maxCards)
	switch {
	case v.List == listMine:
		query.Set("may_vote", "true")
		query.Set("order", "oldest")
	case v.List == listPending:
		query.Set("status", "pending")
		query.Set("order", "oldest")
	case v.Status == "":
		query.Set("status", listDecided)
	}
	found, err := visitOf(r).Console.ListApprovals(r.Context(), visitOf(r).caller, query)
	if err = r.Correctable(err); err != nil {
		return err
	}
	v.Approvals, v.SignIns = describeApprovals(found.Approvals), describeSignIns(found.SignIns)
	v.Next = r.NextPage(found.Next)
	if c := found.Count; c != nil {
		v.Found = countText(c)
	}
	return nil
}

func countText(c *wire.Count) string {
	if !c.Complete {
		return fmt.Sprintf("more than %d", c.Matching)
	}
	return fmt.Sprint(c.Matching)
}

// readCounts adds the links to the lists, with the numbers of approvals that wait.
func (v *inboxView) readCounts(r *page.Request, voter bool) error {
	waiting, err := visitOf(r).Console.ListApprovals(r.Context(), visitOf(r).caller, url.Values{"status": {"pending"}, "limit": {"1"}})
	if err != nil {
		return err
	}
	address := r.Address("/console/approvals")
	add := func(list, title, query, count string) {
		v.Lists = append(v.Lists, page.Link{Title: title, URL: address + query, Count: count, Current: v.List == list})
	}
	if voter {
		n, err := visitOf(r).countVotes(r)
		if err != nil {
			return err
		}
		if n <= maxCounted && waiting.Count.Complete && v.Live != nil && v.List == listMine && !v.Filtered {
			v.Elsewhere = max(0, waiting.Count.Matching-n)
		}
		add(listMine, "For you", "", votesText(n))
		if v.Live != nil {
			v.Live.News = countWords(min(n, maxCounted), n > maxCounted)
		}
	}
	add(listPending, "Everyone's", "?list=pending", countText(waiting.Count))
	add(listDecided, "Decided", "?list=decided", "")
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

// Words describes the status of the approval.
func (a *approval) Words() string { return statusWords(a.Status) }

// Refusal explains why the reader may not vote.
func (a *approval) Refusal() string { return obstacleWords(string(a.WhyNot)) }

// Waits describes briefly why the approval does not wait for the reader, or returns "".
func (a *approval) Waits() string {
	switch {
	case a.MayVote || a.WhyNot == "role":
		return ""
	case a.WhyNot == "already_voted":
		return "you voted"
	case a.WhyNot == "deputy_voted":
		return "voted for you"
	case a.WhyNot == "own_request":
		return "your own request"
	}
	return "waits for others"
}

// eventsOf returns the address of the list of an agent's or a trace's events.
func eventsOf(r *page.Request, name, value string) string {
	return r.Address("/console/events") + "?" + url.Values{name: {value}}.Encode()
}
