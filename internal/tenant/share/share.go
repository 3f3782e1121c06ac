// Package share implements links by which people without an account, such as auditors, read one view of an organization's
// acts.
//
// Callers need not know where links are stored, how one is found by its secret, or when an opening is recorded.
//
// Invariants:
//
//   - A link shows one query of acts, with the columns of payloads that the organization had when the link was made. Both never
//     change.
//   - A link is open until it expires or is revoked. It does not end with the membership of its creator, because the reader is
//     somebody else; the list names the creator.
//   - Secrets are 256 random bits. The store has only their SHA-256. A secret appears only in the answer that made it.
//   - All links that are not open get the same answer, whatever the reason.
//   - An organization has at most MaxOpen open links. Of ended ones, it keeps the latest MaxEnded, for Kept.
//   - Making, opening and revoking a link are events. Openings within Pause of a recorded one are not recorded, so a reader
//     adds at most one event a minute per link. A link is not shown if its opening cannot be recorded.
//   - Nothing is cached: a revoked link is refused at the next request.
package share

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Limits of links.
const (
	MaxOpen  = 50 // of an organization
	MaxEnded = 20 // of an organization, in its list
	MaxQuery = 2048
	MaxLife  = 90 * 24 * time.Hour
	Kept     = 30 * 24 * time.Hour // after the end
	Pause    = time.Minute         // between recorded openings

	maxNote = 100 // code points
)

// secretSize is the number of random bytes of a secret, which is their base64url.
const secretSize = 32

// Prefix begins each ID.
const Prefix = "shr_"

// ID identifies a link. It is not secret.
type ID string

// Link is the part of a link that may be shown.
type Link struct {
	ID        ID         `json:"id"`
	Note      string     `json:"note"`              // whom it is for
	Query     string     `json:"query"`             // of the list of acts
	Columns   []string   `json:"columns,omitempty"` // paths of the columns of payloads that the link may show
	By        account.ID `json:"by"`
	CreatedAt id.Instant `json:"created_at"`
	ExpiresAt id.Instant `json:"expires_at"`
	RevokedAt id.Instant `json:"revoked_at,omitzero"`
	RevokedBy account.ID `json:"revoked_by,omitzero"`
	Openings  uint64     `json:"openings,omitzero"`  // recorded ones
	OpenedAt  id.Instant `json:"opened_at,omitzero"` // the latest recorded one
}

// State returns open, expired or revoked.
func (l *Link) State(now id.Instant) string {
	switch {
	case l.RevokedAt != 0:
		return "revoked"
	case now >= l.ExpiresAt:
		return "expired"
	}
	return "open"
}

// Options configure New. All but Clock are required.
type Options struct {
	Records storage.RecordStore
	Events  *sysevent.Appender
	Pace    *quota.Quota
	Clock   func() time.Time // default: time.Now
}

// Links manages the links of all organizations. Its methods may be called concurrently.
type Links struct {
	Options
	links  records.Store[linksRecord]
	claims records.Claims[claimRecord]
}

// New returns the links in a store.
func New(o Options) *Links {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Links{Options: o, links: records.New[linksRecord](o.Records, kindLinks, unreadableMessage),
		claims: records.NewClaims[claimRecord](o.Records, kindClaim, unreadableMessage)}
}

func (k *Links) currentTime() id.Instant { return id.InstantOf(k.Clock()) }

// Wanted describes a new link.
type Wanted struct {
	Note      string
	Query     string // the caller has checked that it selects acts
	Columns   []string
	ExpiresAt id.Instant
}

func (k *Links) checkWanted(w Wanted) error {
	now := k.currentTime()
	switch {
	case !textcheck.Name(w.Note, 1, maxNote):
		return fault.New(fault.Invalid, "note must have 1 to 100 characters and no control characters")
	case len(w.Query) > MaxQuery:
		return fault.New(fault.Invalid, fmt.Sprintf("query must have at most %d bytes", MaxQuery))
	case w.ExpiresAt <= now:
		return fault.New(fault.Invalid, "expires_at must be in the future")
	case w.ExpiresAt > now+id.Instant(MaxLife/time.Millisecond):
		return fault.New(fault.Invalid, "expires_at must be at most 90 days from now")
	}
	return nil
}

// statedQuery returns a query as the log has it, permanently: without the subject for whom agents acted.
func statedQuery(query string) string {
	values, err := url.ParseQuery(query)
	if err != nil || !values.Has("on_behalf_of") {
		return query
	}
	values.Set("on_behalf_of", "hidden")
	return values.Encode()
}

// Create creates a link and states it (ledger_share_created). The secret is not stored. It returns fault.Conflict if the
// organization has MaxOpen open links.
func (k *Links) Create(ctx context.Context, t id.Tenant, by account.ID, w Wanted) (Link, string, error) {
	if err := k.checkWanted(w); err != nil {
		return Link{}, "", err
	}
	var random [secretSize]byte
	rand.Read(random[:]) // never fails since Go 1.24
	secret := base64.RawURLEncoding.EncodeToString(random[:])
	now := k.currentTime()
	made := linkRecord{Link: Link{ID: ID(id.Rising(Prefix, now)), Note: w.Note, Query: w.Query, Columns: w.Columns, By: by, CreatedAt: now, ExpiresAt: w.ExpiresAt},
		Hash: hashSecret(secret)}
	var dropped []id.Hash
	err := k.claims.Create(ctx, made.Hash, claimRecord{t}, func() error {
		return k.change(ctx, t, string(by), func(ctx context.Context, r *linksRecord) (*sysevent.Statement, []storage.Change, error) {
			dropped = r.drop(now)
			if r.open(now) >= MaxOpen {
				return nil, nil, &fault.Error{Kind: fault.Conflict, Code: "share_limit",
					Message: "The organization has 50 open links, the most that it may have: revoke one first"}
			}
			r.Links = append(r.Links, made)
			paced, err := k.Pace.CountStatement(ctx, t)
			return &sysevent.Statement{Kind: sysevent.ShareCreated, Payload: map[string]any{
				"share_id": made.ID, "note": w.Note, "query": statedQuery(w.Query), "columns": append([]string{}, w.Columns...), "expires_at": w.ExpiresAt,
			}}, paced, err
		})
	})
	if err != nil {
		return Link{}, "", err
	}
	k.claims.Remove(ctx, dropped)
	return made.Link, secret, nil
}

// List returns the links of an organization, latest first, without those that ended more than Kept ago.
func (k *Links) List(ctx context.Context, t id.Tenant) ([]Link, error) {
	held, err := k.links.Get(ctx, t, "")
	if err != nil {
		return nil, err
	}
	held.Value.drop(k.currentTime())
	all := make([]Link, 0, len(held.Value.Links))
	for _, r := range slices.Backward(held.Value.Links) {
		all = append(all, r.Link)
	}
	return all, nil
}

// Revoke ends an open link and states it (ledger_share_revoked). It returns fault.NotFound if the organization has no
// open link with that ID.
func (k *Links) Revoke(ctx context.Context, t id.Tenant, by account.ID, name ID) error {
	return k.change(ctx, t, string(by), func(_ context.Context, r *linksRecord) (*sysevent.Statement, []storage.Change, error) {
		now := k.currentTime()
		at := slices.IndexFunc(r.Links, func(l linkRecord) bool { return l.ID == name && l.State(now) == "open" })
		if at < 0 {
			return nil, nil, fault.New(fault.NotFound, "Not found")
		}
		r.Links[at].RevokedAt, r.Links[at].RevokedBy = now, by
		return &sysevent.Statement{Kind: sysevent.ShareRevoked, Payload: map[string]any{"share_id": name, "note": r.Links[at].Note}}, nil, nil
	})
}

// errNoLink is the answer for every link that is not open.
func errNoLink() error {
	return fault.New(fault.NotFound, "This link does not exist, has ended or was revoked")
}

// Find returns the open link with a secret, and its organization. It returns fault.NotFound for every other secret.
func (k *Links) Find(ctx context.Context, secret string) (id.Tenant, Link, error) {
	if len(secret) != base64.RawURLEncoding.EncodedLen(secretSize) {
		return 0, Link{}, errNoLink()
	}
	hash := hashSecret(secret)
	claim, err := k.claims.Find(ctx, hash)
	if err == nil && !claim.Exists() {
		err = errNoLink()
	}
	if err != nil {
		return 0, Link{}, err
	}
	held, err := k.links.Get(ctx, claim.Value.Tenant, "")
	if err != nil {
		return 0, Link{}, err
	}
	found := held.Value.find(hash)
	if found == nil || found.State(k.currentTime()) != "open" {
		return 0, Link{}, errNoLink()
	}
	return claim.Value.Tenant, found.Link, nil
}

// errOpenedBefore means that a recent opening was recorded.
var errOpenedBefore = errors.New("opened before")

// Open states that a link was opened (ledger_share_opened), unless an opening was recorded within Pause. It returns
// fault.NotFound if the link is no longer open.
func (k *Links) Open(ctx context.Context, t id.Tenant, link Link) error {
	if k.isRecent(&link) {
		return nil
	}
	err := k.change(ctx, t, string(link.ID), func(_ context.Context, r *linksRecord) (*sysevent.Statement, []storage.Change, error) {
		at := slices.IndexFunc(r.Links, func(l linkRecord) bool { return l.ID == link.ID })
		if at < 0 || r.Links[at].State(k.currentTime()) != "open" {
			return nil, nil, errNoLink()
		}
		opened := &r.Links[at].Link
		if k.isRecent(opened) {
			return nil, nil, errOpenedBefore
		}
		opened.Openings, opened.OpenedAt = opened.Openings+1, k.currentTime()
		return &sysevent.Statement{Kind: sysevent.ShareOpened, Payload: map[string]any{ // the number makes each event another one
			"share_id": opened.ID, "note": opened.Note, "opening": opened.Openings}}, nil, nil
	})
	if errors.Is(err, errOpenedBefore) {
		return nil
	}
	return err
}

// isRecent reports whether an opening was recorded within Pause. A time in the future is of a clock that was corrected since.
func (k *Links) isRecent(l *Link) bool {
	now := k.currentTime()
	return l.OpenedAt != 0 && l.OpenedAt <= now && now < l.OpenedAt+id.Instant(Pause/time.Millisecond)
}

// change changes an organization's links together with the append of the statement that change returns.
func (k *Links) change(
	ctx context.Context, t id.Tenant, principal string,
	change func(context.Context, *linksRecord) (*sysevent.Statement, []storage.Change, error),
) error {
	_, err := k.Events.Append(ctx, t, principal, func(ctx context.Context, _ *log.State) (sysevent.Change, error) {
		held, err := k.links.Get(ctx, t, "")
		if err != nil {
			return sysevent.Change{}, err
		}
		stated, others, err := change(ctx, &held.Value)
		if err != nil {
			return sysevent.Change{}, err
		}
		put, err := k.links.Put(held)
		return sysevent.Change{Statements: []sysevent.Statement{*stated}, Changes: append(others, put), KeepConfigVersion: true}, err
	})
	if err != nil {
		return fmt.Errorf("change links: %w", err)
	}
	return nil
}

func hashSecret(secret string) id.Hash { return sha256.Sum256([]byte(secret)) }

// find returns the link with a hash, or nil if there is none.
func (r *linksRecord) find(hash id.Hash) *linkRecord {
	for i := range r.Links {
		if subtle.ConstantTimeCompare(r.Links[i].Hash[:], hash[:]) == 1 {
			return &r.Links[i]
		}
	}
	return nil
}

// open returns the number of open links.
func (r *linksRecord) open(now id.Instant) (n int) {
	for i := range r.Links {
		if r.Links[i].State(now) == "open" {
			n++
		}
	}
	return n
}

// drop removes links that ended more than Kept ago, and the oldest of more than MaxEnded ended ones. It returns the hashes of
// their secrets.
func (r *linksRecord) drop(now id.Instant) (dropped []id.Hash) {
	ended := len(r.Links) - r.open(now)
	var rest []linkRecord
	for _, l := range r.Links {
		end := l.ExpiresAt
		if l.RevokedAt != 0 {
			end = l.RevokedAt
		}
		if l.State(now) != "open" && (ended > MaxEnded || now >= end+id.Instant(Kept/time.Millisecond)) {
			dropped, ended = append(dropped, l.Hash), ended-1
			continue
		}
		rest = append(rest, l)
	}
	r.Links = rest
	return dropped
}
