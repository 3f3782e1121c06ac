package verify

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Options are what the caller of Check knows beside the bundle.
type Options struct {
	// Key is the log key that the caller pinned. It counts alone: what key the
	// bundle names is then only compared. nil takes the bundle's, which shows that
	// the bundle is whole and not whose it is.
	Key *tlog.VerifierKey
	// Retired are other keys of the same log, before or after Key. With Key given,
	// a bundle that names one of them is checked by it, if the key is of Key's name
	// and signed trees of the checkpoint's size.
	Retired []LogKey
	// Directory is what the caller knows of the service's directory, for a bundle's
	// second proof: its key, retired ones and witnesses. nil takes the key that the
	// proof names, and Witnesses.
	Directory *Options
	// Witnesses are those whose cosignatures the report names. Whether they are
	// enough is the caller's policy (package trust).
	Witnesses []tlog.WitnessKey
	// CheckedAt is written into the report.
	CheckedAt id.Instant
}

// KeySource says where the log key came from that a checkpoint was checked by.
type KeySource string

const (
	KeyFromBundle   KeySource = "bundle"
	KeyFromArgument KeySource = "argument"
)

// Report is what Check found. A verdict that is nil, null in JSON, can't be
// told from what is disclosed.
type Report struct {
	// The entry has event_hash, sequence_num and log_index, and is proven to be in
	// the checkpoint's tree at that index.
	InclusionOK bool `json:"inclusion_ok"`
	// The checkpoint is strict, of the bundle's origin and signed by the log key.
	CheckpointOK bool `json:"checkpoint_ok"`
	// The entry names the one before it, which the same checkpoint proves, or the
	// genesis value.
	ChainOK bool `json:"chain_ok"`
	// The record is canonical, what the entry commits to, and of this event.
	RecordOK *bool `json:"record_ok"`
	// The record's public key signed what its form says.
	SignatureOK *bool `json:"signature_ok"`
	// The envelope is what the record's event_digest stands for and agrees with
	// the record.
	EnvelopeOK *bool `json:"envelope_ok"`
	// The second proof holds: the service's directory lists a tree of this log that
	// has the event. Absent when the bundle has none.
	DirectoryOK *bool `json:"directory_ok,omitzero"`
	// InclusionOK, CheckpointOK and ChainOK, and nothing is false.
	OK bool `json:"ok"`

	LogKeySource KeySource     `json:"log_key_source"`
	Unchecked    []string      `json:"unchecked"`    // what the bundle says and no verdict covers, see Check
	Cosignatures []Cosignature `json:"cosignatures"` // those of known witnesses that verify
	// DirectoryCosignatures are those on the directory's checkpoint.
	DirectoryCosignatures []Cosignature `json:"directory_cosignatures,omitzero"`
	TreeSize              id.Index      `json:"tree_size"` // of the checkpoint; 0 when it can't be read
	CheckedAt             id.Instant    `json:"checked_at"`
	Errors                []string      `json:"errors"` // "step: what", one for each verdict that is false, in their order
}

// Cosignature is a witness's statement that it saw the checkpoint at that time.
type Cosignature struct {
	Name string     `json:"name"`
	Time id.Instant `json:"time"`
}
