// Package apitoken is the bearer tokens by which programs use the console for a member, for
// example to activate policies that come from a repository.
//
// Invariants:
//
//   - A token acts for its maker, in one organization, with a role that the maker's role covers at each use. It is valid
//     until it expires, is deleted, or its owner's membership ends. It is inactive while the membership is suspended.
//   - No token has the role owner. Votes, members, tokens and the owner's rights need a person
//     (account.Permission.ForTokens).
//   - Tokens are 256 random bits. The store has their SHA-256. A token is in the answer that made it
//     and in no other.
//   - All unknown tokens have the same answer, for each reason.
//   - A member has MaxTokens at most. Making and deleting one is an event.
//   - Nothing is cached: a token that was deleted is refused at the next call.
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

// Bounds.
const (
	MaxTokens = 20 // of one member

	maxName = 100 // code points
	maxLife = 366 * 24 * time.Hour
)

// tokenSize is the number of random bytes of a token, which follow the prefix in base64url.
const tokenSize = 32

// ID names a token. It is no secret.
type ID string

// Token is the part of a token that may be shown.
type Token struct {
	ID        ID
	Name      string
	Role      account.Role
	CreatedAt id.Instant
	ExpiresAt id.Instant
}

// Members knows the roles of members (package account); fault.NotFound for a stranger and for a
// suspended member.
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

// Tokens is the tokens of all organizations. Its methods may be called concurrently.
type Tokens struct {
	Options
	tokens records.Store[memberRecord]
	claims records.Store[claimRecord]
}

// New returns the tokens of a store.
func New(o Options) *Tokens {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Tokens{Options: o, tokens: records.New[memberRecord](o.Records, kindTokens, unreadableMessage),
		claims: records.New[claimRecord](o.Records, kindClaim, unreadableMessage)}
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

// Authenticate returns for whom and with which role a token acts. fault.Unauthorized for every
// token that is not good; fault.Forbidden when the maker's role does not cover the token's any more.
func (k *Tokens) Authenticate(ctx context.Context, token string) (*account.Session, ID, error) {
	text, ok := strings.CutPrefix(token, Prefix)
	if !ok || len(text) != base64.RawURLEncoding.EncodedLen(tokenSize) {
		return nil, "", errUnauthorized()
	}
	hash := hashToken(token)
	claim, err := k.claims.Get(ctx, id.Service, hash.String())
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
		return nil, "", fault.New(fault.Forbidden, "The token's role is beyond that of its maker")
	}
	return &account.Session{Account: at.Account, Tenant: at.Tenant, MembershipID: maker.ID, Role: found.Role,
		ExpiresAt: found.ExpiresAt}, found.ID, nil
}

// find returns the token with a hash, nil when there is none.
func (r *memberRecord) find(hash id.Hash) *tokenRecord {
	for i := range r.Tokens {
		if subtle.ConstantTimeCompare(r.Tokens[i].Hash[:], hash[:]) == 1 {
			return &r.Tokens[i]
		}
	}
	return nil
}
