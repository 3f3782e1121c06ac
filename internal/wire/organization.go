package wire

import "github.com/agentledger/agentledger/id"

// Organization is the settings of the caller's organization.
type Organization struct {
	ID            id.Organization `json:"organization_id"`
	Slug          id.Slug         `json:"slug"`
	Name          string          `json:"name"`
	Origin        id.Origin       `json:"origin"`
	Plan          string          `json:"plan"`
	Active        bool            `json:"active"`
	Disclosure    string          `json:"disclosure"`
	SelfReview    bool            `json:"self_review"`
	TwoPerson     bool            `json:"two_person_policy"`
	Published     bool            `json:"publish_policies"`
	SignIn        RequiredSignIn  `json:"sign_in"`
	RetentionDays int             `json:"retention_days"` // 0: permanently
	LegalHold     bool            `json:"legal_hold"`
	VoteHoldHours int             `json:"vote_hold_hours"`
	SignedVotes   string          `json:"signed_votes"`    // optional or required
	ColumnsInMail bool            `json:"columns_in_mail"` // mails to approvers contain the values of the columns
	CreatedAt     id.Instant      `json:"created_at"`
	Fault         string          `json:"fault,omitzero"`       // of the ledger; with a fault the lists may be wrong
	Permissions   []string        `json:"permissions,omitzero"` // of the caller, only in the answer to GET
}

// RequiredSignIn is the sign-in method that the organization requires.
type RequiredSignIn struct {
	Require Text `json:"require"`
}

// PlanUsage is how much of its plan an organization uses.
type PlanUsage struct {
	Plan            string     `json:"plan"`
	EventsThisMonth uint64     `json:"events_this_month"`
	EventsPerMonth  Number     `json:"events_per_month"` // 0: no limit
	Month           string     `json:"month"`            // YYYY-MM, UTC
	ResetsAt        id.Instant `json:"resets_at"`
	Limits          PlanLimits `json:"limits"`
}

// PlanLimits is the use of each limit.
type PlanLimits struct {
	EventsPerMonth      PlanLimit `json:"events_per_month"`
	Agents              PlanLimit `json:"agents"`
	KeysPerAgent        PlanLimit `json:"keys_per_agent"`
	ActiveKeysPerAgent  PlanLimit `json:"active_keys_per_agent"`
	IngestKeys          PlanLimit `json:"ingest_keys"`
	Policies            PlanLimit `json:"policies"`
	PolicyVersions      PlanLimit `json:"policy_versions"`
	StatementsPerMinute PlanLimit `json:"statements_per_minute"`
}

// PlanLimit is the use of one limit.
type PlanLimit struct {
	Used  *uint64 `json:"used"`  // nil for a limit per agent or per policy
	Limit Number  `json:"limit"` // 0: no limit
}

// NearlyReached reports whether at least 80 % of the limit is used.
func (l PlanLimit) NearlyReached() bool {
	const percent = 80
	limit := uint64(l.Limit)
	return limit > 0 && l.Used != nil && *l.Used >= limit/100*percent+limit%100*percent/100
}

// Columns are the members of payloads by which acts are found.
type Columns struct {
	Columns []Column `json:"columns"`
}

// Column is a member of payloads by which acts are found.
type Column struct {
	Path     string   `json:"path"`
	From     id.Index `json:"from"`     // acts at or after this log index are found
	Building bool     `json:"building"` // a backfill is in progress
}

// Views are the organization's saved searches of acts, in the order of their names.
type Views struct {
	Views []View `json:"views"`
}

// View is a saved search of acts.
type View struct {
	Name    string     `json:"name"`
	Search  string     `json:"search"` // a search line of the activity page
	SavedBy string     `json:"saved_by"`
	SavedAt id.Instant `json:"saved_at"`
}

// WitnessReport is the witnesses of the organization's log and their latest cosignatures.
type WitnessReport struct {
	Policy    Text      `json:"policy"` // the organization's own; null if the service's policy applies
	Fail      string    `json:"fail"`   // open or closed
	InForce   string    `json:"in_force"`
	Newest    *Cosigned `json:"newest"`
	Quorum    *Cosigned `json:"quorum"`
	Witnesses []Witness `json:"witnesses"`
}

// Cosigned is a checkpoint with its cosignatures.
type Cosigned struct {
	TreeSize     id.Index      `json:"tree_size"`
	Cosignatures []Cosignature `json:"cosignatures"`
}

// Cosignature is the cosignature of one witness.
type Cosignature struct {
	Name string     `json:"name"`
	Time id.Instant `json:"time"`
}

// Witness is the state of one witness.
type Witness struct {
	Name             string   `json:"name"`
	VKey             string   `json:"vkey"`
	AcknowledgedSize id.Index `json:"acknowledged_size"`
	NotAskedBefore   Time     `json:"not_asked_before"`
	LastResult       Text     `json:"last_result"`
	LastAskedAt      Time     `json:"last_asked_at"`
}

// ToolKeys are the public keys of an organization's tools, whose receipts confirm acts.
type ToolKeys struct {
	Keys []ToolKey `json:"keys"`
}

// ToolKey is the public key of a tool.
type ToolKey struct {
	Name         string     `json:"name"` // of the key, which is the tool's
	Key          string     `json:"key"`  // a C2SP verifier key
	RegisteredBy string     `json:"registered_by"`
	RegisteredAt id.Instant `json:"registered_at"`
}
