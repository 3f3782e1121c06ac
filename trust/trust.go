// Package trust is the policies of those who rely on a transparency log: which
// logs they know, which witnesses, and how many of these must have cosigned a
// checkpoint before it counts. The text form is C2SP tlog-policy.
//
// Invariants:
//
//   - A policy that was read or passed Validate has no key twice (under whatever
//     name), no name twice, no name that is not defined before it is used, and no
//     name in two groups, so that each witness counts once.
//   - Keys are in their one spelling: of logs Ed25519, of witnesses Ed25519 or
//     ML-DSA-44. A policy with a key of another algorithm is refused as a whole, not
//     read in part.
//   - A cosignature counts when it verifies under the key and key hash of a
//     witness of the policy; all other lines of a note are as good as absent.
//   - Nothing here does I/O, reads a clock or keeps state, and what is read has
//     bounds. Errors name the line and no value of the input.
package trust

import (
	"errors"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Bounds of a policy.
const (
	MaxText  = 128 << 10 // bytes
	MaxItems = 100       // logs, witnesses, groups, each; a note has no more lines
)

// None as quorum asks for no cosignature at all.
const None = "none"

// What can be wrong, wrapped by the errors of this package.
var (
	// ErrMalformed: not a policy.
	ErrMalformed = errors.New("malformed policy")
	// ErrLog: none of the policy's logs signed the checkpoint.
	ErrLog = errors.New("no valid signature of a log of the policy")
	// ErrQuorum: too few of the policy's witnesses cosigned the checkpoint.
	ErrQuorum = errors.New("too few valid cosignatures for the quorum")
)

// Policy is what a checkpoint must carry to be relied on. The names of witnesses
// and groups mean something inside of the policy alone.
type Policy struct {
	Logs      []Log // any one of them signs; none: the log is known from elsewhere
	Witnesses []Witness
	Groups    []Group // each after those that it holds
	Quorum    string  // the witness or group that must have witnessed a checkpoint, or None
}

// Log is a log that is relied on.
type Log struct {
	Key tlog.VerifierKey // its name is the origin
	URL string           // where the log is read; may be ""
}

// Witness is a witness that counts.
type Witness struct {
	Name string
	Key  tlog.WitnessKey
	URL  string // its submission prefix (C2SP tlog-witness); may be ""
}

// Group has witnessed a checkpoint when at least K of its members have:
// witnesses, or groups.
type Group struct {
	Name    string
	K       int // 1 <= K <= len(Members)
	Members []string
}

// Cosignature is the word of a witness of the policy that it saw a checkpoint.
type Cosignature struct {
	Witness Witness
	Time    id.Instant
}

// Opened is a checkpoint with those who vouch for it.
type Opened struct {
	Checkpoint   tlog.Checkpoint
	Log          tlog.VerifierKey // the first log of the policy that signed
	Cosignatures []Cosignature    // those that count, in the order of the policy
}

// Open reads a signed note by the policy. ErrLog, ErrQuorum or, for what is no
// checkpoint, tlog.ErrMalformed. With ErrQuorum it returns what there is.
func (p *Policy) Open(note []byte) (Opened, error) {
	n, err := tlog.ParseNote(note)
	if err != nil {
		return Opened{}, err
	}
	o, err := p.signed(note)
	if err != nil {
		return Opened{}, err
	}
	o.Cosignatures = p.Cosignatures(n)
	if !p.Reached(o.Cosignatures) {
		return o, ErrQuorum
	}
	return o, nil
}

// signed opens the checkpoint with the keys of the logs.
func (p *Policy) signed(note []byte) (Opened, error) {
	for _, l := range p.Logs {
		c, err := tlog.OpenCheckpoint(note, l.Key)
		if err == nil {
			return Opened{Checkpoint: c, Log: l.Key}, nil
		}
		if errors.Is(err, tlog.ErrMalformed) {
			return Opened{}, err
		}
	}
	return Opened{}, ErrLog
}

// Cosignatures returns those of the policy's witnesses that are valid on a note.
func (p *Policy) Cosignatures(n tlog.Note) []Cosignature {
	var all []Cosignature
	for _, w := range p.Witnesses {
		if at, err := w.Key.Cosigned(n); err == nil {
			all = append(all, Cosignature{Witness: w, Time: at})
		}
	}
	return all
}

// Reached reports whether these cosignatures are enough.
func (p *Policy) Reached(by []Cosignature) bool {
	seen := make(map[tlog.WitnessKey]bool, len(by))
	for _, c := range by {
		seen[c.Witness.Key] = true
	}
	return p.Quorate(func(k tlog.WitnessKey) bool { return seen[k] })
}

// Quorate reports whether the quorum is reached when cosigned tells of which
// witnesses there is a valid cosignature.
func (p *Policy) Quorate(cosigned func(tlog.WitnessKey) bool) bool {
	if p.Quorum == None {
		return true
	}
	witnessed := make(map[string]bool, len(p.Witnesses)+len(p.Groups))
	for _, w := range p.Witnesses {
		witnessed[w.Name] = cosigned(w.Key)
	}
	for _, g := range p.Groups {
		n := 0
		for _, member := range g.Members {
			if witnessed[member] {
				n++
			}
		}
		witnessed[g.Name] = n >= g.K
	}
	return witnessed[p.Quorum]
}
