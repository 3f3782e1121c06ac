// Package exchange is the calls among the nodes of a service: the notes that each node keeps apart from the store,
// such as anchors, and the news that leases changed.
//
// Invariants:
//
//   - A note that Spread was given reaches every other node that lives, in a second if its internal listener answers,
//     and else once it answers again. Notes of one journal arrive in their order.
//   - A node that was seen for the first time, or that fell behind, gets all notes. So no note is missing because a
//     queue was full. After a call that failed, a node gets the notes that it has not acknowledged.
//   - A note may arrive more than once, and an older one behind a newer one. The journal keeps the newest.
//   - Memory is bounded: a queue of maxQueued bytes for each node, one message of maxMessage bytes, and hashes of
//     maxAcknowledged notes while a node gets all.
//   - Spread does not wait for any node. A node that does not answer holds a call for a bounded time, and delays no
//     other node.
//
// The handler trusts its callers. It must be reachable by other nodes only (cluster.Identity).
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
	maxQueued  = 4 << 20 // bytes of notes that wait for one node
	maxMessage = 1 << 20 // bytes of notes in one call
	maxNote    = 64 << 10

	retryTime = 500 * time.Millisecond
)

// Journal is one kind of notes that all nodes keep.
type Journal interface {
	// Put makes notes durable, those that are newer than its own. An error means that none may have been kept.
	Put(notes ...[]byte) error
	// Notes yields the newest notes.
	Notes() iter.Seq2[[]byte, error]
}

// Members is the view of the cluster (package cluster).
type Members interface {
	Nodes() []cluster.Node
	Self() cluster.Node
	Hear(n cluster.News)
}

// Options configure New. All but Optional and Logger are required.
type Options struct {
	Members  Members
	Journals map[string]Journal // by a name that is a segment of a path
	Optional map[string]bool    // journals that nodes of another version may not have
	Client   *http.Client       // of internal listeners
	Logger   *slog.Logger       // default: discards
}

// Exchange calls the other nodes. Its methods may be called concurrently.
type Exchange struct {
	Options
	wake      chan struct{}
	callTime  time.Duration // of a call with one message
	fetchTime time.Duration // of the call for all notes of a journal

	mu    sync.Mutex
	peers map[cluster.NodeID]*peer
}

// New returns an exchange, which sends once Run runs.
func New(o Options) *Exchange {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Exchange{Options: o, wake: make(chan struct{}, 1), callTime: 5 * time.Second, fetchTime: time.Minute,
		peers: map[cluster.NodeID]*peer{}}
}

// peer is the notes that wait for one node.
type peer struct {
	node    cluster.Node
	queued  []queuedNote // are sent behind all notes, when it has to get these
	bytes   int          // of queued
	behind  bool         // it has to get all notes
	taken   *acknowledged
	sending bool // a goroutine of Run sends to it
	retryAt time.Time
	since   time.Time // when the oldest note began to wait that it did not take; zero for none
}

type queuedNote struct {
	journal string
	note    []byte
}

// Spread gives notes that became durable to all other nodes. It keeps the slices.
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

// SpreadAll gives all notes to all other nodes, because some were not given to Spread.
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

// fallBehind drops the queue: the node has to get all notes, also those that it acknowledged before. A note of a
// journal may stand for those that were dropped.
func (p *peer) fallBehind() {
	p.behind, p.queued, p.bytes, p.taken = true, nil, 0, nil
	p.lacks()
}

// putBack puts notes before the others that wait, because the node has not acknowledged them.
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

// Run sends notes until ctx ends. It returns when no call is under way any more.
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

// takeReady returns the nodes to send to, and forgets those that are no members any more.
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
