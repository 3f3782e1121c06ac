package log_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
)

var (
	simSeed  = flag.Uint64("sim-seed", 0, "replay the simulation with this seed, step by step")
	simSeeds = flag.Uint64("sim-seeds", 48, "how many seeds the simulation runs")
)

// Sequencer, finisher and repairs take their steps in an order that the seed
// decides, with failures of the store, crashes, other writers, moves of the
// clock and evictions between them. After each step everything must hold that
// the oracle says.
func TestSimulation(t *testing.T) {
	t.Parallel()
	w := newEnvelopes(t)
	first, last := uint64(1), *simSeeds
	if *simSeed != 0 {
		first, last = *simSeed, *simSeed
	}
	for seed := first; seed <= last; seed++ {
		if newSim(t, w, seed).run(); t.Failed() {
			t.Fatalf("replay with -run '^TestSimulation$' -sim-seed %d", seed)
		}
	}
}

// envelopes keeps what every seed can use again: signed envelopes, and anchors'
// folders on memory where there is such a thing.
type envelopes struct {
	*world
	made map[string]*event.Envelope
	dir  string
}

func newEnvelopes(t *testing.T) *envelopes {
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	w := &envelopes{world: &world{t: t, keyring: keyring, agent: ledgertest.NewAgent()}, made: map[string]*event.Envelope{}, dir: t.TempDir()}
	if memory, err := os.MkdirTemp("/dev/shm", "anchors"); err == nil {
		w.dir = memory
		t.Cleanup(func() { os.RemoveAll(memory) })
	}
	return w
}

func (w *envelopes) get(tenant id.Tenant, name string) *event.Envelope {
	key := fmt.Sprint(tenant, name)
	if w.made[key] == nil {
		w.made[key] = w.envelope(tenant, name)
	}
	return w.made[key]
}

// sim is one run.
type sim struct {
	t       *testing.T
	w       *envelopes
	random  *rand.Rand
	store   *simStore
	log     *log.Stepped
	anchors *anchor.Folder
	dir     string
	now     time.Time
	latest  time.Time     // that now was
	elapsed time.Duration // of the steady clock
	limit   uint64        // monthly cap
	large   bool          // more than a tile of events, and re-verification, which take time
	fails   float64

	tenants []id.Tenant
	tickets []*ticket // open ones
	settled []*ticket // refused for certain: they must never land
	number  int
	names   int

	applied, durable *oracle

	faults int
	tells  bool // a fault fails the test

	crashes      func()                  // what the end of a process does
	acknowledged func(*ticket, id.Index) // told of each acknowledged submission, with the size after it
}

// ticket is one submission of the simulation.
type ticket struct {
	number   int
	tenant   id.Tenant
	names    []string
	change   bool
	erase    bool // of events before it
	correct  bool // of the clock, of a ledger that is ahead
	staleIfs int  // how often it is to be prepared with a stale condition
	by       *log.Stepped
	call     *log.Call
}

const third id.Tenant = 13

func newSim(t *testing.T, w *envelopes, seed uint64) *sim {
	s := newSimState(t, w, seed)
	if s.random.IntN(3) == 0 {
		s.limit = uint64(5 + s.random.IntN(20))
	}
	s.open()
	s.create()
	return s
}

// newSimState returns a run with nothing in its store yet.
func newSimState(t *testing.T, w *envelopes, seed uint64) *sim {
	s := &sim{
		t: t, w: w, random: rand.New(rand.NewPCG(seed, 7)), tenants: []id.Tenant{red, blue, third},
		dir: fmt.Sprintf("%s/%d", w.dir, seed), large: seed%16 == 0, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
	}
	s.latest, s.tells = s.now, true
	s.store = newSimStore(s.random, s.trace)
	s.applied, s.durable = newOracle(s.fault), newOracle(s.fault)
	s.crashes, s.acknowledged = s.crash, func(*ticket, id.Index) {}
	s.fails = []float64{0, 0.02, 0.1, 0.4}[s.random.IntN(4)]
	return s
}

func (s *sim) create() {
	for _, tenant := range s.tenants {
		if _, err := s.log.Create(s.t.Context(), tenant, ledgertest.Genesis(tenant)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *sim) trace(format string, args ...any) {
	if *simSeed != 0 {
		s.t.Logf(format, args...)
	}
}

func (s *sim) fault(format string, args ...any) {
	s.t.Helper()
	s.faults++
	if s.tells {
		s.t.Errorf(format, args...)
	}
}

// errProcessEnds is what Fatal panics with.
var errProcessEnds = errors.New("the process ends")

func (s *sim) open() {
	var err error
	if s.anchors, err = anchor.Open(s.dir); err != nil {
		s.t.Fatal(err)
	}
	if s.log, err = s.opened(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sim) timeNow() time.Time { return s.now }

func (s *sim) elapsedNow() time.Duration { return s.elapsed }

func (s *sim) opened() (*log.Stepped, error) {
	fails := s.store.fails
	s.store.fails = 0
	defer func() { s.store.fails = fails }()
	return log.OpenStepped(s.t.Context(), s.options())
}

func (s *sim) options() log.Options {
	return log.Options{
		Store: s.store, Keyring: s.w.keyring, Anchors: s.anchors, Clock: s.timeNow, Elapsed: s.elapsedNow,
		Fatal: func(error) { panic(errProcessEnds) }, MaxResident: 2, MaxWaitingTenant: 400, TileCacheBytes: 1 << 20,
	}
}

const simSteps = 150

func (s *sim) run() {
	defer s.anchors.Close()
	for step := range simSteps {
		s.store.fails = s.fails
		s.guarded(func() { s.step(step) })
		s.check()
		if s.faults > 0 {
			return
		}
	}
	s.store.fails = 0
	s.trace("to the end")
	s.guarded(func() { s.drain(s.log) })
	s.check()
	if !s.log.Idle() || len(s.tickets) > 0 {
		s.fault("at the end: idle %v, %d open submissions", s.log.Idle(), len(s.tickets))
	}
	s.last()
}

// guarded crashes when the process is to end.
func (s *sim) guarded(f func()) {
	defer func() {
		if p := recover(); p != nil {
			if p != any(errProcessEnds) {
				panic(p)
			}
			s.crashes()
		}
	}()
	f()
}

func (s *sim) step(n int) {
	s.take(n, []simStep{
		{24, "submit", func() { s.submit(1) }},
		{4, "submit several", func() { s.submit(2 + s.random.IntN(5)) }},
		{1, "submit many", func() { s.submit(s.many(60 + s.random.IntN(250))) }},
		{4, "reconfigure", s.reconfigure},
		{3, "erase", func() { s.begin(s.log, &ticket{tenant: s.tenant(), names: s.fresh(1), erase: true}) }},
		{8, "submit again", s.again},
		{22, "launch", func() { s.log.Launch() }},
		{22, "land", func() { s.log.Land(s.random.IntN) }},
		{10, "repair", func() { s.log.Repair() }},
		{3, "another writer", s.otherWriter},
		{4, "read", s.read},
		{2, "anchors", func() { s.must(s.log.FlushAnchors()) }},
		{1, "reverify", s.reverify},
		{4, "clock", s.clock},
		{3, "correct clock", func() { s.begin(s.log, &ticket{tenant: s.tenant(), names: s.fresh(1), correct: true}) }},
		{1, "crash", s.crash},
	})
}

// simStep is a step that the simulation may take.
type simStep struct {
	weight int
	name   string
	do     func()
}

// take takes one of the steps.
func (s *sim) take(n int, steps []simStep) {
	total := 0
	for _, c := range steps {
		total += c.weight
	}
	at := s.random.IntN(total)
	for _, c := range steps {
		if at -= c.weight; at < 0 {
			s.trace("step %d: %s", n, c.name)
			c.do()
			return
		}
	}
}

// poll takes what callers are told.
func (s *sim) poll() {
	open := s.tickets
	s.tickets = nil
	for _, t := range open {
		o, done := t.call.Poll(s.t.Context())
		if !done {
			s.tickets = append(s.tickets, t)
			continue
		}
		s.trace("  ticket %d: %d receipts, %v", t.number, len(o.Receipts), o.Err)
		s.durable.replay(s.store.applied[:s.store.durable])
		s.told(t, s.durable.ledger(t.tenant), o)
	}
}

func (s *sim) told(t *ticket, l *oracleLedger, o log.Outcome) {
	switch {
	case o.Err == nil:
		if wrong := l.landed(t, o.Receipts, s.store.broken()); wrong != "" {
			s.fault("ticket %d: acknowledged, and its %s is not so in what is durable", t.number, wrong)
		}
		s.acknowledged(t, o.Receipts[len(o.Receipts)-1].Index+1)
		return
	case errors.Is(o.Err, log.ErrDuplicate):
		if !l.knows(t) {
			s.fault("ticket %d: called a duplicate, and nothing durable has its names", t.number)
		}
	case fault.Is(o.Err, fault.OutcomeUnknown):
		return
	case t.correct && fault.Is(o.Err, fault.Conflict): // it is not ahead
	case fault.Is(o.Err, fault.PlanLimit):
		if s.limit == 0 {
			s.fault("ticket %d: %v", t.number, o.Err)
		}
	case !fault.Is(o.Err, fault.Overloaded) && !fault.Is(o.Err, fault.Unavailable):
		s.fault("ticket %d: %v", t.number, o.Err)
	}
	s.settled = append(s.settled, t)
}

// check asks the oracle.
func (s *sim) check() {
	s.guarded(s.poll)
	s.applied.replay(s.store.applied)
	s.durable.replay(s.store.applied[:s.store.durable])
	for _, tenant := range s.tenants {
		if state, ok := s.log.Published(tenant); ok {
			s.applied.published(tenant, state, s.durable)
		}
	}
	for _, t := range s.settled {
		if n := s.applied.ledger(t.tenant).count(t); n > 0 {
			s.fault("ticket %d was refused, and %d of its events are in the ledger", t.number, n)
		}
	}
}

// last checks that the ledgers go on, and all of the store.
func (s *sim) last() {
	s.limit = 0
	if s.now.Before(s.latest) {
		s.now = s.latest // no ledger is ahead of the clock then
	}
	for _, tenant := range s.tenants {
		s.begin(s.log, &ticket{tenant: tenant, names: s.fresh(1)})
		s.drain(s.log)
		state, err := s.log.State(s.t.Context(), tenant)
		if err != nil || len(s.tickets) > 0 || int(state.Size()) != len(s.durable.ledger(tenant).events) {
			s.fault("tenant %d: at the end: %v, %d open", tenant, err, len(s.tickets))
		}
	}
	s.reverify()
	s.check()
}
