package approval

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// transition is one change of state, as it is recorded.
type transition struct {
	name      string                // a Status, or requested or voted
	vote      string                // approve or deny; "" if it is not a vote
	via       string                // of a vote: ViaSlack or ""
	signed    *signedvote.Assertion // of a vote; nil if none
	remark    Remark                // of a user; may be empty
	deputyFor account.ID            // in whose place the user voted or revoked; "" if none
	step      id.Event              // the event that consumed the approval; "" if none
	own       bool                  // recorded in the name of the service; no user or key asked
}

// transaction collects one change of an organization's approvals.
type transaction struct {
	owner  *Approvals
	tenant id.Tenant
	open   *openChange
	sysevent.Change
	columns []org.Column // of the organization, for a question; nil if they do not matter
	touched []ID
	calls   []webhook.Message // callbacks and notices
	signer  *tlog.SignerKey   // of grants; nil until it is needed
}

func (a *Approvals) beginChange(t id.Tenant) *transaction {
	return &transaction{
		owner: a, tenant: t, open: a.stores.open.Begin(t), Change: sysevent.Change{KeepConfigVersion: true},
	}
}

// appendStatement adds the statement of a transition of r.
func (c *transaction) appendStatement(name ID, r *record, t transition) {
	r.Steps++
	payload := map[string]any{
		"approval_id": name, "transition": t.name, "action_digest": r.ActionDigest, "step": r.Steps,
	}
	if t.vote != "" {
		payload["vote"] = t.vote
	}
	if t.via != "" {
		payload["via"] = t.via
	}
	if t.signed != nil {
		payload["signed"] = *t.signed
	}
	if t.deputyFor != "" {
		payload["deputy_for"] = t.deputyFor
	}
	if t.remark.Comment != "" {
		payload["reason"] = t.remark.Comment
	}
	if t.remark.Code != "" {
		payload["reason_code"] = t.remark.Code
	}
	if r.Intent != "" && t.name == "requested" {
		payload["intent_event_id"] = r.Intent
	}
	if t.step != "" {
		payload["step_event_id"] = t.step
	}
	statement := sysevent.Statement{Kind: sysevent.Approval, Payload: payload}
	if t.own {
		statement.Principal = sysevent.Operator
	}
	c.Statements = append(c.Statements, statement)
	c.touched = append(c.touched, name)
	if notice, ok := noticeMessage(name, r, t.name, c.columns); ok {
		c.calls = append(c.calls, notice)
	}
	if to := Status(t.name); r.CallbackURL != "" && to.Valid() {
		c.calls = append(c.calls, webhook.Message{
			URL:  r.CallbackURL,
			Type: "approval." + t.name,
			Data: document(newCallback(name, r, to)),
		})
	}
}

// callback is the body of a callback. It has neither the payload nor the grant; the requesting agent reads
// those with its ingest key.
type callback struct {
	ID           ID        `json:"approval_id"`
	Status       Status    `json:"status"`
	ActionDigest id.Hash   `json:"action_digest"`
	Agent        id.Agent  `json:"agent_id"`
	Trace        id.Trace  `json:"trace_id"`
	Comment      wire.Text `json:"comment"`
	ReasonCode   wire.Text `json:"reason_code"`
}

func newCallback(name ID, r *record, status Status) callback {
	remark := r.remarkAt(status)
	return callback{ID: name, Status: status, ActionDigest: r.ActionDigest, Agent: r.Agent, Trace: r.Trace,
		Comment: wire.Text(remark.Comment), ReasonCode: wire.Text(remark.Code)}
}

// document returns v in JSON.
func document(v any) jsontext.Value {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err) // its members are texts and numbers
	}
	return b
}

// putRecord adds a record. Its parameters are the results of records.Store.Put.
func (c *transaction) putRecord(r storage.Change, err error) error {
	if err == nil {
		c.Changes = append(c.Changes, r)
	}
	return err
}

// putApproval adds an approval and its entry in the list.
func (c *transaction) putApproval(r records.Versioned[record]) error {
	if err := c.putRecord(c.owner.stores.approvals.Put(r)); err != nil {
		return err
	}
	return c.putRecord(c.owner.stores.open.Entry(r.Key, r.Value.toListed()))
}

// endApproval moves an open approval to a final state.
func (c *transaction) endApproval(
	ctx context.Context, name ID, r *records.Versioned[record], to Status, t transition,
) error {
	r.Value.Status, r.Value.EndedAt = to, c.owner.currentTime()
	t.name = string(to)
	c.appendStatement(name, &r.Value, t)
	if r.Value.ErasedAt != 0 {
		r.Value.eraseTexts(r.Value.ErasedAt)
	}
	c.Changes = append(c.Changes, storage.Change{Kind: kindOpen, Key: r.Value.openName(), If: storage.AnyVersion})
	if err := c.open.Close(ctx, r.Value.heldShares()...); err != nil {
		return err
	}
	return c.putApproval(*r)
}

// buildChange returns the complete change.
func (c *transaction) buildChange(ctx context.Context, s *log.State) (sysevent.Change, error) {
	deliveries, err := c.owner.webhooks.WriteDelivery(ctx, c.tenant, s.Identity().Organization, c.calls...)
	if err != nil {
		return sysevent.Change{}, err
	}
	counts, err := c.open.Changes()
	if err != nil {
		return sysevent.Change{}, err
	}
	c.Changes = append(append(c.Changes, deliveries...), counts...)
	return c.Change, nil
}

// step applies a caller's change to an approval by adding to c. If it returns a refusal, the additions are committed
// first.
type step func(ctx context.Context, s *log.State, c *transaction, r *records.Versioned[record], status Status) error

// refusal ends a step: the caller gets err after the additions of the transaction are committed.
type refusal struct{ err error }

func (r refusal) Error() string { return r.err.Error() }

// whose checks whether a caller may change an approval at all. If it returns an error, the caller gets it and nothing
// is recorded.
type whose func(ctx context.Context, s *log.State, r *record) error

// onlyAsker allows the ingest key that asked. For all others the approval does not exist.
func onlyAsker(ingestKey string) whose {
	return func(_ context.Context, _ *log.State, r *record) error {
		if r.IngestKeyID != ingestKey {
			return errNotFound()
		}
		return nil
	}
}

// allowAnyone allows every caller, because the HTTP interface has checked the caller.
func allowAnyone(context.Context, *log.State, *record) error { return nil }

// changeApproval runs a step on an approval in one append. First it checks the caller. If the approval has expired or
// became invalid, it then records that in the name of the service, and the step sees that state.
func (a *Approvals) changeApproval(
	ctx context.Context, t id.Tenant, principal string, name ID, may whose, do step,
) error {
	var refused error
	var touched []ID
	_, err := a.events.Append(ctx, t, principal, func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		refused = nil
		r, err := a.readApproval(ctx, t, name)
		if err != nil {
			return sysevent.Change{}, err
		}
		if err := may(ctx, s, &r.Value); err != nil {
			return sysevent.Change{}, err
		}
		j, err := a.newJudge(ctx, s)
		if err != nil {
			return sysevent.Change{}, err
		}
		c := a.beginChange(t)
		status, err := j.findStatus(ctx, name, &r.Value)
		if err != nil {
			return sysevent.Change{}, err
		}
		if status != r.Value.Status {
			if err := c.endApproval(ctx, name, &r, status, transition{own: true}); err != nil {
				return sysevent.Change{}, err
			}
		}
		if err := do(ctx, s, c, &r, status); err != nil {
			end, later := err.(refusal)
			if !later {
				return sysevent.Change{}, err
			}
			refused = end.err
		}
		touched = c.touched
		return c.buildChange(ctx, s)
	})
	if err != nil {
		return err
	}
	for _, name := range touched {
		a.hub.Notify(name)
	}
	return refused
}
