package wire

import "github.com/agentledger/agentledger/id"

// OwnLimits are the limits of an organization that differ from its plan; nil means the plan's.
type OwnLimits struct {
	EventsPerMonth      *uint64 `json:"events_per_month"`
	Agents              *uint64 `json:"agents"`
	IngestKeys          *uint64 `json:"ingest_keys"`
	Policies            *uint64 `json:"policies"`
	PolicyVersions      *uint64 `json:"policy_versions"`
	StatementsPerMinute *uint64 `json:"statements_per_minute"`
}

// ChangedOrganization is the operator's answer to a change of an organization.
type ChangedOrganization struct {
	ID         id.Organization `json:"organization_id"`
	Slug       id.Slug         `json:"slug"`
	Name       string          `json:"name"`
	Plan       string          `json:"plan"`
	Active     bool            `json:"active"`
	Limits     OwnLimits       `json:"limits"`
	Disclosure string          `json:"disclosure"`
}

// ListedOrganization is an organization in the operator's list.
type ListedOrganization struct {
	ID     id.Organization    `json:"organization_id"`
	Slug   id.Slug            `json:"slug"`
	Name   string             `json:"name"`
	Plan   string             `json:"plan"`
	Active bool               `json:"active"`
	Usage  *OrganizationUsage `json:"usage"` // nil if it can't be read
	Unread string             `json:"unread,omitzero"`
	Fault  string             `json:"fault,omitzero"`
}

// OrganizationUsage is what an organization uses.
type OrganizationUsage struct {
	Month           string     `json:"month"`
	EventsThisMonth uint64     `json:"events_this_month"`
	EventsPerMonth  Number     `json:"events_per_month"` // null: no limit
	ResetsAt        id.Instant `json:"resets_at"`
	IngestKeys      uint64     `json:"ingest_keys"`
}

// OrganizationDetail is one organization with its settings, if they can be read.
type OrganizationDetail struct {
	ListedOrganization `json:",inline"`
	Origin             id.Origin  `json:"origin,omitzero"`
	CreatedAt          id.Instant `json:"created_at,omitzero"`
	Disclosure         string     `json:"disclosure,omitzero"`
	SignIn             string     `json:"sign_in,omitzero"`
	Limits             *OwnLimits `json:"limits,omitzero"`
}

// ListedOrganizations is a page of the operator's list.
type ListedOrganizations struct {
	Organizations []ListedOrganization `json:"organizations"`
	Next          Text                 `json:"next"`
}

// FoundAccount is an account as the operator sees it.
type FoundAccount struct {
	ID            string       `json:"account_id"`
	Email         string       `json:"email"`
	DisplayName   string       `json:"display_name"`
	CreatedAt     id.Instant   `json:"created_at"`
	EmailProof    string       `json:"email_proof"`
	HasPassword   bool         `json:"has_password"`
	Passkeys      int          `json:"passkeys"`
	RecoveryCodes int          `json:"recovery_codes_left"`
	Organizations []FoundPlace `json:"organizations"`
}

// FoundPlace is a membership of an account as the operator sees it.
type FoundPlace struct {
	ID        id.Organization `json:"organization_id"`
	Slug      id.Slug         `json:"slug"`
	Role      string          `json:"role"`
	Offered   bool            `json:"offered,omitzero"`
	Suspended bool            `json:"suspended,omitzero"`
}

// FoundAccounts are the accounts of an address.
type FoundAccounts struct {
	Accounts []FoundAccount `json:"accounts"`
	Next     Text           `json:"next"` // always null: an address has one account
}

// Clock is the time that the service trusts, next to the time of the machine.
type Clock struct {
	TrustedAt  id.Instant `json:"trusted_at"`
	WallAt     id.Instant `json:"wall_at"`
	OffsetMS   int64      `json:"offset_ms"` // how far wall_at is ahead of the expected time
	Held       bool       `json:"held"`
	HeldReason string     `json:"held_reason,omitempty"`
}

// CorrectedClock is the event by which a ledger returned to the time of the clock.
type CorrectedClock struct {
	Latest   id.Instant `json:"newest_received_at"`
	Received id.Instant `json:"received_at"`
	Sequence uint64     `json:"sequence_num"`
}

// LogKey is a key of a log, with the members of its entry in the public list of keys.
type LogKey struct {
	VKey     string    `json:"vkey"`
	Use      string    `json:"use"`
	FromSize id.Index  `json:"from_size"`
	ToSize   *id.Index `json:"to_size"` // nil while it signs
}

// AskedWitnesses are the names of the witnesses that are asked to cosign a log.
type AskedWitnesses struct {
	Asked []string `json:"asked"`
}
