// Package account is the people who look after organizations: their accounts,
// the organizations they are members of, and their sessions.
//
// Invariants:
//
//   - An e-mail address, in lower case, belongs to one account of the service. An account records whether and how
//     its address was proved.
//   - Only a proved address is an identity. An unproved account exists in the organization that invited it alone:
//     it joins no other one, accepts no offer, founds nothing and is linked with no person of a provider.
//   - The first proof of an address takes the account over: its sessions, password, passkeys and recovery codes end,
//     and its login events record it. This also applies to a proof in a session of the account itself.
//   - Passwords are stored as Argon2id hashes and session tokens as SHA-256
//     hashes; neither is in an error or a log line.
//   - A password that is chosen has 10 characters or more and is none of the 100,000
//     commonest, nor the person's address or organization.
//   - A wrong password, an unknown address and an account without a password
//     have the same answer after the same work. Attempts are bounded by account and network address
//     together, by account, and by network address. A browser that signed in before has a budget of
//     its own, so no stranger locks a person out of it.
//   - An account that has no password can't sign in. Only SetPassword, ChangePassword and
//     ResetPassword give or change one: making a member of a known account never touches it.
//   - A token to reset a password lives an hour and works once, until another one or another
//     password takes its place. An address without an account causes the same work and answer.
//   - An account gets another address by a token that was mailed there, within an hour, in a session
//     of its own: neither a stolen session nor a reader of the new mailbox can do it alone. All its
//     other sessions end. Each change of password or address is mailed in the write of the change.
//   - A known account is offered a membership, which is of no effect until the account itself accepts it.
//   - A person of an identity provider is linked with a proved account after one of the account's own factors was
//     proved, unless the account has none.
//   - A session is of one account in one organization. It lives as long as its
//     time, the account's password and the membership do. A changed password and a membership
//     that is suspended or removed end it at once, and the role is the one of now; other knowledge
//     about it is at most a second old.
//   - A session ends after 12 hours without a request and after 7 days in any case. Its token is
//     new after each sign-in and each proof of a factor (StepUp), and the token before it is over.
//   - A change of the passkeys or the recovery codes of an account ends its sessions as a new password does.
//     Packages that keep them write it by ChangeFactors.
//   - A session knows the method of its sign-in until its end.
//   - An account has at most 100 sessions and 100 login events; the oldest give way.
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
	"github.com/agentledger/agentledger/internal/tenant/password"
	"github.com/agentledger/agentledger/storage"
)

// Hashing is the cost of the hashes of passwords.
type Hashing = password.Cost

// ID names an account; it is the principal of the account's acts.
type ID string

// Account is one person.
type Account struct {
	ID          ID
	Email       string // lower case
	HasPassword bool
	CreatedAt   id.Instant
	DisplayName string // "": none

	FormerEmails []string // each other address that the account had, lower case

	Proof    Proof // of the address; may be "" for an account of an older program, but not from ByID
	Released bool  // the address leads to another account, which has proved it

	// SignInChange is the latest change; its Number is 0 if there was none.
	SignInChange SignInChange

	ApprovalMailOff bool   // the person wants no mail about approvals
	generation      uint64 // of its password and other factors
}

// Options configure New. Records is required.
type Options struct {
	Records storage.RecordStore

	SessionLife time.Duration    // of a session without a request; default: 12 hours
	LongestLife time.Duration    // of a session that is used all the time; default: 7 days
	Hashing     Hashing          // of passwords; default: see password.Cost
	Limits      Limits           // default: see Limits
	Resets      Limits           // of resets of passwords; default: 3 and one in 10 minutes, 30 and one in 30 s
	Nodes       func() int       // of the service, which share Limits and Resets; default: one
	Clock       func() time.Time // default: time.Now
	Cached      int              // sessions kept in memory; default 16,384
	Mail        Mail             // default: none
}

// Mail writes to the people of accounts. Its methods return the changes that send a message once
// they are written to the service's own partition: none while the service has no mail.
type Mail interface {
	// PasswordMail reports that the password of an account was changed.
	PasswordMail(ctx context.Context, who Account) ([]storage.Change, error)
	// FactorMail reports a change of the passkeys or the recovery codes of an account: AddedPasskey,
	// RemovedPasskey, MadeCodes, UsedCode or RemovedFactors.
	FactorMail(ctx context.Context, who Account, kind LoginKind) ([]storage.Change, error)
	// ConfirmMail sends the token that confirms a new address.
	ConfirmMail(ctx context.Context, c EmailChange) ([]storage.Change, error)
	// AddressMail reports to the address of an account that the account gets another address.
	AddressMail(ctx context.Context, before Account) ([]storage.Change, error)
}

// Accounts is all accounts of a store. Its methods may be called concurrently.
type Accounts struct {
	records  storage.RecordStore
	life     time.Duration
	longest  time.Duration
	mail     Mail // may be nil
	clock    func() time.Time
	hasher   *password.Hasher
	attempts *attempts
	resets   *attempts                      // to ask for one, and wrong tokens
	codes    *attempts                      // recovery codes
	sessions *cache.Loading[id.Hash, *held] // by hash of the token
	factors  Factors                        // nil: accounts have none
}

// Factors is the passkeys and the recovery codes of accounts (package factor).
type Factors interface {
	// HasAny reports whether an account has a passkey or an unused recovery code.
	HasAny(ctx context.Context, who ID) (bool, error)
	// RemoveChanges returns the changes that remove all passkeys and recovery codes of an account.
	RemoveChanges(ctx context.Context, who ID) ([]storage.Change, error)
}

// UseFactors sets where the passkeys and recovery codes of accounts are. It must be called before any other method.
func (a *Accounts) UseFactors(f Factors) { a.factors = f }

// sessionAge is how old the knowledge of a session may be.
const sessionAge = time.Second

// New returns the accounts of a store.
func New(o Options) *Accounts {
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
		records: o.Records, life: o.SessionLife, longest: o.LongestLife, mail: o.Mail, clock: o.Clock,
		hasher:   password.NewHasher(o.Hashing),
		attempts: newAttempts(o.Limits, o.Nodes, o.Clock, "Too many sign-in attempts, try again later"),
		resets:   newAttempts(o.Resets, o.Nodes, o.Clock, "Too many resets of passwords, try again later"),
		codes:    newAttempts(o.Limits, o.Nodes, o.Clock, "Too many recovery codes, try again later"),
		sessions: cache.NewLoading(cache.LoadingOptions[id.Hash, *held]{
			MaxAge: sessionAge,
			Limit:  int64(o.Cached),
			Clock:  o.Clock,
		}),
	}
}

func (a *Accounts) currentTime() id.Instant { return id.InstantOf(a.clock()) }

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
