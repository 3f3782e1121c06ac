package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Session is a signed-in account in one organization. A value that was handed
// out never changes.
type Session struct {
	Account      ID
	Email        string
	Tenant       id.Tenant
	MembershipID string
	Role         Role
	ExpiresAt    id.Instant
}

// Records of the service's own partition.
const (
	kindSession storage.Kind = "session" // by hex SHA-256 of the token
	// kindSessionEnd has one record for each session, by the hex of its end in
	// milliseconds, "/" and the session's key, so all ended sessions are one range.
	kindSessionEnd storage.Kind = "session_end"
)

type sessionRecord struct {
	Account    ID         `json:"account"`
	Tenant     id.Tenant  `json:"tenant"`
	Generation uint64     `json:"generation"` // of the account when it signed in
	ExpiresAt  id.Instant `json:"expires_at"`
}

func (r *sessionRecord) endKey(hash id.Hash) string {
	return endKeyPrefix(r.ExpiresAt) + "/" + hash.String()
}

func endKeyPrefix(i id.Instant) string { return fmt.Sprintf("%016x", uint64(i)) }

// tokenSize is the number of random bytes in a session token, which is written
// in base64url without padding.
const tokenSize = 32

func hashToken(token string) id.Hash { return sha256.Sum256([]byte(token)) }

// Open begins a session of an account, as Authenticate returned it, in one of
// its organizations and returns its token, which is not kept. fault.NotFound
// when the account is not a member. A password that was changed since ends the
// session before it begins.
func (a *Accounts) Open(ctx context.Context, who Account, t id.Tenant) (token string, _ *Session, _ error) {
	m, err := a.Membership(ctx, t, who.ID)
	if err != nil {
		return "", nil, err
	}
	var secret [tokenSize]byte
	rand.Read(secret[:]) // never fails since Go 1.24
	token = base64.RawURLEncoding.EncodeToString(secret[:])
	stored := sessionRecord{
		Account:    who.ID,
		Tenant:     t,
		Generation: who.generation,
		ExpiresAt:  id.InstantOf(a.clock().Add(a.life)),
	}
	if err := a.storeSession(ctx, hashToken(token), stored); err != nil {
		return "", nil, err
	}
	return token, toSession(&stored, who.Email, m), nil
}

// held is the cached part of a session. The facts that end it at once are not cached.
type held struct {
	sessionRecord
	membership Membership
}

func toSession(s *sessionRecord, email string, m Membership) *Session {
	return &Session{
		Account:      s.Account,
		Email:        email,
		Tenant:       s.Tenant,
		MembershipID: m.ID,
		Role:         m.Role,
		ExpiresAt:    s.ExpiresAt,
	}
}

// sweep is how many sessions that are over each new one takes away.
const sweep = 16

// storeSession writes a new session and takes away some that are over.
func (a *Accounts) storeSession(ctx context.Context, hash id.Hash, r sessionRecord) error {
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("open session: %w", err)
	}
	changes := []storage.Change{
		{Kind: kindSession, Key: hash.String(), Value: value},
		{Kind: kindSessionEnd, Key: r.endKey(hash), Value: []byte("{}")},
	}
	over, err := a.records.Scan(ctx, id.Service, kindSessionEnd, "", endKeyPrefix(id.InstantOf(a.clock())), sweep)
	if err != nil {
		return errUnreadable("sweep sessions", err)
	}
	for i := range over {
		_, hash, _ := strings.Cut(over[i].Key, "/")
		changes = append(changes, removeChange(kindSessionEnd, over[i].Key), removeChange(kindSession, hash))
	}
	if err := a.records.Write(ctx, id.Service, changes); err != nil {
		return errUnreadable("open session", err)
	}
	return nil
}

func removeChange(kind storage.Kind, key string) storage.Change {
	return storage.Change{Kind: kind, Key: key, If: storage.AnyVersion}
}

// Close ends a session. One that is not there is over already.
func (a *Accounts) Close(ctx context.Context, token string) error {
	hash := hashToken(token)
	var r sessionRecord
	_, err := a.readRecord(ctx, id.Service, kindSession, hash.String(), &r)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	err = a.records.Write(ctx, id.Service,
		[]storage.Change{removeChange(kindSession, hash.String()), removeChange(kindSessionEnd, r.endKey(hash))})
	a.sessions.Drop(hash)
	if err != nil {
		return errUnreadable("close session", err)
	}
	return nil
}

// Session returns the session of a token; fault.Unauthorized when there is none
// (any more). The knowledge about it, with the role, is at most a second old. A session
// that was closed through these Accounts is over at once. So is one whose account
// was given another password, by any node, because the account is read each time.
func (a *Accounts) Session(ctx context.Context, token string) (*Session, error) {
	if len(token) != base64.RawURLEncoding.EncodedLen(tokenSize) {
		return nil, errNoSession()
	}
	hash := hashToken(token)
	h, err := a.sessions.Get(ctx, hash, func(ctx context.Context) (*held, error) { return a.readSession(ctx, hash) })
	if fault.Is(err, fault.NotFound) {
		return nil, errNoSession()
	}
	if err != nil {
		return nil, err
	}
	if id.InstantOf(a.clock()) >= h.ExpiresAt {
		return nil, errNoSession()
	}
	return a.checkAccount(ctx, h)
}

// checkAccount returns the session when its account has the password that it had at
// the sign-in.
func (a *Accounts) checkAccount(ctx context.Context, h *held) (*Session, error) {
	r, _, err := a.findByID(ctx, h.Account)
	if fault.Is(err, fault.NotFound) {
		return nil, errNoSession()
	}
	if err != nil {
		return nil, err
	}
	if r.Generation != h.Generation {
		return nil, errNoSession()
	}
	return toSession(&h.sessionRecord, r.Email, h.membership), nil
}

func errNoSession() error { return fault.New(fault.Unauthorized, "Not signed in") }

// readSession returns fault.NotFound for a session whose account is no member any
// more.
func (a *Accounts) readSession(ctx context.Context, hash id.Hash) (*held, error) {
	var h held
	if _, err := a.readRecord(ctx, id.Service, kindSession, hash.String(), &h.sessionRecord); err != nil {
		return nil, err
	}
	m, err := a.Membership(ctx, h.Tenant, h.Account)
	if err != nil {
		return nil, err
	}
	h.membership = m
	return &h, nil
}

// SessionLifetime is how long a session lasts.
func (a *Accounts) SessionLifetime() time.Duration { return a.life }
