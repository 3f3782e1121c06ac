package workflow

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/openset"
	"github.com/agentledger/agentledger/internal/ratelimit"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Records of an organization's partition.
const (
	// kindRun has one record for each run, by its id.
	kindRun storage.Kind = "run"
	// kindStep has one record for each step and attempt, by stepName. It detects repetitions.
	kindStep storage.Kind = "run_step"
	// kindList has one record for each request that added steps to a run, by listName. Pages read it.
	kindList storage.Kind = "run_list"
	// kindLate has one record for each step_key that was not reported with attempt 1 first, by lateName.
	kindLate storage.Kind = "run_late"
	// kindExternal has the run of an external_run_id, by externalName.
	kindExternal storage.Kind = "run_external"
	// kindNewest has one record for each run, by newestName, so that the latest comes first.
	kindNewest storage.Kind = "run_newest"
	// kindTally has one record under the key "", with the number of running runs and the pace at which they start, and
	// one for each ingest key, by its ID, with the number of its running runs.
	kindTally storage.Kind = "run_tally"
)

// kindDue has an entry (package schedule) for each running run, for the time when it may be abandoned.
const kindDue storage.Kind = "run_due"

type record struct {
	Status      Status     `json:"status"` // as recorded
	IngestKeyID string     `json:"ingest_key_id"`
	Agent       id.Agent   `json:"agent_id"`
	Trace       id.Trace   `json:"trace_id"`
	Workflow    Flow       `json:"workflow"`
	External    string     `json:"external_run_id,omitzero"`
	Planned     *int       `json:"planned_steps,omitzero"`
	InputDigest *id.Hash   `json:"input_digest,omitzero"`
	Nonce       []byte     `json:"nonce"` // random, so that no other organization can predict the names of the run's steps
	Steps       int        `json:"steps"` // events of steps so far
	Keys        int        `json:"keys"`  // different step_keys so far
	Late        int        `json:"late"`  // those with a record of kindLate
	Started     id.Event   `json:"start_event"`
	StartedAt   id.Instant `json:"started_at"`
	LastAt      id.Instant `json:"last_at"`
	Silence     id.Instant `json:"silence"` // milliseconds
	Ended       id.Event   `json:"end_event,omitzero"`
	EndedAt     id.Instant `json:"ended_at,omitzero"`
	Ending      Ending     `json:"ending,omitzero"`
	Root        id.Hash    `json:"run_root,omitzero"` // if it has ended
	Shared      bool       `json:"shared,omitzero"`   // counts toward its ingest key; false in older records
}

// currentResult returns the run's result, or its result so far.
func (r *record) currentResult() Result {
	out := Result{Recorded: r.Keys, Events: 1 + r.Steps, Planned: r.Planned, Root: r.Root}
	if r.Planned != nil && r.Ended != "" {
		gap := *r.Planned - r.Keys
		out.Gap = &gap
	}
	return out
}

// statusAt returns the status at a time: silence may have ended the run before the event that records that is written.
func (r *record) statusAt(now id.Instant) Status {
	if r.Status == Running && now >= r.nextDeadline() {
		return Abandoned
	}
	return r.Status
}

// nextDeadline returns when the run is abandoned unless a step is reported before.
func (r *record) nextDeadline() id.Instant { return r.LastAt + r.Silence }

func (r *record) toRun(name ID, now id.Instant) Run {
	return Run{
		ID: name, Status: r.statusAt(now), IngestKeyID: r.IngestKeyID,
		Agent: r.Agent, Trace: r.Trace, Workflow: r.Workflow, External: r.External,
		Planned: r.Planned, InputDigest: r.InputDigest, StartedAt: r.StartedAt,
		LastAt: r.LastAt, EndedAt: r.EndedAt, Ending: r.Ending,
		Result: r.currentResult(),
	}
}

// stepEvent returns the event ID of a step. It follows from step_key and attempt, so that the ledger accepts each step
// once.
func (r *record) stepEvent(key string, attempt int) id.Event {
	h := hmac.New(sha256.New, r.Nonce)
	fmt.Fprintf(h, "%d\n%s", attempt, key)
	return id.Event("stp_" + hex.EncodeToString(h.Sum(nil)[:16]))
}

type stepRecord struct {
	Digest  id.Hash           `json:"digest"`            // of the complete step as it was sent
	Reasons map[string]string `json:"reasons,omitempty"` // of each rule that might decide, by rule_id

	Approval approval.ID `json:"approval_id,omitzero"` // consumed by the step
}

// stepName returns the key of a step's record.
func stepName(name ID, e id.Event) string { return string(name) + "/" + string(e) }

type externalRecord struct {
	Run ID `json:"run_id"`
}

// externalName returns the key of a run under the name that an ingest key gave it.
func externalName(ingestKey, external string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s", ingestKey, external))
	return hex.EncodeToString(sum[:])
}

type tallyRecord struct {
	Running int            `json:"running"`
	Started ratelimit.GCRA `json:"started"`
}

// shareRecord is the number of running runs that an ingest key started.
type shareRecord struct {
	Running int `json:"running"`
}

type openSet = openset.Set[tallyRecord, shareRecord, newestRecord]

func newOpenSet(r storage.RecordStore) *openSet {
	return openset.New(openset.Options[tallyRecord, shareRecord, newestRecord]{
		Records: r, Tallies: kindTally, List: kindNewest, Message: unreadableMessage,
		Tally: func(t *tallyRecord) (*int, *ratelimit.GCRA) { return &t.Running, &t.Started },
		Share: func(s *shareRecord) *int { return &s.Running },
		Bounds: openset.Bounds{
			Open: MaxRunning, TooMany: "10000 runs are running: complete some of them",
			Burst: MaxStarts, Every: startEvery, TooFast: "Too many runs were started: at most 10000 in an hour",
		},
	})
}

// shareOf limits the running runs of an ingest key.
func shareOf(ingestKey string) openset.Share {
	return openset.Share{Key: ingestKey, Most: MaxRunningByKey, TooMany: "5000 runs of this ingest key are running: complete some of them"}
}

// stores are the records of each kind.
type stores struct {
	runs     records.Store[record]
	steps    records.Store[stepRecord]
	lists    records.Store[listRecord]
	late     records.Store[lateRecord]
	external records.Store[externalRecord]
	running  *openSet
}

func storesOf(r storage.RecordStore) stores {
	return stores{
		runs:     records.New[record](r, kindRun, unreadableMessage),
		steps:    records.New[stepRecord](r, kindStep, unreadableMessage),
		lists:    records.New[listRecord](r, kindList, unreadableMessage),
		late:     records.New[lateRecord](r, kindLate, unreadableMessage),
		external: records.New[externalRecord](r, kindExternal, unreadableMessage),
		running:  newOpenSet(r),
	}
}

// readRun returns a run, or fault.NotFound.
func (w *Workflows) readRun(ctx context.Context, t id.Tenant, name ID) (records.Versioned[record], error) {
	r, err := w.stores.runs.Get(ctx, t, string(name))
	if err == nil && !r.Exists() {
		err = errNotFound()
	}
	return r, err
}

// readOwnRun returns a run of an ingest key. For all other keys it returns fault.NotFound.
func (w *Workflows) readOwnRun(
	ctx context.Context, t id.Tenant, ingestKey string, name ID,
) (records.Versioned[record], error) {
	r, err := w.readRun(ctx, t, name)
	if err == nil && r.Value.IngestKeyID != ingestKey {
		return records.Versioned[record]{}, errNotFound()
	}
	return r, err
}
