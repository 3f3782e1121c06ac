// Package apitoken implements the bearer tokens with which programs use the console's API for a member, for example to
// activate policies from a repository.
//
// Callers need not know where tokens are stored, how one is found without a session, or how its validity depends on its
// maker's membership.
//
// Invariants:
//
//   - A token acts for its maker, in one organization, with a role that the maker's role covers at each use. It is
//     valid until it expires, is deleted, or its maker's membership ends. While the membership is suspended, it is
//     inactive.
//   - No token has the role owner. Votes, members, tokens and the owner's rights require a person
//     (account.Permission.ForTokens).
//   - Tokens are 256 random bits. The store has only their SHA-256. A token appears only in the answer that made it.
//   - All invalid tokens get the same answer, whatever the reason.
//   - A member has at most MaxTokens. Making and deleting a token are events.
//   - Nothing is cached: a deleted token is refused at the next call.
package apitoken

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/tenant/quota"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// Prefix begins each token.
const Prefix = "alt_"

// Limits of tokens and their names.
const (
	MaxTokens = 20 // per member

	maxName = 100 // code points
	maxLife = 366 * 24 * time.Hour
)

// tokenSize is the number of random bytes of a token, which follow the prefix in base64url.
const tokenSize = 32

// ID identifies a token. It is not secret.
type ID string

// Token is the part of a token that may be shown.
type Token struct {
	ID        ID
	Name      string
	Role      account.Role
	CreatedAt id.Instant
	ExpiresAt id.Instant
}

// Members looks up the roles of members (package account). It returns fault.NotFound for somebody who is not a member,
// and for a suspended member.
type Members interface {
	Membership(ctx context.Context, t id.Tenant, who account.ID) (account.Membership, error)
	TakenOverAt(ctx context.Context, who account.ID) (id.Instant, error)
}

// Options configure New. All but Clock are required.
type Options struct {
	Records storage.RecordStore
	Events  *sysevent.Appender
	Members Members
	Pace    *quota.Quota
	Clock   func() time.Time // default: time.Now
}

// Tokens manages the tokens of all organizations. Its methods may be called concurrently.
type Tokens struct {
	Options
	tokens records.Store[memberRecord]
	claims records.Claims[claimRecord]
}

// New returns the tokens in a store.
func New(o Options) *Tokens {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Tokens{Options: o, tokens: records.New[memberRecord](o.Records, kindTokens, unreadableMessage),
		claims: records.NewClaims[claimRecord](o.Records, kindClaim, unreadableMessage)}
}

func (k *Tokens) currentTime() id.Instant { return id.InstantOf(k.Clock()) }

// generateToken returns a new token.
func generateToken() string {
	var secret [tokenSize]byte
	rand.Read(secret[:]) // never fails since Go 1.24
	return Prefix + base64.RawURLEncoding.EncodeToString(secret[:])
}

func hashToken(token string) id.Hash { return sha256.Sum256([]byte(token)) }

func errUnauthorized() error { return fault.New(fault.Unauthorized, "Not signed in") }

// Authenticate returns the member for whom a token acts, and its role. It returns fault.Unauthorized for every invalid
// token, and fault.Forbidden if the maker's role no longer covers the token's.
func (k *Tokens) Authenticate(ctx context.Context, token string) (*account.Session, ID, error) {
	text, ok := strings.CutPrefix(token, Prefix)
	if !ok || len(text) != base64.RawURLEncoding.EncodedLen(tokenSize) {
		return nil, "", errUnauthorized()
	}
	hash := hashToken(token)
	claim, err := k.claims.Find(ctx, hash)
	if err != nil {
		return nil, "", err
	}
	if !claim.Exists() {
		return nil, "", errUnauthorized()
	}
	at := claim.Value
	held, err := k.tokens.Get(ctx, at.Tenant, string(at.Account))
	if err != nil {
		return nil, "", err
	}
	found := held.Value.find(hash)
	if found == nil || k.currentTime() >= found.ExpiresAt {
		return nil, "", errUnauthorized()
	}
	maker, err := k.Members.Membership(ctx, at.Tenant, at.Account)
	if fault.Is(err, fault.NotFound) || err == nil && maker.ID != found.Membership {
		return nil, "", errUnauthorized()
	}
	if err != nil {
		return nil, "", err
	}
	takenOver, err := k.Members.TakenOverAt(ctx, at.Account)
	if err != nil {
		return nil, "", err
	}
	if takenOver != 0 && found.CreatedAt <= takenOver { // a previous holder of the account made it
		return nil, "", errUnauthorized()
	}
	if !maker.Role.Covers(found.Role) {
		return nil, "", fault.New(fault.Forbidden, "The token's role exceeds that of its creator")
	}
	return &account.Session{Account: at.Account, Tenant: at.Tenant, MembershipID: maker.ID, Role: found.Role,
		ExpiresAt: found.ExpiresAt}, found.ID, nil
}

// find returns the token with a hash, or nil if there is none.
func (r *memberRecord) find(hash id.Hash) *tokenRecord {
	for i := range r.Tokens {
		if subtle.ConstantTimeCompare(r.Tokens[i].Hash[:], hash[:]) == 1 {
			return &r.Tokens[i]
		}
	}
	return nil
}
