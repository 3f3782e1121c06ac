// Package cluster divides the organizations among the nodes of a service: the processes that serve from one database. It
// tracks which nodes are alive and which node owns an organization. It also contains what nodes need to work together:
// their TLS identity (Identity), the inboxes for changes on other nodes (Inbox, Journal), and the view of the store that
// limits background work to a node's own organizations (SharedStore).
//
// Invariants:
//
//   - Ownership only keeps batches large and heads in one place. Safety comes from the guard of each append, and from
//     package log/takeover, which fences the former owner, so nothing breaks if an organization has two owners, or none.
//   - Tenants are assigned to Shards shards. Each shard has one lease: its owner, and an epoch that increases with each
//     change.
//   - At any moment at most one node considers itself the owner of a shard, provided that the steady clocks of two machines
//     differ in speed by less than a quarter. Times of two machines are never compared.
//   - A node that has been silent for two seconds is forgotten by another node: its row is deleted if its count of beats is
//     still the one that was last seen. A node stops owning anything one and a half seconds after the start of its last
//     successful beat, which is earlier. A forgotten node must join again, with another ID.
//   - A lease moves to another node by a gift of its owner, or after its owner was forgotten.
//   - A node that reports that it cannot serve (Options.Fit) owns nothing while another node can.
//   - A change of the node list moves only the shards whose owner by rendezvous hashing changed.
//
// Beats are counted rather than timestamped by the database, because a timestamp would jump with the database's clock, and
// at each fail-over to another machine.
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

// timing contains the waiting times of a node. All nodes use the defaults; tests change them.
type timing struct {
	beatEvery time.Duration // between the starts of two beats
	ownFor    time.Duration // how long a node owns its shards, from the start of its last successful beat
	deadAfter time.Duration // how long a node may be silent, from the end of the beat that last saw a new count
}

func defaultTiming() timing {
	return timing{beatEvery: 500 * time.Millisecond, ownFor: 1500 * time.Millisecond, deadAfter: 2 * time.Second}
}

// Shard is one part of the tenants, in [0, Shards).
type Shard uint16

// ShardOf returns the shard of an organization. Tenants are random numbers, so shards have about equal size.
func ShardOf(t id.Tenant) Shard { return Shard(uint64(t) % Shards) }

// NodeID identifies one run of a node. It is random and different after each start. The zero value is no node.
type NodeID [16]byte

// NewNodeID returns a random ID.
func NewNodeID() (n NodeID) {
	rand.Read(n[:]) // never fails
	return n
}

// String returns the ID as 32 hexadecimal digits.
func (n NodeID) String() string { return hex.EncodeToString(n[:]) }

// Node is a node, as the others see it.
type Node struct {
	ID       NodeID
	URL      string // of its internal listener
	Version  string // of its program
	Key      string // fingerprint of its master key
	Protocol int    // the latest protocol of calls between nodes that its program supports
	Leaving  bool   // it gets no shards, because it is being stopped, is not prepared yet, or cannot serve
	Beats    uint64 // increases with each beat
}

// Epoch counts the steps that changed leases in a database. It starts at 1.
type Epoch uint64

// Lease is the ownership of a shard.
type Lease struct {
	Shard Shard
	Owner NodeID // may be a forgotten node; zero before the first owner
	Epoch Epoch  // of the latest change of this lease; 0 before the first owner
}

// ErrForgotten is returned to a node that is no longer a member, because it left or was silent for too long.
var ErrForgotten = errors.New("cluster: the node is no member")

// Table is the state that the nodes share. Its methods may be called concurrently. After any error other than
// ErrForgotten, the outcome is unknown, and the call may still take effect later.
type Table interface {
	// Join adds a node with a new ID and no beats. If n.Leaving is set, it gets no shards yet.
	Join(ctx context.Context, n Node) error

	// Beat increments the node's count of beats, applies its step and returns the resulting state, in one transaction.
	// It returns ErrForgotten, and applies nothing, if the node is not a member or knows a later epoch than the table
	// has. The latter happens if a fail-over has lost the database's latest changes. Steps with changes are serialized.
	// A step that may change leases increments the epoch.
	Beat(ctx context.Context, s Step) (View, error)
}

// Step contains the changes that a node makes with one beat. They are applied in the order of the fields.
type Step struct {
	Node    NodeID
	Known   Epoch      // of the latest view; the result contains the later leases
	Leaving bool       // see Node
	Forget  []Sighting // nodes to delete, if their count is still the one that was seen
	Give    []Gift     // leases of the node to give to others
	Take    []Shard    // leases to take: the node's own, and those whose owner is not a member
	Leave   bool       // delete the node at the end
}

// HasChanges reports whether the step contains more than a beat.
func (s Step) HasChanges() bool { return len(s.Forget) > 0 || s.Leave || s.ChangesLeases() }

// ChangesLeases reports whether the step may change leases.
func (s Step) ChangesLeases() bool { return len(s.Give)+len(s.Take) > 0 }

// Sighting is a count of beats that was seen for a node.
type Sighting struct {
	Node  NodeID
	Beats uint64
}

// Gift gives a lease to a member. It is applied only if Lease belongs to the node and still has this epoch.
type Gift struct {
	Lease Lease
	To    NodeID // if it is not a member, nothing is applied
}

// View is the state that a beat returns.
type View struct {
	Nodes  []Node  // all members, in any order; without the node itself after its Leave
	Leases []Lease // those with an epoch after Step.Known, in any order
	Epoch  Epoch   // of the latest change of a lease

	// Time is the table's wall clock time during the beat, or zero if it has none. No lease depends on it.
	Time time.Time
}
