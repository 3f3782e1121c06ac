package monitor

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// Report is what a check has seen.
type Report struct {
	Origin     id.Origin      `json:"origin"`
	CheckedAt  id.Instant     `json:"checked_at"`
	KeptSize   id.Index       `json:"kept_size"` // before the check
	TreeSize   id.Index       `json:"tree_size"` // of the newest head that is verified now
	RootHash   id.Hash        `json:"root_hash"` // of that head
	NewEntries id.Index       `json:"new_entries"`
	Sources    []SourceReport `json:"sources"`

	// HiddenEntries are those of a directory whose content is not shown, so that nobody
	// but the service can tell what they list; nil of any other log.
	HiddenEntries *id.Index `json:"hidden_entries,omitzero"`

	// Succession is how the log goes on from the one before it; nil when that was not
	// asked for or not found out.
	Succession *SuccessionReport `json:"succession,omitzero"`
	// Successor is what the service says goes on in place of this log. Nothing vouches
	// for its key.
	Successor *SuccessorReport `json:"successor,omitzero"`

	// Cosignatures are the newest of each witness that was given, as far as seen in
	// this check: the witness saw the log at that time, of at most this tree.
	Cosignatures []verify.Cosignature `json:"cosignatures"`
	// Quorum is how far the policy's quorum has followed; nil without a policy.
	Quorum *QuorumReport `json:"quorum,omitzero"`

	// OtherSigners sign as the log beside a key that was given, as name and key id: the log
	// is getting another key. Nothing vouches for it.
	OtherSigners []string `json:"other_signers,omitzero"`
}

// SuccessorReport names the log that goes on in place of another one.
type SuccessorReport struct {
	Origin id.Origin `json:"origin"`
	LogKey string    `json:"log_key"`
	Unread string    `json:"unread,omitzero"` // why nothing more of the ended log could be checked
}

// SourceReport is what a check has seen of one other source.
type SourceReport struct {
	URL      string   `json:"url"`
	TreeSize id.Index `json:"tree_size"`      // of its checkpoint; 0 with an error
	Error    string   `json:"error,omitzero"` // why it could not be compared
}
