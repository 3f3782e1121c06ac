// Package account is the people who look after organizations: their accounts,
// the organizations they are members of, and their sessions.
//
// Invariants:
//
//   - An e-mail address, in lower case, belongs to one account of the service.
//   - Passwords are stored as Argon2id hashes and session tokens as SHA-256
//     hashes; neither is in an error or a log line.
//   - A password that is chosen has 10 characters or more and is none of the 100,000
//     commonest, nor the person's address or organization.
//   - A wrong password, an unknown address and an account without a password
//     have the same answer after the same work, and attempts are bounded by
//     account and by network address.
//   - An account that has no password can't sign in. Only SetPassword gives or
//     changes one: making a member of a known account never touches it.
//   - An address belongs to the first caller that named it. A known account is offered a membership,
//     which is of no effect until the account itself accepts it.
//   - A session is of one account in one organization. It lives as long as its
//     time, the account's password and the membership do. A changed password ends it
//     at once; other knowledge about it is at most a second old.
//   - The record of a membership lies with its organization. The list of an
//     account's organizations may name some that never came to be: they are not
//     shown.
package account

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// ID names an account; it is the principal of the account's acts.
type ID string

// Account is one person.
type Account struct {
	ID          ID
	Email       string // lower case
	HasPassword bool
	CreatedAt   id.Instant
	generation  uint64 // of its password
}

// Options configure New. Records is required.
type Options struct {
	Records storage.RecordStore

	SessionLife time.Duration    // default: 12 hours
	Hashing     Hashing          // default: see Hashing
	Limits      Limits           // default: see Limits
	Clock       func() time.Time // default: time.Now
	Cached      int              // sessions kept in memory; default 16,384
}

// Accounts is all accounts of a store. Its methods may be called concurrently.
type Accounts struct {
	records  storage.RecordStore
	life     time.Duration
	clock    func() time.Time
	hasher   *hasher
	attempts *attempts
	sessions *cache.Loading[id.Hash, *held] // by hash of the token
}

// sessionAge is how old the knowledge of a session may be.
const sessionAge = time.Second

// New returns the accounts of a store.
func New(o Options) *Accounts {
	if o.SessionLife == 0 {
		o.SessionLife = 12 * time.Hour
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Cached == 0 {
		o.Cached = 1 << 14
	}
	return &Accounts{
		records: o.Records, life: o.SessionLife, clock: o.Clock,
		hasher:   newHasher(o.Hashing),
		attempts: newAttempts(o.Limits, o.Clock),
		sessions: cache.NewLoading(cache.LoadingOptions[id.Hash, *held]{
			MaxAge: sessionAge,
			Limit:  int64(o.Cached),
			Clock:  o.Clock,
		}),
	}
}

// readRecord decodes a record and returns its version; fault.NotFound when there is none.
func (a *Accounts) readRecord(
	ctx context.Context, t id.Tenant, kind storage.Kind, key string, into any,
) (uint64, error) {
	r, err := a.records.Get(ctx, t, kind, key)
	if errors.Is(err, storage.ErrNotFound) {
		return 0, fault.New(fault.NotFound, "Not found")
	}
	if err == nil {
		err = json.Unmarshal(r.Value, into)
	}
	if err != nil {
		return 0, errUnreadable("read "+string(kind), err)
	}
	return r.Version, nil
}

// errUnreadable wraps an error of the store: nothing can be said about an account
// that can't be read.
func errUnreadable(step string, err error) error {
	return records.Unreadable("Accounts can't be read", step, err)
}
