package workflow

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Beginning is a tool's report of the start of a run.
type Beginning struct {
	Workflow    Flow
	External    string   // the tool's name of the run; "" if none
	Agent       id.Agent // "" means the organization's own bridge agent
	Trace       id.Trace // "" means the run's ID
	Planned     *int     // steps
	InputDigest *id.Hash
	IngestKeyID string
}

func (b *Beginning) checkMembers() error {
	texts := []struct {
		name, text string
		least      int
	}{{"workflow.name", b.Workflow.Name, 1}, {"workflow.version", b.Workflow.Version, 0},
		{"workflow.tool", b.Workflow.Tool, 0}, {"external_run_id", b.External, 0}}
	for _, t := range texts {
		if !textcheck.Plain(t.text, t.least, 256) {
			return errInvalid(fmt.Sprintf("%s must have %d to 256 characters, none of them a control character", t.name,
				max(t.least, 1)))
		}
	}
	switch {
	case b.Agent != "" && !event.ValidAgent(string(b.Agent)):
		return errInvalid("agent_id must match [A-Za-z0-9._-]{1,128}")
	case b.Trace != "" && !event.ValidEvent(string(b.Trace)):
		return errInvalid("trace_id must match [A-Za-z0-9._:-]{1,128}, not . or ..")
	case b.Planned != nil && (*b.Planned < 0 || *b.Planned > MaxSteps):
		return errInvalid("planned_steps must be a whole number from 0 to 10000")
	}
	return nil
}

// Start starts a run, or returns the run that the ingest key has started under the same external_run_id, and made
// false, whatever its status.
//
// It returns fault.Invalid for a malformed beginning and for an agent that is not enabled for the bridge;
// fault.Forbidden if the organization is inactive; fault.RateLimited if MaxRunning, MaxRunningByKey or MaxStarts is
// exceeded. With an external_run_id, a start may be repeated after any error.
func (w *Workflows) Start(
	ctx context.Context, t id.Tenant, b Beginning,
) (run Run, started Placed, made bool, err error) {
	if err := b.checkMembers(); err != nil {
		return Run{}, Placed{}, false, err
	}
	s := start{workflows: w, tenant: t, Beginning: b, name: newRunID(w.currentTime()), nonce: make([]byte, 16)}
	rand.Read(s.nonce)
	receipts, err := w.events.Append(ctx, t, b.IngestKeyID, s.prepareStart)
	if err != nil {
		return Run{}, Placed{}, false, fmt.Errorf("start run: %w", err)
	}
	if len(receipts) == 0 { // it was started before
		placed, err := w.placeOfEvent(ctx, t, s.record.Value.Started)
		return s.record.Value.toRun(s.name, w.currentTime()), placed, false, err
	}
	w.metrics.started.Inc()
	s.record.Version = 1
	w.known.Put(place{t, s.name}, s.record)
	own := receipts[len(receipts)-1] // after the receipt of a new bridge key
	placed := Placed{
		Event:      s.record.Value.Started,
		Index:      own.Index,
		Hash:       own.EventHash,
		ChainValid: own.ChainValid,
	}
	return s.record.Value.toRun(s.name, w.currentTime()), placed, true, nil
}

// start is a run that is being appended.
type start struct {
	Beginning
	workflows *Workflows
	tenant    id.Tenant
	name      ID
	nonce     []byte
	record    records.Versioned[record]
}

func (b *start) prepareStart(ctx context.Context, s *log.State) (sysevent.Change, error) {
	w := b.workflows
	if _, err := w.activeSettings(ctx, s); err != nil {
		return sysevent.Change{}, err
	}
	external, err := b.recallStart(ctx)
	if err != nil || external.Exists() {
		return sysevent.Change{}, err
	}
	act, who, err := b.ensureBridge(ctx, s)
	if err != nil {
		return sysevent.Change{}, err
	}
	now := w.currentTime()
	b.record = records.Versioned[record]{Key: string(b.name), Value: record{
		Status: Running, IngestKeyID: b.IngestKeyID, Agent: who,
		Trace: b.Trace, Workflow: b.Workflow, External: b.External,
		Planned: b.Planned, InputDigest: b.InputDigest, Nonce: b.nonce,
		StartedAt: now, LastAt: now, Silence: id.Instant(w.silence / time.Millisecond),
	}}
	if b.Trace == "" {
		b.record.Value.Trace = id.Trace(b.name)
	}
	act.Statements = append(act.Statements, sysevent.Statement{
		Kind:    sysevent.Run,
		Payload: b.startPayload(who),
		Trace:   b.record.Value.Trace,
	})
	if b.record.Value.Started, err = w.events.EventID(ctx, s, act.Statements[len(act.Statements)-1]); err != nil {
		return sysevent.Change{}, err
	}
	if act.Changes, err = b.startChanges(ctx, act.Changes, external); err != nil {
		return act, err
	}
	notices, err := w.noticeChanges(ctx, s, b.name, &b.record.Value)
	act.Changes = append(act.Changes, notices...)
	return act, err
}

// recallStart looks for the run that was started under the same name. In that case, external exists.
func (b *start) recallStart(ctx context.Context) (external records.Versioned[externalRecord], err error) {
	if b.External == "" {
		return external, nil
	}
	w := b.workflows
	external, err = w.stores.external.Get(ctx, b.tenant, externalName(b.IngestKeyID, b.External))
	if err != nil || !external.Exists() {
		return external, err
	}
	b.name = external.Value.Run
	if b.record, err = w.readRun(ctx, b.tenant, b.name); err != nil {
		return external, errUnreadable("read known run", err)
	}
	return external, nil
}

// ensureBridge returns the agent of the run, and a change that creates the organization's bridge if it has no active
// key.
func (b *start) ensureBridge(ctx context.Context, s *log.State) (act sysevent.Change, who id.Agent, err error) {
	agents := b.workflows.agents
	if b.Agent != "" {
		if err := b.checkEnabled(ctx, s, b.Agent); err != nil {
			return act, "", err
		}
	}
	signer, err := agents.Bridge(ctx, s)
	if err != nil {
		return act, "", err
	}
	if act.KeepConfigVersion = signer != nil; signer == nil {
		if signer, act, err = agents.MakeBridgeKey(ctx, s, b.IngestKeyID); err != nil {
			return act, "", err
		}
	}
	if b.Agent != "" {
		return act, b.Agent, nil
	}
	if len(act.Statements) < 2 { // it exists, and may be disabled
		err = b.checkEnabled(ctx, s, signer.Agent)
	}
	return act, signer.Agent, err
}

func (b *start) checkEnabled(ctx context.Context, s *log.State, who id.Agent) error {
	ok, err := b.workflows.agents.MayUseBridge(ctx, s, who)
	if err == nil && !ok {
		err = errNotBridged()
	}
	return err
}

// startPayload is the payload of the event at the start of a run.
func (b *start) startPayload(who id.Agent) map[string]any {
	payload := map[string]any{"run_id": b.name, "transition": "started", "agent_id": who, "workflow": b.Workflow}
	if b.External != "" {
		payload["external_run_id"] = b.External
	}
	if b.Planned != nil {
		payload["steps_planned"] = *b.Planned
	}
	if b.InputDigest != nil {
		payload["input_digest"] = *b.InputDigest
	}
	return payload
}

// startChanges adds the records of a new run. Its due entry is written first, because an entry without its run does no
// harm.
func (b *start) startChanges(
	ctx context.Context, changes []storage.Change, external records.Versioned[externalRecord],
) ([]storage.Change, error) {
	w := b.workflows
	counts := w.stores.running.Begin(b.tenant)
	if err := counts.Open(ctx, w.currentTime(), shareOf(b.IngestKeyID)); err != nil {
		return nil, err
	}
	counted, err := counts.Changes()
	if err != nil {
		return nil, err
	}
	b.record.Value.Shared = true
	deadline := schedule.Entry{At: b.record.Value.nextDeadline(), Tenant: b.tenant, Name: string(b.name)}
	if err := w.due.NoteEntries(ctx, deadline); err != nil {
		return nil, errUnreadable("note when the run is due", err)
	}
	run, err := w.stores.runs.Put(b.record)
	if err != nil {
		return nil, err
	}
	newest, err := w.stores.running.Entry(string(b.name), b.record.Value.toListed())
	if err != nil {
		return nil, err
	}
	changes = append(append(changes, counted...), run, newest)
	if b.External == "" {
		return changes, nil
	}
	external.Value.Run = b.name
	name, err := w.stores.external.Put(external)
	return append(changes, name), err
}

// placeOfEvent returns the position of an event of a run that was already in the ledger.
func (w *Workflows) placeOfEvent(ctx context.Context, t id.Tenant, e id.Event) (Placed, error) {
	s, err := w.ledgers.State(ctx, t)
	if err != nil {
		return Placed{}, err
	}
	at, err := w.ledgers.Locate(ctx, s, []id.Event{e})
	if err != nil {
		return Placed{}, err
	}
	hashes, err := w.ledgers.Hashes(ctx, s, at)
	if err != nil {
		return Placed{}, fmt.Errorf("read event of a run: %w", err)
	}
	return Placed{
		Event:      e,
		Index:      at[0],
		Hash:       hashes[0],
		ChainValid: s.Fault().Level == log.Healthy,
		Replayed:   true,
	}, nil
}
