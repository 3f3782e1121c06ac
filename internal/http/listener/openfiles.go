package listener

import "fmt"

const (
	// ownFiles is the number of files that the process opens in addition to store and listeners: its log,
	// locks, the anchors and their compaction, the store's logs, tables being
	// written, calls to webhooks and witnesses, traces.
	ownFiles = 128

	// Bounds of the tables that the embedded store keeps open. More than mostTables are no
	// faster.
	fewestTables, mostTables = 64, 1000

	// databaseFiles is the number of files of a PostgreSQL store: 20 connections, and
	// connections that are opened while others end.
	databaseFiles = 48

	// fewestConnections is the minimum number of connections of all listeners together.
	fewestConnections = 64

	unlimited = 1 << 30 // above all shares
)

// StoreTables returns how many tables the embedded store may keep open under a limit.
func StoreTables(limit int) int { return min(mostTables, max(fewestTables, limit/4)) }

// Shares are the maximum numbers of connections of the three listeners.
type Shares struct{ Main, Identity, Metrics int }

// ShareOpenFiles returns how many connections each listener may have open: wanted, or its
// share of the remaining files if the limit is too low. If wanted is zero, as many as possible. embedded indicates
// the embedded store.
func ShareOpenFiles(limit, requested int, embedded bool) (Shares, error) {
	store := databaseFiles
	if embedded {
		store = StoreTables(limit)
	}
	rest := limit - ownFiles - store
	if rest < fewestConnections {
		const message = "the process may open %d files, but needs %d: raise the limit (ulimit -n, LimitNOFILE=)"
		return Shares{}, fmt.Errorf(message, limit, ownFiles+store+fewestConnections)
	}
	if requested > 0 && 3*withSpare(requested) <= rest {
		return Shares{requested, requested, requested}, nil
	}
	bound := func(sixteenths int) int {
		most := withoutSpare(rest * sixteenths / 16)
		if requested > 0 {
			most = min(most, requested)
		}
		return most
	}
	return Shares{Main: bound(12), Identity: bound(3), Metrics: bound(1)}, nil
}

// SpareConnections returns how many connections a listener may hold beyond its bound: evicted
// and refused connections, which may still get a response.
func SpareConnections(bound int) int { return min(256, bound/4+1) }

func withSpare(bound int) int { return bound + SpareConnections(bound) }

// withoutSpare returns the largest bound whose connections and spare ones are at most n.
func withoutSpare(n int) int {
	bound := max(1, n*4/5-1)
	if n > 4*256+256 {
		bound = n - 256
	}
	return bound
}
