package approval

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// Question is an agent's request for permission. Its members are well-formed.
type Question struct {
	Agent       id.Agent
	Tool        id.Tool
	ActorType   string // "" means agent
	ActionKind  string // "" means tool_call
	Payload     []byte // canonical JSON object; nil means {}
	OnBehalfOf  *event.OnBehalfOf
	Standing    event.Standing // of OnBehalfOf
	Trace       id.Trace       // "" if none
	Principal   string         // actor_principal, "" if none
	CallbackURL string         // "" if none
	IngestKeyID string         // the key that asks
	Intent      Intent         // the stored event that asks; zero if none
}

// Ask creates an approval, or returns the open one with the same action, ingest key and trace, and made false. For
// an intent, it returns the approval that the intent requested, in any state.
//
// It returns fault.Conflict if another ingest key asked for the intent; fault.Invalid if the active policy does not
// return allow_with_obligation, if the organization does not have the agent, or if the callback is not possible; and
// fault.RateLimited if MaxOpen, MaxOpenByKey, MaxOpenByAgent or MaxAsked is exceeded.
func (a *Approvals) Ask(ctx context.Context, t id.Tenant, q Question) (asked Approval, made bool, err error) {
	if q.Payload == nil {
		q.Payload = []byte("{}")
	}
	if q.CallbackURL != "" {
		if err := a.webhooks.CheckAddress(q.CallbackURL); err != nil {
			return Approval{}, false, err
		}
	}
	var touched []ID
	prepare := func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		c := a.beginChange(t)
		found, known, err := a.findIntent(ctx, s, q)
		if asked = found; err != nil || known {
			return sysevent.Change{}, err
		}
		r, err := a.buildQuestion(ctx, s, q)
		if err != nil {
			return sysevent.Change{}, err
		}
		open, known, err := a.supersedeQuestion(ctx, s, c, r)
		if asked = open; err != nil || known {
			return sysevent.Change{}, err
		}
		name := newApprovalID(r.CreatedAt)
		asked, touched = r.toApproval(name, Pending), c.touched
		return a.beginApproval(ctx, s, c, name, r)
	}
	receipts, err := a.events.Append(ctx, t, q.IngestKeyID, prepare)
	if err != nil {
		return Approval{}, false, fmt.Errorf("ask for approval: %w", err)
	}
	if len(receipts) == 0 { // it is already open
		return asked, false, nil
	}
	for _, name := range touched {
		a.hub.Notify(name)
	}
	return asked, true, nil
}

// buildQuestion returns the record of a new approval under the active policy.
func (a *Approvals) buildQuestion(ctx context.Context, s *log.State, q Question) (*record, error) {
	now := a.currentTime()
	compiled, err := a.policies.Active(ctx, s)
	if err != nil {
		return nil, err
	}
	out, err := a.decideQuestion(ctx, s, compiled, q, now)
	if err != nil {
		return nil, err
	}
	identity := s.Identity()
	made, err := a.agents.Agent(ctx, identity.Tenant, q.Agent)
	if fault.Is(err, fault.NotFound) {
		return nil, fault.Wrap(fault.Invalid, "Unknown agent", err)
	}
	if err != nil {
		return nil, err
	}
	if made.Inactive {
		return nil, agent.ErrInactive()
	}
	key, err := a.orgs.IngestKey(ctx, identity.Tenant, q.IngestKeyID)
	if err != nil {
		return nil, err
	}
	quorum, life := strictestDemands(out.Obligations)
	settings, err := a.orgs.Settings(ctx, s)
	if err != nil {
		return nil, err
	}
	action := grant.Action{Organization: identity.Organization, Agent: q.Agent, Tool: q.Tool, OnBehalfOf: q.OnBehalfOf.Canonical(), Payload: q.Payload}
	r := &record{
		Status: Pending, Agent: q.Agent, AgentName: made.DisplayName, AgentMaker: made.CreatedBy, Tool: q.Tool, Payload: jsontext.Value(q.Payload),
		OnBehalfOf: q.OnBehalfOf, Standing: q.Standing,
		ActorType: q.ActorType, ActionKind: q.ActionKind, Intent: q.Intent.Event,
		ActionDigest: action.Digest(), Trace: q.Trace, Principal: q.Principal,
		IngestKeyID: q.IngestKeyID, KeyMaker: key.CreatedBy,
		Unproved:    q.Intent.Event == "" && len(key.Agents) == 0,
		CallbackURL: q.CallbackURL,
		PolicyID:    out.PolicyID, PolicyVersion: out.PolicyVersion,
		PolicyDigest: out.PolicyDigest, RuleID: out.RuleID, Reason: out.Reason,
		Signed: settings.SignedVotes || demandsSignature(out.Obligations), Quorum: quorum, CreatedAt: now, ExpiresAt: now + id.Instant(life/time.Millisecond),
	}
	r.addReminders(out.Obligations)
	return r, nil
}

// demandsSignature reports whether approving votes must be signed.
func demandsSignature(obligations []policy.Obligation) bool {
	return slices.ContainsFunc(obligations, func(o policy.Obligation) bool { return o.Signed })
}

// strictestDemands returns how many approvers must agree and how long the approval is open, under the strictest
// obligation.
func strictestDemands(obligations []policy.Obligation) (quorum int, life time.Duration) {
	quorum, life = policy.DefaultApprovals, policy.DefaultTTLSeconds*time.Second
	for i, o := range obligations {
		ttl := time.Duration(o.TTLSeconds) * time.Second
		if i == 0 {
			life = ttl
		}
		quorum, life = max(quorum, o.Approvals), min(life, ttl)
	}
	return quorum, life
}

// supersedeQuestion looks for the open approval of the same question. It returns the approval with known true, or ends
// it if it is no longer valid.
func (a *Approvals) supersedeQuestion(
	ctx context.Context, s *log.State, c *transaction, r *record,
) (asked Approval, known bool, err error) {
	open, err := a.stores.questions.Get(ctx, c.tenant, r.openName())
	if err != nil || open.Version == 0 {
		return Approval{}, false, err
	}
	name := open.Value.Approval
	before, err := a.readApproval(ctx, c.tenant, name)
	if err != nil {
		return Approval{}, false, errUnreadable("read open approval", err)
	}
	j, err := a.newJudge(ctx, s)
	if err != nil {
		return Approval{}, false, err
	}
	status, err := j.findStatus(ctx, name, &before.Value)
	if err != nil {
		return Approval{}, false, err
	}
	if status.Open() {
		return before.Value.toApproval(name, status), true, nil
	}
	return Approval{}, false, c.endApproval(ctx, name, &before, status, transition{own: true})
}

// beginApproval adds a new approval to a change. Its due entries are written first, because an entry without its approval
// does no harm.
func (a *Approvals) beginApproval(
	ctx context.Context, s *log.State, c *transaction, name ID, r *record,
) (sysevent.Change, error) {
	if err := c.open.Open(ctx, r.CreatedAt, r.shares()...); err != nil {
		return sysevent.Change{}, err
	}
	r.Shared, r.SharedByAgent = true, true
	settings, err := a.orgs.Settings(ctx, s)
	if err != nil {
		return sysevent.Change{}, err
	}
	c.columns = settings.Columns
	if err := a.due.NoteEntries(ctx, r.dueEntries(c.tenant, string(name))...); err != nil {
		return sysevent.Change{}, errUnreadable("note when the approval is due", err)
	}
	c.appendStatement(name, r, transition{name: "requested"})
	if err := c.putQuestion(name, r); err != nil {
		return sysevent.Change{}, err
	}
	if c.open.First() {
		c.Changes = append(c.Changes, listedChange(), actionIndexComplete())
	}
	c.Changes = append(c.Changes, IndexAction(r.ActionDigest, string(name)))
	if err := c.putApproval(records.Versioned[record]{Key: string(name), Value: *r}); err != nil {
		return sysevent.Change{}, err
	}
	return c.buildChange(ctx, s)
}

// putQuestion adds the record by which the approval of a question is found.
func (c *transaction) putQuestion(name ID, r *record) error {
	if r.Intent != "" {
		link := records.Versioned[openRecord]{Key: string(r.Intent), Value: openRecord{Approval: name}}
		if err := c.putRecord(c.owner.stores.intents.Put(link)); err != nil {
			return err
		}
	}
	open := records.Versioned[openRecord]{
		Key:     r.openName(),
		Value:   openRecord{Approval: name},
		Version: storage.AnyVersion,
	}
	return c.putRecord(c.owner.stores.questions.Put(open))
}
