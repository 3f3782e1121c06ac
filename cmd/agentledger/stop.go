package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Time limits of the parts of a stop, in addition to the setting drain.
const (
	backgroundTime = 3 * time.Second
	ledgersTime    = 6 * time.Second
	storeTime      = 9 * time.Second
	closeTime      = 10 * time.Second // for all parts together
)

// stopServer stops listening, waits for open requests, then closes ledgers and store and delivers the last spans. If a
// part exceeds its time limit, for example because a store hangs, the error names it and it is abandoned: acknowledged
// events are durable.
func (s *server) stopServer(ctx context.Context) error {
	began := time.Now()
	until := func(d time.Duration) (context.Context, context.CancelFunc) {
		return context.WithDeadline(ctx, began.Add(s.settings.Drain+d))
	}
	draining, cancel := until(0)
	defer cancel()
	s.service.node.Leave()
	s.stopping.Store(true)
	s.service.approvals.Release()
	errs := []error{s.listeners.Drain(draining)}
	if s.cancel != nil {
		s.cancel()
	}
	for _, last := range []struct {
		name string
		time time.Duration
		do   func(context.Context) error
	}{
		{"background work", backgroundTime, func(context.Context) error { s.background.Wait(); return nil }},
		{"ledgers", ledgersTime, s.service.ledgers.Shutdown},
		{"store", storeTime, func(context.Context) error { return s.service.store.CloseEngine() }},
		{"traces", closeTime, func(context.Context) error { return s.service.watch.stop(draining) }},
	} {
		ctx, cancel := until(last.time)
		errs = append(errs, endsWithin(ctx, last.name, last.do))
		cancel()
	}
	return errors.Join(errs...)
}

// endsWithin returns the error of work, or an error if work has not returned shortly after ctx ended.
func endsWithin(ctx context.Context, name string, work func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select { // work that ends with ctx returns an error that names its reason
	case err := <-done:
		return err
	case <-time.After(ownWord):
		return fmt.Errorf("stop: %s did not end in time", name)
	}
}

// ownWord is how long after ctx a part of a stop may return its own error.
const ownWord = 500 * time.Millisecond
