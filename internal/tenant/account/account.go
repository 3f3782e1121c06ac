// Package account manages the people who look after organizations: their accounts, the organizations of which they
// are members, and their sessions. It hides how passwords, tokens and sessions are stored, and which records a change
// has to touch.
//
// Addresses and proofs:
//
//   - An e-mail address, in lower case, belongs to one account of the service. An account records whether and how its
//     address was proved.
//   - Only a proved address is an identity. An unproved account exists only in the organization that invited it: it
//     cannot join another one, accept offers, found organizations, or be linked with a person of an identity
//     provider.
//   - The first proof of an address takes over the account: its sessions, password, passkeys and recovery codes end,
//     and its login events record it. This also applies to a proof in a session of the account itself.
//   - An account changes its address with a token that was mailed to the new address, within an hour, in one of its
//     sessions: neither a stolen session nor access to the new mailbox is enough. All its other sessions end. Each
//     change of password or address is mailed in the same write.
//   - A person of an identity provider is linked with a proved account only after one of the account's own factors
//     was proved, unless the account has none.
//
// Passwords:
//
//   - Passwords are stored as Argon2id hashes and session tokens as SHA-256 hashes. Neither appears in an error or a
//     log line.
//   - A chosen password has at least 10 characters and is not one of the 100,000 most common passwords, the person's
//     address or the name of an organization.
//   - A wrong password, an unknown address and an account without a password get the same response after the same
//     work. Attempts are limited by account and network address together, by account, and by network address. A
//     browser that signed in before has a separate limit, so no stranger can lock out a person.
//   - An account without a password cannot sign in with one. Only SetPassword, ChangePassword and ResetPassword set a
//     password: adding an existing account as a member never changes it.
//   - A token to reset a password is valid for an hour and can be used once, until another token or another password
//     replaces it. An address without an account causes the same work and response.
//
// Memberships and sessions:
//
//   - An existing account is offered a membership, which has no effect until the account itself accepts it.
//   - A session belongs to one account in one organization. It ends when it expires, when the account's password
//     changes, and when the membership is suspended or removed. Such changes and changes of the role apply at once;
//     other data of the session is at most a second old.
//   - A session ends after 12 hours without a request, and after 7 days in any case. It gets a new token after each
//     sign-in and each proof of a factor (StepUp), and the previous token becomes invalid.
//   - A change of the passkeys or the recovery codes of an account ends its sessions like a new password does.
//     Packages that store them write the change with ChangeFactors.
//   - A session records the method of its sign-in.
//   - An account has at most 100 sessions and 100 login events; new ones replace the oldest.
//   - The record of a membership is stored with its organization. The list of an account's organizations may contain
//     some that were never created: they are ignored.
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
	"github.com/agentledger/agentledger/internal/tenant/password"
	"github.com/agentledger/agentledger/storage"
)

// Hashing is the cost of password hashes.
type Hashing = password.Cost

// ID identifies an account. It is the principal of the account's actions.
type ID string

// Account is the account of one person.
type Account struct {
	ID          ID
	Email       string // lower case
	HasPassword bool
	CreatedAt   id.Instant
	DisplayName string // may be ""

	FormerEmails []string // all other addresses that the account had, in lower case

	Proof    Proof // of the address; may be "" for an account of an older program, except from ByID
	Released bool  // the address belongs to another account now, which has proved it

	// SignInChange is the latest change; its Number is 0 if there was none.
	SignInChange SignInChange

	ApprovalMailOff bool   // no mails about approvals are sent
	WeeklyMail      bool   // a mail about each organization is sent on Mondays
	TimesInUTC      bool   // pages keep times in UTC, where else scripts show the time of the browser
	generation      uint64 // of the password and the other factors
}

// Options configure New. Records is required.
type Options struct {
	Records storage.RecordStore

	SessionLife time.Duration    // of a session without a request; default: 12 hours
	LongestLife time.Duration    // of a session in permanent use; default: 7 days
	Hashing     Hashing          // of passwords; default: see password.Cost
	Limits      Limits           // default: see Limits
	Resets      Limits           // for password resets; default: 3 and one in 10 minutes, 30 and one in 30 s
	Nodes       func() int       // number of nodes that share Limits and Resets; default: one
	Clock       func() time.Time // default: time.Now
	Cached      int              // sessions in memory; default: 16,384
	Mail        Mail             // optional

	// Factors returns the passkeys and recovery codes of the accounts. It is a function because factor.New needs the
	// Accounts. If it is nil or returns nil, accounts have none.
	Factors func() Factors
}

// Mail sends mails to the people of accounts. Its methods return changes that send the mail when they are written to
// the service's own partition. They return no changes if the service sends no mail.
type Mail interface {
	// PasswordMail reports that the password of an account was changed.
	PasswordMail(ctx context.Context, who Account) ([]storage.Change, error)
	// FactorMail reports a change of the passkeys or the recovery codes of an account: AddedPasskey, RemovedPasskey,
	// MadeCodes, UsedCode or RemovedFactors.
	FactorMail(ctx context.Context, who Account, kind LoginKind) ([]storage.Change, error)
	// ConfirmMail sends the token that confirms a new address.
	ConfirmMail(ctx context.Context, c EmailChange) ([]storage.Change, error)
	// AddressMail reports to the current address of an account that the account gets another address.
	AddressMail(ctx context.Context, before Account) ([]storage.Change, error)
}

// Accounts manages all accounts of a store. Its methods may be called concurrently.
type Accounts struct {
	records  storage.RecordStore
	life     time.Duration
	longest  time.Duration
	mail     Mail // may be nil
	clock    func() time.Time
	hasher   *password.Hasher
	attempts *attempts
	resets   *attempts                               // requests for resets, and wrong tokens
	codes    *attempts                               // recovery codes
	sessions *cache.Loading[id.Hash, *cachedSession] // by hash of the token
	factors  func() Factors
}

// Factors manages the passkeys and the recovery codes of accounts. factor.Factors implements it.
type Factors interface {
	// HasAny reports whether an account has a passkey or an unused recovery code.
	HasAny(ctx context.Context, who ID) (bool, error)
	// RemoveChanges returns the changes that remove all passkeys and recovery codes of an account.
	RemoveChanges(ctx context.Context, who ID) ([]storage.Change, error)
}

// sessionAge is the maximum age of the cached data of a session.
const sessionAge = time.Second

// New returns the accounts of a store.
func New(o Options) *Accounts {
	if o.Factors == nil {
		o.Factors = func() Factors { return nil }
	}
	if o.SessionLife == 0 {
		o.SessionLife = 12 * time.Hour
	}
	if o.LongestLife == 0 {
		o.LongestLife = 7 * 24 * time.Hour
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Resets == (Limits{}) {
		o.Resets = Limits{AccountBurst: 3, AccountEvery: 10 * time.Minute, EverywhereBurst: 3,
			EverywhereEvery: 10 * time.Minute, AddressBurst: 30, AddressEvery: 30 * time.Second}
	}
	if o.Cached == 0 {
		o.Cached = 1 << 14
	}
	return &Accounts{
		records: o.Records, life: o.SessionLife, longest: o.LongestLife, mail: o.Mail, clock: o.Clock, factors: o.Factors,
		hasher:   password.NewHasher(o.Hashing),
		attempts: newAttempts(o.Limits, o.Nodes, o.Clock, "Too many sign-in attempts, try again later"),
		resets:   newAttempts(o.Resets, o.Nodes, o.Clock, "Too many resets of passwords, try again later"),
		codes:    newAttempts(o.Limits, o.Nodes, o.Clock, "Too many recovery codes, try again later"),
		sessions: cache.NewLoading(cache.LoadingOptions[id.Hash, *cachedSession]{
			MaxAge: sessionAge,
			Limit:  int64(o.Cached),
			Clock:  o.Clock,
		}),
	}
}

func (a *Accounts) currentTime() id.Instant { return id.InstantOf(a.clock()) }

// readRecord decodes a record and returns its version. It returns fault.NotFound if there is none.
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

// errUnreadable wraps an error of the store: the state of the account is unknown.
func errUnreadable(step string, err error) error {
	return records.Unreadable("Accounts can't be read", step, err)
}
