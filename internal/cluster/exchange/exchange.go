// Package exchange implements the calls between the nodes of a service. They carry the notes that each node stores outside
// of the shared store, such as anchors, and news of changed leases.
//
// Invariants:
//
//   - A note passed to Spread reaches every other living node: within a second if its internal listener responds, and
//     otherwise once it responds again. Notes of one journal arrive in order.
//   - A node that is new, or that fell behind, gets all notes, so no note is lost because a queue was full. After a failed
//     call, a node gets the notes that it has not acknowledged.
//   - A note may arrive more than once, and after a newer one. The journal keeps the latest.
//   - Memory is bounded: a queue of maxQueued bytes per node, one message of maxMessage bytes, and hashes of maxAcknowledged
//     notes while a node gets all notes.
//   - Spread does not wait for any node. A node that does not respond delays a call for a bounded time, and no other node.
//
// The handler trusts its callers. It must be reachable only by other nodes (cluster.Identity).
package exchange

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
)

const (
	maxQueued  = 4 << 20 // bytes of queued notes per node
	maxMessage = 1 << 20 // bytes of notes per call
	maxNote    = 64 << 10

	retryTime = 500 * time.Millisecond
)

// Journal is one kind of notes that all nodes store.
type Journal interface {
	// Put durably stores the notes that are newer than its own. If it returns an error, possibly none was stored.
	Put(notes ...[]byte) error
	// Notes yields the latest notes.
	Notes() iter.Seq2[[]byte, error]
}

// Members is the view of the cluster (cluster.Cluster).
type Members interface {
	Nodes() []cluster.Node
	Self() cluster.Node
	Hear(n cluster.News)
}

// Options configure New. All fields except Optional and Logger are required.
type Options struct {
	Members  Members
	Journals map[string]Journal // by name, which is a path segment
	Optional map[string]bool    // journals that nodes of another version may lack
	Client   *http.Client       // for calls to internal listeners
	Logger   *slog.Logger       // default: discards
}

// Exchange makes calls to the other nodes. Its methods may be called concurrently.
type Exchange struct {
	Options
	wake      chan struct{}
	callTime  time.Duration // bounds a call with one message
	fetchTime time.Duration // bounds the call for all notes of a journal

	mu    sync.Mutex
	peers map[cluster.NodeID]*peer
}

// New returns an exchange. It sends notes while Run is running.
func New(o Options) *Exchange {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Exchange{Options: o, wake: make(chan struct{}, 1), callTime: 5 * time.Second, fetchTime: time.Minute,
		peers: map[cluster.NodeID]*peer{}}
}

// peer contains the notes that wait to be sent to one node.
type peer struct {
	node    cluster.Node
	queued  []queuedNote // sent after all notes, if the node needs those
	bytes   int          // total length of queued
	behind  bool         // the node needs all notes
	taken   *acknowledged
	sending bool // a goroutine of Run is sending to it
	retryAt time.Time
	since   time.Time // when the oldest unacknowledged note was added; zero if there is none
}

type queuedNote struct {
	journal string
	note    []byte
}

// Spread sends notes that became durable to all other nodes. It retains the slices.
func (x *Exchange) Spread(journal string, notes [][]byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.peers {
		for _, note := range notes {
			p.addNote(queuedNote{journal, note})
		}
	}
	x.signal()
}

// SpreadAll sends all notes to all other nodes, because some were not passed to Spread.
func (x *Exchange) SpreadAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.peers {
		p.fallBehind()
	}
	x.signal()
}

func (p *peer) addNote(n queuedNote) {
	p.lacks()
	p.queued = append(p.queued, n)
	if p.bytes += len(n.note); p.bytes > maxQueued {
		p.fallBehind()
	}
}

// fallBehind drops the queue, so that the node gets all notes, including those that it has acknowledged before: a note
// of a journal may replace the dropped ones.
func (p *peer) fallBehind() {
	p.behind, p.queued, p.bytes, p.taken = true, nil, 0, nil
	p.lacks()
}

// putBack puts notes that the node has not acknowledged back at the front of the queue.
func (p *peer) putBack(notes []queuedNote) {
	if p.queued = append(notes, p.queued...); len(notes) > 0 {
		p.lacks()
	}
	for _, n := range notes {
		p.bytes += len(n.note)
	}
	if p.bytes > maxQueued {
		p.fallBehind()
	}
}

func (x *Exchange) signal() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// Run sends notes until ctx ends. It returns when no call is in flight.
func (x *Exchange) Run(ctx context.Context) {
	var calls sync.WaitGroup
	defer calls.Wait()
	tick := time.NewTicker(retryTime)
	defer tick.Stop()
	for {
		for _, p := range x.takeReady() {
			calls.Go(func() { x.sendTo(ctx, p) })
		}
		select {
		case <-x.wake:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// takeReady returns the nodes to send to, and removes peers that are no longer members.
func (x *Exchange) takeReady() (ready []*peer) {
	self, now := x.Members.Self().ID, time.Now()
	members := map[cluster.NodeID]cluster.Node{}
	for _, n := range x.Members.Nodes() {
		if n.ID != self {
			members[n.ID] = n
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for n := range x.peers {
		if _, found := members[n]; !found {
			delete(x.peers, n)
		}
	}
	for n, node := range members {
		p, known := x.peers[n]
		if !known {
			p = &peer{behind: true, since: now}
			x.peers[n] = p
		}
		p.node = node
		if (p.behind || len(p.queued) > 0) && !p.sending && !now.Before(p.retryAt) {
			p.sending = true
			ready = append(ready, p)
		}
	}
	return ready
}
