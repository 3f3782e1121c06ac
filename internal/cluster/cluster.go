// Package cluster divides the organizations among the nodes of a service: the processes that serve from one database. It
// tracks which nodes are alive and which node owns an organization. It also has what nodes need to work together: their
// TLS identity (Identity), the inboxes for changes on other nodes (Inbox, Journal), and the view of the store that limits
// background work to a node's own organizations (SharedStore).
//
// Invariants:
//
//   - Ownership only keeps batches large and heads in one place. The guard of each append is the safety, so that two
//     owners, or none, break nothing.
//   - Organizations fall into Shards shards by their tenant. Each shard has one lease: its owner, and an epoch that
//     rises with each change.
//   - At any moment at most one node takes itself for the owner of a shard, as long as the steady clocks of two
//     machines run equally fast to a quarter. No times of two machines are compared.
//   - A node that has been silent for two seconds is forgotten by another node: its row is deleted if its count of
//     beats is the one that was seen last. A node stops owning by itself a second and a half after the beginning of
//     its last beat that succeeded, which is earlier. A forgotten node has to join anew, under another id.
//   - A lease goes to another node by a gift of its owner, or after its owner was forgotten.
//   - A node that says that it can't serve (Options.Fit) owns nothing while another one can.
//   - A change of the node list moves only the shards whose owner by rendezvous hashing changed.
//
// The beats are counted and not dated, although a time of the database would be shorter to write. A time would jump
// with the database's clock, and at each fail-over to another machine.
package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"github.com/agentledger/agentledger/id"
)

// Shards is the number of shards.
const Shards = 1024

// timing is how long a node waits. The default is that of every node.
type timing struct {
	beatEvery time.Duration // between the beginnings of two beats
	ownFor    time.Duration // from the beginning of a beat that succeeded
	deadAfter time.Duration // from the end of the beat of another node that saw a new count
}

func defaultTiming() timing {
	return timing{beatEvery: 500 * time.Millisecond, ownFor: 1500 * time.Millisecond, deadAfter: 2 * time.Second}
}

// Shard is one part of the organizations, in [0, Shards).
type Shard uint16

// ShardOf returns the shard of an organization. Tenants are random numbers, so that shards are equally large.
func ShardOf(t id.Tenant) Shard { return Shard(uint64(t) % Shards) }

// NodeID names one run of a node. It is random, and another one after each start. The zero value is no node.
type NodeID [16]byte

// NewNodeID returns a random id.
func NewNodeID() (n NodeID) {
	rand.Read(n[:]) // never fails
	return n
}

// String returns the id in 32 hexadecimal digits.
func (n NodeID) String() string { return hex.EncodeToString(n[:]) }

// Node is one node, as the others see it.
type Node struct {
	ID       NodeID
	URL      string // of its internal listener
	Version  string // of its program
	Key      string // fingerprint of its master key
	Protocol int    // the newest of the calls among nodes that its program knows
	Leaving  bool   // it gets no shards: it is being stopped, not prepared yet, or not fit
	Beats    uint64 // rises with each beat
}

// Epoch counts the steps that changed leases in a database, from 1.
type Epoch uint64

// Lease is the ownership of a shard.
type Lease struct {
	Shard Shard
	Owner NodeID // may be a node that was forgotten; zero before the first owner
	Epoch Epoch  // of the newest change of this lease; 0 before the first owner
}

// ErrForgotten is the answer to a node that is no member any more: it left, or it was silent for too long.
var ErrForgotten = errors.New("cluster: the node is no member")

// Table is the state that the nodes share. Its methods may be called concurrently. After any error but
// ErrForgotten the outcome is unknown, and the call may still take effect later.
type Table interface {
	// Join adds a node with no beats, whose id is new. It may join as one that gets no shards yet.
	Join(ctx context.Context, n Node) error

	// Beat raises the node's count of beats, applies its step and returns the state after that, in one transaction.
	// If the node is no member, or knows a later epoch than the table has, that is ErrForgotten, and nothing is
	// applied. The second case is a database that lost its newest changes by a fail-over. Steps with changes are
	// applied one after another. Those that may change leases raise the epoch by one.
	Beat(ctx context.Context, s Step) (View, error)
}

// Step is the news and the changes of a node with one beat. The changes are applied in the order of the members.
type Step struct {
	Node    NodeID
	Known   Epoch      // of the newest view: the answer has later leases
	Leaving bool       // see Node
	Forget  []Sighting // nodes that are deleted if their count is still the one that was seen
	Give    []Gift     // leases of the node that go to others
	Take    []Shard    // leases that become the node's: its own, and those whose owner is no member
	Leave   bool       // the node is deleted at the end
}

// HasChanges reports whether more than a beat is to be applied.
func (s Step) HasChanges() bool { return len(s.Forget) > 0 || s.Leave || s.ChangesLeases() }

// ChangesLeases reports whether leases may change.
func (s Step) ChangesLeases() bool { return len(s.Give)+len(s.Take) > 0 }

// Sighting is the count of beats that a node was seen with.
type Sighting struct {
	Node  NodeID
	Beats uint64
}

// Gift gives a lease to a member. It is applied only if Lease is the node's, with this very epoch.
type Gift struct {
	Lease Lease
	To    NodeID // nothing is applied if it is no member
}

// View is the state that a beat was answered with.
type View struct {
	Nodes  []Node  // all members, in any order; without the node itself after its Leave
	Leases []Lease // those with an epoch after Step.Known, in any order
	Epoch  Epoch   // of the newest change of a lease

	// Time is the table's time of the day during the beat, zero if it has none. No lease depends on it.
	Time time.Time
}
