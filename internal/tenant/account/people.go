package account

import (
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/password"
	"github.com/agentledger/agentledger/storage"
)

// Records of the service's own partition.
const (
	kindAccount storage.Kind = "account"       // by account ID
	kindEmail   storage.Kind = "account_email" // by address: the account of the address
)

type accountRecord struct {
	Email        string     `json:"email"`
	PasswordHash string     `json:"password_hash,omitzero"` // PHC string; "" if there is none
	Generation   uint64     `json:"generation"`             // incremented with each change of a factor: ends sessions
	CreatedAt    id.Instant `json:"created_at"`
	DisplayName  string     `json:"display_name,omitzero"`
	// FormerEmails are all other addresses that the account had, at most maxFormerEmails.
	FormerEmails []string `json:"former_emails,omitzero"`

	ApprovalMailOff bool `json:"approval_mail_off,omitzero"`
	WeeklyMail      bool `json:"weekly_mail,omitzero"`
	TimesInUTC      bool `json:"times_in_utc,omitzero"`

	Proof *proofRecord `json:"proof,omitempty"` // of the address; nil if an older program stored the account
	// TakenOverAt is when all ways to sign in of a previous holder ended, or 0.
	TakenOverAt id.Instant `json:"taken_over_at,omitzero"`

	// Released means that the address belongs to another account now, which has proved it.
	Released bool `json:"released,omitzero"`

	// SignInChanges are the latest changes, at most maxSignInChanges, oldest first.
	SignInChanges []SignInChange `json:"sign_in_changes,omitempty"`

	Linked bool `json:"linked,omitzero"` // linked with a person of an identity provider
}

type emailRecord struct {
	Account ID `json:"account"`
}

func (r *accountRecord) toAccount(a ID) Account {
	var proof Proof
	if r.Proof != nil {
		proof = r.Proof.By
	}
	var changed SignInChange
	if last := len(r.SignInChanges) - 1; last >= 0 {
		changed = r.SignInChanges[last]
	}
	return Account{
		SignInChange: changed,

		Proof:       proof,
		Released:    r.Released,
		ID:          a,
		Email:       r.Email,
		HasPassword: r.PasswordHash != "",
		CreatedAt:   r.CreatedAt,
		DisplayName: r.DisplayName,

		FormerEmails: slices.Clone(r.FormerEmails),

		ApprovalMailOff: r.ApprovalMailOff,
		WeeklyMail:      r.WeeklyMail,
		TimesInUTC:      r.TimesInUTC,

		generation: r.Generation,
	}
}

// Find returns the account of an address, ignoring case. It returns fault.NotFound if there is none.
func (a *Accounts) Find(ctx context.Context, email string) (Account, error) {
	email, err := ParseEmail(email)
	if err != nil {
		return Account{}, err
	}
	who, r, _, err := a.findByEmail(ctx, email)
	if err != nil {
		return Account{}, err
	}
	return r.toAccount(who), nil
}

// ByID returns an account with its Proof. For an account of an older program it stores the inferred proof. It returns
// fault.NotFound if there is none.
func (a *Accounts) ByID(ctx context.Context, who ID) (Account, error) {
	r, version, err := a.findByID(ctx, who)
	if err != nil {
		return Account{}, err
	}
	if r.Proof == nil {
		if err := a.ensureProof(ctx, who, r); err != nil {
			return Account{}, err
		}
		_ = a.writeAccount(ctx, who, r, version) // if it fails, the next call infers it again
	}
	return r.toAccount(who), nil
}

func (a *Accounts) findByEmail(ctx context.Context, email string) (ID, *accountRecord, uint64, error) {
	var held emailRecord
	if _, err := a.readRecord(ctx, id.Service, kindEmail, email, &held); err != nil {
		return "", nil, 0, err
	}
	r, version, err := a.findByID(ctx, held.Account)
	return held.Account, r, version, err
}

func (a *Accounts) findByID(ctx context.Context, who ID) (*accountRecord, uint64, error) {
	var r accountRecord
	version, err := a.readRecord(ctx, id.Service, kindAccount, string(who), &r)
	return &r, version, err
}

// Ensure returns the account of an address that the operator gave, and creates it if there is none, with the given
// password, or without one if it is "". An unproved account is taken over, as if there had been none. The password of
// a proved account remains unchanged, even if it has none. names are the names of the person's organizations (see
// password.Check). made reports whether the account was created or taken over.
//
// It returns fault.Invalid for a malformed address or, for a new account, an invalid password.
func (a *Accounts) Ensure(
	ctx context.Context, email, password string, names ...string,
) (who Account, made bool, err error) {
	return a.ensure(ctx, email, password, Claim{By: ProvedByOperator}, Visit{}, names)
}

// EnsureInvited is like Ensure for a person who accepts an invitation. An unproved account is taken over only if the
// claim proves the address.
func (a *Accounts) EnsureInvited(
	ctx context.Context, email, password string, c Claim, v Visit, names ...string,
) (who Account, made bool, err error) {
	return a.ensure(ctx, email, password, c, v, names)
}

func (a *Accounts) ensure(
	ctx context.Context, email, text string, c Claim, v Visit, names []string,
) (who Account, made bool, err error) {
	email, err = ParseEmail(email)
	if err != nil {
		return Account{}, false, err
	}
	name, known, version, err := a.findByEmail(ctx, email)
	if err == nil {
		return a.ensureKnown(ctx, name, known, version, text, c, v, names)
	}
	if !fault.Is(err, fault.NotFound) {
		return Account{}, false, err
	}
	now := a.currentTime()
	r := accountRecord{Email: email, CreatedAt: now, Proof: c.record(now)}
	if text != "" {
		if err := password.Check(text, email, names...); err != nil {
			return Account{}, false, err
		}
		if r.PasswordHash, err = a.hasher.HashPassword(ctx, text); err != nil {
			return Account{}, false, err
		}
	}
	name = newID()
	err = a.createAccount(ctx, name, r)
	if errors.Is(err, storage.ErrStale) { // another call created it in the meantime
		name, known, version, err := a.findByEmail(ctx, email)
		if err != nil {
			return Account{}, false, err
		}
		return a.ensureKnown(ctx, name, known, version, text, c, v, names)
	}
	if err != nil {
		return Account{}, false, errUnreadable("make account", err)
	}
	return r.toAccount(name), true, nil
}

// ensureKnown is like ensure for an address that has an account.
func (a *Accounts) ensureKnown(ctx context.Context, who ID, r *accountRecord, version uint64, password string,
	c Claim, v Visit, names []string) (_ Account, taken bool, err error) {
	if err := a.ensureProof(ctx, who, r); err != nil {
		return Account{}, false, err
	}
	if r.Proof.proved() || c.By == Unproved {
		return r.toAccount(who), false, nil
	}
	changes, err := a.takeOver(ctx, who, r, c.By, v)
	if err != nil {
		return Account{}, false, err
	}
	if password == "" {
		err = a.writeAccount(ctx, who, r, version, changes...)
	} else {
		err = a.replacePassword(ctx, who, r, version, password, names, changes...)
	}
	if err != nil {
		return Account{}, false, err
	}
	return r.toAccount(who), true, nil
}

func (a *Accounts) createAccount(ctx context.Context, who ID, r accountRecord, more ...storage.Change) error {
	account, err := json.Marshal(r)
	if err != nil {
		return err
	}
	email, err := json.Marshal(emailRecord{Account: who})
	if err != nil {
		return err
	}
	return a.records.Write(ctx, id.Service, append([]storage.Change{
		{Kind: kindEmail, Key: r.Email, Value: email},
		{Kind: kindAccount, Key: string(who), Value: account},
	}, more...))
}

// SetPassword replaces an account's password with one that the operator chose, and ends all its sessions at once, on
// every node. An unproved account is taken over, so its other factors end too. names are the names of the person's
// organizations. It returns fault.Invalid for an invalid password (see password.Check), fault.NotFound for an unknown
// address, and fault.Conflict after a concurrent change.
func (a *Accounts) SetPassword(ctx context.Context, email, text string, names ...string) error {
	email, err := ParseEmail(email)
	if err != nil {
		return err
	}
	who, r, version, err := a.findByEmail(ctx, email)
	if err != nil {
		return err
	}
	if err := a.ensureProof(ctx, who, r); err != nil {
		return err
	}
	if err := password.Check(text, email, names...); err != nil {
		return err
	}
	var taken []storage.Change
	if !r.Proof.proved() {
		if taken, err = a.takeOver(ctx, who, r, ProvedByOperator, Visit{}); err != nil {
			return err
		}
	}
	if err := a.noteSignIn(ctx, who, r, SignInByOperator, PasswordSet); err != nil {
		return err
	}
	return a.replacePassword(ctx, who, r, version, text, names, taken...)
}
