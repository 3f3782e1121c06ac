package main

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// loopLimit bounds a run, which also ends at the first error. Steps that end within Warm are not counted. Further steps are
// started for Time after that, or until Count steps were started; if Count is 0, there is no such limit.
type loopLimit struct {
	Warm, Time time.Duration
	Count      int
}

func (l loopLimit) count() int64 {
	if l.Count == 0 {
		return 1 << 62
	}
	return int64(l.Count)
}

// step performs step n of a run and returns when it is done. Steps are numbered from 0 over all workers.
type step func(n int) error

// latencies are durations in no order.
type latencies []time.Duration

// Quantile returns the duration that a fraction q of l does not exceed, or 0 if l is empty. It sorts l.
func (l latencies) Quantile(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	slices.Sort(l)
	return l[min(int(q*float64(len(l))), len(l)-1)]
}

// loopResult is the result of a run after its warm-up.
type loopResult struct {
	Elapsed time.Duration
	Took    latencies
	Done    int // steps, including the warm-up
}

// Steps returns the number of counted steps.
func (r loopResult) Steps() int { return len(r.Took) }

// Rate returns the counted steps per second.
func (r loopResult) Rate() float64 { return float64(len(r.Took)) / r.Elapsed.Seconds() }

// closedLoop runs workers that each perform one step after another. A step counts from its start. start is called once per
// worker, before the run begins.
func closedLoop(workers int, l loopLimit, start func(worker int) (step, error)) (loopResult, error) {
	var next atomic.Int64
	return runWorkers(workers, l, start, func(step step, w *worker, counted time.Time) {
		end := counted.Add(l.Time)
		for n := next.Add(1) - 1; n < l.count(); n = next.Add(1) - 1 {
			since := time.Now()
			if since.After(end) || !w.do(step(int(n)), since, counted) {
				return
			}
		}
	})
}

// openLoop starts rate steps per second, independently of the server, with at most one in flight per worker. If no worker
// was free when a step was due, the step counts from the time when it was due.
func openLoop(rate, workers int, l loopLimit, start func(worker int) (step, error)) (loopResult, error) {
	var next atomic.Int64
	every := time.Second / time.Duration(rate)
	return runWorkers(workers, l, start, func(step step, w *worker, counted time.Time) {
		begin, end := counted.Add(-l.Warm), counted.Add(l.Time)
		for n := next.Add(1) - 1; n < l.count(); n = next.Add(1) - 1 {
			since := begin.Add(time.Duration(n) * every)
			if !since.Before(end) {
				return
			}
			if wait := time.Until(since); wait > 0 {
				time.Sleep(wait)
				since = time.Now() // the server is not to blame for a late timer
			}
			if !w.do(step(int(n)), since, counted) {
				return
			}
		}
	})
}

// worker is the result of one goroutine of a run.
type worker struct {
	took   []time.Duration
	done   int
	last   time.Time
	failed *atomic.Bool
	err    error
}

// do records a step that has just ended with err, and reports whether to continue.
func (w *worker) do(err error, since, counted time.Time) bool {
	now := time.Now()
	if err != nil {
		w.err = err
		w.failed.Store(true)
		return false
	}
	w.done++
	if now.After(counted) {
		w.took = append(w.took, now.Sub(since))
		w.last = now
	}
	return !w.failed.Load()
}

// runWorkers starts the workers together and collects their results. Elapsed is from the end of the warm-up to the end of
// the last counted step.
func runWorkers(workers int, l loopLimit, start func(int) (step, error), loop func(step, *worker, time.Time)) (loopResult, error) {
	steps := make([]step, workers)
	for i := range steps {
		var err error
		if steps[i], err = start(i); err != nil {
			return loopResult{}, err
		}
	}
	var failed atomic.Bool
	all := make([]worker, workers)
	counted := time.Now().Add(l.Warm)
	var group sync.WaitGroup
	for i := range all {
		all[i].failed = &failed
		group.Go(func() { loop(steps[i], &all[i], counted) })
	}
	group.Wait()
	return collect(all, counted)
}

func collect(all []worker, counted time.Time) (loopResult, error) {
	var r loopResult
	var errs []error
	last := counted
	for _, w := range all {
		r.Took = append(r.Took, w.took...)
		r.Done += w.done
		errs = append(errs, w.err)
		if w.last.After(last) {
			last = w.last
		}
	}
	r.Elapsed = last.Sub(counted)
	err := errors.Join(errs...)
	if err == nil && r.Steps() == 0 {
		err = errors.New("no step ended after the warm-up")
	}
	return r, err
}
