package erasure

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// ID identifies an erasure. IDs of one service increase with the time of the request.
type ID string

func newErasureID(now id.Instant) ID { return ID(id.Rising("ers_", now)) }

// Wanted selects the events to erase: the events of one agent, one trace, one principal or one subject of on_behalf_of.
// Exactly one of these must be set.
type Wanted struct {
	Agent     id.Agent
	Trace     id.Trace
	Principal string
	Subject   string
	Issuer    string      // of Subject, or "" for all issuers
	From, To  index.Bound // the events [From, To)
	Reason    Reason
}

// Ask requests the erasure of events that are in the log now. asker is the account.
//
// It returns fault.Invalid for an invalid request, fault.Conflict with code legal_hold while the organization has a
// legal hold, and fault.RateLimited while MaxOpen erasures wait or if changes come too fast.
func (e *Erasures) Ask(ctx context.Context, t id.Tenant, asker string, w Wanted) (Erasure, error) {
	r := record{Reason: w.Reason, Agent: w.Agent, Trace: w.Trace, Principal: w.Principal,
		Subject: w.Subject, Issuer: w.Issuer,
		From: bound(w.From), To: bound(w.To)}
	given := []string{}
	if w.Agent != "" {
		given = append(given, "agent_id")
	}
	if w.Trace != "" {
		given = append(given, "trace_id")
	}
	if w.Principal != "" {
		given = append(given, "principal")
	}
	if w.Subject != "" {
		given = append(given, "on_behalf_of")
	}
	if len(given) != 1 {
		return Erasure{}, fault.New(fault.Invalid, "Give exactly one of agent_id, trace_id, principal and on_behalf_of")
	}
	r.By = given[0]
	switch {
	case w.Agent != "" && !event.ValidAgent(string(w.Agent)):
		return Erasure{}, fault.New(fault.Invalid, "agent_id must match [A-Za-z0-9._-]{1,128}")
	case w.Trace != "" && !event.ValidEvent(string(w.Trace)):
		return Erasure{}, fault.New(fault.Invalid, "trace_id must match [A-Za-z0-9._:-]{1,128}, not . or ..")
	case w.Principal != "" && !textcheck.Plain(w.Principal, 1, maxPrincipal):
		return Erasure{}, fault.New(fault.Invalid,
			"principal must have 1 to 256 characters, none of them a control character")
	case w.Subject != "" && !event.ValidSubject(w.Subject):
		return Erasure{}, fault.New(fault.Invalid,
			"on_behalf_of must have 1 to 255 characters, none of them a control character, or be a SPIFFE ID")
	case w.Issuer != "" && w.Subject == "":
		return Erasure{}, fault.New(fault.Invalid, "issuer requires on_behalf_of")
	case w.Issuer != "" && !event.ValidIssuer(w.Issuer):
		return Erasure{}, fault.New(fault.Invalid, "issuer must be an https URL without user, query and fragment")
	}
	return e.begin(ctx, t, asker, r)
}

// maxPrincipal is the maximum length of a principal in code points.
const maxPrincipal = 256

// AskForEvent requests the erasure of one event, by its ID, log index or event hash. For an event of the service
// about an approval, it erases the payload of the approval.
//
// It returns fault.NotFound for an unknown event, fault.Invalid for any other event of the service, and otherwise the
// errors of Ask.
func (e *Erasures) AskForEvent(ctx context.Context, t id.Tenant, asker, name string, why Reason) (Erasure, error) {
	if err := why.check(); err != nil {
		return Erasure{}, err
	}
	row, err := e.Index.Find(ctx, t, name)
	if err != nil {
		return Erasure{}, err
	}
	r := record{Reason: why, Event: row.Event, By: "event_id",
		From: bound{Given: true, Index: row.Index}, To: bound{Given: true, Index: row.Index + 1}}
	if isOwn(row.Kind) {
		if r.Approval, err = e.approvalFor(ctx, t, row); err != nil {
			return Erasure{}, err
		}
	}
	return e.begin(ctx, t, asker, r)
}

// isOwn reports whether events of a kind are the service's own. Their envelopes are never erased, because they
// contain no payload of an agent.
func isOwn(kind string) bool { return strings.HasPrefix(kind, "ledger_") }

// approvalFor returns the approval that an event of the service is about.
func (e *Erasures) approvalFor(ctx context.Context, t id.Tenant, row index.Row) (approval.ID, error) {
	if row.Kind != string(sysevent.Approval) {
		return "", fault.New(fault.Invalid, "System events are never erased: they contain no payload")
	}
	s, err := e.Ledgers.State(ctx, t)
	if err != nil {
		return "", err
	}
	stored, err := e.Ledgers.Event(ctx, s, row.Index, storage.FieldRecord|storage.FieldEnvelope)
	if err != nil {
		return "", err
	}
	read, err := follow.ReadEvent(stored)
	if err != nil {
		return "", err
	}
	var statement struct {
		Approval approval.ID `json:"approval_id"`
	}
	if read.Envelope == nil {
		return "", fault.New(fault.Invalid, "System events are never erased: they contain no payload")
	}
	if err := json.Unmarshal(read.Envelope.Payload, &statement); err != nil {
		return "", fmt.Errorf("approval of event %d: %w: %w", row.Index, storage.ErrCorrupt, err)
	}
	return statement.Approval, nil
}

// begin appends the statement that an erasure was requested, together with its record.
func (e *Erasures) begin(ctx context.Context, t id.Tenant, asker string, r record) (Erasure, error) {
	if err := r.Reason.check(); err != nil {
		return Erasure{}, err
	}
	var made Erasure
	_, err := e.Events.Append(ctx, t, asker, func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		if err := e.checkHold(ctx, s); err != nil {
			return sysevent.Change{}, err
		}
		now := e.currentTime()
		name := newErasureID(now)
		r.AskedBy, r.AskedAt, r.End = asker, now, s.Size()
		changes, err := e.beginChanges(ctx, t, name, &r)
		if err != nil {
			return sysevent.Change{}, err
		}
		// The entry is written first: without its erasure it does no harm.
		if err := e.due.NoteEntries(ctx, schedule.Entry{At: now, Tenant: t, Name: string(name)}); err != nil {
			return sysevent.Change{}, errUnreadable("note when the erasure is due", err)
		}
		made = r.toErasure(name)
		return sysevent.Change{
			Statements: []sysevent.Statement{{Kind: sysevent.ErasureRequested, Payload: r.describe(name)}},
			Changes:    changes, KeepConfigVersion: true,
		}, nil
	})
	if err != nil {
		return Erasure{}, fmt.Errorf("ask for erasure: %w", err)
	}
	return made, nil
}

// describe returns the payload of the statement about a new erasure. It contains neither a principal nor a subject.
func (r *record) describe(name ID) map[string]any {
	payload := map[string]any{"erasure_id": name, "reason_code": r.Reason, "by": r.By, "end": r.End}
	switch {
	case r.Event != "":
		payload["event_id"] = r.Event
	case r.Agent != "":
		payload["agent_id"] = r.Agent
	case r.Trace != "":
		payload["trace_id"] = r.Trace
	}
	return payload
}

// beginChanges returns the changes of a new erasure. It returns an error if too many are waiting.
func (e *Erasures) beginChanges(ctx context.Context, t id.Tenant, name ID, r *record) ([]storage.Change, error) {
	tally, err := e.tallies.Get(ctx, t, "")
	if err != nil {
		return nil, err
	}
	if tally.Value.Open >= MaxOpen {
		return nil, &fault.Error{Kind: fault.RateLimited, Code: "rate_limited", RetryAfter: time.Minute,
			Message: "100 erasures are waiting: try again when some are done"}
	}
	tally.Value.Open++
	counted, err := e.tallies.Put(tally)
	if err != nil {
		return nil, err
	}
	made, err := e.erasures.Put(records.Versioned[record]{Key: records.ReverseKey(string(name)), Value: *r})
	if err != nil {
		return nil, err
	}
	changes := []storage.Change{counted, made}
	if e.Pace != nil {
		paced, err := e.Pace.CountStatement(ctx, t)
		if err != nil {
			return nil, err
		}
		changes = append(changes, paced...)
	}
	return changes, nil
}
