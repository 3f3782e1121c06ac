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

// Find returns an approval of an organization, or fault.NotFound. Users see the stored approval even if
// log.State.Trusted returns an error.
func (a *Approvals) Find(ctx context.Context, t id.Tenant, name ID) (Approval, error) {
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return Approval{}, err
	}
	return a.findIn(ctx, s, name, allowAnyone)
}

// Bounds of a page of a list.
const (
	listLook        = 10_000  // entries examined
	listEvaluations = 100     // evaluations of the policy; Sweep makes the others
	maxPage         = 1 << 20 // bytes of payloads, not counting the last approval

	listPage = 1000 // entries per read
	scanPage = 16   // approvals per read; payloads are as large as those of events
)

// Filter selects approvals.
type Filter struct {
	Status Status   // current status; "" for all
	Agent  id.Agent // "" for all
	Tool   string   // a glob as in policy rules; "" for all

	// Voter selects the approvals that this user may vote on now; "" for all. Status must be Pending, and Count is
	// -1.
	Voter account.ID
	// Oldest selects the oldest approvals first. Status must be Pending, and Count is -1.
	Oldest bool
	// Decided selects the approvals that are no longer pending. Status must be "".
	Decided bool
}

// Page is one page of a list. It may contain fewer approvals than requested, or none, without being the last page.
type Page struct {
	Approvals []Approval
	Next      ID // start of the following page; "" at the end

	// Count is the number of matching approvals on all pages. It is counted for the first page only, and is -1 for
	// the other pages and for a voter's list. Complete reports whether all approvals were examined.
	Count    int
	Complete bool
}

// listing is a page under construction.
type listing struct {
	Page
	judge  *judge
	filter Filter
	voter  *voter // nil for all
	limit  int
	bytes  int // of payloads read
	last   ID  // last approval examined for the page
	looked int
}

// List returns at most limit approvals of an organization that follow the given one: those that were requested before it,
// latest first, or with Oldest those that were requested after it. If after is "", it starts at the beginning. New approvals
// do not shift later pages. It returns fault.Invalid for a malformed glob.
func (a *Approvals) List(ctx context.Context, t id.Tenant, f Filter, after ID, limit int) (Page, error) {
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
		e, err := a.newElectorate(ctx, s)
		if err != nil {
			return Page{}, err
		}
		if l.voter, err = e.newVoter(ctx, f.Voter); err != nil || !l.voter.may {
			return Page{Count: -1, Complete: true}, err
		}
	}
	if err := a.ensureListed(ctx, t); err != nil {
		return Page{}, err
	}
	if f.Oldest {
		err = l.fillOldest(ctx, after)
		l.Count = -1
		return l.Page, err
	}
	rest := records.Range{End: "apr~"} // after all IDs and before listedKey
	if after != "" {
		rest.Begin = min(records.After(records.ReverseKey(string(after))).Begin, rest.End)
	}
	counts := after == "" && l.voter == nil
	err = l.fill(ctx, rest, counts)
	if !counts {
		l.Count = -1
	}
	return l.Page, err
}

// fill reads entries until the page is full. If count is set, it then continues to count.
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

// fillOldest reads open approvals until the page is full, oldest first. They are at most MaxOpen.
func (l *listing) fillOldest(ctx context.Context, after ID) error {
	names, err := l.judge.owner.openNames(ctx, l.judge.tenant)
	if err != nil {
		return err
	}
	begin, _ := slices.BinarySearch(names, after+"\x00")
	for _, name := range names[begin:] {
		if len(l.Approvals) == l.limit || l.bytes > maxPage || l.judge.evaluated >= listEvaluations {
			l.Next = l.last
			return nil
		}
		entry, err := l.judge.owner.stores.open.List.Get(ctx, l.judge.tenant, records.ReverseKey(string(name)))
		if err != nil {
			return err
		}
		if err := l.visitEntry(ctx, name, &entry.Value, false); err != nil {
			return err
		}
	}
	l.Complete = true
	return nil
}

// visitEntry counts an approval that matches and adds it, unless the page is full.
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
	if l.filter.Status == "" && !l.filter.Decided {
		return true, nil
	}
	status, err := l.judge.findListed(ctx, name, entry)
	return status == l.filter.Status || l.filter.Decided && status != Pending, err
}

// openNames returns the IDs of the approvals that are stored as open, in ascending order.
func (a *Approvals) openNames(ctx context.Context, t id.Tenant) ([]ID, error) {
	found, err := a.stores.questions.List(ctx, t, records.Range{}, MaxOpen)
	names := make([]ID, len(found))
	for i := range found {
		names[i] = found[i].Value.Approval
	}
	slices.Sort(names)
	return names, err
}
