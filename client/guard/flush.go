package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/agentledger/agentledger/client"
)

// maxBatch is the maximum number of events per request of Flush.
const maxBatch = 64

// sends lets only one caller at a time send. Callers that arrive in the meantime share the next
// send.
type sends struct {
	turn chan struct{} // holds one value while a caller sends

	mu   sync.Mutex
	next *sending
}

// sending is one send on behalf of all callers that arrived before it began.
type sending struct {
	done    chan struct{} // closed once the other fields are set
	err     error
	stopped bool // by the end of the sender's context
}

func newSends() sends {
	return sends{turn: make(chan struct{}, 1), next: &sending{done: make(chan struct{})}}
}

// join calls send, or returns the error of another caller's send that began after this call.
func (f *sends) join(ctx context.Context, send func(context.Context) error) error {
	for {
		f.mu.Lock()
		mine := f.next
		f.mu.Unlock()
		select {
		case <-mine.done:
		case <-ctx.Done():
			return ctx.Err()
		case f.turn <- struct{}{}:
			f.sendFor(ctx, mine, send)
		}
		if !mine.stopped || ctx.Err() != nil {
			return mine.err
		}
	}
}

// sendFor calls send on behalf of mine, unless that was already done. It releases the turn.
func (f *sends) sendFor(ctx context.Context, mine *sending, send func(context.Context) error) {
	defer func() { <-f.turn }()
	f.mu.Lock()
	done := f.next != mine
	if !done {
		f.next = &sending{done: make(chan struct{})}
	}
	f.mu.Unlock()
	if done {
		return
	}
	mine.err = send(ctx)
	mine.stopped = ctx.Err() != nil
	close(mine.done)
}

func (g *Guard) flushQueue(ctx context.Context) {
	if g.FlushLater {
		return
	}
	if err := g.Flush(ctx); err != nil {
		g.OnError(err)
	}
}

// Flush resolves the actions that RecordInterrupted and Recover have deferred, and sends the queued
// events, oldest first. It stops at the first event that cannot be sent. It moves an event that the
// service will never accept to JournalOptions.RefusedFile, and the error reports it. Concurrent callers share the requests and
// the error. Errors are those of client.FindEvent, client.Send and of the file system.
func (g *Guard) Flush(ctx context.Context) error {
	if g.Journal.Queued() == 0 {
		return nil
	}
	err := g.Journal.sending.join(ctx, g.sendQueued)
	if err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// sendQueued sends the events that are currently queued.
func (g *Guard) sendQueued(ctx context.Context) error {
	refused := g.recoverUndecided(ctx)
	if client.IsUnreachable(refused) {
		return refused
	}
	newest := g.Journal.newestNumber()
	for {
		batch := g.Journal.queuedUpTo(newest)
		if len(batch) == 0 {
			return errors.Join(refused, g.Journal.tidy())
		}
		dropped, err := g.sendBatch(ctx, batch)
		refused = errors.Join(refused, dropped)
		if err != nil {
			return errors.Join(refused, err)
		}
	}
}

// sendBatch sends events in one request, and those that remain one by one. refused reports events
// that the service will never accept.
func (g *Guard) sendBatch(ctx context.Context, batch []queued) (refused, err error) {
	envelopes, err := g.Journal.readQueued(batch)
	if err != nil {
		return nil, err
	}
	sent := make([]bool, len(batch))
	if len(batch) > 1 {
		for i, o := range g.Client.SendBatch(ctx, envelopes) {
			sent[i] = o.Err == nil
			if o.Err != nil && !client.IsRefused(o.Err) {
				err = errors.Join(err, o.Err)
			}
		}
	}
	var numbers []int64
	for i, q := range batch {
		if !sent[i] && err == nil { // the refusal may concern the whole request, so the event is sent alone
			_, err = g.Client.Send(ctx, envelopes[i])
			if err != nil && client.IsRefused(err) {
				refused = errors.Join(refused, fmt.Errorf("an event was refused and is kept in %s: %w", g.Journal.refusedFile(), err))
				err = g.Journal.keepRefused(envelopes[i], err)
			}
			sent[i] = err == nil
		}
		if sent[i] {
			numbers = append(numbers, q.number)
		}
	}
	if len(numbers) > 0 {
		err = errors.Join(err, g.Journal.markSent(numbers))
	}
	return refused, err
}

// readQueued returns the signed events of a batch. No line moves in the meantime, because only the
// caller calls tidy.
func (j *Journal) readQueued(batch []queued) ([][]byte, error) {
	envelopes := make([][]byte, len(batch))
	for i, q := range batch {
		r, there, err := j.readRecord(q.at)
		if err == nil && !there {
			err = errors.New("the file of a queued event was removed")
		}
		if err != nil {
			return nil, fmt.Errorf("read journal: %w", err)
		}
		envelopes[i] = r.Event
	}
	return envelopes, nil
}
