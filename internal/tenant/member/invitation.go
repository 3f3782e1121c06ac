package member

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// invitationLife is how long an invitation can be accepted.
const invitationLife = 7 * 24 * time.Hour

// kindInvitation has one record for each open invitation, by its ID, in the organization's partition. The record is
// deleted when the invitation is accepted or revoked, and some time after it has expired.
const kindInvitation storage.Kind = "invitation"

type invitationRecord struct {
	Email     string       `json:"email"` // lower case
	Role      account.Role `json:"role"`
	Hash      id.Hash      `json:"hash"` // SHA-256 of the secret of its token
	CreatedAt id.Instant   `json:"created_at"`
	CreatedBy account.ID   `json:"created_by"` // the sender of the latest token
	ExpiresAt id.Instant   `json:"expires_at"`

	// Mailed means that the latest token was sent only to the address, so whoever has it can read the mailbox.
	Mailed bool `json:"mailed,omitzero"`
}

// Invitation is the public part of an invitation.
type Invitation struct {
	ID        string
	Tenant    id.Tenant
	Email     string
	Role      account.Role
	CreatedAt id.Instant
	CreatedBy account.ID
	ExpiresAt id.Instant
	Mailed    bool // the latest token was sent only to the address
}

// Claim describes how the address is assigned to an account that accepts the invitation.
func (i Invitation) Claim() account.Claim { return account.ClaimByInvitation(i.Tenant, i.Mailed) }

func toInvitation(t id.Tenant, v records.Versioned[invitationRecord]) Invitation {
	return Invitation{ID: v.Key, Tenant: t, Email: v.Value.Email, Role: v.Value.Role,
		CreatedAt: v.Value.CreatedAt, CreatedBy: v.Value.CreatedBy, ExpiresAt: v.Value.ExpiresAt,
		Mailed: v.Value.Mailed}
}

// Sizes of the parts of a token, in bytes.
const (
	organizationSize = len(id.Organization{})
	nameSize         = 16
	secretSize       = 32
)

// Token is the credential of an invited person. It contains its organization and invitation, so it can be found
// without an index of tokens.
type Token struct {
	Organization id.Organization
	invitation   string
	hash         id.Hash
}

// newName returns a new ID of an invitation.
func newName() string {
	var name [nameSize]byte
	rand.Read(name[:]) // never fails since Go 1.24
	return nameFrom(name[:])
}

func nameFrom(raw []byte) string { return "inv_" + hex.EncodeToString(raw) }

// newToken returns the text of a new token of an invitation, which is not stored, and the hash of its secret.
func newToken(organization id.Organization, invitation string) (string, id.Hash, error) {
	name, err := hex.DecodeString(strings.TrimPrefix(invitation, "inv_"))
	if err != nil || len(name) != nameSize {
		return "", id.Hash{}, fmt.Errorf("create token: %q is not the ID of an invitation", invitation)
	}
	raw := append(organization[:], name...)
	var secret [secretSize]byte
	rand.Read(secret[:])
	return base64.RawURLEncoding.EncodeToString(append(raw, secret[:]...)), sha256.Sum256(secret[:]), nil
}

// ParseToken parses a token. It returns the error of an unknown invitation.
func ParseToken(text string) (Token, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != organizationSize+nameSize+secretSize {
		return Token{}, ErrNoInvitation()
	}
	organization, rest := id.Organization(raw[:organizationSize]), raw[organizationSize:]
	return Token{organization, nameFrom(rest[:nameSize]), sha256.Sum256(rest[nameSize:])}, nil
}

// ErrNoInvitation returns the same error for every token that cannot be accepted.
func ErrNoInvitation() error {
	return fault.New(fault.NotFound, "The invitation is unknown, used, revoked or expired")
}

// ListInvitations returns at most limit open invitations of an organization, oldest first, after the given one. It
// returns fault.Invalid if that one is not in the list.
func (m *Members) ListInvitations(ctx context.Context, t id.Tenant, after string, limit int) ([]Invitation, error) {
	open, _, err := m.readInvitations(ctx, t)
	if err != nil {
		return nil, err
	}
	begin, err := findBegin(open, after, func(v *storedInvitation) string { return v.Key })
	if err != nil {
		return nil, err
	}
	found := make([]Invitation, 0, min(limit, len(open)-begin))
	for _, v := range open[begin:min(len(open), begin+limit)] {
		found = append(found, toInvitation(t, v))
	}
	return found, nil
}

type storedInvitation = records.Versioned[invitationRecord]

// readInvitations returns all invitations of an organization, oldest first, with the expired ones separately.
func (m *Members) readInvitations(ctx context.Context, t id.Tenant) (open, expired []storedInvitation, err error) {
	now := id.InstantOf(m.Clock())
	for v, err := range m.invitations.Scan(ctx, t, records.Range{}, 0) {
		if err != nil {
			return nil, nil, err
		}
		if v.Value.ExpiresAt <= now {
			expired = append(expired, v)
		} else {
			open = append(open, v)
		}
	}
	slices.SortStableFunc(open, func(a, b storedInvitation) int {
		return cmp.Compare(a.Value.CreatedAt, b.Value.CreatedAt)
	})
	return open, expired, nil
}

// findByToken returns the invitation of a token in an organization with the given members.
func (m *Members) findByToken(ctx context.Context, t id.Tenant, r roster, token Token) (storedInvitation, error) {
	v, err := m.invitations.Get(ctx, t, token.invitation)
	if err != nil {
		return v, err
	}
	matches := subtle.ConstantTimeCompare(v.Value.Hash[:], token.hash[:]) == 1
	if !v.Exists() || !matches || v.Value.ExpiresAt <= id.InstantOf(m.Clock()) {
		return v, ErrNoInvitation()
	}
	if r.checkRight(v.Value.CreatedBy, account.Invite, v.Value.Role) != nil {
		return v, ErrNoInvitation()
	}
	return v, nil
}

// FindInvitation returns the invitation of a token in organization t, and reports whether the person must sign in
// with the existing account of its address. An unproved account does not count if the token proves the address,
// because its holder will take it over.
func (m *Members) FindInvitation(ctx context.Context, t id.Tenant, token Token) (Invitation, bool, error) {
	all, err := m.Accounts.Members(ctx, t)
	if err != nil {
		return Invitation{}, false, err
	}
	v, err := m.findByToken(ctx, t, all, token)
	if err != nil {
		return Invitation{}, false, err
	}
	who, err := m.Accounts.Find(ctx, v.Value.Email)
	if fault.Is(err, fault.NotFound) {
		return toInvitation(t, v), false, nil
	}
	known := !v.Value.Mailed
	if err == nil && !known {
		var proof account.Proof
		proof, err = m.Accounts.Proof(ctx, who.ID)
		known = proof != account.Unproved
	}
	return toInvitation(t, v), known, err
}

// InvitationURL returns the URL of the page that accepts an invitation. The token is in the fragment, which browsers
// do not send.
func InvitationURL(publicURL, token string) string {
	return strings.TrimRight(publicURL, "/") + "/invitation#token=" + token
}

// RecordChecks returns a function for each kind of record of this package that reports whether such a record can be
// decoded. An import calls it before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindInvitation: records.Check[invitationRecord],
		kindSignIn:     records.Check[signInRecord],
		kindDeputy:     records.Check[deputyRecord],
	}
}
