package wire

import "github.com/agentledger/agentledger/id"

// Erasure is an erasure with its progress.
type Erasure struct {
	ID        string        `json:"erasure_id"`
	State     string        `json:"state"`
	Reason    string        `json:"reason"`
	AskedBy   string        `json:"asked_by"`
	AskedAt   id.Instant    `json:"asked_at"`
	EndedAt   Time          `json:"ended_at"`
	By        string        `json:"by"`
	Event     Text          `json:"event_id"`
	Approval  Text          `json:"approval_id"`
	Agent     Text          `json:"agent_id"`
	Trace     Text          `json:"trace_id"`
	Principal Text          `json:"principal"`             // also null once the erasure has ended
	Subject   Text          `json:"on_behalf_of,omitzero"` // absent unless By is on_behalf_of, and once the erasure has ended
	Issuer    Text          `json:"issuer,omitzero"`       // of Subject; absent for all issuers
	From      Text          `json:"from"`
	To        Text          `json:"to"`
	TreeSize  id.Index      `json:"tree_size"` // no event from this index on is erased
	Counts    ErasureCounts `json:"counts"`
	Remains   []Remainder   `json:"remains,omitempty"` // only in the answer for a single erasure
}

// Ended reports whether the erasure is complete.
func (e Erasure) Ended() bool { return e.State == "done" }

// ErasureCounts are the numbers of an erasure so far.
type ErasureCounts struct {
	Matched    uint64   `json:"matched"`
	Erased     uint64   `json:"erased"`
	Already    uint64   `json:"already"`
	Unexamined id.Index `json:"unexamined"` // events that are still to be examined
	Approvals  uint64   `json:"approvals"`
	Deliveries uint64   `json:"deliveries"`
}

// Remainder is something that an erasure does not remove.
type Remainder struct {
	Code  string `json:"code"`
	What  string `json:"what"`
	Until string `json:"until"`
}

// Erasures is a page of the list of erasures.
type Erasures struct {
	Erasures []Erasure `json:"erasures"`
	Next     Text      `json:"next"`
}

// StartedErasure is the answer to a new erasure.
type StartedErasure struct {
	ID string `json:"erasure_id"`
}
