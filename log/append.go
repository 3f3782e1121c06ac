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

// ErrDuplicate is returned (wrapped) by Append when an event id or idempotency key of the submission is taken by an
// event that is durable by now: ask Replayed.
var ErrDuplicate = errors.New("event id or idempotency key is taken")

// Draft is one checked event that wants a place in the ledger.
type Draft struct {
	ID             id.Event
	IdempotencyKey string          // as it is stored, "" for none
	Columns        storage.Columns // ReceivedAt is given by the sequencer
	Record         event.Frame
	Envelope       []byte // canonical, with signature members
	Counted        bool   // counts as an event of the Month
	Cap            uint64 // counted events allowed in the month; 0: no cap

	// With claims, Decide gives Record and Columns.Effective. The Record given here then
	// serves as an estimate of the length alone.
	Claims []Claim // of different counters
	Decide Decide

	// Erases are the ranges whose envelopes the event takes away, at most storage.MaxErased indices
	// in a submission. All of them MUST be in the published state (storage.Event.Erases).
	Erases []id.Range

	erasedBy  id.Index          // of an event from another store, as in storage.Event
	decided   *event.Policy     // by Decide, for the place that the sequencer gave last
	keyDigest storage.KeyDigest // in place of IdempotencyKey, of an event from another store
}

// Submission lands in the ledger whole, its events next to each other, or not
// at all. One without drafts is not submitted: it appends nothing. The caller does not touch its slices again.
type Submission struct {
	Drafts  []Draft
	Changes []storage.Change // of the organization's records; Item is not used
	// Reconfigures says that the changes are of the configuration that events are judged by. The config version rises
	// with them, and no later event is sequenced before they are durable and visible.
	Reconfigures bool
	Keys         *KeyChange   // of the log keys, nil for none; it reconfigures
	Clock        *ClockChange // of an early ledger, nil for none; it reconfigures, and has one draft
}

// Prepare makes a submission for the state it is given, whose config version guards it. It runs in the goroutine of
// the caller of Append, and again when the config version moved before the submission was sequenced.
type Prepare func(ctx context.Context, s *State) (Submission, error)

// Receipt says where an event landed. It is only given for durable events.
type Receipt struct {
	Index      id.Index
	EventHash  id.Hash
	ReceivedAt id.Instant
	ChainValid bool // false if a fault of the ledger is known; the entry that this one links to is read back and compared

	// Decided is the policy in the record, of a draft whose decision the sequencer made
	// (Draft.Decide); nil for all others.
	Decided *event.Policy
}

// Attestation is the statement of the server about an envelope, beside the envelope itself
// and the fields that the sequencer adds.
type Attestation struct {
	Form           event.Form
	PublicKey      string // Multikey
	Signer         event.Signer
	Custody        event.Custody
	IngestKeyID    string // "" for the server's own
	Policy         event.Policy
	Disclosure     id.Disclosure
	IdempotencyKey string // of the ingest key; "" for none
	Cap            uint64 // counted events allowed in the month; 0: no cap

	// With claims, the sequencer asks Decide for the policy in place of Policy, as Draft.Decide says.
	Claims []Claim
	Decide func(before []decimal.Decimal) event.Policy
}

// NewDraft renders the record of an envelope for the ledger of identity. Events
// of the system's own do not count against the plan.
func NewDraft(identity *Identity, e *event.Envelope, a Attestation) Draft {
	record := event.Record{
		Origin: identity.Origin, OrganizationID: identity.Organization,
		EventID: e.EventID, AgentID: e.AgentID, KeyID: e.KeyID,
		PublicKey: a.PublicKey, Signer: a.Signer, Custody: a.Custody,
		EventDigest: e.Digest, SigForm: a.Form.String(), SigValueB64: e.SignatureB64,
		IngestKeyID: a.IngestKeyID, Policy: a.Policy,
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

// decideRecord is apart from NewDraft so that only drafts with claims have their record on the heap.
func decideRecord(record event.Record, decide func([]decimal.Decimal) event.Policy) Decide {
	return func(before []decimal.Decimal) (event.Frame, event.Policy) {
		record.Policy = decide(before)
		return record.Frame(), record.Policy
	}
}

// prepareTries bounds how often a submission is prepared anew. The first promptTries follow each other at once. The
// others come after a pause, because a writer of the same records that needs no preparing is faster each time
// otherwise, for example on one processor.
const (
	prepareTries = 16
	promptTries  = 4
	longestPause = 64 * time.Millisecond
)

// Append prepares a submission, has it sequenced, and returns when it is durable and its
// checkpoint can be fetched: one receipt for each draft, so none when there is no draft.
//
// Errors: that of prepare; ErrDuplicate; fault.PlanLimit; fault.Overloaded (nothing was done); fault.OutcomeUnknown
// (it may be stored; also when ctx ends while the append is out); fault.Unavailable (nothing was done; also when ctx
// ends before the submission is sequenced); fault.NotFound for an unknown tenant.
//
// The code of fault.Unavailable is frozen or read_only when the ledger takes no events, clock when no event may be
// given a time (Options.Held, Timely), and read_only_mode while nothing is written (Options.ReadOnly).
func (l *Ledgers) Append(ctx context.Context, t id.Tenant, prepare Prepare) ([]Receipt, error) {
	o := l.AppendAll(ctx, t, []Prepare{prepare})[0]
	return o.Receipts, o.Err
}

// Outcome is the outcome of one submission.
type Outcome struct {
	Receipts []Receipt // one for each draft; nil with an Err
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

// prepareAndQueue prepares the submissions of open for the published state and queues them. A submission that can't
// be prepared gets its outcome here. An error is that of all submissions of the attempt.
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
	room := make([]submission, n) // of all, in one piece of memory
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
		sub := &room[len(at.subs)]
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

// reloadLedger has a ledger read again that was dropped from memory. It returns the
// submissions that can be tried again then.
func (a *appendCall) reloadLedger(ctx context.Context, open []int) (again []int) {
	if err := a.ledgers.replaceLedger(ctx, a.tenant, a.ledger); err != nil {
		a.refuseAll(open, err)
		return nil
	}
	return open
}

// awaitOutcomes waits for an attempt. It returns the submissions that have to be prepared again.
func (a *appendCall) awaitOutcomes(ctx context.Context, at attempt) (again []int) {
	for range at.subs {
		select {
		case got := <-at.done:
			if a.outcomes[got.outcome] = got.Outcome; got.stale {
				again = append(again, got.outcome)
			}
		case <-ctx.Done():
			a.refuseAll(again, unavailable(ctx.Err())) // they would be prepared anew
			a.abandonWait(at, ctx.Err())
			return nil
		}
	}
	slices.Sort(again) // answers come in any order, and submissions land in theirs
	return again
}

// abandonWait ends the wait for submissions whose caller waits no longer. Those that are
// not sequenced yet are taken back, and never land.
func (a *appendCall) abandonWait(at attempt, cause error) {
	for _, s := range a.ledgers.queue.withdrawWaiting(a.ledger, at.subs) {
		s.refuseWith(unavailable(cause))
	}
	for len(at.done) > 0 { // nothing else receives
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

// submission is a Submission on its way.
type submission struct {
	Submission
	ledger        *ledger // nil when it arrived
	configVersion uint64
	link          telemetry.Link // to the request
	taken         bool           // no longer in the queue; guarded by queue.mu
	attempts      int            // how often it was part of an append that failed
	arrived       bool           // from another store, where it was received
	received      id.Instant     // then
	done          chan answer    // of its attempt: has room for this answer, so that it never blocks
	outcome       int            // its place in appendCall.outcomes
	receipt       [1]Receipt     // the memory of its receipts, as long as one is enough
}

// answer is the sequencer's answer to a submission.
type answer struct {
	Outcome
	outcome int  // of the submission
	stale   bool // it has to be prepared again: the ledger was reconfigured meanwhile
}

func (s *submission) refuseWith(err error) { s.sendAnswer(answer{Outcome: Outcome{Err: err}}) }

// askAgain has the submission prepared again.
func (s *submission) askAgain() { s.sendAnswer(answer{stale: true}) }

// sendAnswer answers the submission, once.
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

// countErased returns how many indices the submission erases.
func (s *submission) countErased() (n int) {
	for i := range s.Drafts {
		for _, r := range s.Drafts[i].Erases {
			n += r.Len()
		}
	}
	return n
}

// countBytes returns the bytes of the submission in a batch.
func (s *submission) countBytes() int {
	n := 0
	for i := range s.Drafts {
		n += len(s.Drafts[i].Envelope) + s.Drafts[i].Record.Len()
	}
	return n
}

// Asked is an event to look for, and the idempotency key that came with it, "" for none.
type Asked struct {
	Event     id.Event
	Key       string
	IngestKey string // whose idempotency key it is
	Digest    id.Hash
}

// Replay is the answer for one event: Known says that the event, or its idempotency key, is stored as the very same
// event. Err is fault.Invalid when either is stored with another digest.
type Replay struct {
	Known bool
	Err   error
}

// Replays answers for events of a ledger, in their order, with one look-up. An event that a frozen predecessor holds
// is known as if it were in the ledger, because an acknowledged event is never recorded again.
func (l *Ledgers) Replays(ctx context.Context, s *State, asked []Asked) []Replay {
	replays := make([]Replay, len(asked))
	if err := l.findReplays(ctx, s, asked, replays); err != nil {
		for i := range replays {
			replays[i] = Replay{Err: err}
		}
	}
	return replays
}

func (l *Ledgers) findReplays(ctx context.Context, s *State, asked []Asked, replays []Replay) error {
	led, err := l.ledgerOf(ctx, s)
	if err != nil {
		return err
	}
	names, of := listKeysOf(asked)
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
			known, err := l.isSameEvent(ctx, t, index, &asked[of[n]], names[n])
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

// listKeysOf returns the names of events, and of which event each is: its id, its idempotency
// key, and that as stores of before have it.
func listKeysOf(asked []Asked) (names []storage.DedupKey, of []int) {
	names = make([]storage.DedupKey, 0, len(asked))
	for i, a := range asked {
		names, of = append(names, storage.DedupKey{Text: string(a.Event)}), append(of, i)
		if a.Key != "" {
			names = append(names, storage.DedupKey{Idempotency: true, Text: idempotencyText(a.IngestKey, a.Key)}, storage.DedupKey{Idempotency: true, Text: a.Key})
			of = append(of, i, i)
		}
	}
	return names, of
}

// idempotencyText is the stored form of an idempotency key. A key belongs to the ingest
// key that it came with, so that two senders of an organization can't take each other's.
// No key of a sender has a line end. Older stores have the sender's text alone.
func idempotencyText(ingestKey, key string) string {
	if key == "" {
		return ""
	}
	return ingestKey + "\n" + key
}

// isSameEvent reports whether the event at index, which name leads to, is the one that is
// asked for. It returns fault.Invalid when it is another one. An idempotency key of an
// older store belongs to the ingest key of its event alone.
func (l *Ledgers) isSameEvent(ctx context.Context, t id.Tenant, index id.Index, asked *Asked, name storage.DedupKey) (bool, error) {
	e, err := ReadEvent(ctx, l.store, t, index, storage.FieldRecord)
	if err != nil {
		return false, storeError("read known event", err)
	}
	record, err := event.ParseRecord(e.Record)
	if err != nil {
		return false, storeError("read known event", err)
	}
	switch {
	case name.Idempotency && name.Text == asked.Key && record.IngestKeyID != asked.IngestKey:
		return false, nil
	case record.EventDigest == asked.Digest && (name.Idempotency || string(record.EventID) == name.Text):
		return true, nil
	case name.Idempotency:
		return false, fault.New(fault.Invalid, "Idempotency-Key was used with another event")
	}
	return false, fault.New(fault.Invalid, "event_id was used with another event")
}
