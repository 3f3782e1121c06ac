package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/agentledger/agentledger/id"
)

// weights are what the heap of a process holds, in bytes.
type weights struct {
	Start   uint64 // when it has opened the store
	Touched uint64 // when each organization was asked for once
}

// idles measures the memory of organizations that do nothing: what a process
// that has opened their store holds for them, and what it holds once each was
// asked for its state. The ledgers are made as usual; that the folder may lie in
// memory spares their many syncs and changes nothing of what is measured.
func (s *suite) idles(ctx context.Context) error {
	none, err := s.weigh(ctx, 0)
	if err != nil {
		return err
	}
	for _, n := range s.Idle {
		w, err := s.weigh(ctx, n)
		if err != nil {
			return err
		}
		each := func(all, base uint64) float64 { return (float64(all) - float64(base)) / float64(n) }
		s.emit(fmt.Sprintf("idle/organizations=%d", n), n,
			value{each(w.Start, none.Start), "start-B/org"}, value{each(w.Touched, none.Touched), "touched-B/org"})
	}
	return nil
}

// memory is the folder that lies in memory, if there is one.
func (s *suite) memory() string {
	if s.Memory == "" {
		return s.dir
	}
	return s.Memory
}

// weigh makes n organizations and has a process of its own look at them.
func (s *suite) weigh(ctx context.Context, n int) (w weights, err error) {
	dir, err := os.MkdirTemp(s.memory(), "agentledger-idle-")
	if err != nil {
		return w, err
	}
	defer os.RemoveAll(dir)
	l, err := openLedgers(ctx, dir, s.key.key, 0)
	if err != nil {
		return w, err
	}
	if err := errors.Join(l.found(ctx, n), l.Close()); err != nil {
		return w, err
	}
	cmd, err := childCommand(nil, "idle", dir, fmt.Sprint(n))
	if err != nil {
		return w, err
	}
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return w, fmt.Errorf("weigh: %w", err)
	}
	err = json.Unmarshal(text, &w)
	return w, err
}

// weigh opens the organizations 1..n of a folder and says what they weigh. The
// cache of the store is kept small: it is bounded and not theirs.
func weigh(ctx context.Context, dir string, n int, out io.Writer) (err error) {
	key, err := newMasterKey()
	if err != nil {
		return err
	}
	l, err := openLedgers(ctx, dir, key.key, 1<<20)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	w := weights{Start: heap()}
	for t := range n {
		if _, err := l.State(ctx, id.Tenant(1+t)); err != nil {
			return err
		}
	}
	w.Touched = heap()
	return json.NewEncoder(out).Encode(w)
}

// heap returns the bytes of live objects.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools kept through the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
