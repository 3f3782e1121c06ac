package console

import (
	"net/url"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

func (p *pages) overviewScreens() []page.Screen {
	return []page.Screen{{Pattern: "/console", Views: p.views, Name: "overview", Title: "Overview", Show: show}}
}

// view is the content of the page.
type view struct {
	Organization wire.Organization
	Usage        wire.PlanUsage
	Recent       *recentActs // nil if acts can't be counted now
	Votes        []*approval // on which the reader may vote, oldest first
	Waiting      []*approval // others that are pending, oldest first
	Pending      string      // how many are pending; "0" if none
	Oldest       string      // how long the oldest has waited; "" if none waits
	Changes      []wire.AuditEntry
	Witnesses    wire.WitnessReport
	Size         id.Index   // entries that the index has seen
	Events       []newEvent // the latest
	Faults       []openFault
	Start        bool // no agent has sent an event
	LogURL       string
	Role         string
}

// Numbers of approvals of a kind and of events that are listed.
const (
	fewApprovals = "5"
	fewEvents    = "5"
	fewChanges   = 5

	searchedChanges = "50"
)

func show(r *page.Request) (any, error) {
	v := view{Role: r.Person.User.Role}
	var err error
	if v.Organization, err = visitOf(r).Console.ShowOrganization(r.Context(), visitOf(r).caller); err != nil {
		return nil, err
	}
	if v.Usage, err = visitOf(r).Console.ShowPlanUsage(r.Context(), visitOf(r).caller); err != nil {
		return nil, err
	}
	v.LogURL = r.Address("/log", string(v.Organization.Slug))
	if v.Recent, err = readRecentActs(r); err != nil {
		return nil, err
	}
	if v.Witnesses, err = visitOf(r).Console.ShowWitnesses(r.Context(), visitOf(r).caller); err != nil {
		return nil, err
	}
	if err := v.readChanges(r); err != nil {
		return nil, err
	}
	if err := v.readApprovals(r); err != nil {
		return nil, err
	}
	if err := v.readFaults(r); err != nil {
		return nil, err
	}
	return &v, v.readEvents(r)
}

// readChanges reads the latest changes, if the reader may see them. Steps of approvals are left out.
func (v *view) readChanges(r *page.Request) error {
	if !r.Person.May("read the audit list") {
		return nil
	}
	found, err := visitOf(r).Console.ListAudit(r.Context(), visitOf(r).caller, url.Values{"limit": {searchedChanges}})
	for _, e := range found.Entries {
		if len(v.Changes) < fewChanges && e.Kind != approvalKind {
			v.Changes = append(v.Changes, e)
		}
	}
	return err
}

// approvalKind is the kind of the steps of approvals.
const approvalKind = "ledger_approval"

// readApprovals reads the pending approvals, oldest first, separating those on which the reader may vote.
func (v *view) readApprovals(r *page.Request) error {
	query := url.Values{"status": {"pending"}, "limit": {fewApprovals}, "order": {"oldest"}}
	found, err := visitOf(r).Console.ListApprovals(r.Context(), visitOf(r).caller, query)
	if err != nil {
		return err
	}
	counted, err := visitOf(r).Console.ListApprovals(r.Context(), visitOf(r).caller, url.Values{"status": {"pending"}, "limit": {"1"}})
	if err != nil {
		return err
	}
	v.Pending = countText(counted.Count)
	if len(found.Approvals) > 0 {
		v.Oldest = ageWords(found.Approvals[0].CreatedAt, time.Now())
	}
	all := describeApprovals(found.Approvals)
	for i := range all {
		if !r.Person.May("vote") || !all[i].MayVote {
			v.Waiting = append(v.Waiting, &all[i])
		}
	}
	if !r.Person.May("vote") {
		return nil
	}
	query.Set("may_vote", "true")
	found, err = visitOf(r).Console.ListApprovals(r.Context(), visitOf(r).caller, query)
	mine := describeApprovals(found.Approvals)
	for i := range mine {
		v.Votes = append(v.Votes, &mine[i])
	}
	return err
}

// newEvent is one of the latest events.
type newEvent struct {
	wire.ListedEvent
	URL string
}

// readEvents reads the latest events. If no agent has sent one, the page leads to the start page.
func (v *view) readEvents(r *page.Request) error {
	found, err := visitOf(r).Console.ListEvents(r.Context(), visitOf(r).caller, url.Values{"limit": {fewEvents}})
	if err != nil {
		return err
	}
	v.Size = found.IndexedTo
	for _, e := range found.Events {
		v.Events = append(v.Events, newEvent{e, r.Address("/console/events", string(e.ID))})
	}
	signer, err := firstSigner(r)
	v.Start = signer == ""
	return err
}
