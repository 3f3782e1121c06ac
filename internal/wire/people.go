package wire

import "github.com/agentledger/agentledger/id"

// SignedIn is the answer to a sign-in and to me: the account, its place in the organization of the session, and all
// organizations that it could enter, including offered ones.
type SignedIn struct {
	Account       Account `json:"account"`
	User          User    `json:"user"`
	Organization  Place   `json:"organization"`
	Organizations []Place `json:"organizations"`
	MayFound      bool    `json:"may_found"` // members may create organizations
}

// Account is the account of the caller.
type Account struct {
	ID           string `json:"account_id"`
	Email        string `json:"email"`
	DisplayName  string `json:"display_name"`
	ApprovalMail bool   `json:"approval_mail"`
	WeeklyMail   bool   `json:"weekly_mail"`
	TimesInUTC   bool   `json:"times_in_utc"`
	EmailProved  bool   `json:"email_proved"` // an account without proof stays in one organization
}

// User is the caller's membership in the organization of the session.
type User struct {
	MembershipID string   `json:"membership_id"`
	Role         string   `json:"role"`
	Permissions  []string `json:"permissions"` // of the role, so that pages show only what the user may do
}

// Place is an organization that an account can enter.
type Place struct {
	ID      id.Organization `json:"organization_id"`
	Slug    id.Slug         `json:"slug"`
	Name    string          `json:"name"`
	Role    string          `json:"role"`
	Offered bool            `json:"offered,omitzero"` // not accepted yet; signing in to it accepts it
}

// NamedOrganization is the name of an organization.
type NamedOrganization struct {
	ID   id.Organization `json:"organization_id"`
	Slug id.Slug         `json:"slug"`
	Name string          `json:"name"`
}

// Session is one session of an account.
type Session struct {
	ID           string             `json:"session_id"`
	Current      bool               `json:"current"`
	Organization *NamedOrganization `json:"organization"` // nil if the account has left it
	OpenedAt     id.Instant         `json:"opened_at"`
	SeenAt       id.Instant         `json:"seen_at"`
	ExpiresAt    id.Instant         `json:"expires_at"`
	Address      string             `json:"address"`
	Program      string             `json:"program"`
}

// Sessions are the sessions of an account.
type Sessions struct {
	Sessions []Session `json:"sessions"`
	Next     Text      `json:"next"` // always null: there are few
}

// LoginEvent is a change of how an account signs in.
type LoginEvent struct {
	At      id.Instant `json:"at"`
	Kind    string     `json:"kind"`
	Address string     `json:"address"`
	Program string     `json:"program"`
}

// LoginEvents are the login events of an account.
type LoginEvents struct {
	Events []LoginEvent `json:"login_events"`
	Next   Text         `json:"next"` // always null: there are few
}

// Member is a member of an organization.
type Member struct {
	MembershipID string     `json:"membership_id"`
	AccountID    string     `json:"account_id"`
	Email        string     `json:"email"`
	EmailProved  bool       `json:"email_proved"`
	DisplayName  string     `json:"display_name"`
	Role         string     `json:"role"`
	MemberSince  id.Instant `json:"member_since"`
	Suspended    bool       `json:"suspended"`
	Offered      bool       `json:"offered,omitzero"`
}

// Name returns the display name, or the email address if there is none.
func (m Member) Name() string {
	if m.DisplayName != "" {
		return m.DisplayName
	}
	return m.Email
}

// Members is a page of the members of an organization.
type Members struct {
	Members []Member `json:"members"`
	Next    Text     `json:"next"`
}

// Invitation is an open invitation.
type Invitation struct {
	InvitationID string     `json:"invitation_id"`
	Email        string     `json:"email"`
	Role         string     `json:"role"`
	CreatedAt    id.Instant `json:"created_at"`
	CreatedBy    string     `json:"created_by"`
	ExpiresAt    id.Instant `json:"expires_at"`
}

// Invitations is a page of the open invitations of an organization.
type Invitations struct {
	Invitations []Invitation `json:"invitations"`
	Next        Text         `json:"next"`
}

// SentInvitation contains the link for the inviter to forward, null if it was mailed.
type SentInvitation struct {
	InvitationID string     `json:"invitation_id"`
	ExpiresAt    id.Instant `json:"expires_at"`
	URL          Text       `json:"url"`
	Mailed       bool       `json:"mailed"`
}

// HeldInvitation is an invitation as the holder of its token sees it.
type HeldInvitation struct {
	ID            id.Organization `json:"organization_id"`
	Slug          id.Slug         `json:"slug"`
	Name          string          `json:"name"`
	Role          string          `json:"role"`
	Email         string          `json:"email"`
	AccountExists bool            `json:"account_exists"`
	ExpiresAt     id.Instant      `json:"expires_at"`
}

// Passkey is a passkey of the account.
type Passkey struct {
	ID           string     `json:"passkey_id"`
	CredentialID string     `json:"credential_id"` // base64url
	Name         string     `json:"name"`
	CreatedAt    id.Instant `json:"created_at"`
	UsedAt       Time       `json:"used_at"`
	BackedUp     bool       `json:"backed_up"`
}

// Passkeys are the passkeys of the account and the number of its unused recovery codes.
type Passkeys struct {
	Passkeys  []Passkey `json:"passkeys"`
	CodesLeft int       `json:"recovery_codes_left"`
	Next      Text      `json:"next"` // always null: there are few
}

// Provider is an OpenID provider.
type Provider struct {
	Name  string `json:"name"`
	Start string `json:"start"` // path to which a browser goes to sign in
}

// Providers are the OpenID providers of the service.
type Providers struct {
	Providers []Provider `json:"providers"`
}

// SecondFactor is the answer to a sign-in that lacks its second factor.
type SecondFactor struct {
	SecondFactor []string `json:"second_factor"`
}

// RecoveryCodes are new recovery codes. No other answer contains them.
type RecoveryCodes struct {
	Codes []string `json:"recovery_codes"`
}

// IngestSecret is the first ingest key of an organization. No other answer contains its secret.
type IngestSecret struct {
	KeyID  string `json:"key_id"`
	Secret string `json:"secret"`
}

// Share is a link by which people without an account read a view of acts.
type Share struct {
	ShareID   string     `json:"share_id"`
	Note      Text       `json:"note"`
	Query     string     `json:"query"`   // of the list of acts
	Columns   []string   `json:"columns"` // paths of the columns of payloads that the link may show
	State     string     `json:"state"`   // open, expired or revoked
	CreatedBy string     `json:"created_by"`
	CreatedAt id.Instant `json:"created_at"`
	ExpiresAt id.Instant `json:"expires_at"`
	RevokedAt Time       `json:"revoked_at"`
	RevokedBy Text       `json:"revoked_by"`
	Openings  uint64     `json:"openings"` // recorded ones, at most one a minute
	OpenedAt  Time       `json:"opened_at"`
}

// CreatedShare is the answer to a new link: the only one with its address.
type CreatedShare struct {
	Share `json:",inline"`
	URL   string `json:"url"`
}

// Shares is a page of links.
type Shares struct {
	Shares []Share `json:"shares"`
	Next   Text    `json:"next"`
}
