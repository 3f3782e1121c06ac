package log_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// metric returns a number that a monitor reads.
func metric(t *testing.T, g prometheus.Gatherer, name string) float64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(scrape(g))
	if found == nil {
		t.Fatalf("there is no metric %s", name)
	}
	v, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// A ledger in which many events are new is followed although the pause is long; one
// with a few waits for it, and the metrics say how many events that are, and how old.
func TestReverificationSaysItsLag(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	registry := prometheus.NewRegistry()
	w.ledgers.Close()
	w.open(log.Options{Metrics: registry})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.auditor.Run(ctx, time.Hour)
	}()
	eventually(t, "the first round ends", func() bool { return metric(t, registry, "agentledger_reverify_round_timestamp_seconds") > 0 })
	w.fill(red, 3000)
	w.mustAppend(blue, "a", "b", "c")
	eventually(t, "the busy ledger is followed", func() bool { return w.reverified(red).To == 3000 })
	eventually(t, "the other one lags", func() bool { return metric(t, registry, "agentledger_reverify_lag_events") == 3 })
	eventually(t, "the positions follow, so that with the lag they are all events",
		func() bool { return metric(t, registry, "agentledger_reverified_position_events") == 3000 })
	w.Pass(90 * time.Second)
	w.mustAppend(blue, "d")
	eventually(t, "the lag grows", func() bool { return metric(t, registry, "agentledger_reverify_lag_events") == 4 })
	if got := metric(t, registry, "agentledger_reverify_lag_seconds"); got != 90 {
		t.Errorf("got a lag of %v s, want that of the oldest event", got)
	}
	if got := w.reverified(blue).To; got != 0 {
		t.Errorf("the quiet ledger is at %d", got)
	}
	cancel()
	<-ended
	w.reverify(func() bool { return w.reverified(blue).To == 4 })
	eventually(t, "nothing lags", func() bool { return metric(t, registry, "agentledger_reverify_lag_events") == 0 })
	if got := metric(t, registry, "agentledger_reverify_lag_seconds"); got != 0 {
		t.Errorf("got a lag of %v s, want none", got)
	}
}

// While a whole pass goes on, which takes long, what is new is followed, also in that
// ledger: the pass keeps its own position, over a stop, and at its end counts for all.
func TestReverificationFollowsBesideAPass(t *testing.T) {
	store := newWatchedStore()
	w := newWorld(t, store)
	w.fill(red, 3000)
	w.fill(blue, 10)
	if err := w.auditor.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Pass(audit.MaxPassAge + time.Minute)
	release := make(chan struct{})
	var held bool // of the pass: its reads begin at the first event
	store.mu.Lock()
	store.read = map[id.Tenant]int{}
	store.mu.Unlock()
	store.lookup = func(tenant id.Tenant) {
		store.mu.Lock()
		mine := tenant == red && !held
		held = held || mine
		store.mu.Unlock()
		if mine {
			<-release
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.auditor.Run(ctx, time.Millisecond)
	}()
	store.await(t, "the pass began", func() bool { return held })
	for i := range 20 {
		w.mustAppend(red, fmt.Sprint("new-", i))
	}
	eventually(t, "what is new is followed", func() bool { return w.reverified(red).To == 3020 })
	if since := w.reverified(red).Since; since.Time().After(w.Clock().Add(-audit.MaxPassAge)) {
		t.Errorf("the pass counts before its end: %v", since.Time())
	}
	close(release)
	eventually(t, "the pass ends", func() bool { return w.reverified(red).Since.Time().Equal(w.Clock()) })
	if got := w.reverified(red).To; got != 3020 {
		t.Errorf("after the pass: at %d, want 3020", got)
	}
	cancel()
	<-ended
}
