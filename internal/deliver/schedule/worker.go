package schedule

import (
	"context"
	"fmt"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// Worker attempts the due entries of an Index, each in a goroutine of its own, as far as Slots allows. For example, a
// Worker whose Attempt sends a mail sends all due mails, at most four at a time:
//
//	w := schedule.Worker{Index: due, Slots: schedule.NewSlots(atMostFour), Now: now, Attempt: send, Report: report}
//	w.Run(ctx)
//
// An entry stays in the Index until its attempt ends. If the process dies first, the attempt is repeated.
type Worker struct {
	Index *Index
	Slots *Slots
	Now   func() id.Instant
	// Attempt does the work of an entry and returns its outcome. After an error, the entry is retried a second later.
	Attempt func(ctx context.Context, e Entry) (Outcome, error)
	// Report is called for each error, but not for those that occur because the context has ended. It may be called
	// concurrently.
	Report func(error)
}

// Run calls Sweep each second, and as soon as a slot is free for which an entry waits, until ctx ends. It returns when
// no attempt is in flight.
func (w *Worker) Run(ctx context.Context) { w.Slots.Run(ctx, w.Sweep, w.Report) }

// Sweep starts attempts of the entries that are due, as far as Slots allows, and returns without waiting for them.
func (w *Worker) Sweep(ctx context.Context) error {
	return w.Index.Sweep(ctx, w.Now, func(ctx context.Context, e Entry) (Outcome, error) {
		job := Job{e.Tenant, e.Object()}
		if w.Slots.InFlight(job) {
			return Keep(), nil
		}
		outcome, _ := w.Slots.Start(job, e.Lane, func() { w.attempt(ctx, e) })
		return outcome, nil
	})
}

func (w *Worker) attempt(ctx context.Context, e Entry) {
	outcome, err := w.Attempt(ctx, e)
	if err == nil {
		err = w.Index.Settle(ctx, e, outcome)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	w.Report(fmt.Errorf("%s: %w", e.Object(), err))
	// Until the entry is put off, each sweep attempts it again.
	if err := w.Index.Settle(ctx, e, Failed(w.Now())); err != nil && ctx.Err() == nil {
		w.Report(fmt.Errorf("%s: %w", e.Object(), err))
	}
}

// Job identifies the work for one object of an organization.
type Job struct {
	Tenant id.Tenant
	Object string
}

// Jobs are the jobs in flight, each with the lane that it was started in.
type Jobs map[Job]string

// Slots bounds the jobs in flight. Its methods may be called concurrently.
type Slots struct {
	check func(inFlight Jobs, j Job, lane string) Outcome

	mu       sync.Mutex
	inFlight Jobs
	backlog  bool // a job waits for a slot
	wg       sync.WaitGroup
	wake     chan struct{} // contains a token if a slot has become free for the backlog
}

// NewSlots returns slots that are all free. check returns Keep if there is a slot for one more job, and otherwise which
// entries must wait: LaneFull, OrganizationFull or AllFull. It must not call methods of the Slots.
func NewSlots(check func(inFlight Jobs, j Job, lane string) Outcome) *Slots {
	return &Slots{check: check, inFlight: make(Jobs), wake: make(chan struct{}, 1)}
}

// Start runs work in a goroutine of its own and returns true, unless the job is already in flight or has no slot. It
// then returns which entries must wait, and Run sweeps again after the next job has ended.
func (s *Slots) Start(j Job, lane string, work func()) (outcome Outcome, started bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, inFlight := s.inFlight[j]
	if !inFlight {
		outcome = s.check(s.inFlight, j, lane)
	}
	if inFlight || outcome != Keep() {
		s.backlog = true
		return outcome, false
	}
	s.inFlight[j] = lane
	s.wg.Go(func() {
		defer s.release(j)
		work()
	})
	return Keep(), true
}

// InFlight reports whether a job was started and has not ended.
func (s *Slots) InFlight(j Job) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, inFlight := s.inFlight[j]
	return inFlight
}

// NoteBacklog makes Run sweep again after the next job has ended.
func (s *Slots) NoteBacklog() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.backlog = true
}

func (s *Slots) release(j Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inFlight, j)
	if !s.backlog {
		return
	}
	s.backlog = false
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Go runs work that takes no slot. Run waits for it before it returns.
func (s *Slots) Go(work func()) { s.wg.Go(work) }

// Run calls sweep each second, and as soon as a slot is free for which a job waits, until ctx ends. It returns when no
// job is in flight. Errors are passed to report as by Every.
func (s *Slots) Run(ctx context.Context, sweep func(context.Context) error, report func(error)) {
	defer s.wg.Wait()
	repeat(ctx, s.wake, sweep, report)
}
