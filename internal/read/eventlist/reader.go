package eventlist

import (
	"context"
	"net/url"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify"
)

// Bundles creates bundles. publicapi.Server implements it.
type Bundles interface {
	MakeBundle(ctx context.Context, slug id.Slug, s *log.State, at id.Index, d id.Disclosure) (*verify.Bundle, error)
}

// Reader runs queries about events. All members are required.
type Reader struct {
	Index         *index.Index
	Ledgers       *log.Ledgers
	Bundles       Bundles
	Organizations *org.Orgs
}

// Asked is a query of a member of an organization.
type Asked struct {
	Tenant id.Tenant
	Role   account.Role
	Values url.Values // of the URL
	After  string     // of the page
	Limit  int
	Wait   time.Duration // for the first event; with a text, the search takes so long
	NoActs bool          // events do not name their acts

	// Shows reports whether a column of payloads is shown. If nil, all columns of the organization are.
	Shows func(path string) bool

	// TakeTurn waits for a processor for some milliseconds of a text search; it may be nil.
	TakeTurn func(context.Context) (give func(), err error)
}

// List returns a page of events. If the query asks to wait, a text search lasts so long unless the page is full before, and without a text
// an empty page in ascending order waits for the next event.
func (r *Reader) List(ctx context.Context, a Asked) (wire.Events, error) {
	q, err := ParseQuery(a.Values, a.After, a.Limit)
	if err != nil {
		return wire.Events{}, err
	}
	if a.Wait > 0 && !q.Ascending && q.Text == "" {
		return wire.Events{}, fault.New(fault.Invalid, "wait needs order=oldest or q")
	}
	q.Longest, q.TakeTurn = a.Wait, a.TakeTurn
	line, err := r.openLine(ctx, a)
	if err != nil {
		return wire.Events{}, err
	}
	q.Envelopes = a.Role.May(account.ReadPayloads)
	for until := time.Now().Add(a.Wait); ; {
		page, err := r.Index.List(ctx, line.tenant, q)
		if err != nil {
			return wire.Events{}, err
		}
		left := time.Until(until)
		if a.Wait == 0 || q.Text != "" || left <= 0 || len(page.Rows) > 0 || page.Next != nil {
			shown, err := r.describeList(ctx, page, line, a.NoActs)
			shown.Searched = describeSearch(&q, &page)
			return shown, err
		}
		if err := r.Index.Await(ctx, line.tenant, page.End, left); err != nil {
			return wire.Events{}, err
		}
		if page.End > 0 && (q.After == nil || *q.After < page.End-1) { // the events before it are not requested
			last := page.End - 1
			q.After = &last
		}
	}
}

// describeList describes a page, including the times of erasures and the acts.
func (r *Reader) describeList(ctx context.Context, page index.Page, of line, noActs bool) (shown wire.Events, err error) {
	shown, erased := describePage(page, of), r.erasuresOf(of.tenant)
	var acts map[id.Index]*index.Row
	if !noActs {
		if acts, err = r.Index.ActsOf(ctx, of.tenant, Indices(page.Rows)); err != nil {
			return wire.Events{}, err
		}
	}
	for i := range shown.Events {
		shown.Events[i].Act = DescribeLink(acts[shown.Events[i].Index])
		if err := erased.addTime(ctx, &shown.Events[i].Event, page.Rows[i].ErasedBy); err != nil {
			return wire.Events{}, err
		}
	}
	return shown, nil
}

// Find returns one event with its documents, proof and neighbours. name is its ID, log index or hash.
func (r *Reader) Find(ctx context.Context, a Asked, name string) (wire.EventDetail, error) {
	line, err := r.openLine(ctx, a)
	if err != nil {
		return wire.EventDetail{}, err
	}
	row, err := r.Index.Find(ctx, line.tenant, name)
	if err != nil {
		return wire.EventDetail{}, err
	}
	state, err := r.Ledgers.State(ctx, line.tenant)
	if err != nil {
		return wire.EventDetail{}, err
	}
	e, err := r.Ledgers.Event(ctx, state, row.Index, storage.FieldRecord|storage.FieldEnvelope)
	if err != nil {
		return wire.EventDetail{}, err
	}
	shown := wire.EventDetail{Event: describe(row), Record: string(e.Record)}
	disclosure := max(e.Disclosure, id.DiscloseRecord)
	if mayReadEnvelope(a.Role, row.Kind) {
		disclosure = id.DiscloseFull
		if e.Envelope != nil {
			text := string(e.Envelope)
			shown.Envelope = &text
		}
	}
	if err := r.erasuresOf(line.tenant).addTime(ctx, &shown.Event, row.ErasedBy); err != nil {
		return wire.EventDetail{}, err
	}
	act, err := r.Index.ActOf(ctx, line.tenant, row.Index)
	if err != nil {
		return wire.EventDetail{}, err
	}
	shown.Act = DescribeLink(act)
	if shown.Before, err = r.findNeighbour(ctx, line.tenant, row, false); err != nil {
		return wire.EventDetail{}, err
	}
	if shown.After, err = r.findNeighbour(ctx, line.tenant, row, true); err != nil || state.Provable() != nil {
		return shown, err
	}
	settings, err := r.Organizations.CurrentSettings(ctx, a.Tenant)
	if err != nil {
		return wire.EventDetail{}, err
	}
	if shown.Bundle, err = r.Bundles.MakeBundle(ctx, settings.Slug, state, row.Index, disclosure); err != nil {
		return wire.EventDetail{}, err
	}
	if shown.ErasedAt == 0 && e.ErasedBy != 0 { // the erasure is more recent than the row in the index
		shown.ErasedAt = wire.Time(*shown.Bundle.ErasedAt)
	}
	return shown, nil
}

// mayReadEnvelope reports whether a role may read the envelopes of events of a kind.
func mayReadEnvelope(role account.Role, kind string) bool {
	return role.May(account.ReadPayloads) ||
		kind == string(sysevent.Approval) && role.May(account.ReadApprovalPayloads)
}

// findNeighbour returns the previous or next event in the trace of a row, or nil.
func (r *Reader) findNeighbour(ctx context.Context, t id.Tenant, row index.Row, after bool) (*wire.Event, error) {
	page, err := r.Index.List(ctx, t, index.Query{Filter: index.Filter{Trace: row.Trace}, Ascending: after,
		After: &row.Index, Limit: 1})
	if err != nil || len(page.Rows) == 0 {
		return nil, err
	}
	shown := describe(page.Rows[0])
	return &shown, r.erasuresOf(t).addTime(ctx, &shown, page.Rows[0].ErasedBy)
}

// ListTraces returns a page of traces.
func (r *Reader) ListTraces(ctx context.Context, a Asked) (wire.Traces, error) {
	q, err := ParseQuery(a.Values, a.After, a.Limit)
	if err != nil {
		return wire.Traces{}, err
	}
	if q.Text != "" || q.Ascending {
		return wire.Traces{}, fault.New(fault.Invalid, "Lists of traces allow no q and are sorted from the newest")
	}
	line, err := r.openLine(ctx, a)
	if err != nil {
		return wire.Traces{}, err
	}
	page, err := r.Index.Traces(ctx, line.tenant, q)
	if err != nil {
		return wire.Traces{}, err
	}
	return describeTraces(page, line), nil
}

// Trace returns a page of the events of a trace.
func (r *Reader) Trace(ctx context.Context, a Asked, trace id.Trace) (wire.Tree, error) {
	q, err := ParseQuery(url.Values{}, a.After, a.Limit)
	if err != nil {
		return wire.Tree{}, err
	}
	line, err := r.openLine(ctx, a)
	if err != nil {
		return wire.Tree{}, err
	}
	page, parents, err := r.Index.Tree(ctx, line.tenant, trace, q)
	if err != nil {
		return wire.Tree{}, err
	}
	acts, err := r.Index.ActsOf(ctx, line.tenant, Indices(page.Rows))
	if err != nil {
		return wire.Tree{}, err
	}
	shown, erased := describeTree(trace, page, parents, line), r.erasuresOf(line.tenant)
	for i := range shown.Events {
		shown.Events[i].Act = DescribeLink(acts[shown.Events[i].Index])
		if err := erased.addTime(ctx, &shown.Events[i].Event, page.Rows[i].ErasedBy); err != nil {
			return wire.Tree{}, err
		}
	}
	return shown, nil
}

// Indices returns the indices of rows, in order.
func Indices(rows []index.Row) []id.Index {
	at := make([]id.Index, len(rows))
	for i := range rows {
		at[i] = rows[i].Index
	}
	return at
}
