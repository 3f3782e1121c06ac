// Package nodes makes the program one of several nodes that serve from one database. A node that has not joined the others is
// not ready (CheckJoined is a condition of /readyz).
//
// Invariants:
//
//   - A node owns an organization only after it has fetched the anchors of another node, or found that it is alone.
//   - It hands its organizations over when it stops, before its listeners close, and while its clock is not trusted or
//     deviates from the database's.
//   - Its internal listener serves only nodes of the same service (cluster.Identity).
//   - The node that owns the service's own shard does the work of the whole service.
//   - Nodes of two versions may serve together. A node ignores notes of a kind that it does not know.
//   - The nil node is a process that serves alone: it owns all organizations, and its methods do nothing.
package nodes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentledger/agentledger/log"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/cluster/exchange"
	"github.com/agentledger/agentledger/internal/cluster/forward"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore/nodetable"
)

// Options configure New. All but URL are required.
type Options struct {
	URL     string // of the internal listener; if empty, the process serves alone
	Version string // of the program
	Engine  storage.Engine
	Keyring *seal.Keyring
	Anchors *anchor.Folder
	Elapsed func() time.Duration // a monotonic clock that advances while the machine sleeps
	Now     func() time.Time     // trusted wall clock
	Held    func() error         // why this node appends nothing because its clock is wrong
	Logger  *slog.Logger
	Metrics prometheus.Registerer
}

// Node is this process among the nodes.
type Node struct {
	*cluster.Cluster
	options  Options
	identity *cluster.Identity
	exchange *exchange.Exchange
	proxy    *forward.Proxy
	news     *cluster.Journal
	tellers  []teller
	ledgers  atomic.Pointer[log.Ledgers] // nil before Start
	stop     context.CancelFunc          // nil before Start
	done     chan struct{}

	fetching sync.Mutex
	fetched  time.Duration // when the latest complete FetchAnchors started
}

// idleTime is how long an idle connection between nodes stays open.
const idleTime = 30 * time.Second

// errEngine is returned if the engine has no table of nodes.
var errEngine = errors.New("several nodes need a PostgreSQL database")

// New returns a node that has not joined yet and owns nothing, or nil for a process that serves alone.
func New(o Options) (*Node, error) {
	if o.URL == "" {
		return nil, nil
	}
	database, is := o.Engine.(nodetable.Transactor)
	if !is {
		return nil, errEngine
	}
	identity, err := cluster.NewIdentity(o.Keyring.Derive(cluster.IdentityLabel)...)
	if err != nil {
		return nil, err
	}
	n := &Node{options: o, identity: identity, news: cluster.NewJournal()}
	table := &comparedTable{Table: nodetable.New(database), now: o.Now, logger: o.Logger}
	n.Cluster = cluster.New(cluster.Options{Table: table, Holder: n, Clock: o.Elapsed,
		Logger: o.Logger, Prepare: n.fetchAnchors,
		Tell: func(others []cluster.Node, news cluster.News) { n.exchange.Tell(others, news) },
		Fit:  func() bool { return o.Held() == nil && !table.apart.Load() },
		Node: cluster.Node{URL: o.URL, Version: o.Version, Key: o.Keyring.Fingerprints()[0],
			Protocol: cluster.Protocol}})
	n.exchange = exchange.New(exchange.Options{Members: n.Cluster, Logger: o.Logger,
		Journals: map[string]exchange.Journal{anchorsName: anchors{n}, newsName: n.news},
		Optional: map[string]bool{newsName: true},
		Client: &http.Client{Transport: &http.Transport{TLSClientConfig: identity.Client(),
			IdleConnTimeout: idleTime}}})
	n.proxy = forward.New(forward.Options{View: n.Cluster, Transport: forward.NewTransport(identity.Client())})
	n.registerMetrics(o.Metrics)
	return n, nil
}

// Keeps returns a function that reports whether the node owns an organization now, or nil for a process that serves alone.
func (n *Node) Keeps(t id.Tenant) func() bool {
	if n == nil {
		return nil
	}
	return func() bool { return n.Owned(t) }
}

// Share returns the part of the ledgers that the node owns, or nil if it owns all.
func (n *Node) Share() func(id.Tenant) bool {
	if n == nil {
		return nil
	}
	return n.Owned
}

// tenantTries is enough to hit one of 1,024 shards almost certainly.
const tenantTries = 20_000

// NewTenant returns the handle of a new organization, which this node owns if it owns any. The organization is created
// even if another node becomes its owner in the meantime. A node without the anchors of the others creates none, because
// the anchors contain the names that are taken.
func (n *Node) NewTenant() (id.Tenant, error) {
	t := id.NewTenant()
	for range tenantTries {
		if n == nil || n.Owned(t) {
			return t, nil
		}
		t = id.NewTenant()
	}
	if n.Owner(t).Prepared {
		return t, nil
	}
	return 0, &fault.Error{Kind: fault.Overloaded, Code: "overloaded", RetryAfter: time.Second,
		Message: "This node has no organizations yet; try again"}
}

// Store returns an engine for background work of this node.
func (n *Node) Store(e storage.Engine) storage.Engine {
	if n == nil {
		return e
	}
	return cluster.SharedStore{Engine: e, Ownership: n.Cluster}
}

// startTime bounds the wait for the first view of the nodes.
const startTime = 3 * time.Second

// Start joins the other nodes. It must be called once, with the ledgers that were opened with Share. It returns when the
// node knows an owner of the service's own shard, or after startTime, so that a start does not wait for an unreachable
// database.
func (n *Node) Start(l *log.Ledgers) {
	if n == nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	n.ledgers.Store(l)
	n.stop, n.done = stop, make(chan struct{})
	go func() {
		defer close(n.done)
		n.run(ctx)
	}()
	deadline := time.After(startTime)
	for o := n.Owner(id.Service); o.Node.URL == ""; o = n.Owner(id.Service) {
		select {
		case <-o.Changed:
		case <-deadline:
			return
		}
	}
}

// CheckJoined returns why the node cannot serve requests yet, or "": before it has joined the other nodes and knows which
// of them owns the service's own shard, it has no organizations and can pass no request on.
func (n *Node) CheckJoined(context.Context) string {
	switch {
	case n == nil:
		return ""
	case n.Self().ID == (cluster.NodeID{}):
		return "this node has not joined the other nodes yet"
	case n.Owner(id.Service).Node.URL == "":
		return "this node does not know yet which node owns the service"
	}
	return ""
}

// Leave hands all organizations over to the other nodes. It returns when that is done or takes too long.
func (n *Node) Leave() {
	if n != nil && n.stop != nil {
		n.stop()
		<-n.done
	}
}

// Release implements cluster.Holder.
func (n *Node) Release(ctx context.Context, shards []cluster.Shard) {
	given := make(map[cluster.Shard]bool, len(shards))
	for _, s := range shards {
		given[s] = true
	}
	err := n.ledgers.Load().Release(ctx, func(t id.Tenant) bool { return given[cluster.ShardOf(t)] })
	if err != nil {
		n.options.Logger.WarnContext(ctx, "cluster: organizations were released with work in flight", "error", err)
	}
}

// run joins the nodes and leaves them when ctx ends.
func (n *Node) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	exchanging, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group.Go(func() { n.exchange.Run(exchanging) })
	group.Go(func() { n.spreadAnchors(exchanging) })
	for _, t := range n.tellers {
		group.Go(func() { n.spreadNews(exchanging, t) })
	}
	group.Go(func() { n.tellVersions(exchanging) })
	if err := n.Cluster.Run(ctx); err != nil {
		n.options.Logger.WarnContext(ctx, "cluster: this node did not leave in time", "error", err)
	}
}

// fetchAnchors fetches the anchors of the other nodes. One node is enough, because each has all anchors. If this node
// reaches none of several others it waits, because they may all be about to exit, or it may be partitioned.
func (n *Node) fetchAnchors(ctx context.Context, others []cluster.Node) error {
	var errs []error
	for _, other := range others {
		err := n.exchange.Fetch(ctx, other)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

const anchorsName = "anchors"

// spreadPause is the time between two transmissions of anchors. If each append waits for its anchor, a transmission for
// each would be a call to each other node and a sync there. The latest anchor of a ledger supersedes earlier ones.
const spreadPause = 250 * time.Millisecond

// spreadAnchors sends the notes of this node's anchors to the other nodes.
func (n *Node) spreadAnchors(ctx context.Context) {
	follower := n.options.Anchors.Follow()
	defer follower.Close()
	for {
		select {
		case <-follower.Ready():
		case <-ctx.Done():
			return
		}
		notes, missed := follower.Take()
		encoded := make([][]byte, len(notes))
		for i, note := range notes {
			encoded[i] = encodeNote(note)
		}
		if n.exchange.Spread(anchorsName, encoded); missed {
			n.exchange.SpreadAll()
		}
		_ = syncs.Sleep(ctx, spreadPause)
	}
}

// firstAnchorTime bounds the wait for a node that accepts the first anchor of a ledger. A dead node is forgotten earlier.
const firstAnchorTime = 5 * time.Second

// FirstAnchor sends the checkpoint of an empty ledger to another node before the ledger accepts events (package log).
// Otherwise a node that died soon after would leave a ledger with events that no anchor confirms.
func (n *Node) FirstAnchor(ctx context.Context, checkpoint []byte) error {
	if n == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, firstAnchorTime)
	defer cancel()
	return n.exchange.Deliver(ctx, anchorsName, encodeNote(anchor.Note{Text: checkpoint}))
}

// FetchAnchors fetches the anchors of all other nodes, for a ledger with events of which this node has no anchor (package
// log). The node that founded the ledger sends its first anchor to one node, and to the others a little later. An
// organization that moves to a third node in the meantime would be read-only there. Waiting calls share the next fetch.
func (n *Node) FetchAnchors(ctx context.Context) error {
	if n == nil {
		return nil
	}
	requested := n.options.Elapsed()
	n.fetching.Lock()
	defer n.fetching.Unlock()
	if n.fetched > requested {
		return nil
	}
	began, self := n.options.Elapsed(), n.Cluster.Self().ID
	var errs []error
	for _, other := range n.Cluster.Nodes() {
		if other.ID != self {
			errs = append(errs, n.exchange.Fetch(ctx, other))
		}
	}
	err := errors.Join(errs...)
	if err == nil {
		n.fetched = began
	}
	return err
}

// receiveTime bounds the comparison of received anchors with the ledgers in memory.
const receiveTime = 10 * time.Second

// receiveAnchors stores the anchors of another node. They are compared with the ledgers once the ledgers are open.
func (n *Node) receiveAnchors(notes []anchor.Note) error {
	if l := n.ledgers.Load(); l != nil {
		ctx, cancel := context.WithTimeout(context.Background(), receiveTime)
		defer cancel()
		return l.ReceiveAnchors(ctx, notes)
	}
	_, err := n.options.Anchors.Receive(notes)
	return err
}

// anchors is the journal of notes of anchors. A note of the exchange is one byte for its kind, then its text.
type anchors struct{ node *Node }

const (
	kindCheckpoint = 'c'
	kindSlug       = 's'
)

func encodeNote(n anchor.Note) []byte {
	kind := byte(kindCheckpoint)
	if n.Slug {
		kind = kindSlug
	}
	return append([]byte{kind}, n.Text...)
}

// Put implements exchange.Journal.
func (a anchors) Put(encoded ...[]byte) error {
	notes := make([]anchor.Note, 0, len(encoded))
	for _, e := range encoded {
		switch {
		case len(e) > 0 && e[0] == kindCheckpoint:
			notes = append(notes, anchor.Note{Text: e[1:]})
		case len(e) > 0 && e[0] == kindSlug:
			notes = append(notes, anchor.Note{Slug: true, Text: e[1:]})
		default:
			a.node.options.Logger.Info("cluster: ignored a note of a newer program, which newer programs fetch again")
		}
	}
	return a.node.receiveAnchors(notes)
}

// Notes implements exchange.Journal.
func (a anchors) Notes() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for note, err := range a.node.options.Anchors.Notes() {
			if err != nil {
				yield(nil, fmt.Errorf("read anchors: %w", err))
				return
			}
			if !yield(encodeNote(note), nil) {
				return
			}
		}
	}
}
