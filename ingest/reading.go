package ingest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/id"
)

const (
	// chunkLines is the number of lines that a goroutine reads at a time, about a millisecond of work.
	chunkLines = 16

	// portionLines is the number of lines that are appended together while the following ones are read, which takes
	// about as long.
	portionLines = 16 * chunkLines
)

// batchReading is a batch whose lines are being read. Its portions become ready in any order. A ready portion belongs
// to the goroutine that waited for it.
type batchReading struct {
	batch    []incomingEvent
	portions []portion
	token    *subjectToken // of the request; may be nil
	done     chan struct{} // closed when reading has ended
	err      error         // why not all portions are ready; set before done is closed
	settled  int           // portions whose events may be in the ledger
}

type portion struct {
	batch []incomingEvent
	lines [][]byte
	left  atomic.Int32  // chunks
	ready chan struct{} // closed when no chunk is left
}

// startReading starts reading the events of a batch in parallel. Each event waits for a processor like every other
// event that the server reads. The caller waits for done before it returns.
func (s *Server) startReading(ctx context.Context, c caller, lines [][]byte, token *subjectToken) *batchReading {
	r := &batchReading{batch: make([]incomingEvent, len(lines)), token: token, done: make(chan struct{})}
	for i := range r.batch {
		r.batch[i] = incomingEvent{server: s, caller: c}
	}
	r.portions = make([]portion, (len(lines)+portionLines-1)/portionLines)
	for i := range r.portions {
		begin, end := i*portionLines, min((i+1)*portionLines, len(lines))
		p := &r.portions[i]
		p.batch, p.lines, p.ready = r.batch[begin:end], lines[begin:end], make(chan struct{})
		p.left.Store(int32(p.countChunks()))
	}
	go func() {
		defer close(r.done)
		r.err = s.readPortions(ctx, c, r)
	}()
	return r
}

// countChunks returns the number of chunks of the portion.
func (p *portion) countChunks() int { return (len(p.lines) + chunkLines - 1) / chunkLines }

// readPortions reads all chunks in order, with a few goroutines. The first error stops it.
func (s *Server) readPortions(ctx context.Context, c caller, r *batchReading) error {
	ctx, span := s.edge.Tracer.StartSpan(ctx, "read batch")
	defer span.End()
	span.SetInt("lines", len(r.batch))
	var next atomic.Int32
	chunks := (len(r.batch) + chunkLines - 1) / chunkLines
	group, ctx := errgroup.WithContext(ctx)
	for range min(s.control.Processors.TotalSlots(), chunks) {
		group.Go(func() error {
			for {
				n := int(next.Add(1)) - 1
				if n >= chunks || ctx.Err() != nil {
					return ctx.Err()
				}
				const each = portionLines / chunkLines
				if err := s.readChunk(ctx, c, &r.portions[n/each], n%each, r.token); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

// readChunk reads the events of some lines. A panic becomes an error, because no caller of the goroutine would recover
// it.
func (s *Server) readChunk(ctx context.Context, c caller, p *portion, n int, token *subjectToken) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("read batch: panic: %v\n%s", p, debug.Stack())
		}
	}()
	runtime.Gosched() // single requests go first
	begin, end := n*chunkLines, min((n+1)*chunkLines, len(p.lines))
	for i := begin; i < end; i++ {
		p.batch[i].readEvent(ctx, p.lines[i])
	}
	s.findReplays(ctx, c, pointersToAll(p.batch[begin:end])...)
	for i := begin; i < end; i++ {
		p.batch[i].verifySubject(token)
	}
	if ctx.Err() == nil && p.left.Add(-1) == 0 {
		close(p.ready)
	}
	return ctx.Err()
}

// awaitPortion waits until a portion is ready or reading has failed.
func (r *batchReading) awaitPortion(ctx context.Context, p *portion) error {
	select {
	case <-p.ready:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	case <-r.done:
	}
	select {
	case <-p.ready:
		return ctx.Err()
	default:
		return r.err
	}
}

// settleLines appends the events of a batch portion by portion, in order, while later ones are read.
func (s *Server) settleLines(ctx context.Context, c caller, r *batchReading) error {
	seen := make(map[id.Event]struct{}, len(r.batch))
	for i := range r.portions {
		p := &r.portions[i]
		if err := r.awaitPortion(ctx, p); err != nil {
			return err
		}
		events := pointersToAll(p.batch)
		s.findReplays(ctx, c, knownNames(events, seen)...)
		r.settled++
		s.settleEvents(ctx, c, events)
	}
	return nil
}

// refuseOpen refuses the open lines of a batch that timed out, if some of its lines may be stored: each line then has
// its own response. Otherwise it returns err.
func (r *batchReading) refuseOpen(err error) error {
	<-r.done
	if r.settled == 0 || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	for i := range r.batch {
		if in := &r.batch[i]; in.fate == open {
			in.refuseWith(err)
		}
	}
	return nil
}

// knownNames returns the events whose IDs are already in seen, and adds every ID to seen. The caller looks those up
// again, because an earlier line may have stored them.
func knownNames(events []*incomingEvent, seen map[id.Event]struct{}) (repeated []*incomingEvent) {
	before := len(seen) > 0
	for _, in := range events {
		if in.fate != open {
			continue
		}
		name := in.envelope.EventID
		if before {
			if _, known := seen[name]; known {
				repeated = append(repeated, in)
			}
		}
		seen[name] = struct{}{}
	}
	return repeated
}
