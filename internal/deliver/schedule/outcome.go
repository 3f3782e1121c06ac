package schedule

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Outcome is the result of a look at an entry, for that entry and those behind it. The zero Outcome
// is Keep.
type Outcome struct {
	does action
	at   id.Instant // for put off
}

type action uint8

const (
	keep action = iota
	drop
	putOff
	laneFull
	organizationFull
	allFull
)

// Keep leaves an entry where it is: its work is under way, and the code that began it settles it.
// Entries that are kept use up no turn, so they MUST be few.
func Keep() Outcome { return Outcome{} }

// Done drops an entry.
func Done() Outcome { return Outcome{does: drop} }

// Until puts an entry off.
func Until(at id.Instant) Outcome { return Outcome{does: putOff, at: at} }

// LaneFull leaves an entry and all behind it in its lane, for this turn.
func LaneFull() Outcome { return Outcome{does: laneFull} }

// OrganizationFull leaves an entry and all others of its organization, for this sweep.
// The next turn of the organization begins at the lane of that entry.
func OrganizationFull() Outcome { return Outcome{does: organizationFull} }

// AllFull leaves an entry and all others, of all organizations, for this sweep. The
// next sweep begins at the organization of that entry.
func AllFull() Outcome { return Outcome{does: allFull} }

// lateAfter is for how long an entry is kept whose thing is not there, in
// milliseconds: the write of the thing may be under way until then.
const lateAfter id.Instant = 3_600_000

// Pauses before another look, in milliseconds.
const (
	failedPause  id.Instant = 1000
	longestPause id.Instant = 600_000
)

// Absent is the outcome for an entry whose thing is not there: it is looked for again,
// by and by less often, and after an hour the entry is dropped.
func Absent(e Entry, now id.Instant) Outcome {
	late := now - e.sinceTime()
	if late >= lateAfter {
		return Done()
	}
	return Until(now + min(max(late/4, failedPause), longestPause, lateAfter-late))
}

// Failed is the outcome for an entry that could not be looked at: another try after a
// second.
func Failed(now id.Instant) Outcome { return Until(now + failedPause) }

// changesOf returns the changes that an outcome makes to the record of a filed entry.
func (x *Index) changesOf(e Entry, outcome Outcome) []storage.Change {
	switch outcome.does {
	case drop:
		return []storage.Change{removeChange(x.Kind, e.placeKey())}
	case putOff:
		later := Entry{At: outcome.at, Tenant: e.Tenant, Name: e.Name, Since: e.sinceTime()}
		return []storage.Change{removeChange(x.Kind, e.placeKey()), putChange(x.Kind, later.Key())}
	}
	return nil
}
