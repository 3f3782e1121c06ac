package client

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// GuardConfig says how guarded actions are run. The first three are required.
type GuardConfig struct {
	Client  *Client
	Signer  *Signer
	Journal *Journal

	// Principal is for whom the agent acts, unless an Action says it.
	Principal string
	// FailOpen lets actions run when the service can't be asked, or told, whether
	// they may: their events are queued in the journal and say unasked. What the
	// service denies never runs, and what people have to approve waits for them.
	FailOpen bool
	// OnAsk, when set, is told when people are being asked.
	OnAsk func(Approval)
	// OnTrouble, when set, is told what went wrong with events that are sent on the
	// side: they stay queued, but for those that the service refused for good.
	OnTrouble func(error)
}

// Guard runs actions as far as the organization's policy and its people allow,
// and tells the ledger before and after.
//
// What always holds:
//   - An action of a key runs at most once, also when the agent or the service is
//     killed at any moment: what was begun and not ended is never begun again.
//   - It runs only after the decision on this very payload is in the ledger, and
//     not when anything on the way failed (unless FailOpen is set).
//   - What needs approval runs with the grant of an approval that was consumed for
//     this very payload.
//   - The result is in the ledger, or queued in the journal until Flush sends it.
type Guard struct {
	GuardConfig
}

// NewGuard returns a guard. It does no I/O.
func NewGuard(c GuardConfig) (*Guard, error) {
	if c.Client == nil || c.Signer == nil || c.Journal == nil {
		return nil, errors.New("new guard: client, signer and journal are required")
	}
	if c.OnAsk == nil {
		c.OnAsk = func(Approval) {}
	}
	if c.OnTrouble == nil {
		c.OnTrouble = func(error) {}
	}
	return &Guard{c}, nil
}

// Action is something that an agent wants to do.
type Action struct {
	// Key names it: the same key is the same action, also after a restart. "" is a
	// new one each time, which can't be gone on with.
	Key       string
	Tool      id.Tool
	Payload   any      // must become a JSON object; nil is {}
	Trace     id.Trace // "" for one that is made from the key
	Principal string   // "" for the guard's
}

// Permit is what an action runs with.
type Permit struct {
	Decision id.Decision `json:"decision"`
	EventID  id.Event    `json:"event_id"`       // of the event that states the decision
	Grant    string      `json:"grant,omitzero"` // signed note, "" when no approval was needed
	Unasked  bool        `json:"unasked"`        // FailOpen let it run
}

// Ran is what became of an action that was run.
type Ran struct {
	Permit
	Result   jsontext.Value // what the function returned, as JSON
	Repeated bool           // it ran before, and this is its result of then
}

// DeniedError is returned for an action that may not be done.
type DeniedError struct {
	Reason   string
	Decision Decision // what the policy said; zero when the ledger said it
	Approval Approval // what became of the question to people; zero without one
}

// Error says why.
func (e *DeniedError) Error() string { return "the action is not allowed: " + e.Reason }

// ErrInterrupted is returned for an action that was begun and of which nobody knows
// whether it was done: the agent was killed while it ran. The ledger says so. It
// is not run again; look, and give what is to be done then another key.
var ErrInterrupted = errors.New("the action was begun before, and how it ended is not known")

// FailedError is returned for an action that ran before and failed.
type FailedError struct{ Failure string }

// Error returns what the function's error said.
func (e *FailedError) Error() string { return "the action failed: " + e.Failure }

// Run runs an action, once: do is called when the action is allowed and was never
// begun. What do returns must become JSON. An error of do is returned as it is; a
// later Run of the same key returns it as a *FailedError.
//
// Run waits for people as long as ctx lasts. To go on after that, or after a
// restart, call it again with the same Action: the question is still the same.
func (g *Guard) Run(ctx context.Context, a Action, do func(context.Context, Permit) (any, error)) (Ran, error) {
	r, err := g.begin(a)
	if err != nil {
		return Ran{}, err
	}
	defer g.Journal.enter(r.Key)()
	known, err := g.Journal.find(r.Key)
	if err != nil {
		return Ran{}, err
	}
	if known != nil && known.Digest != r.digest() {
		return Ran{}, fmt.Errorf("run action: key %q was used for another action", oneLine(r.Key))
	}
	defer g.flush(ctx)
	if known != nil && known.Stage != stageDeciding {
		return g.repeat(known)
	}
	if known == nil {
		known = &action{Key: r.Key, Digest: r.digest(), Trace: r.Trace, Tool: r.Tool, Stage: stageDeciding}
	}
	free, err := g.Journal.reserve()
	if err != nil {
		return Ran{}, fmt.Errorf("run action: its result could not be kept: %w", err)
	}
	defer free()
	if err := g.permit(ctx, r, known); err != nil {
		return Ran{}, fmt.Errorf("run action: %w", err)
	}
	known.Stage = stageStarted
	if err := g.Journal.write(known); err != nil {
		return Ran{}, err
	}
	result, failed := do(ctx, known.Permit)
	return g.end(known, result, failed)
}

func (g *Guard) flush(ctx context.Context) {
	if err := g.Flush(ctx); err != nil {
		g.OnTrouble(err)
	}
}

// running is an action with all its members.
type running struct {
	Action
	payload jsontext.Value // canonical
}

func (g *Guard) begin(a Action) (*running, error) {
	if a.Key == "" {
		a.Key = hex.EncodeToString(random())
	}
	if a.Principal == "" {
		a.Principal = g.Principal
	}
	if a.Trace == "" {
		name := g.Signer.Secret("aps/guard/trace_id", []byte(a.Key))
		a.Trace = id.Trace("trc_" + hex.EncodeToString(name[:16]))
	}
	r := &running{Action: a, payload: jsontext.Value("{}")}
	if a.Payload != nil {
		text, err := jcs.Marshal(a.Payload)
		if err == nil {
			r.payload, err = jcs.Canonicalize(text, jcs.MaxDepth)
		}
		if err != nil {
			return nil, fmt.Errorf("run action: payload: %w", err)
		}
	}
	return r, nil
}

func (r *running) digest() id.Hash {
	return sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", r.Tool, r.Trace, r.payload))
}

// repeat answers for an action that has been begun.
func (g *Guard) repeat(a *action) (Ran, error) {
	if a.Stage == stageStarted {
		a.Stage, a.Failure = stageDone, ErrInterrupted.Error()
		if err := g.tell(a, "unknown", false); err != nil {
			return Ran{}, err
		}
		return Ran{}, ErrInterrupted
	}
	if !a.Told {
		if err := g.tell(a, statusOf(a), false); err != nil {
			return Ran{}, err
		}
	}
	o := Ran{Permit: a.Permit, Result: a.Result, Repeated: true}
	switch a.Failure {
	case "":
		return o, nil
	case ErrInterrupted.Error():
		return o, ErrInterrupted
	}
	return o, &FailedError{a.Failure}
}

func statusOf(a *action) string {
	if a.Failure != "" {
		return "failed"
	}
	return "ok"
}

// end remembers how an action ended and tells it.
func (g *Guard) end(a *action, result any, failed error) (Ran, error) {
	o := Ran{Permit: a.Permit}
	a.Stage = stageDone
	if failed != nil {
		a.Failure = failed.Error()
	} else if text, err := jcs.Marshal(result); err != nil {
		a.Failure, failed = "the result is no JSON", fmt.Errorf("run action: result: %w", err)
	} else {
		a.Result, o.Result = text, text
	}
	if err := g.tell(a, statusOf(a), true); err != nil {
		return o, errors.Join(failed, err)
	}
	return o, failed
}

// tell queues the event that states a result, maybe in a reserved place; Flush sends
// it. The event is the same each time, so a crash in between makes no second one.
func (g *Guard) tell(a *action, status string, reserved bool) error {
	if err := g.Journal.write(a); err != nil {
		return err
	}
	payload := map[string]any{"action_event_id": a.Permit.EventID, "phase": event.PhaseResult, "status": status}
	if a.Result != nil {
		sum := sha256.Sum256(a.Result)
		payload["result_digest"] = hex.EncodeToString(sum[:])
	}
	envelope, err := g.sign(a.Key, "result", Event{
		ActionKind: "result", TraceID: a.Trace, Tool: a.Tool, Payload: payload,
		Extra: map[string]any{"parent_event_id": a.Permit.EventID}, // by which the service tells that it need not be judged
	})
	if err == nil {
		err = g.Journal.push(envelope, reserved)
	}
	if err != nil {
		return fmt.Errorf("state result: %w", err)
	}
	a.Told = true
	return g.Journal.write(a)
}

func (g *Guard) eventID(key, use string) id.Event {
	name := g.Signer.Secret("aps/guard/event_id", []byte(use+"\n"+key))
	return id.Event("evt_" + hex.EncodeToString(name[:16]))
}

// sign makes an event whose id and salt follow from the action's key.
func (g *Guard) sign(key, use string, e Event) ([]byte, error) {
	salt := g.Signer.Secret("aps/guard/salt", []byte(use+"\n"+key))
	e.EventID = g.eventID(key, use)
	if e.Extra == nil {
		e.Extra = map[string]any{}
	}
	e.Extra["salt"] = base64.RawURLEncoding.EncodeToString(salt[:16])
	if e.ActorPrincipal == "" {
		e.ActorPrincipal = g.Principal
	}
	e.EmittedAt = id.InstantOf(time.Now())
	return g.Signer.SignEvent(e)
}

// Flush sends the queued events, oldest first, until one can't be sent. One that
// the service refuses is dropped, since it will never be taken; the error names it.
func (g *Guard) Flush(ctx context.Context) error {
	names, err := g.Journal.waiting()
	if err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	var refused error
	for _, name := range names {
		envelope, err := g.Journal.peek(name)
		if err != nil {
			return errors.Join(refused, fmt.Errorf("flush: %w", err))
		}
		if envelope == nil { // another goroutine has sent it
			continue
		}
		_, err = g.Client.Send(ctx, envelope)
		if err != nil && !isRefused(err) {
			return errors.Join(refused, fmt.Errorf("flush: %w", err))
		}
		if err != nil {
			refused = errors.Join(refused, fmt.Errorf("flush: an event was refused and is dropped: %w", err))
		}
		if err := g.Journal.pop(name); err != nil {
			return errors.Join(refused, fmt.Errorf("flush: %w", err))
		}
	}
	return refused
}

// isRefused reports whether the service will never take what it was sent. A plan's
// limit ends with the month.
func isRefused(err error) bool {
	var malformed *fault.Error
	if errors.As(err, &malformed) {
		return true // found out before it was sent
	}
	var answer *Error
	return errors.As(err, &answer) && answer.Status/100 == 4 && answer.Code != "plan_limit" && answer.Status != 408 && answer.Status != 401
}
