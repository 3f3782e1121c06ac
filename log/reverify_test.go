package log_test

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive"
	"github.com/agentledger/agentledger/storage/archive/objects"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// reverify runs the background re-verification until a condition holds.
func (w *world) reverify(until func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	go func() {
		defer cancel()
		for !until() && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
	}()
	w.auditor.Run(ctx, time.Millisecond)
	if !until() {
		w.t.Fatal("the re-verification did not get there")
	}
}

func (w *world) reverified(tenant id.Tenant) log.Reverified {
	w.t.Helper()
	v, err := w.ledgers.Reverified(w.t.Context(), tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func TestReverifyReachesTheHeads(t *testing.T) {
	w := newWorld(t, storagetest.NewModel())
	w.burst(300, "e")
	w.reverify(func() bool { return w.reverified(red).To == 300 && w.reverified(blue).To == 300 })
	w.burst(20, "more")
	w.reverify(func() bool { return w.reverified(red).To == 320 })
	if f := w.state(red).Fault(); f.Level != log.Healthy {
		t.Errorf("got fault %+v", f)
	}
}

// Each kind of damage is found, named and has its consequence; the other
// organization has none.
func TestDamageIsFound(t *testing.T) {
	flip := func(b []byte) {
		if len(b) > 0 { // a read without this part
			b[len(b)/2] ^= 1
		}
	}
	tests := []struct {
		name   string
		damage func(e *storage.Event)
		place  string
		level  log.Level
	}{
		{"entry names another record", func(e *storage.Event) { e.Entry.Record[0] ^= 1 }, "entry", log.Frozen},
		{"entry names another entry", func(e *storage.Event) { e.Entry.Prev[0] ^= 1 }, "entry", log.Frozen},
		{"record differs", func(e *storage.Event) { flip(e.Record) }, "record 17", log.Suspect},
		{"envelope differs", func(e *storage.Event) { flip(e.Envelope) }, "envelope 17", log.Suspect},
		{"envelope of another event", func(e *storage.Event) { e.Envelope = []byte(`{}`) }, "envelope 17", log.Suspect},
		{"event id differs", func(e *storage.Event) { e.ID = "other" }, "record 17", log.Suspect},
		{"agent column differs", func(e *storage.Event) { e.Agent = "other" }, "record 17", log.Suspect},
		{"tool column differs", func(e *storage.Event) { e.Tool = "other" }, "envelope 17", log.Suspect},
		{"time column differs", func(e *storage.Event) { e.ReceivedAt++ }, "record 17", log.Suspect},
		{"decision column differs", func(e *storage.Event) { e.Effective = id.Deny }, "record 17", log.Suspect},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := &damaged{Model: storagetest.NewModel()}
			w := newWorld(t, store)
			w.burst(40, "e")
			store.event = func(tenant id.Tenant, e *storage.Event) {
				if tenant == red && e.Index == 17 {
					tt.damage(e)
				}
			}
			findings := w.fsck(store)
			if len(findings) == 0 {
				t.Fatal("fsck found nothing")
			}
			if !slices.ContainsFunc(findings, func(f audit.Finding) bool { return strings.HasPrefix(f.Place, tt.place) && f.Level == tt.level }) {
				t.Errorf("fsck: got %v, want %s at %q", findings, tt.level, tt.place)
			}
			for _, f := range findings {
				if f.Tenant != red {
					t.Errorf("fsck found a fault in the other organization: %v", f)
				}
			}
			w.reverify(func() bool { return w.state(red).Fault().Level != log.Healthy && w.reverified(blue).To == 40 })
			f := w.state(red).Fault()
			if f.Level != tt.level {
				t.Errorf("re-verification: got %+v, want level %s", f, tt.level)
			}
			if tt.level == log.Frozen {
				w.refuses(red, "frozen")
			} else if r, err := w.append(red, "after"); err != nil || r.ChainValid {
				t.Errorf("append to a suspect ledger: chain_valid %v, %v; want false", r.ChainValid, err)
			}
			if r, err := w.append(blue, "after"); err != nil || !r.ChainValid {
				t.Errorf("the other organization: chain_valid %v, %v", r.ChainValid, err)
			}
			store.event = nil
			w.reopen(store)
			if got := w.state(red).Fault().Level; got != tt.level {
				t.Errorf("after a restart: got level %q, want %q", got, tt.level)
			}
		})
	}
}

func TestDamagedLastEntryIsFoundByTheNextBatch(t *testing.T) {
	store := &damaged{Model: storagetest.NewModel()}
	w := newWorld(t, store)
	w.mustAppend(red, "a", "b")
	store.event = func(tenant id.Tenant, e *storage.Event) {
		if tenant == red && e.Index == 1 {
			e.Entry.Record[5] ^= 1
		}
	}
	r, err := w.append(red, "c")
	if err != nil || r.ChainValid {
		t.Errorf("got chain_valid %v, %v; want false", r.ChainValid, err)
	}
	w.refuses(red, "frozen")
	w.mustAppend(blue, "a")
}

// A store that does not answer in time, or not at all, is no damage of the record.
func TestSlowStoreLeavesTheChainValid(t *testing.T) {
	store := &damaged{Model: storagetest.NewModel()}
	w := newWorld(t, store)
	w.mustAppend(red, "a")
	for name, err := range map[string]error{"slow": context.DeadlineExceeded, "away": storage.ErrUnavailable} {
		store.slow = fmt.Errorf("read: %w", err)
		r, err := w.append(red, name)
		if err != nil || !r.ChainValid {
			t.Errorf("%s: got chain_valid %v, %v; want true", name, r.ChainValid, err)
		}
	}
	store.slow = nil
	if r, err := w.append(red, "again"); err != nil || !r.ChainValid || w.state(red).Fault().Level != log.Healthy {
		t.Errorf("afterwards: got chain_valid %v, fault %+v, %v", r.ChainValid, w.state(red).Fault(), err)
	}
}

func TestDamagedEndIsFoundAtStart(t *testing.T) {
	store := &damaged{Model: storagetest.NewModel()}
	w := newWorld(t, store)
	w.mustAppend(red, "a", "b", "c")
	store.event = func(tenant id.Tenant, e *storage.Event) {
		if tenant == red && e.Index == 1 {
			e.Entry.Record[5] ^= 1
		}
	}
	w.reopen(store)
	w.refuses(red, "frozen")
	w.mustAppend(blue, "a")
}

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

// surveyed is a store that answers for many ledgers at once, and counts the questions about single ones.
type surveyed struct {
	log.Store
	single, surveys atomic.Int64
}

func (s *surveyed) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	s.single.Add(1)
	return s.Store.Get(ctx, t, kind, key)
}

func (s *surveyed) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	s.single.Add(1)
	return s.Store.Head(ctx, t)
}

func (s *surveyed) Survey(ctx context.Context, q storage.SurveyQuestion) iter.Seq2[storage.SurveyedLedger, error] {
	s.surveys.Add(1)
	return storage.Survey(ctx, s.Store, q)
}

// Looks at all ledgers ask nothing about one that does nothing: those of the re-verification, and the comparison with
// the anchors.
func TestLooksAtAllLedgers(t *testing.T) {
	store := &surveyed{Store: storagetest.NewModel()}
	w := newWorld(t, store)
	w.burst(20, "e")
	if err := w.auditor.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []id.Tenant{red, blue} {
		if got := w.reverified(tenant).To; got != 20 {
			t.Fatalf("tenant %d is re-verified to %d", tenant, got)
		}
	}
	store.single.Store(0)
	store.surveys.Store(0)
	for range 3 {
		if err := w.auditor.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.ledgers.Census(t.Context(), "organization", slugs); err != nil {
		t.Fatal(err)
	}
	if got := store.single.Load(); got != 0 || store.surveys.Load() == 0 {
		t.Errorf("got %d questions about single ledgers in %d surveys", got, store.surveys.Load())
	}
}

// archived returns an engine with an archive in a folder, and how to archive all old events.
func archived(t *testing.T) (engine storage.Engine, folder string, move func()) {
	t.Helper()
	inner, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(t.TempDir(), "objects")
	kept, err := objects.NewFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.New(archive.Options{Engine: inner, Objects: kept, Logger: slog.New(slog.DiscardHandler),
		Clock: func() time.Time { return time.Now().Add(1000 * 24 * time.Hour) }})
	if err != nil {
		t.Fatal(err)
	}
	return a, folder, func() {
		t.Helper()
		if err := a.Pass(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// The background re-verification of archived events reads no object. fsck reads all.
func TestReverifyArchived(t *testing.T) {
	engine, folder, move := archived(t)
	w := newWorld(t, engine)
	w.burst(600, "e")
	move()
	lost := 0
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() == "0000000000000001" {
			lost++
			err = os.Remove(path)
		}
		return err
	})
	if err != nil || lost != 2 {
		t.Fatalf("removed %d objects, %v", lost, err)
	}
	w.reverify(func() bool { return w.reverified(red).To == 600 && w.reverified(blue).To == 600 })
	if f := w.state(red).Fault(); f.Level != log.Healthy {
		t.Errorf("got fault %+v", f)
	}
	if err := w.ledgers.Close(); err != nil {
		t.Fatal(err)
	}
	anchors, err := anchor.OpenReadOnly(w.anchors)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[id.Tenant]int)
	_, err = audit.Fsck(t.Context(), engine, w.keyring, anchors, func(f audit.Finding) {
		found[f.Tenant]++
		if !strings.HasPrefix(f.Place, "envelope ") && !strings.HasPrefix(f.Place, "record ") {
			t.Errorf("a fault that is not there: %v", f)
		}
	})
	if err != nil || found[red] < 256 || found[blue] < 256 {
		t.Errorf("fsck: got %v, %v, want a fault of each event of the lost objects", found, err)
	}
}
