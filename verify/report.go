package verify

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Options hold the knowledge of Check's caller besides the bundle.
type Options struct {
	// Key is the log key that the caller pinned. Only this key counts; the key in the
	// bundle is compared with it. nil takes the key in the bundle. Then the report shows
	// that the bundle is consistent, and not which log made it.
	Key *tlog.VerifierKey
	// Retired are other keys of the same log, before or after Key. With Key given, a
	// bundle that names a retired key is checked under that key. The key must have Key's
	// name and must have signed trees of the checkpoint's size.
	Retired []LogKey
	// Directory holds key, retired keys and witnesses of the service's directory, for a
	// bundle's second proof. nil takes the key in the proof, and Witnesses.
	Directory *Options
	// Witnesses are those whose cosignatures the report names. Whether they are
	// enough is the caller's policy (package trust).
	Witnesses []tlog.WitnessKey
	// CheckedAt is written into the report. Cosignatures from a later time are marked,
	// unless it is zero.
	CheckedAt id.Instant
}

// KeySource is the source of the log key that a checkpoint was checked under.
type KeySource string

const (
	KeyFromBundle   KeySource = "bundle"
	KeyFromArgument KeySource = "argument"
)

// Report is the result of Check. A verdict that is nil (null in JSON) would need a part
// that is not disclosed.
type Report struct {
	// The entry has event_hash, sequence_num and log_index, and is proven to be in
	// the checkpoint's tree at that index.
	InclusionOK bool `json:"inclusion_ok"`
	// The checkpoint is strict, of the bundle's origin and signed by the log key.
	CheckpointOK bool `json:"checkpoint_ok"`
	// The entry names the one before it, which the same checkpoint proves, or the
	// genesis value.
	ChainOK bool `json:"chain_ok"`
	// The record is canonical, the entry commits to it, and it names this event.
	RecordOK *bool `json:"record_ok"`
	// The record's public key signed the digest or the envelope, as the record's form
	// says.
	SignatureOK *bool `json:"signature_ok"`
	// The envelope has the record's event_digest and agrees with the record.
	EnvelopeOK *bool `json:"envelope_ok"`
	// The second proof holds: the service's directory lists a tree of this log that
	// has the event. Absent when the bundle has none.
	DirectoryOK *bool `json:"directory_ok,omitzero"`
	// InclusionOK, CheckpointOK and ChainOK, and nothing is false.
	OK bool `json:"ok"`

	LogKeySource KeySource     `json:"log_key_source"`
	Unchecked    []string      `json:"unchecked"`    // members that no verdict covers, see Check
	Cosignatures []Cosignature `json:"cosignatures"` // those of known witnesses that verify
	// DirectoryCosignatures are those on the directory's checkpoint.
	DirectoryCosignatures []Cosignature `json:"directory_cosignatures,omitzero"`
	TreeSize              id.Index      `json:"tree_size"` // of the checkpoint; 0 when it can't be read
	CheckedAt             id.Instant    `json:"checked_at"`
	// "step: error", one for each verdict that is false, in their order
	Errors []string `json:"errors"`
}

// Cosignature is a witness's statement that it saw the checkpoint at that time.
type Cosignature struct {
	Name string     `json:"name"`
	Time id.Instant `json:"time"`
	// InFuture reports that the time is later than that of the check by more than
	// trust.MaxAhead, so it does not prove when the witness saw the checkpoint.
	InFuture bool `json:"in_future,omitzero"`
}
