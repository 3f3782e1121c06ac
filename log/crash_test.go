package log_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/tlog"
)

var crashRounds = flag.Int("crash-rounds", 2, "rounds of the crash tests; from 100 on they cut at every kind of operation and include large ledgers")

// drill reports whether the crash tests must be thorough.
func drill() bool { return *crashRounds >= 100 }

// The whole commit path on Pebble loses power before and after every sync of the store, while several callers write
// to two organizations, erase envelopes and change the configuration around the end of a tile. The remaining disk is
// opened: everything acknowledged before the cut is there, envelopes whose erasure was acknowledged are gone, none is
// gone without its statement (fsck), the heads extend what was shown, and the ledgers continue.
func TestCrash(t *testing.T) {
	t.Parallel()
	for round := range *crashRounds {
		t.Run(fmt.Sprint("round ", round), func(t *testing.T) { crashRound(t, uint64(round), 250-round%8, 12) })
	}
}

// The same around the end of the first tile of tiles.
func TestCrashOfALargeLedger(t *testing.T) {
	if drill() {
		crashRound(t, 1, 65_530, 12)
	}
}

func crashRound(t *testing.T, seed uint64, base, most int) {
	c := &camera{mem: enginetest.NewCrashDisk(), random: rand.New(rand.NewPCG(seed, 9)), every: 1 + base/4096}
	w := newWorld(t, openPebble(t, c.fs(), nil))
	c.anchors = w.journal()
	w.fill(red, base)
	w.fill(blue, base/5)
	c.begin(t)
	w.traffic(c, "a")
	c.restart(w)
	w.traffic(c, "b")
	shots := c.end()
	w.ledgers.Close()
	w.store.(*pebblestore.Engine).Close()
	if drill() {
		most *= 5
	}
	for i, at := range c.random.Perm(len(shots)) {
		if i < most && !t.Failed() {
			w.develop(c, shots[at], base, i%2 == 0)
		}
	}
}

func openPebble(t *testing.T, fs vfs.FS, broken func(error)) *pebblestore.Engine {
	t.Helper()
	e, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: fs, CacheBytes: 8 << 20, OnBroken: broken})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// fill appends n events in few submissions. Events of large ledgers are not signed.
func (w *world) fill(tenant id.Tenant, n int) {
	w.t.Helper()
	const most = 4000
	for begin := 0; begin < n; begin += most {
		_, err := w.ledgers.Append(w.t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
			var sub log.Submission
			for i := begin; i < min(n, begin+most); i++ {
				name := fmt.Sprint("base-", i)
				e := &event.Envelope{EventID: id.Event(name), AgentID: "agt_test", KeyID: "key_test", Canonical: []byte("{}"), SignatureB64: strings.Repeat("A", 86) + "=="}
				if n <= most {
					e = w.envelope(tenant, name)
				}
				sub.Drafts = append(sub.Drafts, w.draft(s, e, 0))
			}
			return sub, nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// camera takes images of a disk as a loss of power at that moment could leave it.
type camera struct {
	mem     *enginetest.CrashDisk
	anchors string // the journal, on the machine's file system
	random  *rand.Rand
	every   int // takes one of this many images: images of large ledgers fill the memory

	mu         sync.Mutex
	on         bool
	afterSync  bool
	first      []byte // the journal when the camera was started
	shots      []shot
	acked      []acked
	shown      []shown
	operations int
}

type acked struct {
	tenant  id.Tenant
	name    string
	receipt log.Receipt
	erases  []id.Range
}

type shown struct {
	tenant     id.Tenant
	checkpoint tlog.Checkpoint
}

type shot struct {
	operation string
	disk      *vfs.MemFS
	anchors   []byte
	acked     int // how many of the camera's were acknowledged, or shown, before
	shown     int
}

func (c *camera) fs() vfs.FS {
	return errorfs.Wrap(c.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		c.operation(op)
		return nil
	}))
}

// operation is called before each operation. It takes one image before each sync, and one before the next operation.
func (c *camera) operation(op errorfs.Op) {
	if !changes(op.Kind) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.operations++
	if c.on && (drill() && c.every == 1 || c.afterSync || syncs(op.Kind)) && c.random.IntN(c.every) == 0 {
		c.take(fmt.Sprintf("operation %d, %v of %s", c.operations, op.Kind, op.Path))
	}
	c.afterSync = syncs(op.Kind)
}

func syncs(k errorfs.OpKind) bool {
	return k == errorfs.OpFileSync || k == errorfs.OpFileSyncData || k == errorfs.OpFileSyncTo
}

// changes reports whether an operation can change a disk.
func changes(k errorfs.OpKind) bool {
	switch k {
	case errorfs.OpCreate, errorfs.OpLink, errorfs.OpRemove, errorfs.OpRename, errorfs.OpReuseForWrite, errorfs.OpMkdirAll,
		errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFileClose:
		return true
	}
	return syncs(k)
}

// take takes the image last: everything acknowledged, shown and anchored before must be in it. The caller must hold
// mu.
func (c *camera) take(operation string) {
	s := shot{operation: operation, acked: len(c.acked), shown: len(c.shown)}
	s.anchors, _ = os.ReadFile(c.anchors) // it is there since the ledgers are
	survives := []int{0, 0, 50, 100}[c.random.IntN(4)]
	s.disk = c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: survives, RNG: c.random})
	c.shots = append(c.shots, s)
}

func (c *camera) begin(t *testing.T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	if c.first, err = os.ReadFile(c.anchors); err != nil {
		t.Fatal(err)
	}
	c.on = true
}

func (c *camera) end() []shot {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = false
	return c.shots
}

// restart stops and restarts the ledgers and the store while the camera watches.
func (c *camera) restart(w *world) {
	w.ledgers.Close()
	if err := w.store.(*pebblestore.Engine).Close(); err != nil {
		w.t.Fatal(err)
	}
	w.store = openPebble(w.t, c.fs(), nil)
	w.open(log.Options{})
}

func (c *camera) acknowledged(a acked, checkpoint tlog.Checkpoint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acked = append(c.acked, a)
	c.shown = append(c.shown, shown{a.tenant, checkpoint})
}

// traffic runs several callers, changes of configuration and anchors concurrently.
func (w *world) traffic(c *camera, prefix string) {
	var group sync.WaitGroup
	for sender := range 4 {
		for _, tenant := range []id.Tenant{red, blue} {
			group.Go(func() {
				for i := range 6 {
					name := fmt.Sprintf("%s-%d-%d", prefix, sender, i)
					if sender == 2 && i%2 == 0 { // three of the oldest events, different ones each time
						begin := id.Index(3*i/2 + 9*int(prefix[0]-'a'))
						w.trafficOne(c, tenant, name, false, id.Range{Begin: begin, End: begin + 3})
						continue
					}
					w.trafficOne(c, tenant, name, sender == 3 && i%3 == 1)
				}
			})
		}
	}
	group.Go(func() {
		for range 4 {
			if err := w.ledgers.FlushAnchors(); err != nil {
				w.t.Error(err)
			}
		}
	})
	group.Wait()
}

// trafficOne appends an event of the agent, or the statement of an erasure if there is an event to erase.
func (w *world) trafficOne(c *camera, tenant id.Tenant, name string, change bool, erases ...id.Range) {
	e := w.envelope(tenant, name)
	receipts, err := w.ledgers.Append(w.t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
		d := w.draft(s, e, 0)
		if len(erases) > 0 {
			erasure := event.Erasure{Ranges: erases, Reason: "retention"}
			d = statementOf(w.t, s, event.KindErasure, name, erasure.Payload())
			d.Erases = erases
		}
		return log.Submission{Drafts: []log.Draft{d}, Reconfigures: change}, nil
	})
	if err != nil {
		w.t.Error(err)
		return
	}
	s, err := w.ledgers.State(w.t.Context(), tenant)
	if err != nil {
		w.t.Error(err)
		return
	}
	checkpoint, err := ledgertest.Signed(s)
	if err != nil {
		w.t.Error(err)
		return
	}
	c.acknowledged(acked{tenant, name, receipts[0], erases}, checkpoint)
}

// develop starts on the content of an image and checks it. The anchors are those of that moment or, as on a volume
// restored from a copy, older ones.
func (w *world) develop(c *camera, s shot, base int, oldAnchors bool) {
	w.t.Logf("cut before %s: %d acknowledged, %d shown, old anchors %v", s.operation, s.acked, s.shown, oldAnchors)
	journal := s.anchors
	if oldAnchors {
		journal = c.first
	}
	after := w.on(w.t, journal)
	engine := openPebble(w.t, s.disk, nil)
	after.store = engine
	after.open(log.Options{})
	after.keeps(c.acked[:s.acked], c.shown[:s.shown])
	after.mustAppend(red, "after", "after-2")
	after.mustAppend(blue, "after")
	for _, f := range after.fsck(engine) {
		if base < 1000 || f.Level != log.Suspect { // the base of large ledgers is not signed
			w.t.Errorf("fsck: %v", f)
		}
	}
	after.ledgers.Close()
	if err := engine.Close(); err != nil {
		w.t.Error(err)
	}
}

// lacks checks that the envelopes of a range are gone, according to the statement at an index.
func (w *world) lacks(tenant id.Tenant, r id.Range, by id.Index) {
	w.t.Helper()
	for at := r.Begin; at < r.End; at++ {
		e, err := w.ledgers.Event(w.t.Context(), w.state(tenant), at, storage.FieldRecord|storage.FieldEnvelope)
		if err != nil || e.Envelope != nil || e.ErasedBy != by {
			w.t.Errorf("tenant %d: event %d: %d bytes of envelope, erased by %d, %v; want none, by %d",
				tenant, at, len(e.Envelope), e.ErasedBy, err, by)
		}
	}
}

// keeps checks that everything acknowledged is stored as reported, and that the heads extend everything shown.
func (w *world) keeps(acknowledged []acked, checkpoints []shown) {
	w.t.Helper()
	for _, tenant := range []id.Tenant{red, blue} {
		if s := w.state(tenant); s.Fault().Level != log.Healthy {
			w.t.Errorf("tenant %d: fault %+v", tenant, s.Fault())
		}
	}
	for _, a := range acknowledged {
		w.holds(w.state(a.tenant), a.name, a.receipt)
		for _, r := range a.erases {
			w.lacks(a.tenant, r, a.receipt.Index)
		}
	}
	for _, c := range checkpoints {
		s := w.state(c.tenant)
		root, _, _, err := w.ledgers.Consistency(w.t.Context(), s, min(c.checkpoint.Size, s.Size()), s.Size())
		if err != nil || c.checkpoint.Size > s.Size() || root != c.checkpoint.Root {
			w.t.Errorf("tenant %d: the head at %d does not extend the checkpoint at %d: %v", c.tenant, s.Size(), c.checkpoint.Size, err)
		}
	}
}
