package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// Approval is a request for permission with everything that approvers decide on.
type Approval struct {
	ID           string         `json:"approval_id"`
	Status       string         `json:"status"`
	Agent        id.Agent       `json:"agent_id"`
	Tool         id.Tool        `json:"tool_name"`
	Payload      jsontext.Value `json:"payload,omitzero"` // absent for roles that may not read it
	ActionDigest id.Hash        `json:"action_digest"`
	Trace        Text           `json:"trace_id"`
	Principal    Text           `json:"actor_principal"`
	IngestKey    string         `json:"ingest_key_id"`
	Policy       AppliedPolicy  `json:"policy"`
	Quorum       int            `json:"quorum"`
	Signed       bool           `json:"signed"` // approving votes must be signed
	Votes        []Vote         `json:"votes"`
	CreatedAt    id.Instant     `json:"created_at"`
	ExpiresAt    id.Instant     `json:"expires_at"`
	EndedAt      Time           `json:"ended_at"`
	ErasedAt     Time           `json:"erased_at,omitzero"` // of the payload
	Comment      Text           `json:"comment"`            // as the agent gets it
	ReasonCode   Text           `json:"reason_code"`
	MayVote      bool           `json:"may_vote"` // whether the caller may vote now
	WhyNot       Text           `json:"why_not"`
}

// Open reports whether the approval is pending, or approved and not used yet.
func (a *Approval) Open() bool { return a.Status == "pending" || a.Status == "approved" }

// Agreed returns the number of approving votes.
func (a *Approval) Agreed() (n int) {
	for _, v := range a.Votes {
		if v.Vote == "approve" {
			n++
		}
	}
	return n
}

// Unsigned returns the number of votes that are unverified operator claims.
func (a *Approval) Unsigned() (n int) {
	for _, v := range a.Votes {
		if v.Signature == nil {
			n++
		}
	}
	return n
}

// AppliedPolicy is the rule that requires an approval.
type AppliedPolicy struct {
	ID      string  `json:"policy_id"`
	Version uint64  `json:"policy_version"`
	Digest  id.Hash `json:"policy_digest"`
	Rule    string  `json:"rule_id"`
	Reason  string  `json:"reason"`
}

// Vote is the ballot of one approver.
type Vote struct {
	Account   string         `json:"account"`
	Email     string         `json:"email"`
	Vote      string         `json:"vote"` // approve or deny
	Comment   string         `json:"comment"`
	Code      string         `json:"reason_code,omitzero"`
	At        id.Instant     `json:"at"`
	Signature *VoteSignature `json:"signature,omitempty"` // nil for an unverified operator claim
}

// VoteSignature names the voter key that signed a vote. The signature itself is in the event.
type VoteSignature struct {
	CredentialID signedvote.Bytes `json:"credential_id"`
	Thumbprint   string           `json:"thumbprint"`
	RegisteredAt id.Instant       `json:"key_registered_at"`
}

// ApprovalDetail is one approval with the sign-in changes that approvers should know of.
type ApprovalDetail struct {
	Approval `json:",inline"`
	SignIns  []SignInChange `json:"sign_in_changes"`
}

// Approvals is a page of the list of approvals.
type Approvals struct {
	Approvals []Approval     `json:"approvals"`
	Next      Text           `json:"next"`
	SignIns   []SignInChange `json:"sign_in_changes"`
	Count     *Count         `json:"count"` // only on the first page of a list without may_vote
}

// Count is the number of items that match on all pages of a list. If it is not complete, more may match.
type Count struct {
	Matching int  `json:"matching"`
	Complete bool `json:"complete"`
}

// SignInChange is a recent change of how a member who may vote signs in, made without one of the member's own factors.
type SignInChange struct {
	AccountID string     `json:"account_id"`
	Email     string     `json:"email"`
	Change    string     `json:"change"`
	By        string     `json:"by"`
	ChangedAt id.Instant `json:"changed_at"`
}

// VoterKey is a passkey that signs a member's votes.
type VoterKey struct {
	AccountID    string           `json:"account_id"`
	Email        string           `json:"email"`
	CredentialID signedvote.Bytes `json:"credential_id"`
	Thumbprint   string           `json:"thumbprint"`
	PublicKey    signedvote.Key   `json:"public_key"`
	RegisteredAt id.Instant       `json:"registered_at"`
	ConsentBy    Text             `json:"consent_by"` // thumbprint; null if no other passkey consented
	UsedAt       Time             `json:"used_at"`
}

// VoterKeys is a page of the list of voter keys.
type VoterKeys struct {
	Keys []VoterKey `json:"voter_keys"`
	Next Text       `json:"next"`
}
