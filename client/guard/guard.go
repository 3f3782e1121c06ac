// Package guard runs an agent's actions at most once, if the policy and the approvers allow them.
// One signed event, the intent, requests the decision and states it in the organization's ledger;
// another one states the result.
//
// Invariants:
//
//   - An action with a key runs at most once, even if the agent or the service is killed at any
//     moment. An action that has begun without an end never begins again, unless it is declared
//     idempotent.
//   - An action runs only after the ledger contains the decision on exactly this payload. After any
//     failure before that it does not run, unless Config.FailOpen is set.
//   - An intent is retried as the same bytes, so it is evaluated and counted once.
//   - An action that needs approval runs with the grant of an approval that was consumed for
//     exactly this payload.
//   - The result is in the ledger, or in the journal's queue until Flush sends it. Flush moves it to
//     JournalOptions.RefusedFile only if client.IsRefused reports that the service will never accept it.
//
// A Guard, a Journal and a Transport are safe for concurrent use.
//
// The package is stable in the sense of README, section Stability.
package guard

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Config configures a Guard. Client, Signer and Journal are required.
type Config struct {
	Client  *client.Client
	Signer  *client.Signer
	Journal *Journal

	// Principal is the person or system that the agent acts for. An Action may override it.
	Principal string
	// FailOpen lets an action run if the service cannot be asked or notified. The events of such an
	// action contain the member "unasked" and wait in the journal's queue. An action that the
	// service denies never runs, and one that needs approval waits.
	FailOpen bool
	// FlushLater lets Run return as soon as the result is in the journal's queue. The owner of the
	// guard must call Flush.
	FlushLater bool
	// OnAsk, if set, is called after approval was requested.
	OnAsk func(client.Approval)
	// OnError, if set, is called with errors of events that are sent independently of an action.
	// Such an event stays in the queue unless the service will never accept it.
	OnError func(error)
}

// Guard runs actions. Create it with New.
type Guard struct {
	Config
}

// New checks a configuration and returns a guard. It does no I/O.
func New(c Config) (*Guard, error) {
	if c.Client == nil || c.Signer == nil || c.Journal == nil {
		return nil, errors.New("new guard: client, signer and journal are required")
	}
	if c.OnAsk == nil {
		c.OnAsk = func(client.Approval) {}
	}
	if c.OnError == nil {
		c.OnError = func(error) {}
	}
	return &Guard{c}, nil
}

// Action is a tool call that an agent wants to make.
type Action struct {
	// Key identifies the action, even after a restart. If "", each call of Run is a new action,
	// which cannot be continued after a restart.
	Key string
	// KeyIsNew states that Key was generated for this call of Run. The caller reuses it only after
	// approval was requested (Config.OnAsk). The journal then needs one sync less, and forgets the
	// action once its result was sent. It is implied if Key is "".
	KeyIsNew bool
	Tool     id.Tool
	// Payload must encode as a JSON object; nil is {}. It must not have the members phase, call_id,
	// salt, input_digest and $tagged, because the guard adds these. Numbers keep their exact values:
	// one that a double cannot hold is recorded as {"$number":"…"}.
	Payload any
	Trace   id.Trace // if "", that of Traceparent, or derived from Key
	// Traceparent names the caller's span, in the form of W3C Trace Context. The intent and the result
	// have it as a signed member. One that is malformed is ignored. A Key may be used again under
	// another one: what counts is that of the first call.
	Traceparent string
	Principal   string // if "", Config.Principal
	// OnBehalfOf states for whom the agent acts. The intent and the result have it as a signed member.
	// A Key must not be used again for another subject.
	OnBehalfOf *event.OnBehalfOf

	// DigestOnly keeps the payload out of the ledger: the event contains input_digest, the SHA-256
	// of the canonical JSON, and the members in Seen. Policies and approvers see no others.
	DigestOnly bool
	Seen       []string
	// Idempotent states that the function may run again after an interruption. It then runs under
	// the same intent and, if approval was needed, with the same grant or another approval.
	Idempotent bool
	// Receipt fills Permit.Intent and Permit.Payload, with which a tool can sign a receipt without a grant.
	Receipt bool
}

// Permit is the permission that an action runs under.
type Permit struct {
	Decision id.Decision `json:"decision"`
	EventID  id.Event    `json:"event_id"`       // of the event that states the decision
	Grant    string      `json:"grant,omitzero"` // signed note, or "" if no approval was needed
	// Approved is the payload that the grant is for, as canonical JSON: the action's payload with
	// the guard's members. A tool that checks the grant needs it, see CheckCall.
	Approved string `json:"approved,omitzero"`
	Unasked  bool   `json:"unasked"` // whether Config.FailOpen let the action run
	// Intent is what a tool that signs receipts needs of an action without an approval: organization,
	// agent and EventID, with a space between them. Payload is the payload of the intent, as canonical
	// JSON. Both are "" with an approval, without Action.Receipt, and for an action that is repeated.
	Intent  string `json:"-"`
	Payload string `json:"-"`
}

// Outcome is the end of an action that ran.
type Outcome struct {
	Permit
	Result   jsontext.Value // the function's result as JSON
	Repeated bool           // the action ran before, and Result is from that run
}

var (
	// ErrInterrupted is returned for an action that has begun without an end: the agent was killed
	// while the function ran. The ledger states the result as unknown. Find out how far the
	// function got, and run the remaining work under another key.
	ErrInterrupted = errors.New("the action was begun before, and how it ended is not known")

	// ErrKeyReused is returned if a key was used for another tool, payload or trace.
	ErrKeyReused = errors.New("used for another action")
)

// FailedError is returned for an action that ran before and failed.
type FailedError struct{ Failure string }

// Error returns the text of the function's error.
func (e *FailedError) Error() string { return "the action failed: " + e.Failure }

// Run calls do once if the action is allowed and has never begun. The first result of do must
// encode as JSON. Run waits for approvers until ctx ends. To continue later, or after a restart,
// call Run with the same Action: the request for approval stays the same.
//
// Errors:
//   - the error of do, unchanged; later calls with the same key return a *FailedError
//   - *client.DeniedError if the policy or the approvers deny the action
//   - *ApprovalRequiredError if ctx ends before the approvers decide
//   - *NotDecidedError if no decision is known; the cause is an error of client.SendIntent,
//     AwaitApproval or ConsumeApproval
//   - ErrInterrupted, ErrKeyReused, ErrQueueFull
func (g *Guard) Run(ctx context.Context, a Action, do func(context.Context, Permit) (any, error)) (Outcome, error) {
	var o Outcome
	err := g.openAction(ctx, a, func(known *action, begun bool) (err error) {
		if begun {
			o, err = g.answerRepeated(known)
			return err
		}
		began := time.Now()
		result, failed := do(ctx, known.Permit)
		took := time.Since(began).Milliseconds()
		known.DurationMS = &took
		o, err = g.finishAction(known, result, failed)
		return err
	})
	return o, err
}

// openAction obtains permission for an action, records that it begins, and calls use. If the action
// began before, it calls use with begun set.
func (g *Guard) openAction(ctx context.Context, a Action, use func(known *action, begun bool) error) error {
	r, err := g.prepareAction(a)
	if err != nil {
		return err
	}
	defer g.flushQueue(ctx) // after the lock is released, because Flush may ask about the action
	leave, err := g.Journal.keys.Lock(ctx, r.Key)
	if err != nil {
		return fmt.Errorf("run action: %w", err)
	}
	defer leave()
	known, err := g.Journal.loadAction(r.Key)
	if err != nil {
		return err
	}
	if known != nil && known.Digest != r.contentDigest() {
		return fmt.Errorf("run action: key %.512q was %w", r.Key, ErrKeyReused)
	}
	if known != nil {
		r.Trace, r.Traceparent = known.Trace, known.Traceparent
	}
	switch {
	case known == nil:
	case known.isUndecided():
		if err := g.reopenUndecided(ctx, known, a.Idempotent); err != nil {
			return fmt.Errorf("run action: %w", g.notDecided(known, err))
		}
	case known.Stage == stageStarted && a.Idempotent:
		known.Stage = stageDeciding
	}
	if known != nil && known.Stage != stageDeciding {
		return use(known, true)
	}
	if known == nil {
		known = &action{Key: r.Key, Digest: r.contentDigest(), Trace: r.Trace, Traceparent: r.Traceparent, OnBehalfOf: r.OnBehalfOf, Tool: r.Tool,
			Stage: stageDeciding, New: r.KeyIsNew}
	}
	release, err := g.Journal.reserveSlot()
	if err != nil {
		return fmt.Errorf("run action: its result could not be kept: %w", err)
	}
	defer release()
	if err := g.obtainPermit(ctx, r, known); err != nil {
		return fmt.Errorf("run action: %w", err)
	}
	if a.Receipt && known.Permit.Grant == "" {
		if err := g.nameIntent(known); err != nil {
			return fmt.Errorf("run action: %w", g.notDecided(known, err))
		}
	}
	if known.Stage != stageStarted {
		known.Stage, known.BeganAt = stageStarted, id.InstantOf(time.Now())
		if err := g.Journal.store(known, nil); err != nil {
			return fmt.Errorf("run action: %w", g.notDecided(known, err))
		}
	}
	return use(known, false)
}

// preparedAction is an action with defaults filled in.
type preparedAction struct {
	Action
	named   id.Trace                  // Trace, regardless of Traceparent
	payload jsontext.Value            // canonical, with exact numbers (jcs.Exact)
	shown   map[string]jsontext.Value // the part that events contain
}

func (g *Guard) prepareAction(a Action) (*preparedAction, error) {
	if a.Key == "" {
		var name [16]byte
		_, _ = rand.Read(name[:]) // never fails
		a.Key, a.KeyIsNew = fmt.Sprintf("%x", name), true
	}
	if a.Principal == "" {
		a.Principal = g.Principal
	}
	caller, _ := event.ParseTraceparent(a.Traceparent)
	a.Traceparent = caller.String()
	named := a.Trace
	if a.Trace == "" {
		name := g.Signer.Secret("aps/guard/trace_id", []byte(a.Key))
		named = id.Trace(fmt.Sprintf("trc_%x", name[:16]))
		a.Trace = cmp.Or(caller.TraceID(), named)
	}
	if err := checkOnBehalfOf(a.OnBehalfOf); err != nil {
		return nil, fmt.Errorf("run action: %w", err)
	}
	r := &preparedAction{Action: a, named: named, payload: jsontext.Value("{}")}
	if a.Payload != nil {
		text, err := jcs.MarshalExact(a.Payload)
		if err != nil {
			return nil, fmt.Errorf("run action: payload: %w", err)
		}
		r.payload = text
	}
	var err error
	r.shown, err = describeArguments(a, r.payload)
	return r, err
}

// checkOnBehalfOf returns the error that the service would.
func checkOnBehalfOf(o *event.OnBehalfOf) error {
	if o == nil {
		return nil
	}
	_, err := event.ParseOnBehalfOf(o.Canonical())
	return err
}

// contentDigest covers everything that a key must not be reused for.
func (r *preparedAction) contentDigest() id.Hash {
	text := fmt.Appendf(nil, "%s\n%s\n%s", r.Tool, r.named, r.payload)
	if r.OnBehalfOf != nil {
		text = append(append(text, '\n'), r.OnBehalfOf.Canonical()...)
	}
	return sha256.Sum256(text)
}

// answerRepeated returns the outcome of an action that began before.
func (g *Guard) answerRepeated(a *action) (Outcome, error) {
	if a.Stage == stageStarted {
		a.Stage, a.Failure = stageDone, ErrInterrupted.Error()
		if err := g.stateResult(a, false); err != nil {
			return Outcome{}, err
		}
		return Outcome{}, ErrInterrupted
	}
	if !a.Stated {
		if err := g.stateResult(a, false); err != nil {
			return Outcome{}, err
		}
	}
	o := Outcome{Permit: a.Permit, Result: a.Result, Repeated: true}
	switch a.Failure {
	case "":
		return o, nil
	case ErrInterrupted.Error():
		return o, ErrInterrupted
	}
	return o, &FailedError{a.Failure}
}

// finishAction stores and states the end of an action.
func (g *Guard) finishAction(a *action, result any, failed error) (Outcome, error) {
	failed = a.noteEnd(result, failed)
	o := Outcome{Permit: a.Permit, Result: a.Result}
	if err := g.stateResult(a, true); err != nil {
		return o, errors.Join(failed, err)
	}
	return o, failed
}

// noteEnd stores the end in the action. It returns failed, or why the result cannot be stored.
func (a *action) noteEnd(result any, failed error) error {
	a.Stage = stageDone
	if d, ok := result.(Disclosed); ok {
		result = d.Output
		text, err := jcs.Marshal(d.Members)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("run action: members of the result: %w", err))
		}
		a.Members = text
	}
	if failed != nil {
		a.Failure = failed.Error()
		return failed
	}
	text, err := jcs.MarshalExact(result)
	if err != nil {
		a.Failure = "the result is no JSON"
		return fmt.Errorf("run action: result: %w", err)
	}
	a.Result = text
	return nil
}
