package archive_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive"
)

// Random appends, erasures, moves, rewrites, restarts, outages and lost responses of two organizations. After each
// step, all events can be read correctly, some of them also individually. In the end everything is archived, and no
// object contains an erased envelope.
func TestRandomFaults(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) archive.Inner) {
		for seed := range uint64(3) {
			w := newWorld(t, open)
			if seed > 0 { // the earlier stores still exist
				w.inner.Close()
				w = newWorld(t, freshLike(t, w.inner))
			}
			r := &randomFaults{world: w, random: rand.New(rand.NewPCG(seed, 3))}
			w.add(red, 1)
			w.add(blue, 1)
			for step := range id.Index(60) {
				r.step()
				r.checkEach(red, "random", step%alone, alone)
				r.checkEach(blue, "random", step%alone, alone)
			}
			r.settle()
			if err := w.inner.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// alone is the number of events of which one is read individually after a step. The next step reads the following ones.
const alone = 8

// freshLike returns a function that opens a new store of the same engine.
func freshLike(t *testing.T, e archive.Inner) func(testing.TB) archive.Inner {
	if _, database := e.(interface{ Synchronous() bool }); database {
		return openPostgres(t)
	}
	return openPebble(t)
}

type randomFaults struct {
	*world
	random *rand.Rand
}

func (r *randomFaults) step() {
	r.t.Helper()
	tenant := red + id.Tenant(r.random.IntN(2))
	switch n := r.random.IntN(20); {
	case n < 6:
		r.add(tenant, 1+r.random.IntN(2*width))
	case n < 12:
		size := int(r.heads[tenant].Size)
		begin := id.Index(r.random.IntN(size))
		r.add(tenant, 1, id.Range{Begin: begin, End: min(begin+1+id.Index(r.random.IntN(width)), id.Index(size))})
	case n < 14:
		r.restart()
	default:
		r.work(tenant)
	}
}

// work makes the worker do something that may fail.
func (r *randomFaults) work(tenant id.Tenant) {
	r.t.Helper()
	healthy := r.inner
	switch r.random.IntN(4) {
	case 0:
		r.objects.failNext(1+r.random.IntN(4), r.random.IntN(2) == 0)
	case 1:
		r.start(&faultyEngine{Inner: healthy, left: 1 + r.random.IntN(8), after: r.random.IntN(2) == 0})
	case 2:
		r.objects.leave(true)
	}
	var err error
	if r.random.IntN(3) == 0 {
		err = r.RewriteErased(r.t.Context(), tenant)
	} else {
		err = r.Pass(r.t.Context())
	}
	if err != nil && !errors.Is(err, storage.ErrUnavailable) && !errors.Is(err, storage.ErrUnknown) {
		r.t.Errorf("got %v", err)
	}
	r.objects.failNext(0, false)
	r.objects.leave(false)
	if _, faulty := r.inner.(*faultyEngine); faulty {
		r.start(healthy)
	}
	for _, each := range []id.Tenant{red, blue} {
		if waiting, err := r.ErasuresWaiting(r.t.Context(), each); err != nil || !waiting {
			r.wantClean(each)
		}
	}
}

// wantClean checks that no object contains an erased envelope.
func (r *randomFaults) wantClean(tenant id.Tenant) {
	r.t.Helper()
	for at, e := range r.want[tenant] {
		if e.ErasedBy != 0 && r.holds(tenant, id.Index(at)) {
			r.t.Errorf("tenant %d: no erasure waits, and an object has the envelope of event %d", tenant-red, at)
		}
	}
}

func (r *randomFaults) settle() {
	r.t.Helper()
	r.pass()
	for _, tenant := range []id.Tenant{red, blue} {
		r.check(tenant, "settled")
		if got, want := r.archived(tenant), int(r.heads[tenant].Size/width*width); got != want {
			r.t.Errorf("settled: got %d archived events, want %d", got, want)
		}
		if r.waiting(tenant) {
			r.t.Error("settled, and an erasure waits")
		}
		r.wantClean(tenant)
	}
}
