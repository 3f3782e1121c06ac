package log

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/telemetry"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify"
)

// ErrDuplicate is wrapped by the error of Append if an event ID or idempotency key of the submission belongs to an event
// that is durable by now. Replays reports whether it is the same event.
var ErrDuplicate = errors.New("event id or idempotency key is taken")

// Draft is a verified event to be appended.
type Draft struct {
	ID             id.Event
	IdempotencyKey string          // as stored, or ""
	Columns        storage.Columns // ReceivedAt is set by the sequencer
	Record         event.Frame
	Envelope       []byte // in canonical form, with the signature members
	Counted        bool   // counts toward the events of the Month
	Cap            uint64 // counted events allowed in the month; 0: no cap

	// If there are claims, Decide returns Record and Columns.Effective, and the Record given here is only used to
	// estimate the size.
	Claims []Claim // of different counters
	Decide Decide

	// Erases are the ranges whose envelopes the event erases, at most storage.MaxErased indices per submission. All of
	// them must be in the published state (storage.Event.Erases).
	Erases []id.Range

	erasedBy  id.Index          // of an imported event, as in storage.Event
	decided   *event.Policy     // by Decide, for the latest index that the sequencer gave
	keyDigest storage.KeyDigest // of an imported event, in place of IdempotencyKey
}

// Submission is stored whole, with consecutive events, or not at all. A submission without drafts appends nothing, not
// even its changes. The caller must not modify its slices afterwards.
type Submission struct {
	Drafts  []Draft
	Changes []storage.Change // of the organization's records; Item is ignored
	// Reconfigures indicates that the changes affect the configuration that events are judged by. They increment the
	// config version, and no later event is sequenced before they are durable and visible.
	Reconfigures bool
	Keys         *KeyChange   // change of the log keys, or nil; implies Reconfigures
	Clock        *ClockChange // correction of a ledger ahead of the clock, or nil; implies Reconfigures and one draft
}

// Prepare returns a submission for a state, whose config version guards it. It runs in the goroutine of the caller of
// Append, and runs again if the config version changed before the submission was sequenced.
type Prepare func(ctx context.Context, s *State) (Submission, error)

// Receipt describes a durable event.
type Receipt struct {
	Index      id.Index
	EventHash  id.Hash
	ReceivedAt id.Instant
	ChainValid bool // false if the ledger has a known fault, or the entry read back is not the one this entry links to

	// Decided is the policy in the record if the sequencer decided the draft (Draft.Decide), and otherwise nil.
	Decided *event.Policy
}

// Attestation is what the server states about an envelope in its record, in addition to the envelope itself and the fields
// that the sequencer adds.
type Attestation struct {
	Form           event.Form
	PublicKey      string // Multikey
	Signer         event.Signer
	Custody        event.Custody
	IngestKeyID    string // "" for events of the server
	Policy         event.Policy
	Disclosure     id.Disclosure
	IdempotencyKey string // scoped to the ingest key, or ""
	Traceparent    event.Traceparent
	OnBehalfOf     event.Standing // whether on_behalf_of of the envelope was verified
	Cap            uint64         // counted events allowed in the month; 0: no cap

	// If there are claims, the sequencer calls Decide for the policy in place of Policy (Draft.Decide).
	Claims []Claim
	Decide func(before []decimal.Decimal) event.Policy
}

// NewDraft returns the draft of an envelope for the ledger of identity. Events of the server do not count toward the
// monthly limit.
func NewDraft(identity *Identity, e *event.Envelope, a Attestation) Draft {
	record := event.Record{
		Origin: identity.Origin, OrganizationID: identity.Organization,
		EventID: e.EventID, AgentID: e.AgentID, KeyID: e.KeyID,
		PublicKey: a.PublicKey, Signer: a.Signer, Custody: a.Custody,
		EventDigest: e.Digest, SigForm: a.Form.String(), SigValueB64: e.SignatureB64,
		IngestKeyID: a.IngestKeyID, Policy: a.Policy, Traceparent: a.Traceparent,
		OnBehalfOf: a.OnBehalfOf,
	}
	system := a.Signer == event.SignerSystem
	var decide Decide
	if len(a.Claims) > 0 {
		decide = decideRecord(record, a.Decide)
	}
	return Draft{
		ID: e.EventID, IdempotencyKey: idempotencyText(a.IngestKeyID, a.IdempotencyKey),
		Columns: storage.Columns{
			Agent: e.AgentID, Trace: e.TraceID, Tool: e.Tool, ActionKind: e.ActionKind,
			Effective: a.Policy.Effective, Disclosure: verify.Disclosed(a.Disclosure, a.Signer, e.ActionKind),
		},
		Record: record.Frame(), Envelope: e.Canonical,
		Counted: !system, Cap: a.Cap,
		Claims: a.Claims, Decide: decide,
	}
}

// decideRecord is separate from NewDraft so that only drafts with claims allocate their record on the heap.
func decideRecord(record event.Record, decide func([]decimal.Decimal) event.Policy) Decide {
	return func(before []decimal.Decimal) (event.Frame, event.Policy) {
		record.Policy = decide(before)
		return record.Frame(), record.Policy
	}
}

// prepareTries bounds how often a submission is prepared. The first promptTries follow one another immediately. The
// others follow after a random pause, because otherwise a writer of the same records that prepares faster would win each
// time, for example on one processor.
const (
	prepareTries = 16
	promptTries  = 4
	longestPause = 64 * time.Millisecond
)

// Append prepares a submission, appends it, and returns when it is durable and its checkpoint is visible to readers. It
// returns one receipt for each draft.
//
// It returns the error of prepare; ErrDuplicate; fault.PlanLimit; fault.Overloaded (nothing was stored);
// fault.OutcomeUnknown (it may be stored; also if ctx ends while the append is in flight); fault.Unavailable (nothing was
// stored; also if ctx ends before the submission is sequenced); or fault.NotFound for an unknown tenant.
//
// The code of fault.Unavailable is that of State.Trusted if the ledger accepts no events, clock if no event may be given
// a time (Options.Held, Timely), and read_only_mode with Options.ReadOnly.
func (l *Ledgers) Append(ctx context.Context, t id.Tenant, prepare Prepare) ([]Receipt, error) {
	o := l.AppendAll(ctx, t, []Prepare{prepare})[0]
	return o.Receipts, o.Err
}

// Outcome is the outcome of one submission.
type Outcome struct {
	Receipts []Receipt // one for each draft; nil if Err is set
	Err      error
}

// AppendAll is Append for several submissions, each of which succeeds or fails alone. Those that succeed are stored in
// their order. The outcomes are in the order of prepares.
func (l *Ledgers) AppendAll(ctx context.Context, t id.Tenant, prepares []Prepare) []Outcome {
	a := appendCall{ledgers: l, tenant: t, prepares: prepares, outcomes: make([]Outcome, len(prepares))}
	return a.run(ctx)
}

// AppendTo is AppendAll for a caller that has a state of the ledger, which may be outdated.
func (l *Ledgers) AppendTo(ctx context.Context, s *State, prepares []Prepare) []Outcome {
	a := appendCall{ledgers: l, tenant: s.identity.Tenant, state: s, prepares: prepares, outcomes: make([]Outcome, len(prepares))}
	return a.run(ctx)
}

// appendCall is an AppendAll that has not returned.
type appendCall struct {
	ledgers  *Ledgers
	tenant   id.Tenant
	state    *State  // nil if the caller has none
	ledger   *ledger // of the latest attempt
	prepares []Prepare
	outcomes []Outcome
}

// attempt is the submissions that were prepared and queued together.
type attempt struct {
	subs     []*submission
	outcomes []int       // for each of subs, its place in appendCall.outcomes
	done     chan answer // receives one answer for each of subs
	dropped  bool        // the ledger had left memory: nothing was queued
}

// run prepares the submissions, queues them and waits for their answers, until none has to be prepared again.
func (a *appendCall) run(ctx context.Context) []Outcome {
	open := make([]int, len(a.prepares)) // submissions without an outcome
	for i := range open {
		open[i] = i
	}
	for try := range prepareTries {
		if try >= promptTries {
			_ = syncs.Sleep(ctx, rand.N(min(longestPause, time.Millisecond<<(try-promptTries))))
		}
		at, err := a.prepareAndQueue(ctx, open)
		switch {
		case err != nil:
			return a.refuseAll(at.outcomes, err)
		case at.dropped:
			open = a.reloadLedger(ctx, at.outcomes)
		default:
			open = a.awaitOutcomes(ctx, at)
		}
		if len(open) == 0 {
			return a.outcomes
		}
	}
	return a.refuseAll(open, overloaded("The organization's configuration changes too often"))
}

// findLedger returns the ledger to append to.
func (a *appendCall) findLedger(ctx context.Context) (*ledger, error) {
	if a.state != nil {
		return a.ledgers.ledgerOf(ctx, a.state)
	}
	return a.ledgers.residentLedger(ctx, a.tenant)
}

// prepareAndQueue prepares the submissions in open for the published state and queues them. A submission that can't be
// prepared gets its outcome here. A returned error is the outcome of all submissions of the attempt.
func (a *appendCall) prepareAndQueue(ctx context.Context, open []int) (attempt, error) {
	led, err := a.findLedger(ctx)
	if err != nil {
		return attempt{outcomes: open}, err
	}
	a.ledger = led
	state := a.ledgers.confirmByWitness(ctx, led)
	if err := state.Trusted(); err != nil {
		return attempt{outcomes: open}, err
	}
	if err := a.ledgers.checkWritable(); err != nil {
		return attempt{outcomes: open}, err
	}
	n := len(open)
	at := attempt{subs: make([]*submission, 0, n), outcomes: make([]int, 0, n), done: make(chan answer, n)}
	submissions := make([]submission, n) // one allocation for all
	for _, i := range open {
		s, err := a.prepares[i](ctx, state)
		if err == nil {
			err = a.ledgers.pinCounters(ctx, led, s.Drafts)
		}
		if err != nil || len(s.Drafts) == 0 {
			a.outcomes[i] = Outcome{Err: err}
			continue
		}
		s.Reconfigures = s.Reconfigures || s.Keys != nil || s.Clock != nil
		sub := &submissions[len(at.subs)]
		*sub = submission{
			Submission: s, ledger: led, configVersion: state.head.ConfigVersion,
			link: a.ledgers.tracer.SpanLink(ctx), done: at.done, outcome: i,
		}
		at.outcomes, at.subs = append(at.outcomes, i), append(at.subs, sub)
	}
	at.dropped, err = a.ledgers.queue.enqueueAll(led, at.subs, a.ledgers.maxWaiting, a.ledgers.maxWaitingTenant)
	if err != nil || at.dropped {
		for _, s := range at.subs {
			s.unpinCounters()
		}
	}
	return at, err
}

// reloadLedger waits until a ledger that has left memory is loaded again, and returns the submissions to try again.
func (a *appendCall) reloadLedger(ctx context.Context, open []int) (again []int) {
	if err := a.ledgers.replaceLedger(ctx, a.tenant, a.ledger); err != nil {
		a.refuseAll(open, err)
		return nil
	}
	return open
}

// awaitOutcomes waits for the answers to an attempt and returns the submissions that must be prepared again.
func (a *appendCall) awaitOutcomes(ctx context.Context, at attempt) (again []int) {
	for range at.subs {
		select {
		case got := <-at.done:
			if a.outcomes[got.outcome] = got.Outcome; got.stale {
				again = append(again, got.outcome)
			}
		case <-ctx.Done():
			a.refuseAll(again, unavailable(ctx.Err()))
			a.abandonWait(at, ctx.Err())
			return nil
		}
	}
	slices.Sort(again) // answers arrive in any order; submissions are queued in theirs
	return again
}

// abandonWait ends an attempt whose caller no longer waits. Submissions that are not sequenced yet are withdrawn and never
// stored. The outcome of the others is unknown unless their answer has arrived.
func (a *appendCall) abandonWait(at attempt, cause error) {
	for _, s := range a.ledgers.queue.withdrawWaiting(a.ledger, at.subs) {
		s.refuseWith(unavailable(cause))
	}
	for len(at.done) > 0 { // there is no other receiver
		if got := <-at.done; got.stale {
			a.outcomes[got.outcome] = Outcome{Err: unavailable(cause)}
		} else {
			a.outcomes[got.outcome] = got.Outcome
		}
	}
	for _, i := range at.outcomes {
		if o := &a.outcomes[i]; o.Err == nil && o.Receipts == nil {
			o.Err = outcomeUnknown(fmt.Errorf("append: %w", cause))
		}
	}
}

func (a *appendCall) refuseAll(which []int, err error) []Outcome {
	for _, i := range which {
		a.outcomes[i] = Outcome{Err: err}
	}
	return a.outcomes
}

// submission is a Submission from the queue to its answer.
type submission struct {
	Submission
	ledger        *ledger // nil for an imported event
	configVersion uint64
	link          telemetry.Link // to the span of the request
	taken         bool           // no longer in the queue; guarded by queue.mu
	attempts      int            // failed appends that it was part of
	arrived       bool           // imported: it has its received_at already
	received      id.Instant     // if arrived
	done          chan answer    // of its attempt; has capacity for this answer, so sending never blocks
	outcome       int            // its place in appendCall.outcomes
	receipt       [1]Receipt     // memory for its receipts if one is enough
}

// answer is the sequencer's answer to a submission.
type answer struct {
	Outcome
	outcome int  // of the submission
	stale   bool // it must be prepared again, because the ledger was reconfigured
}

func (s *submission) refuseWith(err error) { s.sendAnswer(answer{Outcome: Outcome{Err: err}}) }

// askAgain answers that the submission must be prepared again.
func (s *submission) askAgain() { s.sendAnswer(answer{stale: true}) }

// sendAnswer answers the submission. It must be called once.
func (s *submission) sendAnswer(a answer) {
	s.unpinCounters()
	a.outcome = s.outcome
	s.done <- a
}

func (s *submission) unpinCounters() {
	if names := listClaimed(s.Drafts, len(s.Drafts), 0); len(names) > 0 {
		s.ledger.limits.unpinCounters(names)
	}
}

// countErased returns the number of indices that the submission erases.
func (s *submission) countErased() (n int) {
	for i := range s.Drafts {
		for _, r := range s.Drafts[i].Erases {
			n += r.Len()
		}
	}
	return n
}

// countBytes returns the size of the submission in a batch.
func (s *submission) countBytes() int {
	n := 0
	for i := range s.Drafts {
		n += len(s.Drafts[i].Envelope) + s.Drafts[i].Record.Len()
	}
	return n
}

// Query is an event to look for. Key is its idempotency key, or "".
type Query struct {
	Event     id.Event
	Key       string
	IngestKey string // whose idempotency key it is
	Digest    id.Hash
}

// Replay is the answer for one event. Known reports whether the same event is stored under the event ID or idempotency
// key. Err is fault.Invalid if another event is stored under either.
type Replay struct {
	Known bool
	Err   error
}

// Replays reports which events are stored in the ledger of s, with one look-up and in the order of queries. s may be
// outdated: events that were stored after it are found too. Events of a frozen predecessor are known as well, because an
// acknowledged event is never stored again.
func (l *Ledgers) Replays(ctx context.Context, s *State, queries []Query) []Replay {
	replays := make([]Replay, len(queries))
	if err := l.findReplays(ctx, s, queries, replays); err != nil {
		for i := range replays {
			replays[i] = Replay{Err: err}
		}
	}
	return replays
}

func (l *Ledgers) findReplays(ctx context.Context, s *State, queries []Query, replays []Replay) error {
	led, err := l.ledgerOf(ctx, s)
	if err != nil {
		return err
	}
	names, of := listKeysOf(queries)
	for {
		t := led.identity.Tenant
		at, err := l.store.Lookup(ctx, t, names)
		if err != nil {
			return storeError("look up events", err)
		}
		size := led.published.Load().Size()
		for n, index := range at {
			r := &replays[of[n]]
			if index >= size || r.Err != nil { // unknown, or not durable yet: then Append waits for it
				continue
			}
			known, err := l.isSameEvent(ctx, t, index, &queries[of[n]], names[n])
			if err != nil {
				*r = Replay{Err: err}
			} else if known {
				r.Known = true
			}
		}
		if led.identity.Predecessor == 0 {
			return nil
		}
		if led, err = l.readLedger(ctx, led.identity.Predecessor); err != nil { // it is frozen: every node may read it
			return err
		}
	}
}

// listKeysOf returns the deduplication keys of events and, for each, the index of its event: the event ID, the idempotency
// key, and the form of the idempotency key in older stores.
func listKeysOf(queries []Query) (names []storage.DedupKey, of []int) {
	names = make([]storage.DedupKey, 0, len(queries))
	for i, q := range queries {
		names, of = append(names, storage.DedupKey{Text: string(q.Event)}), append(of, i)
		if q.Key != "" {
			names = append(names, storage.DedupKey{Idempotency: true, Text: idempotencyText(q.IngestKey, q.Key)}, storage.DedupKey{Idempotency: true, Text: q.Key})
			of = append(of, i, i)
		}
	}
	return names, of
}

// idempotencyText returns the stored form of an idempotency key. It includes the ingest key, so that two senders of an
// organization can't collide. Keys of senders contain no newline. Older stores contain the sender's key alone.
func idempotencyText(ingestKey, key string) string {
	if key == "" {
		return ""
	}
	return ingestKey + "\n" + key
}

// isSameEvent reports whether the event at index, which was found under name, is the event asked for. It returns
// fault.Invalid if it is another event. An idempotency key in the form of older stores only matches events of the same
// ingest key.
func (l *Ledgers) isSameEvent(ctx context.Context, t id.Tenant, index id.Index, q *Query, name storage.DedupKey) (bool, error) {
	e, err := ReadEvent(ctx, l.store, t, index, storage.FieldRecord)
	if err != nil {
		return false, storeError("read known event", err)
	}
	record, err := event.ParseRecord(e.Record)
	if err != nil {
		return false, storeError("read known event", err)
	}
	switch {
	case name.Idempotency && name.Text == q.Key && record.IngestKeyID != q.IngestKey:
		return false, nil
	case record.EventDigest == q.Digest && (name.Idempotency || string(record.EventID) == name.Text):
		return true, nil
	case name.Idempotency:
		return false, fault.New(fault.Invalid, "Idempotency-Key was used with another event")
	}
	return false, fault.New(fault.Invalid, "event_id was used with another event")
}
