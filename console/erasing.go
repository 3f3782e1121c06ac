package console

import (
	"net/http"
	"strconv"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// erasureCalls are the calls about erasures. The field is required.
type erasureCalls struct{ Erasures *erasure.Erasures }

// AddRoutes adds the routes of the calls.
func (c *erasureCalls) AddRoutes(table *routes) {
	owns, reads := permit(account.Own), permit(account.ReadAudit)
	none, some := edge.Body{}, edge.JSONBody(maxBody)
	table.Add("POST", "/v1/console/events/{event}/erase", owns, some, c.eraseEvent)
	table.Add("POST", "/v1/console/erasures", owns, some, c.eraseMany)
	table.Add("GET", "/v1/console/erasures", reads, none, c.listErasures).TakesPage()
	table.Add("GET", "/v1/console/erasures/{erasure}", reads, none, c.answerErasure)
}

func (c *erasureCalls) eraseEvent(r *request) (answer, error) {
	var body struct {
		Reason erasure.Reason `json:"reason"`
	}
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	return accepted(c.Erasures.AskForEvent(r.Context(), r.Who.Tenant, string(r.Who.Account),
		r.PathParameter("event"), body.Reason))
}

func (c *erasureCalls) eraseMany(r *request) (answer, error) {
	var body struct {
		Agent     id.Agent       `json:"agent_id"`
		Trace     id.Trace       `json:"trace_id"`
		Principal string         `json:"principal"`
		From      string         `json:"from"`
		To        string         `json:"to"`
		Reason    erasure.Reason `json:"reason"`
	}
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	wanted := erasure.Wanted{Agent: body.Agent, Trace: body.Trace, Principal: body.Principal, Reason: body.Reason}
	var err error
	if wanted.From, err = eventlist.ParseBound("from", body.From); err != nil {
		return answer{}, err
	}
	if wanted.To, err = eventlist.ParseBound("to", body.To); err != nil {
		return answer{}, err
	}
	return accepted(c.Erasures.Ask(r.Context(), r.Who.Tenant, string(r.Who.Account), wanted))
}

// accepted answers that an erasure has begun.
func accepted(made erasure.Erasure, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusAccepted, struct {
		ID erasure.ID `json:"erasure_id"`
	}{made.ID}), nil
}

// view is an erasure as people see it.
type view struct {
	ID        erasure.ID     `json:"erasure_id"`
	State     erasure.State  `json:"state"`
	Reason    erasure.Reason `json:"reason"`
	AskedBy   string         `json:"asked_by"`
	AskedAt   id.Instant     `json:"asked_at"`
	EndedAt   *id.Instant    `json:"ended_at"`
	By        string         `json:"by"`
	Event     *id.Event      `json:"event_id"`
	Approval  *approval.ID   `json:"approval_id"`
	Agent     *id.Agent      `json:"agent_id"`
	Trace     *id.Trace      `json:"trace_id"`
	Principal *string        `json:"principal"` // null too when the erasure has ended
	From      *string        `json:"from"`
	To        *string        `json:"to"`
	TreeSize  id.Index       `json:"tree_size"` // no event from there on is erased
	Counts    counts         `json:"counts"`
	Remains   []remainder    `json:"remains,omitempty"` // of a single erasure alone
}

// remainder is something that an erasure does not remove.
type remainder struct {
	Code  string `json:"code"`
	What  string `json:"what"`
	Until string `json:"until"`
}

func describeRemains() []remainder {
	all := erasure.Remains()
	views := make([]remainder, len(all))
	for i, r := range all {
		views[i] = remainder(r)
	}
	return views
}

// counts are the numbers of an erasure so far.
type counts struct {
	Matched    uint64   `json:"matched"`
	Erased     uint64   `json:"erased"`
	Already    uint64   `json:"already"`
	Unexamined id.Index `json:"unexamined"` // events that are still to be looked at
	Approvals  uint64   `json:"approvals"`
	Deliveries uint64   `json:"deliveries"`
}

func describe(e erasure.Erasure) view {
	return view{
		ID: e.ID, State: e.State, Reason: e.Reason, AskedBy: e.AskedBy, AskedAt: e.AskedAt, EndedAt: orNull(e.EndedAt),
		By: e.By, Event: orNull(e.Event), Approval: orNull(e.Approval), Agent: orNull(e.Agent), Trace: orNull(e.Trace),
		Principal: orNull(e.Principal), From: describeBound(e.From), To: describeBound(e.To), TreeSize: e.End,
		Counts: counts{Matched: e.Matched, Erased: e.Erased, Already: e.Already, Unexamined: e.End - e.Examined,
			Approvals: e.ApprovalsErased, Deliveries: e.DeliveriesCorrected},
	}
}

// describeBound returns a bound as a caller writes it, nil for none.
func describeBound(b index.Bound) *string {
	if !b.Given {
		return nil
	}
	text := strconv.FormatUint(uint64(b.Index), 10)
	if b.At != 0 {
		text = b.At.String()
	}
	return &text
}

func (c *erasureCalls) listErasures(r *request) (answer, error) {
	p, err := r.ParsePage()
	if err != nil {
		return answer{}, err
	}
	found, err := c.Erasures.List(r.Context(), r.Who.Tenant, erasure.ID(p.After), p.Limit+1)
	if err != nil {
		return answer{}, err
	}
	var body struct {
		Erasures []view  `json:"erasures"`
		Next     *string `json:"next"`
	}
	body.Erasures, body.Next = edge.CutPage(p, found, func(e erasure.Erasure) string { return string(e.ID) }, describe)
	return jsonAnswer(http.StatusOK, body), nil
}

func (c *erasureCalls) answerErasure(r *request) (answer, error) {
	found, err := c.Erasures.Find(r.Context(), r.Who.Tenant, erasure.ID(r.PathParameter("erasure")))
	one := describe(found)
	one.Remains = describeRemains()
	return okAnswer(one, err)
}
