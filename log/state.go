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

// State is one published state of a ledger: all of it is durable. It never
// changes and may be kept.
type State struct {
	identity *Identity
	keys     *logKeys
	head     storage.Head
	tree     *tlog.Builder // only read
	used     usage
	fault    Fault
	instead  *tlog.Checkpoint // what is signed when the stored ledger is not the one of its anchor; else nil

	signOnce sync.Once
	note     []byte
}

// usage is the number of counted events in the month of the newest entry.
type usage struct {
	month month
	count uint64
}

// Identity returns what never changes about the ledger.
func (s *State) Identity() *Identity { return s.identity }

// Size returns the number of events.
func (s *State) Size() id.Index { return s.head.Size }

// Root returns the tree's root.
func (s *State) Root() id.Hash { return s.head.Root }

// Last returns the event hash of the newest entry, the genesis value when empty.
func (s *State) Last() id.Hash { return s.head.Last }

// LastReceived returns received_at of the newest entry, 0 when empty.
func (s *State) LastReceived() id.Instant { return s.head.LastReceived }

// ConfigVersion returns the version of what events are judged by. Caches above
// key by (tenant, config version): what they read for a version is never older
// than that version.
func (s *State) ConfigVersion() uint64 { return s.head.ConfigVersion }

// Used returns how many counted events the month of i has so far.
func (s *State) Used(i id.Instant) uint64 {
	if s.used.month != monthOf(i) {
		return 0
	}
	return s.used.count
}

// Fault returns what is wrong with the ledger, the zero value when nothing is known.
func (s *State) Fault() Fault { return s.fault }

// VerifierKey returns the log key; while two sign, the older one (see LogKeys).
func (s *State) VerifierKey() tlog.VerifierKey { return s.keys.primary(s.Shown().Size) }

// VerifierKeyOf returns the key to name beside a checkpoint of that size: VerifierKey
// if it signed that too, or else what VerifierKey was then.
func (s *State) VerifierKeyOf(size id.Index) tlog.VerifierKey {
	now := s.VerifierKey()
	if slices.ContainsFunc(s.keys.all, func(k heldKey) bool { return k.Verifier == now && k.Signs(size) }) {
		return now
	}
	return s.keys.primary(size)
}

// SignersOf returns the keys that sign a checkpoint of that size, oldest first: two
// while a key is being rotated.
func (s *State) SignersOf(size id.Index) (signers []tlog.VerifierKey) {
	for _, k := range s.keys.all {
		if k.Signs(size) {
			signers = append(signers, k.Verifier)
		}
	}
	return signers
}

// Detached reports whether the ledger is frozen and what is stored is not the
// tree that it shows: the head does not extend the anchor, or can't be read and
// neither can the tree that the anchor stands for. What the store says of its
// entries is then not under Checkpoint, and nothing proves it.
func (s *State) Detached() bool { return s.instead != nil }

// Shown returns what Checkpoint signs: size and root of the head, or those of the
// anchor when the state is detached, as to sign another head would be to sign a
// fork.
func (s *State) Shown() tlog.Checkpoint {
	if s.Detached() {
		return *s.instead
	}
	return tlog.Checkpoint{Origin: s.identity.Origin, Size: s.head.Size, Root: s.head.Root}
}

// Checkpoint returns the signed note over Shown. It is a pure function of that
// and the log keys, made at first use; callers don't write to it.
func (s *State) Checkpoint() []byte {
	s.signOnce.Do(func() {
		note, err := s.keys.sign(s.Shown())
		if err != nil { // a foreign origin or a size beyond MaxSize: no ledger has either
			panic(fmt.Sprintf("sign checkpoint of %s: %v", s.identity.Origin, err))
		}
		s.note = note
	})
	return s.note
}

// withFault returns the same state, marked.
func (s *State) withFault(f Fault) *State {
	return &State{identity: s.identity, keys: s.keys, head: s.head, tree: s.tree, used: s.used, fault: f, instead: s.instead}
}

// Provable returns why no entry can be shown under Checkpoint, or nil:
// fault.Unavailable with code frozen when the state is detached.
func (s *State) Provable() error {
	if s.Detached() {
		return frozen()
	}
	return nil
}

func frozen() error {
	return &fault.Error{Kind: fault.Unavailable, Code: "frozen", Message: "The organization's ledger is frozen"}
}

// Trusted returns nil when what the store holds of the organization is what holds now,
// and otherwise why the ledger takes no events: fault.Unavailable with code frozen,
// read_only, importing or moved.
//
// Callers MUST ask before they judge by records of the organization (policy, keys,
// approvals) or tell others that these are in force. Example: a store was rolled back
// to before a key was revoked. Its records say that the key is active, and the anchor
// of the ledger says that there was more.
func (s *State) Trusted() error {
	switch s.fault.Level {
	case Frozen:
		return frozen()
	case Importing:
		return &fault.Error{Kind: fault.Unavailable, Code: "importing", Message: "The organization has not arrived here yet"}
	case Moved:
		return &fault.Error{Kind: fault.Unavailable, Code: "moved", Message: "The organization was moved to another place"}
	case ReadOnly:
		return &fault.Error{Kind: fault.Unavailable, Code: "read_only", Message: "The organization's ledger is read-only until its checkpoint is adopted"}
	}
	return nil
}

// month is year*12 + month-1, UTC; 0 is none.
type month int

func monthOf(i id.Instant) month {
	t := i.Time()
	return month(t.Year()*12 + int(t.Month()) - 1)
}

// counter names the counter of counted events of the month.
func (m month) counter() string {
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
