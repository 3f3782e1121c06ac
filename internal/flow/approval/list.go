package approval

import (
	"context"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// Find returns an approval of an organization; fault.NotFound when it has none
// of that id. People see the stored approval, also where log.State.Trusted is an error.
func (a *Approvals) Find(ctx context.Context, t id.Tenant, name ID) (Approval, error) {
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return Approval{}, err
	}
	return a.findIn(ctx, s, name, allowAnyone)
}

// Bounds of a page of a list.
const (
	listLook        = 10_000  // entries that it looks at
	listEvaluations = 100     // questions that it puts to the policy again; Sweep puts the others
	maxPage         = 1 << 20 // bytes of payloads but for its last approval, because many people look at lists

	listPage = 1000 // entries that are read at once
	scanPage = 16   // approvals that are read at once, because payloads are as large as events may be
)

// Filter says which approvals are wanted.
type Filter struct {
	Status Status   // that holds now; "" for all
	Agent  id.Agent // "" for all
	Tool   string   // a glob as in rules of policies, "" for all

	// Voter is a person who may vote on them now, "" for all. Status is Pending then, and nothing is counted.
	Voter account.ID
}

// Page is a part of a list. It may hold less approvals than asked for, also none, and not be the last.
type Page struct {
	Approvals []Approval
	Next      ID // where the following page begins, "" at the end

	// Count is how many approvals match on all pages. It is counted for the first page, -1 for all
	// others and for lists of a voter. Complete says that no approval was left out, because there are too many.
	Count    int
	Complete bool
}

// listing is a page that is being filled.
type listing struct {
	Page
	judge  *judge
	filter Filter
	voter  *voter // nil for all
	limit  int
	bytes  int // of payloads that were read
	last   ID  // that the page has looked at
	looked int
}

// List returns at most limit approvals of an organization that were asked for before the given one,
// "" for none, the newest first. New approvals don't move those of later pages. fault.Invalid for a
// malformed glob.
func (a *Approvals) List(ctx context.Context, t id.Tenant, f Filter, before ID, limit int) (Page, error) {
	if f.Tool != "" && !textcheck.ValidToolGlob(f.Tool) {
		return Page{}, fault.New(fault.Invalid,
			"tool must be segments of [A-Za-z0-9_:/-]+ or * with dots between them, and may end in **")
	}
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return Page{}, err
	}
	l := listing{filter: f, limit: limit}
	if l.judge, err = a.newJudge(ctx, s); err != nil {
		return Page{}, err
	}
	if f.Voter != "" {
		if l.voter, err = a.newVoter(ctx, s, f.Voter); err != nil || !l.voter.may {
			return Page{Count: -1, Complete: true}, err
		}
	}
	if err := a.ensureListed(ctx, t); err != nil {
		return Page{}, err
	}
	rest := records.Range{End: "apr~"} // behind all ids, and before listedKey
	if before != "" {
		rest.Begin = min(records.After(records.ReverseKey(string(before))).Begin, rest.End)
	}
	counts := before == "" && l.voter == nil
	err = l.fill(ctx, rest, counts)
	if !counts {
		l.Count = -1
	}
	return l.Page, err
}

// fill reads entries until the page is full; to count, it goes on.
func (l *listing) fill(ctx context.Context, rest records.Range, count bool) error {
	for entry, err := range l.judge.owner.stores.open.List.Scan(ctx, l.judge.tenant, rest, listPage) {
		if err != nil {
			return err
		}
		full := len(l.Approvals) == l.limit || l.bytes > maxPage
		if full {
			l.Next = l.last
		}
		if full && !count {
			return nil
		}
		if l.looked == listLook || l.judge.evaluated >= listEvaluations {
			l.Next = l.last
			return nil
		}
		l.looked++
		if err := l.visitEntry(ctx, ID(records.ReverseKey(entry.Key)), &entry.Value, full); err != nil {
			return err
		}
	}
	l.Complete = true
	return nil
}

// visitEntry counts an approval that matches, and adds it unless the page is full.
func (l *listing) visitEntry(ctx context.Context, name ID, entry *listRecord, full bool) error {
	if !full {
		l.last = name
	}
	matches, err := l.matchesFilter(ctx, name, entry)
	if err != nil || !matches {
		return err
	}
	l.Count++
	if full {
		return nil
	}
	r, err := l.judge.owner.readApproval(ctx, l.judge.tenant, name)
	if err != nil {
		return err
	}
	l.bytes += len(r.Value.Payload)
	status, err := l.judge.findStatus(ctx, name, &r.Value)
	if err != nil {
		return err
	}
	found := r.Value.toApproval(name, status)
	if l.voter != nil {
		if obstacle, err := l.voter.findObstacle(ctx, &found); err != nil || obstacle != "" {
			return err
		}
	}
	l.Approvals = append(l.Approvals, found)
	return nil
}

func (l *listing) matchesFilter(ctx context.Context, name ID, entry *listRecord) (bool, error) {
	if l.filter.Agent != "" && l.filter.Agent != entry.Agent {
		return false, nil
	}
	if l.filter.Tool != "" && !textcheck.MatchTool(l.filter.Tool, string(entry.Tool)) {
		return false, nil
	}
	if l.filter.Status == "" {
		return true, nil
	}
	status, err := l.judge.findListed(ctx, name, entry)
	return status == l.filter.Status, err
}

// openNames returns the ids of the approvals that are stored as open, in ascending order.
func (a *Approvals) openNames(ctx context.Context, t id.Tenant) ([]ID, error) {
	found, err := a.stores.questions.List(ctx, t, records.Range{}, MaxOpen)
	names := make([]ID, len(found))
	for i := range found {
		names[i] = found[i].Value.Approval
	}
	slices.Sort(names)
	return names, err
}
