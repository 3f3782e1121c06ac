package archive_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage/archive"
)

// run runs the worker until a condition holds.
func (w *world) run(o archive.Options, until func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	var worker sync.WaitGroup
	w.Engine = newEngine(w.t, o)
	worker.Go(func() { w.Run(ctx) })
	for !until() && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if ctx.Err() != nil {
		w.t.Error("the worker did not get there")
	}
	cancel()
	worker.Wait()
}

// The worker moves bundles when it starts, removes envelopes from objects as they are erased, continues after an
// outage, and does nothing for tenants that this process does not own.
func TestRun(t *testing.T) {
	w := newWorld(t, openPebble(t))
	w.add(red, 2*width)
	w.add(blue, width)
	o := archive.Options{Engine: w.inner, Objects: w.objects, Check: checkEnvelope, Pass: time.Hour,
		Owns: func(t id.Tenant) bool { return t == red }}.WithWidth(width)
	w.run(o, func() bool {
		if w.archived(red) < 2*width {
			return false
		}
		if !w.holds(red, 1) { // the erasure below, without another pass
			return true
		}
		if w.want[red][1].ErasedBy == 0 {
			w.add(red, 1, id.Range{Begin: 1, End: 2})
		}
		return false
	})
	if w.waiting(red) || w.archived(blue) > 0 {
		t.Error("the erasure waits, or the worker works for another one's tenant")
	}
	w.check(red, "erased")

	w.add(red, 1, id.Range{Begin: 2, End: 3})
	o.ReadOnly = true
	w.Engine = newEngine(t, o)
	w.Run(t.Context()) // ends at once
	if !w.waiting(red) {
		t.Error("a worker that may only read has written")
	}
	o.ReadOnly, o.Owns = false, nil
	w.run(o, func() bool { return !w.waiting(red) && w.archived(blue) == width })
	w.check(red, "erased by the next process")

	// Another process erases while the worker waits for its next pass.
	other := newEngine(t, o)
	w.add(blue, width)
	erased := false
	w.run(o, func() bool {
		if w.archived(blue) < 2*width {
			return false // the pass at the start
		}
		if !erased {
			worker := w.Engine
			w.Engine, erased = other, true
			w.add(red, 1, id.Range{Begin: 3, End: 4})
			w.Engine = worker
		}
		waiting, err := other.ErasuresWaiting(t.Context(), red)
		return err == nil && !waiting
	})
	w.check(red, "erased beside the worker")
	w.check(blue, "moved")
}

// asked counts the checks whether the object store can hold an archive.
type asked struct {
	*memory
	times atomic.Int32
}

func (a *asked) Read(ctx context.Context, name string, limit int64) ([]byte, string, error) {
	a.times.Add(1)
	return a.memory.Read(ctx, name, limit)
}

// A worker that starts while the object store is unavailable pauses between its attempts, and its metrics show that it
// fails and how long bundles of its own tenants have been due.
func TestObjectStoreIsAwayFromTheStart(t *testing.T) {
	for name, tc := range map[string]struct {
		owns    id.Tenant
		waiting string
	}{
		"a bundle is due": {red, "agentledger_archive_oldest_waiting_seconds 3600"},
		"none is due":     {blue, "agentledger_archive_oldest_waiting_seconds 0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, openPebble(t))
			w.add(red, 2*width)
			w.add(blue, width-1)
			w.objects.leave(true)
			away := &asked{memory: w.objects}
			o := archive.Options{Engine: w.inner, Objects: away, Pass: time.Hour, After: time.Hour,
				Clock: clockAt(time.UnixMilli(1_700_000_000_000), 7200),
				Owns:  func(t id.Tenant) bool { return t == tc.owns }}.WithWidth(width)
			metrics := ""
			w.run(o, func() bool {
				metrics = w.metrics()
				return strings.Contains(metrics, `failures_total{step="write"} 1`) && strings.Contains(metrics, tc.waiting)
			})
			if got := away.times.Load(); got != 1 {
				t.Errorf("the object store was asked %d times, want once before the pause\n%s", got, metrics)
			}
		})
	}
}

// metrics returns the metrics as text.
func (w *world) metrics() string {
	w.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.Metrics()...)
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return answer.Body.String()
}
