package schedule

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Outcome is the result of examining an entry, for this entry and the entries after it. The zero Outcome is Keep.
type Outcome struct {
	does action
	at   id.Instant // for postpone
}

type action uint8

const (
	keep action = iota
	drop
	postpone
	laneFull
	organizationFull
	allFull
)

// Keep keeps an entry: its work is in flight, and the code that started the work settles the entry. Kept entries do not
// count toward the turn of their organization, so callers must bound their number.
func Keep() Outcome { return Outcome{} }

// Done deletes an entry.
func Done() Outcome { return Outcome{does: drop} }

// Until postpones an entry.
func Until(at id.Instant) Outcome { return Outcome{does: postpone, at: at} }

// LaneFull skips an entry and the rest of its lane for this turn.
func LaneFull() Outcome { return Outcome{does: laneFull} }

// OrganizationFull skips an entry and all others of its organization for this sweep. The next turn of the organization
// starts at the lane of that entry.
func OrganizationFull() Outcome { return Outcome{does: organizationFull} }

// AllFull ends the sweep. The next sweep starts at the organization of that entry.
func AllFull() Outcome { return Outcome{does: allFull} }

// lateAfter is the time in milliseconds after which an entry without its object is deleted. Until then, the write of the
// object may be in flight.
const lateAfter id.Instant = 3_600_000

// Pauses before an entry is examined again, in milliseconds.
const (
	failedPause  id.Instant = 1000
	longestPause id.Instant = 600_000
)

// Absent returns the outcome for an entry whose object is missing: it is examined again with growing pauses, and deleted
// after an hour.
func Absent(e Entry, now id.Instant) Outcome {
	late := now - e.sinceTime()
	if late >= lateAfter {
		return Done()
	}
	return Until(now + min(max(late/4, failedPause), longestPause, lateAfter-late))
}

// Failed returns the outcome for an entry that could not be examined. It is retried after a second.
func Failed(now id.Instant) Outcome { return Until(now + failedPause) }

// changesFor returns the changes by which an outcome is applied to the record of a filed entry.
func (x *Index) changesFor(e Entry, outcome Outcome) []storage.Change {
	switch outcome.does {
	case drop:
		return []storage.Change{removeChange(x.Kind, e.placeKey())}
	case postpone:
		later := Entry{At: outcome.at, Tenant: e.Tenant, Name: e.Name, Since: e.sinceTime()}
		return []storage.Change{removeChange(x.Kind, e.placeKey()), putChange(x.Kind, later.Key())}
	}
	return nil
}
