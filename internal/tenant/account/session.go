package account

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Session is a signed-in account in one organization. It is immutable.
type Session struct {
	Account      ID
	Email        string
	DisplayName  string
	ApprovalMail bool // the person gets mails about approvals
	WeeklyMail   bool // and about each week
	TimesInUTC   bool // pages keep times in UTC
	Tenant       id.Tenant
	MembershipID string
	Role         Role
	ExpiresAt    id.Instant // extended by use

	ID        string     // "" for a session of an older program
	FactorAt  id.Instant // when the person last proved a factor
	StepUpDue bool       // FactorAt is too old for CheckFactor
	SignIn    Method

	generation uint64 // of the account
}

// Person returns the account as of the check of the session, for ChangeFactors.
func (s *Session) Person() Account {
	return Account{ID: s.Account, Email: s.Email, DisplayName: s.DisplayName, generation: s.generation}
}

// Records of the service's own partition.
const (
	kindSession storage.Kind = "session" // by hex SHA-256 of the token
	// kindSessionEnd has one record for each session, by the hex of its expiry in milliseconds, "/" and the session's
	// key, so all expired sessions are one range.
	kindSessionEnd storage.Kind = "session_end"
	// kindSessionOf has one record for each session, by account, "/" and the session's ID.
	kindSessionOf storage.Kind = "session_of"
)

type sessionRecord struct {
	Account    ID         `json:"account"`
	Tenant     id.Tenant  `json:"tenant"`
	Generation uint64     `json:"generation"` // of the account when it signed in
	ExpiresAt  id.Instant `json:"expires_at"` // extended by touchSession

	// Sessions of older programs have none of these.
	ID       string     `json:"id,omitzero"`
	OpenedAt id.Instant `json:"opened_at,omitzero"`
	SeenAt   id.Instant `json:"seen_at,omitzero"`
	EndsAt   id.Instant `json:"ends_at,omitzero"` // final end, regardless of use
	FactorAt id.Instant `json:"factor_at,omitzero"`

	// Membership is the membership of the session: a person who is removed and invited again must sign in again.
	// Sessions of older programs have none.
	Membership string `json:"membership,omitzero"`
	SignIn     Method `json:"sign_in,omitzero"`

	Visit
}

func (r *sessionRecord) endKey(hash id.Hash) string {
	return endKeyPrefix(r.ExpiresAt) + "/" + hash.String()
}

func endKeyPrefix(i id.Instant) string { return fmt.Sprintf("%016x", uint64(i)) }

// tokenSize is the number of random bytes in a session token, which is encoded in base64url without padding.
const tokenSize = 32

func hashToken(token string) id.Hash { return sha256.Sum256([]byte(token)) }

func newToken() string {
	var secret [tokenSize]byte
	rand.Read(secret[:]) // never fails since Go 1.24
	return base64.RawURLEncoding.EncodeToString(secret[:])
}

// Open creates a session of an account, which Authenticate returned, in one of its organizations, and returns its
// token, which is not stored. It returns fault.NotFound if the account is not a member. If the password has changed
// since Authenticate, the session is invalid from the beginning.
func (a *Accounts) Open(ctx context.Context, who Account, t id.Tenant) (token string, _ *Session, _ error) {
	return a.OpenFrom(ctx, who, t, Visit{})
}

// OpenFrom is like Open and records the browser in the account's login events.
func (a *Accounts) OpenFrom(
	ctx context.Context, who Account, t id.Tenant, v Visit,
) (token string, _ *Session, _ error) {
	m, err := a.Membership(ctx, t, who.ID)
	if err != nil {
		return "", nil, err
	}
	now := a.currentTime()
	stored := sessionRecord{
		Account: who.ID, Tenant: t, Generation: who.generation, Membership: m.ID, SignIn: v.SignIn,
		ID: id.Rising("ses_", now), OpenedAt: now, SeenAt: now, FactorAt: min(now, cmp.Or(v.FactorAt, now)),
		EndsAt: id.InstantOf(a.clock().Add(a.longest)), Visit: v.bounded(),
	}
	event, err := a.loginEvent(ctx, who.ID, v, SignedIn)
	if err != nil {
		return "", nil, err
	}
	token = newToken()
	if err := a.storeSession(ctx, hashToken(token), stored.seenUntil(now, a.life), event...); err != nil {
		return "", nil, err
	}
	return token, a.toSession(&stored, who, m), nil
}

// cachedSession is the cached part of a session. Data that can end it at once is not cached: the account and the
// membership.
type cachedSession struct {
	sessionRecord
	version uint64
}

func (a *Accounts) toSession(s *sessionRecord, who Account, m Membership) *Session {
	return &Session{
		ID:           s.ID,
		FactorAt:     s.FactorAt,
		StepUpDue:    a.currentTime() >= s.FactorAt+factorLife,
		Account:      s.Account,
		Email:        who.Email,
		DisplayName:  who.DisplayName,
		ApprovalMail: !who.ApprovalMailOff,
		WeeklyMail:   who.WeeklyMail,
		TimesInUTC:   who.TimesInUTC,
		Tenant:       s.Tenant,
		MembershipID: m.ID,
		Role:         m.Role,
		ExpiresAt:    s.ExpiresAt,
		SignIn:       s.SignIn,
		generation:   who.generation,
	}
}

// sweep is the number of expired sessions that each new one removes.
const sweep = 16

// storeSession writes a new session with other changes, and removes some expired sessions.
func (a *Accounts) storeSession(ctx context.Context, hash id.Hash, r *sessionRecord, more ...storage.Change) error {
	changes, err := r.putChanges(hash, 0)
	if err != nil {
		return err
	}
	list, err := a.listChange(ctx, r, hash)
	if err != nil {
		return err
	}
	expired, err := a.records.Scan(ctx, id.Service, kindSessionEnd, "", endKeyPrefix(a.currentTime()), sweep)
	if err != nil {
		return errUnreadable("sweep sessions", err)
	}
	for i := range expired {
		_, hash, _ := strings.Cut(expired[i].Key, "/")
		changes = append(changes, removeChange(kindSessionEnd, expired[i].Key), removeChange(kindSession, hash))
		changes = append(changes, removeFromList(expired[i].Value)...)
	}
	changes = withoutRepeats(slices.Concat(more, changes, list))
	if err := a.records.Write(ctx, id.Service, changes); err != nil {
		return errUnreadable("open session", err)
	}
	return nil
}

// withoutRepeats removes later changes of a record that an earlier change already changes, for example of an expired
// session that is also the oldest of its account.
func withoutRepeats(changes []storage.Change) []storage.Change {
	type name struct {
		kind storage.Kind
		key  string
	}
	changed := make(map[name]bool, len(changes))
	return slices.DeleteFunc(changes, func(c storage.Change) bool {
		n := name{c.Kind, c.Key}
		repeated := changed[n]
		changed[n] = true
		return repeated
	})
}

func removeChange(kind storage.Kind, key string) storage.Change {
	return storage.Change{Kind: kind, Key: key, If: storage.AnyVersion}
}

// Close ends a session. If there is no such session, it does nothing.
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
	err = a.records.Write(ctx, id.Service, r.removeChanges(hash))
	a.sessions.Drop(hash)
	if err != nil {
		return errUnreadable("close session", err)
	}
	return nil
}

// Session returns the session of a token, or fault.Unauthorized if there is none. Its data is at most a second old.
// Sessions that were closed through these Accounts end at once. So do sessions whose account got another password or
// whose membership was suspended or removed, on any node, and a new role applies at once: account and membership are
// read each time.
func (a *Accounts) Session(ctx context.Context, token string) (*Session, error) {
	if len(token) != base64.RawURLEncoding.EncodedLen(tokenSize) {
		return nil, errNoSession()
	}
	hash := hashToken(token)
	h, err := a.sessions.Get(ctx, hash, func(ctx context.Context) (*cachedSession, error) { return a.readSession(ctx, hash) })
	if fault.Is(err, fault.NotFound) {
		return nil, errNoSession()
	}
	if err != nil {
		return nil, err
	}
	if a.currentTime() >= h.ExpiresAt {
		return nil, errNoSession()
	}
	found, err := a.checkAccount(ctx, h)
	if err == nil {
		a.touchSession(ctx, hash, h)
	}
	return found, err
}

// checkAccount returns the session if its account still has the generation of the sign-in and the same membership.
func (a *Accounts) checkAccount(ctx context.Context, h *cachedSession) (*Session, error) {
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
	m, err := a.Membership(ctx, h.Tenant, h.Account)
	if fault.Is(err, fault.NotFound) || err == nil && h.Membership != "" && h.Membership != m.ID {
		return nil, errNoSession()
	}
	if err != nil {
		return nil, err
	}
	return a.toSession(&h.sessionRecord, r.toAccount(h.Account), m), nil
}

func errNoSession() error { return fault.New(fault.Unauthorized, "Not signed in") }

// readSession returns fault.NotFound for an unknown session.
func (a *Accounts) readSession(ctx context.Context, hash id.Hash) (*cachedSession, error) {
	var h cachedSession
	var err error
	h.version, err = a.readRecord(ctx, id.Service, kindSession, hash.String(), &h.sessionRecord)
	if err != nil {
		return nil, err
	}
	return &h, nil
}

// SessionLifetime returns the maximum lifetime of a session.
func (a *Accounts) SessionLifetime() time.Duration { return a.longest }
