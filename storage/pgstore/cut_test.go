package pgstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// A connection that is cut before, during and after an append leaves its outcome unknown, and the engine continues with
// another connection. In a transaction of several statements, this applies from the COMMIT on; before that, nothing was
// applied.
func TestCutConnection(t *testing.T) {
	change := []storage.Change{{Kind: "kind", Key: "key", Value: []byte("v"), If: storage.AnyVersion}}
	tests := []struct {
		name    string
		match   string
		changes []storage.Change
		want    error
	}{
		{"in one statement", "", nil, storage.ErrUnknown},
		{"at the commit", "commit", change, storage.ErrUnknown},
		{"at the begin", "begin", change, storage.ErrUnavailable},
		{"at a record", "kind", change, storage.ErrUnavailable},
	}
	for _, test := range tests {
		for where, name := range map[cut]string{before: "before", during: "during", after: "after"} {
			t.Run(name+" "+test.name, func(t *testing.T) { cutAppend(t, where, test.match, test.changes, test.want) })
		}
	}
}

func cutAppend(t *testing.T, where cut, match string, changes []storage.Change, want error) {
	p := newProxy(t, shared)
	url := fresh(t, shared)
	direct := open(t, pgstore.Options{URL: url})
	e := open(t, pgstore.Options{URL: p.url(t, url), Writers: 2})
	one, other := storagetest.NewWriter(1), storagetest.NewWriter(2)
	for range 3 {
		wantAll(t, e.Append([]storage.Batch{one.Next(2), other.Next(2)}).Wait(), nil)
	}
	b := one.Next(3)
	b.Changes = changes
	p.cut(where, match)
	wantAll(t, e.Append([]storage.Batch{b}).Wait(), want)
	if p.cuts.Load() == 0 {
		t.Error("nothing was cut")
	}
	p.cut(nowhere, "")
	if err := direct.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	applied := head(t, direct, 1) == b.Head
	if certain := errors.Is(want, storage.ErrUnavailable) || where != after; certain && applied {
		t.Error("an append that never arrived was applied")
	}
	again := e.Append([]storage.Batch{b}).Wait()
	if head(t, direct, 1) != b.Head {
		t.Errorf("after another try: got head %+v, want %+v", head(t, direct, 1), b.Head)
	}
	if !applied && !errors.Is(again[0], storage.ErrConflict) { // it may have been on its way still
		wantAll(t, again, nil)
	}
	wantAll(t, e.Append([]storage.Batch{one.Next(1), other.Next(1)}).Wait(), nil)
	closeEngine(t, e)
	closeEngine(t, direct)
}

func wantAll(t *testing.T, got []error, want error) {
	t.Helper()
	for i, err := range got {
		if !errors.Is(err, want) {
			t.Errorf("answer %d: got %v, want %v", i, err, want)
		}
	}
}

func head(t *testing.T, e storage.Ledgers, tenant id.Tenant) storage.Head {
	t.Helper()
	h, err := e.Head(t.Context(), tenant)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	return h
}

// If the server cannot be reached, appends are rejected, and nothing was applied.
func TestUnreachable(t *testing.T) {
	p := newProxy(t, shared)
	url := fresh(t, shared)
	e := open(t, pgstore.Options{URL: p.url(t, url)})
	w := storagetest.NewWriter(1)
	wantAll(t, e.Append([]storage.Batch{w.Next(1)}).Wait(), nil)
	before := head(t, e, 1)
	p.listener.Close()
	p.closeAll()
	time.Sleep(1100 * time.Millisecond) // the engine asks an idle connection before it uses it
	wantAll(t, e.Append([]storage.Batch{w.Next(1)}).Wait(), storage.ErrUnavailable)
	_, headErr := e.Head(t.Context(), 1)
	_, getErr := e.Get(t.Context(), 1, "kind", "key")
	writeErr := e.Write(t.Context(), 1, []storage.Change{{Kind: "kind", Key: "key", Value: []byte("v")}})
	wantAll(t, []error{headErr, getErr, writeErr, e.Barrier(t.Context())}, storage.ErrUnavailable)
	closeEngine(t, e)
	direct := open(t, pgstore.Options{URL: url})
	if got := head(t, direct, 1); got != before {
		t.Errorf("got head %+v, want %+v", got, before)
	}
	closeEngine(t, direct)
}

// Ledgers on an engine whose connections are cut repeatedly recover after each cut: everything acknowledged is there,
// and nothing twice.
func TestLedgersOverABadConnection(t *testing.T) {
	p := newProxy(t, shared)
	url := fresh(t, shared)
	e := open(t, pgstore.Options{URL: p.url(t, url)})
	w := newWorld(t, e)
	w.found()
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		end := time.Now().Add(time.Minute)
		for i := 0; i < 30 || (p.cuts.Load() == 0 || w.passed.Load() == 0) && time.Now().Before(end); i++ {
			time.Sleep(time.Duration(10+i/10) * time.Millisecond) // a slow machine needs more time between two cuts
			p.cut([]cut{before, during, after}[i%3], "")
			time.Sleep(time.Millisecond)
			p.cut(nowhere, "")
		}
	}()
	acknowledgements := w.traffic(stop)
	t.Logf("%d cuts, %d and %d events acknowledged", p.cuts.Load(), len(acknowledgements.acknowledged[red]), len(acknowledgements.acknowledged[blue]))
	if p.cuts.Load() == 0 || len(acknowledgements.acknowledged[red])+len(acknowledgements.acknowledged[blue]) == 0 {
		t.Error("no cuts, or nothing went through")
	}
	w.retry("after")
	w.keeps(acknowledgements)
	direct := open(t, pgstore.Options{URL: url})
	w.reopen(direct)
	w.keeps(acknowledgements)
	w.close()
	closeEngine(t, e)
	closeEngine(t, direct)
}
