package verify

import (
	"github.com/agentledger/agentledger/id"
)

// Constants of the documents.
const (
	// BundleVersion is the version of bundles that this package writes and reads.
	BundleVersion = 1
	// KeyCompromised claims that someone else had the key when the event was signed: its revocation
	// names an index at or below the event's.
	KeyCompromised = "compromised"
	// MaxListed is the maximum number of logs in one Listing.
	MaxListed = 256
)

// Kinds of the service's own public events: values of action_kind.
const (
	// DirectoryKind is the kind of events in a service's directory. They list trees of the
	// service's logs; the payload is a Listing.
	DirectoryKind = "ledger_directory"
	// SuccessorKind is the kind of the first event of a log that continues a frozen log. Its
	// payload is a Succession. The whole event is public, because an auditor needs it to
	// distinguish a successor from a second history.
	SuccessorKind = "ledger_successor"
	// LogKeyKind is the kind of events that state a new or a retired log key. Readers check them
	// under the previous key, so the whole event is public.
	LogKeyKind = "ledger_log_key"
)

// Bundle contains all data needed to check one event without the service. Texts (entries,
// checkpoint, record, envelope) are strings with exactly the bytes that were hashed or signed. A
// Bundle from ParseBundle or NewBundle MUST NOT be changed.
type Bundle struct {
	Version           int             `json:"version"`
	OrganizationID    id.Organization `json:"organization_id"`
	OrganizationSlug  id.Slug         `json:"organization_slug"`
	Origin            id.Origin       `json:"origin"`
	EventID           id.Event        `json:"event_id"`
	SequenceNum       uint64          `json:"sequence_num"`
	LogIndex          id.Index        `json:"log_index"`
	EventHash         id.Hash         `json:"event_hash"`
	Entry             string          `json:"entry"`
	Inclusion         Inclusion       `json:"inclusion"`
	PreviousEntry     *string         `json:"previous_entry"`     // nil for the first entry
	PreviousInclusion *Inclusion      `json:"previous_inclusion"` // nil for the first entry
	Checkpoint        string          `json:"checkpoint"`         // signed note
	LogKey            string          `json:"log_key"`            // C2SP vkey
	// All keys that signed Checkpoint, oldest first; empty if only LogKey signed.
	LogKeys    []string      `json:"log_keys,omitzero"`
	Disclosure id.Disclosure `json:"disclosure"`

	Record   *string     `json:"record,omitzero"`    // nil if not disclosed
	Envelope *string     `json:"envelope,omitzero"`  // nil if not disclosed or erased
	ErasedAt *id.Instant `json:"erased_at,omitzero"` // when the envelope was erased

	// Directory is a second proof, by the service's directory; nil if it was not requested or does
	// not exist yet.
	Directory *Directory `json:"directory,omitzero"`

	// Verification is the report of the server's own Check. Check ignores it.
	Verification *Report `json:"verification,omitzero"`
	// OperatorStatement is an unverified operator claim.
	OperatorStatement *OperatorStatement `json:"operator_statement,omitzero"`

	unknown []string // sorted names of members that this version does not define
}

// OperatorStatement is the operator's statement about the log: the progress of its background
// re-verification, and a claim about the signing key.
type OperatorStatement struct {
	ReverifiedTo id.Index    `json:"reverified_to"`      // entries [0, ReverifiedTo) were read and hashed again
	ReverifiedAt *id.Instant `json:"reverified_at"`      // nil before the first pass
	Fault        *string     `json:"fault"`              // the fault that it found, or nil
	KeyClaim     string      `json:"key_claim,omitzero"` // KeyCompromised or ""
}
