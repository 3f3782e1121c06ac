package monitor

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// Report is the result of a check.
type Report struct {
	Origin     id.Origin      `json:"origin"`
	CheckedAt  id.Instant     `json:"checked_at"`
	KeptSize   id.Index       `json:"kept_size"` // before the check
	TreeSize   id.Index       `json:"tree_size"` // of the latest verified head
	RootHash   id.Hash        `json:"root_hash"` // of the latest verified head
	NewEntries id.Index       `json:"new_entries"`
	Sources    []SourceReport `json:"sources"`

	// HiddenEntries is the number of the directory's entries whose content the service does not
	// show; nil for any other log.
	HiddenEntries *id.Index `json:"hidden_entries,omitzero"`

	// Succession compares the log with its predecessor; nil if they were not compared.
	Succession *SuccessionReport `json:"succession,omitzero"`
	// Successor is the log's successor, as named by the service. Its key is unverified.
	Successor *SuccessorReport `json:"successor,omitzero"`

	// Cosignatures contains the latest cosignature by each given witness that this check has seen.
	// At that time the witness had seen at most this tree of the log. A cosignature from the future
	// is listed in addition, and marked.
	Cosignatures []verify.Cosignature `json:"cosignatures"`
	// AsOf is the time since which a quorum of the policy has confirmed this view; without a
	// policy, the time of the latest cosignature. It is nil if unknown: the view may then be of any
	// age, because only the log, or whoever answers in its name, has confirmed it.
	AsOf *id.Instant `json:"as_of"`
	// Quorum is how far the policy's quorum has followed; nil without a policy.
	Quorum *QuorumReport `json:"quorum,omitzero"`

	// AcceptedKeys are the keys of the log that this check accepted, because the log stated them
	// under a known key. The state file stores them.
	AcceptedKeys []verify.AcceptedKey `json:"accepted_keys,omitzero"`
	// OtherSigners are the names and key IDs of unknown keys that sign in addition to a known key
	// and that no event states. These keys are unverified.
	OtherSigners []string `json:"other_signers,omitzero"`
}

// SuccessorReport names the successor of a log.
type SuccessorReport struct {
	Origin id.Origin `json:"origin"`
	LogKey string    `json:"log_key"`
	Unread string    `json:"unread,omitzero"` // why the ended log can no longer be checked
}

// SourceReport is the result of a check for one other source.
type SourceReport struct {
	URL      string   `json:"url"`
	TreeSize id.Index `json:"tree_size"`      // of its checkpoint; 0 if there is an error
	Error    string   `json:"error,omitzero"` // why it could not be compared
}
