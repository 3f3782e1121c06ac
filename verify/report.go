package verify

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Options contain what the caller of Check knows in addition to the bundle.
type Options struct {
	// Key is the log key that the caller pinned. Only this key counts; the key in the bundle is
	// compared with it. If nil, Check uses the key in the bundle. The report then shows that the
	// bundle is consistent, but not which log it is from.
	Key *tlog.VerifierKey
	// Retired are other keys of the same log, earlier or later than Key. If Key is set, a bundle
	// that names a retired key is checked under that key. The key must have Key's name and must
	// have signed trees of the checkpoint's size.
	Retired []LogKey
	// Directory contains key, retired keys and witnesses of the service's directory, for a bundle's
	// second proof. If nil, Check uses the key in the proof, and Witnesses.
	Directory *Options
	// Witnesses are the witnesses whose cosignatures the report lists. Whether they suffice is the
	// caller's policy (package trust).
	Witnesses []tlog.WitnessKey
	// CheckedAt is copied into the report. Unless it is zero, later cosignatures are marked.
	CheckedAt id.Instant
}

// KeySource is the source of the log key that a checkpoint was checked under.
type KeySource string

const (
	KeyFromBundle   KeySource = "bundle"
	KeyFromArgument KeySource = "argument"
)

// Report is the result of Check. A verdict is nil (null in JSON) if it would need a part that is
// not disclosed.
type Report struct {
	// The entry has event_hash, sequence_num and log_index, and is proven to be in the checkpoint's
	// tree at that index.
	InclusionOK bool `json:"inclusion_ok"`
	// The checkpoint is strict, of the bundle's origin and signed by the log key.
	CheckpointOK bool `json:"checkpoint_ok"`
	// The entry names the previous entry, which the same checkpoint proves, or the genesis value.
	ChainOK bool `json:"chain_ok"`
	// The record is canonical, the entry commits to it, and it names this event.
	RecordOK *bool `json:"record_ok"`
	// The record's public key signed the digest or the envelope, depending on the record's form.
	SignatureOK *bool `json:"signature_ok"`
	// The envelope has the record's event_digest and agrees with the record.
	EnvelopeOK *bool `json:"envelope_ok"`
	// The second proof holds: the service's directory lists a tree of this log that contains the
	// event. Absent if the bundle has no second proof.
	DirectoryOK *bool `json:"directory_ok,omitzero"`
	// InclusionOK, CheckpointOK and ChainOK are true and no verdict is false.
	OK bool `json:"ok"`

	LogKeySource KeySource     `json:"log_key_source"`
	Unchecked    []string      `json:"unchecked"`    // members that no verdict covers, see Check
	Cosignatures []Cosignature `json:"cosignatures"` // valid cosignatures by known witnesses
	// DirectoryCosignatures are the cosignatures of the directory's checkpoint.
	DirectoryCosignatures []Cosignature `json:"directory_cosignatures,omitzero"`
	TreeSize              id.Index      `json:"tree_size"` // of the checkpoint; 0 if it is malformed
	CheckedAt             id.Instant    `json:"checked_at"`
	// "step: error" for each false verdict, in the order of the verdicts.
	Errors []string `json:"errors"`
}

// Cosignature is a witness's statement that it saw the checkpoint at that time.
type Cosignature struct {
	Name string     `json:"name"`
	Time id.Instant `json:"time"`
	// InFuture reports that the time is later than the time of the check by more than
	// trust.MaxAhead, so it does not prove when the witness saw the checkpoint.
	InFuture bool `json:"in_future,omitzero"`
}
