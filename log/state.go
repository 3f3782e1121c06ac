package log

import (
	"fmt"
	"slices"
	"sync"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// State is one published state of a ledger, all durable. It never changes and may be kept.
type State struct {
	identity     *Identity
	keys         *logKeys
	head         storage.Head
	tree         *tlog.Builder // only read
	used         usage
	fault        Fault
	anchoredView *tlog.Checkpoint // the anchor, which is signed when the stored ledger does not extend it; else nil

	signOnce sync.Once
	note     []byte
}

// usage is the number of counted events in the month of the newest entry.
type usage struct {
	month Month
	count uint64
}

// Identity returns the constant part of the ledger.
func (s *State) Identity() *Identity { return s.identity }

// Size returns the number of events.
func (s *State) Size() id.Index { return s.head.Size }

// Head returns the stored head.
func (s *State) Head() storage.Head { return s.head }

// Root returns the tree's root.
func (s *State) Root() id.Hash { return s.head.Root }

// Last returns the event hash of the newest entry, the genesis value when empty.
func (s *State) Last() id.Hash { return s.head.Last }

// LastReceived returns received_at of the newest entry, 0 when empty.
func (s *State) LastReceived() id.Instant { return s.head.LastReceived }

// ConfigVersion returns the version of the configuration that events are judged by. Caches above key by (tenant,
// config version): values that they read for a version are never older than that version.
func (s *State) ConfigVersion() uint64 { return s.head.ConfigVersion }

// Used returns how many counted events the month of i has so far.
func (s *State) Used(i id.Instant) uint64 {
	if s.used.month != MonthOf(i) {
		return 0
	}
	return s.used.count
}

// Fault returns the known fault of the ledger, the zero value for none.
func (s *State) Fault() Fault { return s.fault }

// VerifierKey returns the log key; while two sign, the older one (see LogKeys).
func (s *State) VerifierKey() tlog.VerifierKey { return s.keys.primaryKey(s.Shown().Size) }

// VerifierKeyOf returns the key to name beside a checkpoint of that size: VerifierKey if
// it signed that checkpoint too, or else the VerifierKey of that time.
func (s *State) VerifierKeyOf(size id.Index) tlog.VerifierKey {
	now := s.VerifierKey()
	if slices.ContainsFunc(s.keys.all, func(k heldKey) bool { return k.Verifier == now && k.Signs(size) }) {
		return now
	}
	return s.keys.primaryKey(size)
}

// SignersOf returns the keys that sign a checkpoint of that size, oldest first: two while a key is being rotated.
func (s *State) SignersOf(size id.Index) (signers []tlog.VerifierKey) {
	for _, k := range s.keys.all {
		if k.Signs(size) {
			signers = append(signers, k.Verifier)
		}
	}
	return signers
}

// Detached reports whether the ledger is frozen and the stored tree is not the one that it shows: the head does not
// extend the anchor, or neither the head nor the tree of the anchor can be read. The stored entries are then not
// under Checkpoint, and nothing proves them.
func (s *State) Detached() bool { return s.anchoredView != nil }

// Shown returns the checkpoint that Checkpoint signs: size and root of the head, or those of the anchor when the
// state is detached, because signing another head would sign a fork.
func (s *State) Shown() tlog.Checkpoint {
	if s.Detached() {
		return *s.anchoredView
	}
	return tlog.Checkpoint{Origin: s.identity.Origin, Size: s.head.Size, Root: s.head.Root}
}

// Checkpoint returns the signed note over Shown. It is a pure function of that
// and the log keys, made at first use; callers don't write to it.
func (s *State) Checkpoint() []byte {
	s.signOnce.Do(func() {
		note, err := s.keys.signCheckpoint(s.Shown())
		if err != nil { // a foreign origin or a size beyond MaxSize: no ledger has either
			panic(fmt.Sprintf("sign checkpoint of %s: %v", s.identity.Origin, err))
		}
		s.note = note
	})
	return s.note
}

// copyWithFault returns the same state, marked.
func (s *State) copyWithFault(f Fault) *State {
	return &State{identity: s.identity, keys: s.keys, head: s.head, tree: s.tree, used: s.used, fault: f, anchoredView: s.anchoredView}
}

// Provable returns why no entry can be shown under Checkpoint, or nil:
// fault.Unavailable with code frozen when the state is detached.
func (s *State) Provable() error {
	if s.Detached() {
		return frozenError()
	}
	return nil
}

func frozenError() error {
	return &fault.Error{Kind: fault.Unavailable, Code: "frozen", Message: "The organization's ledger is frozen"}
}

// Trusted returns nil when the stored records of the organization are in force, and otherwise why the ledger takes no
// events: fault.Unavailable with code frozen, read_only, held, importing or moved.
//
// Callers MUST ask before they judge by records of the organization (policy, keys, approvals) or show that these are
// in force. For example, a store was rolled back to before a key was revoked. Its records say that the key is active,
// and the anchor of the ledger says that there was more.
func (s *State) Trusted() error {
	switch s.fault.Level {
	case Frozen:
		return frozenError()
	case Importing:
		return &fault.Error{Kind: fault.Unavailable, Code: "importing", Message: "The organization has not arrived here yet"}
	case Moved:
		return &fault.Error{Kind: fault.Unavailable, Code: "moved", Message: "The organization was moved to another place"}
	case Held:
		return &fault.Error{Kind: fault.Unavailable, Code: "held", Message: "The organization is held, because its records contradict its log"}
	case ReadOnly:
		return &fault.Error{Kind: fault.Unavailable, Code: "read_only", Message: "The organization's ledger is read-only until its checkpoint is adopted"}
	}
	return nil
}

// Month is year*12 + month-1, UTC; 0 is none.
type Month int

func MonthOf(i id.Instant) Month {
	t := i.Time()
	return Month(t.Year()*12 + int(t.Month()) - 1)
}

// CounterName names the counter of counted events of the month.
func (m Month) CounterName() string {
	name := []byte("events/0000-00")
	digits := func(end, n int) {
		for ; n > 0; n /= 10 {
			name[end] = byte('0' + n%10)
			end--
		}
	}
	digits(10, int(m)/12)
	digits(13, int(m)%12+1)
	return string(name)
}
