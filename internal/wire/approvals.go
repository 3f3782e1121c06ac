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
	OnBehalfOf   *OnBehalfOf    `json:"on_behalf_of,omitzero"` // nil if nobody is stated, or if it is erased
	Intent       Text           `json:"intent_event_id"`       // the event that asked; null if none
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
	TakeBack     Time           `json:"take_back_until"` // until when the caller, who approved, is offered to revoke the approval
	Shown        []Shown        `json:"shown,omitempty"` // values of the organization's columns; absent like the payload
}

// Shown is a value of a column of the organization, in words for people.
type Shown struct {
	Path   string `json:"path"`
	Label  string `json:"label"` // such as "order"; "" if Text says what it is
	Text   string `json:"text"`  // such as "A-1009", or "640.00 USD"
	Amount bool   `json:"amount"`
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
	Via       string         `json:"via,omitzero"` // slack; absent for votes on the service's own pages and interface
	At        id.Instant     `json:"at"`
	DeputyFor string         `json:"deputy_for,omitzero"` // account in whose place the voter voted
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
	Act      *ActLink       `json:"act"` // that the approval belongs to: its intent, or the step that consumed it; nil if there is none
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

// Deputy is a member who votes in place of another one for a period.
type Deputy struct {
	MembershipID    string     `json:"membership_id"` // of the represented member
	AccountID       string     `json:"account_id"`
	Email           string     `json:"email"`
	DeputyAccountID string     `json:"deputy_account_id"`
	DeputyEmail     string     `json:"deputy_email"`
	From            id.Instant `json:"from"`
	Until           id.Instant `json:"until"`
	State           string     `json:"state"` // member.DeputyState
}

// Deputies is a page of the list of deputies.
type Deputies struct {
	Deputies []Deputy `json:"deputies"`
	Next     Text     `json:"next"`
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
