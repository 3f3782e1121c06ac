package workflow

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/stored"
	"github.com/agentledger/agentledger/storage"
)

// Records of an organization's partition.
const (
	// kindRun has one record for each run, by its id.
	kindRun storage.Kind = "run"
	// kindStep has one for each step and attempt, by stepName.
	kindStep storage.Kind = "run_step"
	// kindExternal names the run of an external_run_id, by externalName.
	kindExternal storage.Kind = "run_external"
	// kindTally has one, under key "": how many runs have not ended.
	kindTally storage.Kind = "run_tally"
)

// kindDue has an entry (package due) for each run that has not ended: when it may
// have been silent for too long.
const kindDue storage.Kind = "run_due"

type record struct {
	Status      Status     `json:"status"` // as it is stated
	IngestKeyID string     `json:"ingest_key_id"`
	Agent       id.Agent   `json:"agent_id"`
	Trace       id.Trace   `json:"trace_id"`
	Workflow    Flow       `json:"workflow"`
	External    string     `json:"external_run_id,omitzero"`
	Planned     *int       `json:"planned_steps,omitzero"`
	InputDigest *id.Hash   `json:"input_digest,omitzero"`
	Nonce       []byte     `json:"nonce"` // random: nobody else can name the run's steps in advance
	Steps       int        `json:"steps"` // events of steps so far
	Started     id.Event   `json:"start_event"`
	StartedAt   id.Instant `json:"started_at"`
	LastAt      id.Instant `json:"last_at"`
	Silence     id.Instant `json:"silence"` // milliseconds
	Ended       id.Event   `json:"end_event,omitzero"`
	EndedAt     id.Instant `json:"ended_at,omitzero"`
	Ending      Ending     `json:"ending,omitzero"`
	Result      *result    `json:"result,omitzero"`
}

// result is the stored form of a Result.
type result struct {
	Recorded int     `json:"steps_recorded"`
	Events   int     `json:"events"`
	Gap      *int    `json:"gap,omitzero"`
	Root     id.Hash `json:"run_root"`
}

// statusAt is what the run is worth: its silence may be too long before that is stated.
func (r *record) statusAt(now id.Instant) Status {
	if r.Status == Running && now >= r.deadline() {
		return Abandoned
	}
	return r.Status
}

// deadline is when the run is abandoned unless it is heard of before.
func (r *record) deadline() id.Instant { return r.LastAt + r.Silence }

func (r *record) shown(name ID, now id.Instant) Run {
	run := Run{
		ID: name, Status: r.statusAt(now), Agent: r.Agent, Trace: r.Trace, Workflow: r.Workflow, External: r.External,
		Planned: r.Planned, InputDigest: r.InputDigest, StartedAt: r.StartedAt, LastAt: r.LastAt, EndedAt: r.EndedAt, Ending: r.Ending,
		Result: Result{Planned: r.Planned},
	}
	if r.Result != nil {
		run.Result = Result{Recorded: r.Result.Recorded, Events: r.Result.Events, Planned: r.Planned, Gap: r.Result.Gap, Root: r.Result.Root}
	}
	return run
}

// stepEvent names the event of a step. The name follows from step_key and attempt, so
// that the ledger itself takes each of them once.
func (r *record) stepEvent(key string, attempt int) id.Event {
	h := hmac.New(sha256.New, r.Nonce)
	fmt.Fprintf(h, "%d\n%s", attempt, key)
	return id.Event("stp_" + hex.EncodeToString(h.Sum(nil)[:16]))
}

type stepRecord struct {
	Event   id.Event          `json:"event_id"`
	Order   int               `json:"order"` // from 1, the order of the ledger
	Key     string            `json:"step_key"`
	Attempt int               `json:"attempt"`
	Kind    string            `json:"kind"`
	Tool    id.Tool           `json:"tool_name,omitzero"`
	Status  string            `json:"status"`
	Digest  id.Hash           `json:"digest"`            // of the whole step, as it was sent
	Reasons map[string]string `json:"reasons,omitempty"` // of each rule that might decide, by rule_id
}

// stepName is the key of a step's record: those of a run are one range.
func stepName(name ID, e id.Event) string { return string(name) + "/" + string(e) }

type externalRecord struct {
	Run ID `json:"run_id"`
}

// externalName names what an ingest key calls a run.
func externalName(ingestKey, external string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s", ingestKey, external))
	return hex.EncodeToString(sum[:])
}

type tallyRecord struct {
	Running int `json:"running"`
}

// read reads a record, which may be absent.
func read[T any](ctx context.Context, w *Workflows, t id.Tenant, kind storage.Kind, key string) (stored.Value[T], error) {
	v, err := stored.Read[T](ctx, w.records, t, kind, key)
	if err != nil {
		err = unreadable("read", err)
	}
	return v, err
}

// run reads a run; fault.NotFound when there is none.
func (w *Workflows) run(ctx context.Context, t id.Tenant, name ID) (stored.Value[record], error) {
	r, err := read[record](ctx, w, t, kindRun, string(name))
	if err == nil && !r.There() {
		err = errNotFound()
	}
	return r, err
}

// own reads a run of an ingest key; for all others there is none.
func (w *Workflows) own(ctx context.Context, t id.Tenant, ingestKey string, name ID) (stored.Value[record], error) {
	r, err := w.run(ctx, t, name)
	if err == nil && r.Value.IngestKeyID != ingestKey {
		return stored.Value[record]{}, errNotFound()
	}
	return r, err
}

// scanPage is how many records are read at once.
const scanPage = 1000

// steps returns all steps of a run in their order.
func (w *Workflows) steps(ctx context.Context, t id.Tenant, name ID) (all []stepRecord, err error) {
	begin, end := string(name)+"/", string(name)+"0" // "0" follows "/"
	for {
		page, err := w.records.Scan(ctx, t, kindStep, begin, end, scanPage)
		if err != nil {
			return nil, unreadable("list steps", err)
		}
		for i := range page {
			step, err := stored.Decode[stepRecord](page[i])
			if err != nil {
				return nil, unreadable("list steps", err)
			}
			all = append(all, step.Value)
		}
		if len(page) < scanPage {
			slices.SortFunc(all, func(a, b stepRecord) int { return cmp.Compare(a.Order, b.Order) })
			return all, nil
		}
		begin = page[len(page)-1].Key + "\x00"
	}
}

// different counts the step_keys.
func different(steps []stepRecord) int {
	keys := make(map[string]struct{}, len(steps))
	for i := range steps {
		keys[steps[i].Key] = struct{}{}
	}
	return len(keys)
}
