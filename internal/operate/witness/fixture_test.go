package witness

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
)

// world has ledgers of two organizations and the witnesses of their service.
type world struct {
	*ledgertest.Service
	t         testing.TB
	client    *egress.Client
	orgs      *org.Orgs
	witnesses *Witnesses
	registry  *prometheus.Registry
	stop      func()
	ahead     atomic.Int64 // offset of the witnesses' clock, in nanoseconds
	names     atomic.Int64
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// newWorld returns a world in which no witness is asked before start.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, stop: func() {}}
	w.Service = ledgertest.New(t, func(ctx context.Context, s *log.State) (id.Disclosure, error) {
		return w.orgs.Disclosure(ctx, s)
	})
	w.client = egress.New(egress.Options{Allow: loopback, Timeout: 5 * time.Second, MaxAnswer: MaxAnswer})
	w.found(red, "red", "")
	w.found(blue, "blue", "")
	t.Cleanup(func() { w.stop() })
	return w
}

// found creates an organization. All are created before the first start.
func (w *world) found(tenant id.Tenant, slug id.Slug, policy string) {
	w.t.Helper()
	orgs := w.organizations(policy)
	records, err := orgs.FoundOrganization(w.t.Context(), org.Founding{Tenant: tenant, ID: ledgertest.Organization(tenant), Slug: slug, Name: string(slug), Plan: "free"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Found(w.t, tenant, records...)
}

// organizations returns the organizations of a service with a policy.
func (w *world) organizations(policy string) *org.Orgs {
	w.t.Helper()
	orgs, err := org.New(org.Options{
		Records: w.Store, Events: w.SystemEvents, Ledgers: w.Ledgers, Clock: w.Clock,
		Witnesses: Rules{Service: parsed(w.t, policy), Address: w.client.CheckURL},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.orgs = orgs
	return orgs
}

func parsed(t testing.TB, policy string) *trust.Policy {
	t.Helper()
	if policy == "" {
		return nil
	}
	p, err := trust.Parse([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// start stops the running service and starts it again with a policy.
func (w *world) start(policy string, change ...func(*Options)) {
	w.t.Helper()
	w.stop()
	w.registry = prometheus.NewRegistry()
	o := Options{
		Store: w.Store, Ledgers: w.Ledgers, Organizations: w.organizations(policy), Client: w.client, Service: parsed(w.t, policy),
		MaxLag: time.Minute, Interval: 5 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(w.t.Output(), nil)), Metrics: w.registry, Clock: w.now,
	}
	for _, c := range change {
		c(&o)
	}
	if err := (Rules{Service: o.Service, Address: w.client.CheckURL}).CheckService(); err != nil {
		w.t.Fatal(err)
	}
	w.witnesses = New(o)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.witnesses.Run(ctx) })
	w.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
}

// now returns the time of the witnesses' clock: the real time plus an offset.
func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }

// pass moves the clock of the witnesses and has all ledgers checked, as the next sweep would.
func (w *world) pass(d time.Duration) {
	w.t.Helper()
	w.ahead.Add(int64(d))
	if err := w.witnesses.sweepOnce(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// append moves a ledger by one event.
func (w *world) append(tenant id.Tenant) {
	w.t.Helper()
	name := fmt.Sprint("name ", w.names.Add(1))
	if _, err := w.orgs.Change(w.t.Context(), tenant, "acc", org.Patch{Name: &name}); err != nil {
		w.t.Fatal(err)
	}
}

// name gives an organization a policy of its own, which moves its ledger.
func (w *world) name(tenant id.Tenant, own org.Witnessing) {
	w.t.Helper()
	if _, err := w.orgs.Change(w.t.Context(), tenant, "acc", org.Patch{Witnessing: &own}); err != nil {
		w.t.Fatal(err)
	}
	w.witnesses.views.Drop(tenant)
}

func (w *world) key(tenant id.Tenant) tlog.VerifierKey { return w.State(w.t, tenant).VerifierKey() }

// witness starts a witness that knows both logs.
func (w *world) witness(name string) *witnesstest.Witness {
	w.t.Helper()
	x := witnesstest.New(w.t, name)
	x.AddLog(w.key(red))
	x.AddLog(w.key(blue))
	return x
}

// eventually waits until a condition holds.
func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("it never came: %s", what)
		}
	}
}

// by returns who has cosigned the published newest checkpoint of a ledger.
func (w *world) by(tenant id.Tenant, among ...*witnesstest.Witness) (n int) {
	w.t.Helper()
	note, err := w.witnesses.Checkpoint(w.t.Context(), w.State(w.t, tenant))
	if err != nil {
		w.t.Fatal(err)
	}
	return w.vouch(tenant, note, among...)
}

// vouch checks a note of a ledger and counts its valid cosignatures.
func (w *world) vouch(tenant id.Tenant, note []byte, among ...*witnesstest.Witness) (n int) {
	w.t.Helper()
	if _, err := tlog.OpenCheckpoint(note, w.key(tenant)); err != nil {
		w.t.Fatal(err)
	}
	parsed, err := tlog.ParseNote(note)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, x := range among {
		if _, err := x.Signer.Key().Cosigned(parsed); err == nil {
			n++
		}
	}
	if more := len(parsed.Signatures) - 1 - n; more > 0 {
		w.t.Errorf("%d lines of others in %s", more, note)
	}
	return n
}

// asks returns the number of requests with a result.
func (w *world) asks(r result) int { return w.metric("agentledger_witness_asks_total", string(r)) }

// contradictions returns the number of alarms.
func (w *world) contradictions() int {
	return w.metric("agentledger_witness_contradictions_total", "")
}

// metric adds up the counters of a name that have a label with a value.
func (w *world) metric(name, label string) (n int) {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			has := label == ""
			for _, pair := range m.GetLabel() {
				has = has || pair.GetValue() == label
			}
			if f.GetName() == name && has {
				n += int(m.GetCounter().GetValue())
			}
		}
	}
	return n
}

func (w *world) frozen(tenant id.Tenant) bool {
	return w.State(w.t, tenant).Fault().Level == log.Frozen
}

// idle reports whether only ledgers that wait for the end of a pause are on the agenda.
func (w *world) idle() bool {
	a := w.witnesses.queue
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.entries {
		if !e.paused {
			return false
		}
	}
	return true
}

// ended reports whether no round is running or can begin.
func (w *world) ended() bool {
	a := w.witnesses.queue
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running == [4]int{} && len(slices.Concat(a.ready[:]...)) == 0
}

// later moves the clock of the witnesses without checking the ledgers.
func (w *world) later(d time.Duration) {
	w.ahead.Add(int64(d))
	w.witnesses.queue.signalChange()
}

// damage replaces what is stored of a ledger.
func (w *world) damage(tenant id.Tenant, value string) {
	w.t.Helper()
	change := storage.Change{Kind: kindWitnessed, Value: []byte(value), If: storage.AnyVersion}
	if err := w.Store.Write(w.t.Context(), tenant, []storage.Change{change}); err != nil {
		w.t.Fatal(err)
	}
}
