package listener

import "fmt"

const (
	// ownFiles is the number of files of the process beside store and listeners: its log,
	// the locks, the anchors and their compaction, the store's logs, tables that are
	// being written, calls to webhooks and witnesses, traces.
	ownFiles = 128

	// Tables that the embedded store keeps open. It needs the fewest, and gains nothing
	// from more than the most.
	fewestTables, mostTables = 64, 1000

	// databaseFiles is the number of files of a store in PostgreSQL: 20 connections, and
	// those that are opened while old ones end.
	databaseFiles = 48

	// fewestConnections is the least number of connections of all listeners together.
	fewestConnections = 64

	unlimited = 1 << 30 // a limit above all shares
)

// StoreTables returns how many tables the embedded store may keep open under a limit.
func StoreTables(limit int) int { return min(mostTables, max(fewestTables, limit/4)) }

// Shares are the bounds of the three listeners, in connections.
type Shares struct{ Main, Identity, Metrics int }

// ShareOpenFiles returns how many connections each listener may have open: wanted, or its
// share of the open files that limit leaves. 0 wants as many as possible. embedded says
// that the store is the embedded one.
func ShareOpenFiles(limit, wanted int, embedded bool) (Shares, error) {
	store := databaseFiles
	if embedded {
		store = StoreTables(limit)
	}
	left := limit - ownFiles - store
	if left < fewestConnections {
		const message = "the process may have %d files open, %d are needed: raise the limit (ulimit -n, LimitNOFILE=)"
		return Shares{}, fmt.Errorf(message, limit, ownFiles+store+fewestConnections)
	}
	if wanted > 0 && 3*withSpare(wanted) <= left {
		return Shares{wanted, wanted, wanted}, nil
	}
	bound := func(sixteenths int) int {
		most := withoutSpare(left * sixteenths / 16)
		if wanted > 0 {
			most = min(most, wanted)
		}
		return most
	}
	return Shares{Main: bound(12), Identity: bound(3), Metrics: bound(1)}, nil
}

// SpareConnections is how many connections a listener may hold beyond its bound. These are
// connections that it closes, because one that has to make room may still get an answer.
func SpareConnections(bound int) int { return min(256, bound/4+1) }

func withSpare(bound int) int { return bound + SpareConnections(bound) }

// withoutSpare is the largest bound that has room in n with its spare.
func withoutSpare(n int) int {
	bound := max(1, n*4/5-1)
	if n > 4*256+256 {
		bound = n - 256
	}
	return bound
}
