package log_test

import (
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage/pebblestore"
)

// The n-th write, sync, create, rename or other operation of the disk fails, once or from then on, for each n. The
// store then either continues or is broken and reports it. No caller gets an acknowledgement of an event that is not
// stored, published data is read correctly while the process lives, and the next process finds every acknowledged
// event.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	kinds := map[string][]errorfs.OpKind{
		"write":  {errorfs.OpFileWrite, errorfs.OpFileWriteAt},
		"sync":   {errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo},
		"create": {errorfs.OpCreate, errorfs.OpReuseForWrite},
		"rename": {errorfs.OpRename, errorfs.OpLink},
		"remove": {errorfs.OpRemove},
		"close":  {errorfs.OpFileClose},
	}
	w, begin := installed(t, func(w *world) { w.fill(red, 250) })
	step := 11
	if drill() {
		step = 1
	}
	for name, kinds := range kinds {
		for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
			once := cause == syscall.ENOSPC // an operator frees space
			t.Run(fmt.Sprintf("%s/%v", name, cause), func(t *testing.T) {
				for n := 1; ; n += step {
					d := &failingDisk{mem: begin.disk.CrashClone(vfs.CrashCloneCfg{}), kinds: kinds, cause: cause, once: once, at: int64(n)}
					if d.run(w.on(t, begin.anchors)); d.failed.Load() == 0 || t.Failed() {
						return // n is beyond the last operation
					}
				}
			})
		}
	}
}

// installed returns a machine that was stopped cleanly after some work.
func installed(t *testing.T, work func(*world)) (*world, shot) {
	mem := vfs.NewCrashableMem()
	w := newWorld(t, openPebble(t, mem, nil))
	w.disk = mem
	work(w)
	w.ledgers.Close()
	if err := w.store.(*pebblestore.Engine).Close(); err != nil {
		t.Fatal(err)
	}
	journal, err := os.ReadFile(w.journal())
	if err != nil {
		t.Fatal(err)
	}
	return w, shot{disk: mem, anchors: journal}
}

// on returns a world with the keys of w and separate anchors.
func (w *world) on(t *testing.T, journal []byte) *world {
	t.Helper()
	other := &world{t: t, keyring: w.keyring, anchors: t.TempDir(), agent: w.agent, fatal: make(chan error, 99), Time: w.Time.Copy()}
	if err := os.WriteFile(other.journal(), journal, 0o600); err != nil {
		t.Fatal(err)
	}
	return other
}

// failingDisk fails the operation with number at of some kinds, and all later ones unless once is set.
type failingDisk struct {
	mem   *vfs.MemFS
	kinds []errorfs.OpKind
	cause error
	once  bool
	at    int64

	on     atomic.Bool
	done   atomic.Int64
	failed atomic.Int64
}

func (d *failingDisk) MaybeError(op errorfs.Op) error {
	if !d.on.Load() {
		return nil
	}
	for _, k := range d.kinds {
		if op.Kind != k {
			continue
		}
		if n := d.done.Add(1); n == d.at || n > d.at && !d.once {
			d.failed.Add(1)
			return fmt.Errorf("%v of %s: %w", op.Kind, op.Path, d.cause)
		}
	}
	return nil
}

func (d *failingDisk) String() string { return "failing disk" }

// run runs a process on the disk, and the next one after it.
func (d *failingDisk) run(w *world) {
	p := &process{broken: make(chan struct{}), died: make(chan struct{})}
	d.on.Store(true)
	go p.live(w, d)
	select {
	case <-p.died:
	case <-p.broken:
	}
	d.on.Store(false)
	acknowledged, checkpoints := p.told()
	journal, err := os.ReadFile(w.journal())
	if err != nil {
		w.t.Fatal(err)
	}
	w.on(w.t, journal).next(d.mem.CrashClone(vfs.CrashCloneCfg{}), acknowledged, checkpoints)
	if w.t.Failed() {
		w.t.Logf("operation %d failed", d.at)
	}
}

// process has the answers given before it ended.
type process struct {
	broken chan struct{} // closed when the store is broken: later answers do not count
	died   chan struct{}
	once   sync.Once

	mu    sync.Mutex
	ended bool
	acked []acked
	shown []shown
}

func (p *process) told() ([]acked, []shown) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	return p.acked, p.shown
}

// breaks ends the process like main: the goroutine that found the store broken does nothing more.
func (p *process) breaks(error) {
	p.once.Do(func() { close(p.broken) })
	select {}
}

func (p *process) live(w *world, d *failingDisk) {
	defer close(p.died)
	engine, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: errorfs.Wrap(d.mem, d), CacheBytes: 1 << 20, OnBroken: p.breaks})
	if err != nil {
		return
	}
	w.store = engine
	w.start(log.Options{Logger: slog.New(slog.DiscardHandler)}) // it may outlive the test
	w.t.Cleanup(w.ledgers.Die)
	var group sync.WaitGroup
	for _, tenant := range []id.Tenant{red, blue} {
		group.Go(func() {
			for i := range 12 {
				p.send(w, tenant, fmt.Sprint("e", i))
			}
		})
	}
	group.Wait()
	w.ledgers.Close()
	engine.Close() // fails with the disk
}

func (p *process) send(w *world, tenant id.Tenant, name string) {
	r, err := w.append(tenant, name)
	s, stateErr := w.ledgers.State(w.t.Context(), tenant)
	if stateErr != nil {
		return // the store is broken
	}
	checkpoint, noteErr := ledgertest.Signed(s)
	leaf, root, _, readErr := w.ledgers.Inclusion(w.t.Context(), s, s.Size()-1, s.Size())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	switch {
	case err == nil:
		p.acked = append(p.acked, acked{tenant, name, r, nil})
		p.shown = append(p.shown, shown{tenant, checkpoint})
	case !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.OutcomeUnknown) && !fault.Is(err, fault.Overloaded):
		w.t.Errorf("append: %v", err)
	}
	right := readErr == nil && leaf == s.Last() && root == s.Root() && checkpoint.Root == root
	if s.Size() > 0 && !right && !fault.Is(readErr, fault.Unavailable) || noteErr != nil || s.Fault().Level != log.Healthy {
		w.t.Errorf("read: %v, %v, fault %+v", readErr, noteErr, s.Fault())
	}
}

// next is the process after it, on a working disk.
func (w *world) next(disk *vfs.MemFS, acknowledged []acked, checkpoints []shown) {
	engine := openPebble(w.t, disk, nil)
	w.store = engine
	w.open(log.Options{})
	w.keeps(acknowledged, checkpoints)
	w.mustAppend(red, "after")
	w.mustAppend(blue, "after")
	for _, f := range w.fsck(engine) {
		w.t.Errorf("fsck: %v", f)
	}
	w.ledgers.Close()
	if err := engine.Close(); err != nil {
		w.t.Error(err)
	}
}
