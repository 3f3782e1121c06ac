// Package trust implements the policies of relying parties of transparency logs: the known logs,
// the known witnesses, and the quorum of witnesses that must have cosigned a checkpoint. The text
// form is C2SP tlog-policy.
//
// Invariants:
//
//   - A policy that Parse returned or Validate accepted has no duplicate key, no duplicate name, no
//     name that is used before it is defined, and no name in two groups. So each witness counts
//     once.
//   - Each key has one spelling: Ed25519 for logs, Ed25519 or ML-DSA-44 for witnesses. A policy
//     with a key of another algorithm is rejected as a whole.
//   - A cosignature counts if it verifies under the key and key hash of a witness of the policy.
//     All other lines of a note are ignored.
//   - The package does no I/O, reads no clock and keeps no state. Input is bounded. Errors name the
//     line and no value of the input.
//
// The package is stable in the sense of README, section Stability.
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

// None is the name of the quorum that requires no cosignature.
const None = "none"

// Errors that the errors of this package wrap.
var (
	// ErrMalformed: the text is not a policy.
	ErrMalformed = errors.New("malformed policy")
	// ErrLog: none of the policy's logs signed the checkpoint.
	ErrLog = errors.New("no valid signature of a log of the policy")
	// ErrQuorum: too few of the policy's witnesses cosigned the checkpoint.
	ErrQuorum = errors.New("too few valid cosignatures for the quorum")
)

// Policy is the condition under which a relying party accepts a checkpoint. The names of witnesses
// and groups are local to the policy.
type Policy struct {
	Logs      []Log // one of them must have signed; empty if the log is known from elsewhere
	Witnesses []Witness
	Groups    []Group // each after its members
	Quorum    string  // the witness or group that must have cosigned, or None
}

// Log is a known log.
type Log struct {
	Key tlog.VerifierKey // its name is the origin
	URL string           // where the log is read; may be ""
}

// Witness is a known witness.
type Witness struct {
	Name string
	Key  tlog.WitnessKey
	URL  string // its submission prefix (C2SP tlog-witness); may be ""
}

// Group has cosigned a checkpoint if at least K of its members have. A member is a witness or a
// group.
type Group struct {
	Name    string
	K       int // 1 <= K <= len(Members)
	Members []string
}

// Cosignature is a valid cosignature by a witness of the policy.
type Cosignature struct {
	Witness Witness
	Time    id.Instant
}

// Opened is a checkpoint with its valid signatures.
type Opened struct {
	Checkpoint   tlog.Checkpoint
	Log          tlog.VerifierKey // the first log of the policy that signed
	Cosignatures []Cosignature    // the valid ones, in the order of the policy
}

// Open opens a signed note under the policy. It returns ErrLog, ErrQuorum, or tlog.ErrMalformed if
// the checkpoint is malformed. With ErrQuorum it also returns the checkpoint and its valid
// cosignatures.
func (p *Policy) Open(note []byte) (Opened, error) {
	n, err := tlog.ParseNote(note)
	if err != nil {
		return Opened{}, err
	}
	o, err := p.openByLogKeys(n)
	if err != nil {
		return Opened{}, err
	}
	o.Cosignatures = p.Cosignatures(n)
	if !p.Reached(o.Cosignatures) {
		return o, ErrQuorum
	}
	return o, nil
}

// openByLogKeys opens the checkpoint with the keys of the policy's logs.
func (p *Policy) openByLogKeys(n tlog.Note) (Opened, error) {
	for _, l := range p.Logs {
		c, err := n.OpenCheckpoint(l.Key)
		if err == nil {
			return Opened{Checkpoint: c, Log: l.Key}, nil
		}
		if errors.Is(err, tlog.ErrMalformed) {
			return Opened{}, err
		}
	}
	return Opened{}, ErrLog
}

// Cosignatures returns the valid cosignatures of the policy's witnesses on a note.
func (p *Policy) Cosignatures(n tlog.Note) []Cosignature {
	var all []Cosignature
	for _, w := range p.Witnesses {
		if at, err := w.Key.Cosigned(n); err == nil {
			all = append(all, Cosignature{Witness: w, Time: at})
		}
	}
	return all
}

// AsksForWitnesses reports whether the policy's quorum requires any cosignature.
func (p *Policy) AsksForWitnesses() bool { return p.Quorum != None }

// Reached reports whether the cosignatures reach the quorum.
func (p *Policy) Reached(by []Cosignature) bool {
	seen := make(map[tlog.WitnessKey]bool, len(by))
	for _, c := range by {
		seen[c.Witness.Key] = true
	}
	return p.Quorate(func(k tlog.WitnessKey) bool { return seen[k] })
}

// Quorate reports whether the witnesses for which cosigned returns true reach the quorum.
func (p *Policy) Quorate(cosigned func(tlog.WitnessKey) bool) bool {
	if !p.AsksForWitnesses() {
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
