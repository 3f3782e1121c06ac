package main

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// loopLimit bounds a run. Steps that end in the first Warm are not counted; steps are
// begun for Time after that, or until there were Count (0: no bound).
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

// step does step n of a run and returns when it is done. Numbers count from 0
// over all workers.
type step func(n int) error

// timedStep is a Step that is told since when it counts.
type timedStep func(n int, since time.Time) error

// latencies are durations in no order.
type latencies []time.Duration

// Quantile returns the smallest duration that a share of q of all does not
// exceed by count; 0 of none. It sorts.
func (l latencies) Quantile(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	slices.Sort(l)
	return l[min(int(q*float64(len(l))), len(l)-1)]
}

// loopResult is what a run did after its warm-up.
type loopResult struct {
	Elapsed time.Duration
	Took    latencies
	Done    int // steps, those of the warm-up too
}

// Steps returns how many steps were counted.
func (r loopResult) Steps() int { return len(r.Took) }

// Rate returns counted steps a second.
func (r loopResult) Rate() float64 { return float64(len(r.Took)) / r.Elapsed.Seconds() }

// closedLoop runs workers that each do one step after the other. start is called
// once for each, before the clock begins.
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

// openLoop begins rate steps a second, whatever the server does, with at most so
// many under way as there are workers. A step that found no free worker counts
// from when it was due.
func openLoop(rate, workers int, l loopLimit, start func(worker int) (timedStep, error)) (loopResult, error) {
	var next atomic.Int64
	every := time.Second / time.Duration(rate)
	return runWorkers(workers, l, start, func(step timedStep, w *worker, counted time.Time) {
		begin, end := counted.Add(-l.Warm), counted.Add(l.Time)
		for n := next.Add(1) - 1; n < l.count(); n = next.Add(1) - 1 {
			since := begin.Add(time.Duration(n) * every)
			if !since.Before(end) {
				return
			}
			if wait := time.Until(since); wait > 0 {
				time.Sleep(wait)
				since = time.Now() // how late the timer is, is not the server's doing
			}
			if !w.do(step(int(n), since), since, counted) {
				return
			}
		}
	})
}

// worker is what one goroutine of a run found out.
type worker struct {
	took   []time.Duration
	done   int
	last   time.Time
	failed *atomic.Bool
	err    error
}

// do notes a step that has just ended with err, and says whether to go on.
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

// runWorkers starts the workers together and puts together what they found out.
// Elapsed is from the end of the warm-up to the end of the last counted step.
func runWorkers[S any](workers int, l loopLimit, start func(int) (S, error), loop func(S, *worker, time.Time)) (loopResult, error) {
	steps := make([]S, workers)
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

var errNothing = errors.New("no step ended after the warm-up")

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
		err = errNothing
	}
	return r, err
}
