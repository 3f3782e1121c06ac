package verify

import (
	"github.com/agentledger/agentledger/id"
)

// Constants of the documents.
const (
	// BundleVersion is the version of bundles that this package makes and reads.
	BundleVersion = 1
	// KeyCompromised claims that the key was in other hands when the event was signed: its
	// revocation names an index at or below the event's.
	KeyCompromised = "compromised"
	// MaxListed is the largest number of logs in one Listing.
	MaxListed = 256
)

// Kinds of public events of the service itself: values of action_kind.
const (
	// DirectoryKind is the kind of the events in a service's directory. They list trees of
	// the service's logs; the payload is a Listing.
	DirectoryKind = "ledger_directory"
	// SuccessorKind is the kind of the first event of a log that continues a frozen log. Its
	// payload is a Succession. The whole event is public, because an auditor needs it to tell
	// a successor from a second history.
	SuccessorKind = "ledger_successor"
	// LogKeyKind is the kind of the events that state a new or a retired log key. Readers check
	// them under the key that signed before, so the whole event is public.
	LogKeyKind = "ledger_log_key"
)

// Bundle holds all data that the check of one event needs, so that it works without the
// service. Texts (entries, checkpoint, record, envelope) are strings with exactly the
// bytes that were hashed or signed. A Bundle from ParseBundle or NewBundle MUST NOT be
// changed.
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
	// all that signed Checkpoint, oldest first; none when LogKey signed alone
	LogKeys    []string      `json:"log_keys,omitzero"`
	Disclosure id.Disclosure `json:"disclosure"`

	Record   *string     `json:"record,omitzero"`    // nil when not disclosed
	Envelope *string     `json:"envelope,omitzero"`  // nil when not disclosed or erased
	ErasedAt *id.Instant `json:"erased_at,omitzero"` // when the envelope was erased

	// Directory is a second proof, by the service's directory; nil when none was
	// asked for or there is none yet.
	Directory *Directory `json:"directory,omitzero"`

	// Verification is the report of the server's own Check. It is no input of Check.
	Verification *Report `json:"verification,omitzero"`
	// OperatorStatement is the operator's word, which nothing here can check.
	OperatorStatement *OperatorStatement `json:"operator_statement,omitzero"`

	unknown []string // members of a parsed document that this version doesn't know, sorted
}

// OperatorStatement is the operator's own statement about the log: the progress of its
// background re-verification, and a claim about the signing key.
type OperatorStatement struct {
	ReverifiedTo id.Index    `json:"reverified_to"`      // entries [0, ReverifiedTo) were read again and hashed
	ReverifiedAt *id.Instant `json:"reverified_at"`      // nil before the first pass
	Fault        *string     `json:"fault"`              // the fault that it found; nil for none
	KeyClaim     string      `json:"key_claim,omitzero"` // KeyCompromised, or nothing
}
