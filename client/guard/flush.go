package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/agentledger/agentledger/client"
)

// maxBatch is the maximum number of events per request of Flush.
const maxBatch = 64

// maxBlocked is the maximum number of blocked events per Flush. With more, the answers are probably about
// no event, so the Flush ends. The next one begins where it ended.
const maxBlocked = 4

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
// events, oldest first. It stops if the service cannot be reached. An event that something in front
// of the service does not let through stays in the queue, and does not delay the others. It moves an
// event that the service will never accept to JournalOptions.RefusedFile. The error reports both.
// Concurrent callers share the requests and the error. Errors are those of client.FindEvent,
// client.Send and of the file system.
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
	f := flush{Guard: g, failed: refused}
	start := g.Journal.flushedTo
	g.Journal.flushedTo = 0
	err := f.sendBetween(ctx, start, g.Journal.newestNumber())
	if err == nil {
		err = f.sendBetween(ctx, 0, start)
	}
	if err == nil {
		err = g.Journal.tidy()
	}
	return errors.Join(f.failed, err)
}

// sendBetween sends the queued events after a number, up to another one.
func (f *flush) sendBetween(ctx context.Context, after, number int64) error {
	for f.last = after; ; {
		batch := f.Journal.queuedBetween(f.last, number)
		if len(batch) == 0 {
			return nil
		}
		if err := f.sendBatch(ctx, batch); err != nil {
			return err
		}
	}
}

// flush is one pass over the queue.
type flush struct {
	*Guard
	last    int64 // number of the last event that was handled
	blocked int   // events that stay in the queue
	failed  error // of events that were refused or blocked
}

// isBlocked reports whether err may be about the event alone, although the service has not refused
// the event: for example, a proxy may block requests by their content.
func isBlocked(err error) bool {
	answer, ok := errors.AsType[*client.Error](err)
	aboutSender := ok && (answer.Status == http.StatusUnauthorized || answer.Status == http.StatusRequestTimeout || answer.Status == http.StatusTooManyRequests)
	return !client.IsUnreachable(err) && !client.IsRefused(err) && !aboutSender
}

// sendBatch sends events in one request, and those that remain one by one.
func (f *flush) sendBatch(ctx context.Context, batch []queued) error {
	envelopes, err := f.Journal.readQueued(batch)
	if err != nil {
		return err
	}
	sent := make([]bool, len(batch))
	if len(batch) > 1 {
		for i, o := range f.Client.SendBatch(ctx, envelopes) {
			sent[i] = o.Err == nil
			if o.Err != nil && !client.IsRefused(o.Err) && !isBlocked(o.Err) {
				err = errors.Join(err, o.Err)
			}
		}
	}
	var numbers []int64
	for i, q := range batch {
		if !sent[i] && err == nil { // the answer may concern the whole request, so the event is sent alone
			sent[i], err = f.sendAlone(ctx, q, envelopes[i])
		}
		if sent[i] {
			numbers = append(numbers, q.number)
		}
	}
	f.last = batch[len(batch)-1].number
	if len(numbers) > 0 {
		err = errors.Join(err, f.Journal.markSent(numbers))
	}
	return err
}

// sendAlone sends an event. done is false for a blocked event, which stays in the queue.
func (f *flush) sendAlone(ctx context.Context, q queued, envelope []byte) (done bool, err error) {
	_, err = f.Client.Send(ctx, envelope)
	switch {
	case err == nil:
		return true, nil
	case client.IsRefused(err):
		f.failed = errors.Join(f.failed, fmt.Errorf("an event was refused and is kept in %s: %w", f.Journal.refusedFile(), err))
		err = f.Journal.keepRefused(envelope, err)
		return err == nil, err
	case !isBlocked(err) || q.alone:
		return false, err
	case f.blocked == maxBlocked:
		f.Journal.flushedTo = q.number - 1
		return false, err
	}
	f.blocked++
	f.failed = errors.Join(f.failed, err)
	return false, nil
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
