package webhook

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

const (
	// kindPosition has the position (package follow) of each endpoint that selects notices of events, the plan or the
	// ledger, by its ID.
	kindPosition storage.Kind = "webhook_position"
	// kindPositionDue has the due entries of the positions, in the service's own partition.
	kindPositionDue storage.Kind = "webhook_position_due"
	// kindNotified has the notices of plan and ledger that an endpoint has received, by its ID.
	kindNotified storage.Kind = "webhook_told"
)

// The types of notices that are created at a position.
const (
	typeStored    = "event.stored"
	typeDenied    = "decision.denied"
	typeTightened = "decision.tightened"
	typePlan      = "plan.threshold"
	typeFault     = "ledger.fault"
)

// maxWaiting bounds the notices of events that wait for one endpoint. If it is reached, the position waits.
const maxWaiting = 1000

// The pauses of a position whose endpoint has too many waiting notices, and of a position whose endpoint is disabled.
const (
	fullPause     = 10 * time.Second
	disabledPause = 10 * time.Minute
)

// The bounds of a batch of events.
const (
	maxBatchEvents = 256
	maxBatchBytes  = 1 << 20
)

// followsEvents reports whether an endpoint selects notices that are created at a position.
func (r *endpointRecord) followsEvents() bool {
	return slices.ContainsFunc(r.Events, func(name string) bool {
		family, _, _ := strings.Cut(name, ".")
		return family != "approval" && family != "run"
	})
}

// followChanges returns the changes of an endpoint's position for a change of the endpoint. A new position, and the
// position of an endpoint that is enabled again, is after the latest event.
func (o *Sender) followChanges(
	ctx context.Context, t id.Tenant, s *log.State, e *endpointRecord, restart bool,
) ([]storage.Change, error) {
	if o.follower == nil {
		return nil, nil
	}
	position, err := o.follower.Position(ctx, t, string(e.ID))
	if err != nil {
		return nil, err
	}
	switch {
	case !e.followsEvents() && position.Exists():
		return o.unfollowChanges(e.ID), nil
	case e.followsEvents() && (restart || !position.Exists()):
		begin, err := o.follower.Begin(ctx, t, position, follow.End(s))
		return []storage.Change{begin}, err
	}
	return nil, nil
}

// unfollowChanges returns the changes that delete an endpoint's position.
func (o *Sender) unfollowChanges(name EndpointID) []storage.Change {
	if o.follower == nil {
		return nil
	}
	notified := storage.Change{Kind: kindNotified, Key: string(name), If: storage.AnyVersion}
	return []storage.Change{o.follower.Remove(string(name)), notified}
}

// writeNotices creates the deliveries of one endpoint for the events after its position (follow.Work).
func (o *Sender) writeNotices(ctx context.Context, b follow.Batch) (follow.Result, error) {
	stored, err := o.endpoints.Get(ctx, b.Tenant, "")
	if err != nil {
		return follow.Result{}, err
	}
	at := stored.Value.indexOf(EndpointID(b.Name))
	if at < 0 || !stored.Value.Endpoints[at].followsEvents() {
		return follow.Result{End: true}, nil
	}
	e := &stored.Value.Endpoints[at]
	if e.Disabled != "" {
		return follow.Result{Next: b.Position.Cursor, Pause: disabledPause}, nil
	}
	capacity, err := o.capacityFor(ctx, b.Tenant, e.ID)
	if err != nil {
		return follow.Result{}, err
	}
	n := &notices{Sender: o, batch: &b, endpoint: e, next: b.After}
	if err := n.addEvents(capacity); err != nil {
		return follow.Result{}, err
	}
	if err := n.addStates(ctx); err != nil {
		return follow.Result{}, err
	}
	result := follow.Result{Next: n.next, Changes: n.changes}
	if n.next != b.After {
		result.Pause = fullPause
	}
	if len(n.entries) > 0 {
		err = o.noteDue(ctx, n.entries...)
	}
	return result, err
}

// noticePrefix is the prefix of the IDs of notices that are created at a position.
func noticePrefix(name EndpointID) string { return string(name) + "_" }

// capacityFor returns how many more notices of events may wait for an endpoint.
func (o *Sender) capacityFor(ctx context.Context, t id.Tenant, name EndpointID) (int, error) {
	begin := noticePrefix(name)
	waiting, err := o.records.Scan(ctx, t, kindDelivery, begin, begin[:len(begin)-1]+"`", maxWaiting)
	if err != nil {
		return 0, errUnreadable("count deliveries", err)
	}
	return maxWaiting - len(waiting), nil
}

// notices collects the deliveries of one endpoint for one batch.
type notices struct {
	*Sender
	batch    *follow.Batch
	endpoint *endpointRecord
	next     follow.Cursor // after the last event whose notices are created
	changes  []storage.Change
	entries  []schedule.Entry
}

// addEvents adds the notices of the batch's events, as far as the capacity allows.
func (n *notices) addEvents(capacity int) error {
	for _, stored := range n.batch.Events {
		e, err := follow.ReadEvent(stored)
		if err != nil {
			return err
		}
		all, err := messagesFor(&e)
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(m Message) bool { return !n.endpoint.matches(&m) })
		if len(n.entries)+len(all) > capacity {
			n.next = follow.Cursor{Origin: n.batch.After.Origin, Next: e.Index}
			return nil
		}
		for i := range all {
			place := fmt.Sprintf("%016x_%s", uint64(e.Index), strings.ReplaceAll(all[i].Type, ".", "_"))
			if err := n.addNotice(e.Record.Origin, place, &all[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// addNotice adds a delivery whose ID is derived from its position, so that repeated work does not create another one.
func (n *notices) addNotice(origin id.Origin, place string, m *Message) error {
	organization := n.batch.State.Identity().Organization
	_, d, err := n.newNotice(organization, m, n.endpoint)
	if err != nil {
		return err
	}
	of := sha256.Sum256([]byte(origin))
	name := ID(noticePrefix(n.endpoint.ID) + hex.EncodeToString(of[:4]) + "_" + place)
	change, err := n.deliveries.Put(records.Versioned[delivery]{
		Key: string(name), Value: *d, Version: storage.AnyVersion,
	})
	n.changes = append(n.changes, change)
	n.entries = append(n.entries, d.dueEntry(n.batch.Tenant, name))
	return err
}

// eventData is the data of an event's notice, without the payload.
type eventData struct {
	Event      id.Event     `json:"event_id"`
	Index      id.Index     `json:"log_index"`
	ReceivedAt id.Instant   `json:"received_at"`
	Agent      id.Agent     `json:"agent_id"`
	Signer     event.Signer `json:"signer"`
	Tool       wire.Text    `json:"tool_name"`
	Kind       wire.Text    `json:"action_kind"`
	Trace      wire.Text    `json:"trace_id"`
	Principal  wire.Text    `json:"actor_principal"`
	Declared   id.Decision  `json:"declared"`
	Effective  id.Decision  `json:"effective"`
	Policy     wire.Text    `json:"policy_id"`
	Rule       wire.Text    `json:"rule_id"`
}

// messagesFor returns the notices of an event.
func messagesFor(e *follow.Event) ([]Message, error) {
	r := &e.Record
	d := eventData{Event: r.EventID, Index: e.Index, ReceivedAt: r.ReceivedAt, Agent: r.AgentID, Signer: r.Signer,
		Declared: r.Policy.Declared, Effective: r.Policy.Effective, Policy: wire.Text(r.Policy.PolicyID),
		Rule: wire.Text(r.Policy.RuleID)}
	subject := "an event"
	m := Message{Agent: r.AgentID}
	if v := e.Envelope; v != nil {
		d.Tool, d.Kind, d.Trace = wire.Text(v.Tool), wire.Text(v.ActionKind), wire.Text(v.TraceID)
		d.Principal = wire.Text(v.ActorPrincipal)
		m.Tool, subject = v.Tool, cmp.Or(string(v.Tool), v.ActionKind)
	}
	var err error
	if m.Data, err = json.Marshal(d); err != nil {
		return nil, fmt.Errorf("write notice: %w", err)
	}
	all := []Message{m.titled(typeStored, fmt.Sprintf("%s: %s was recorded (%s)", r.AgentID, subject, d.Effective))}
	rule := ""
	if r.Policy.RuleID != "" {
		rule = " by rule " + r.Policy.RuleID
	}
	if d.Effective == id.Deny {
		all = append(all, m.titled(typeDenied, fmt.Sprintf("%s: %s is denied%s", r.AgentID, subject, rule)))
	}
	if d.Effective > d.Declared {
		all = append(all, m.titled(typeTightened,
			fmt.Sprintf("%s: %s was declared %s and is %s%s", r.AgentID, subject, d.Declared, d.Effective, rule)))
	}
	return all, nil
}

func (m Message) titled(kind, title string) Message {
	m.Type, m.Title = kind, title
	return m
}
