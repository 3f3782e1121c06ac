package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
)

// Paces of the traffic, so that a small machine has time for all the rest.
const (
	sendersOfEach = 2
	sendPause     = 40 * time.Millisecond
	readPause     = 20 * time.Millisecond
	laterPause    = time.Second // when the checks are over
)

// traffic is agents that send events, and readers, until it is stopped.
type traffic struct {
	end   context.CancelFunc
	group sync.WaitGroup

	mu  sync.Mutex
	err error // of the first agent that gave up
}

// startTraffic starts the agents and the readers of organizations.
func (s *stage) startTraffic(ctx context.Context, all ...*organization) error {
	t := &traffic{}
	working, end := context.WithCancel(ctx)
	t.end = end
	s.traffic = t
	for _, o := range all {
		for number := range sendersOfEach {
			t.group.Go(func() { t.keep(o.send(ctx, working, fmt.Sprint("agent-", number), sendPause, nil)) })
		}
		readers, err := s.readersOf(o)
		if err != nil {
			return err
		}
		t.group.Go(func() { o.read(working, readers) })
	}
	return nil
}

func (t *traffic) keep(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
}

// failure returns the error of an agent that gave up.
func (t *traffic) failure() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// stop lets the agents end their events, and returns the error of one that gave up.
func (t *traffic) stop() error {
	t.end()
	t.group.Wait()
	return t.failure()
}

// send sends signed events, one after the other, until working ends. The client sends an event again, through another
// node, until it is acknowledged. told is called with each event and its time, if it is not nil.
func (o *organization) send(ctx, working context.Context, prefix string, pause time.Duration,
	told func(id.Event, time.Duration)) error {
	for n := 1; working.Err() == nil; n++ {
		e := id.Event(fmt.Sprintf("%s-%04d", prefix, n))
		envelope, err := o.signer.SignEvent(client.Event{EventID: e, ActionKind: "tool_call",
			ActorPrincipal: "support-agent", Tool: "orders.read", Decision: id.Allow})
		if err != nil {
			return err
		}
		began := time.Now()
		r, err := o.client.Send(ctx, envelope)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: event %s: %w", o.name, e, err)
		}
		took := time.Since(began)
		o.note(r, took)
		if told != nil {
			told(e, took)
		}
		_ = syncs.Sleep(working, pause)
	}
	return nil
}

func (o *organization) note(r client.Result, took time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.receipts[r.EventID] = r
	o.longest = max(o.longest, took)
}

// reader reads a log from one node.
type reader struct {
	node *node
	log  *client.Log
}

func (s *stage) readersOf(o *organization) (all []reader, err error) {
	for _, n := range s.nodes {
		c, err := client.New(client.Config{BaseURL: n.main, Timeout: 10 * time.Second,
			Retry: client.Retry{Attempts: 1}})
		if err != nil {
			return nil, err
		}
		all = append(all, reader{n, c.Log(o.slug, o.key)})
	}
	return all, nil
}

// read reads the head from each node in turn until ctx ends. A node that does not answer is passed over.
func (o *organization) read(ctx context.Context, all []reader) {
	var largest id.Index
	for n := 0; ctx.Err() == nil; n++ {
		from := all[n%len(all)]
		if _, head, err := from.log.Head(ctx); err == nil {
			o.noteHead(from.node, head, largest)
			largest = max(largest, head.Size)
		}
		_ = syncs.Sleep(ctx, readPause)
	}
}

// noteHead keeps a head, and a fault if it contradicts the heads before. largest is the largest size of those.
func (o *organization) noteHead(from *node, head tlog.Checkpoint, largest id.Index) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if head.Size < largest {
		o.faults = append(o.faults, fmt.Sprintf("%s shows a tree of %s after one of %d was seen", from.name,
			textcheck.Count(head.Size, "leaf", "leaves"), largest))
	}
	if root, known := o.heads[head.Size]; known && root != head.Root {
		o.faults = append(o.faults, fmt.Sprintf("%s shows another tree of %s", from.name, textcheck.Count(head.Size, "leaf", "leaves")))
	}
	o.heads[head.Size] = head.Root
	o.shown[from]++
}
