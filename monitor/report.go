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
	TreeSize   id.Index       `json:"tree_size"` // of the newest verified head
	RootHash   id.Hash        `json:"root_hash"` // of that head
	NewEntries id.Index       `json:"new_entries"`
	Sources    []SourceReport `json:"sources"`

	// HiddenEntries is the number of a directory's entries whose content the service does
	// not show; nil for any other log.
	HiddenEntries *id.Index `json:"hidden_entries,omitzero"`

	// Succession compares the log with its predecessor; nil when there was no such
	// comparison.
	Succession *SuccessionReport `json:"succession,omitzero"`
	// Successor is the log's successor as the service names it. Its key is unverified.
	Successor *SuccessorReport `json:"successor,omitzero"`

	// Cosignatures are the newest cosignature of each given witness that this check has
	// seen. At that time the witness saw the log with at most this tree. A cosignature from
	// the future is listed in addition, and marked.
	Cosignatures []verify.Cosignature `json:"cosignatures"`
	// AsOf is the time since which a quorum of the policy has confirmed this view; without
	// a policy, the newest cosignature. It is nil if unknown: then the view may be of any
	// age, because nobody but the log, or whoever answers in its name, has confirmed it.
	AsOf *id.Instant `json:"as_of"`
	// Quorum says how far the policy's quorum has followed; nil without a policy.
	Quorum *QuorumReport `json:"quorum,omitzero"`

	// AcceptedKeys are the keys of the log that this check has accepted, because the log
	// stated them under a known key. The state file keeps them.
	AcceptedKeys []verify.AcceptedKey `json:"accepted_keys,omitzero"`
	// OtherSigners name unknown keys that sign in addition to a known key, as name and key
	// ID, and that no event states. These keys are unverified.
	OtherSigners []string `json:"other_signers,omitzero"`
}

// SuccessorReport names the successor of a log.
type SuccessorReport struct {
	Origin id.Origin `json:"origin"`
	LogKey string    `json:"log_key"`
	Unread string    `json:"unread,omitzero"` // why the ended log could not be checked further
}

// SourceReport is the result of a check for one other source.
type SourceReport struct {
	URL      string   `json:"url"`
	TreeSize id.Index `json:"tree_size"`      // of its checkpoint; 0 with an error
	Error    string   `json:"error,omitzero"` // why it could not be compared
}
