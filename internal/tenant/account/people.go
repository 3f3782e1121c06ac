package account

import (
	"context"
	"errors"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/passwordrule"
	"github.com/agentledger/agentledger/storage"
)

// Records of the service's own partition.
const (
	kindAccount storage.Kind = "account"       // by account id
	kindEmail   storage.Kind = "account_email" // by address: the account that has it
)

type accountRecord struct {
	Email        string     `json:"email"`
	PasswordHash string     `json:"password_hash,omitzero"` // PHC string, "" for none
	Generation   uint64     `json:"generation"`             // raised with each change of a factor: ends sessions
	CreatedAt    id.Instant `json:"created_at"`
	DisplayName  string     `json:"display_name,omitzero"`
	// FormerEmails is each other address that the account had, at most maxFormerEmails.
	FormerEmails []string `json:"former_emails,omitzero"`

	ApprovalMailOff bool `json:"approval_mail_off,omitzero"`
}

type emailRecord struct {
	Account ID `json:"account"`
}

func (r *accountRecord) toAccount(a ID) Account {
	return Account{
		ID:          a,
		Email:       r.Email,
		HasPassword: r.PasswordHash != "",
		CreatedAt:   r.CreatedAt,
		DisplayName: r.DisplayName,

		FormerEmails: slices.Clone(r.FormerEmails),

		ApprovalMailOff: r.ApprovalMailOff,

		generation: r.Generation,
	}
}

// Find returns the account of an address, in any case; fault.NotFound when
// there is none.
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

// ByID returns an account; fault.NotFound when there is none.
func (a *Accounts) ByID(ctx context.Context, who ID) (Account, error) {
	r, _, err := a.findByID(ctx, who)
	if err != nil {
		return Account{}, err
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

// Ensure returns the account of an address and makes it when there is none,
// with password, or without any when that is "". The password of a known
// account stays as it is, also when it has none. names are those of the person's
// organizations (see passwordrule.Check). made says that there was none.
//
// fault.Invalid for a malformed address or, for a new account, password.
func (a *Accounts) Ensure(
	ctx context.Context, email, password string, names ...string,
) (who Account, made bool, err error) {
	known, err := a.Find(ctx, email)
	if !fault.Is(err, fault.NotFound) {
		return known, false, err
	}
	email, err = ParseEmail(email)
	if err != nil {
		return Account{}, false, err
	}
	r := accountRecord{Email: email, CreatedAt: id.InstantOf(a.clock())}
	if password != "" {
		if err := passwordrule.Check(password, email, names...); err != nil {
			return Account{}, false, err
		}
		if r.PasswordHash, err = a.hasher.HashPassword(ctx, password); err != nil {
			return Account{}, false, err
		}
	}
	name := newID()
	err = a.createAccount(ctx, name, r)
	if errors.Is(err, storage.ErrStale) { // another call made it meanwhile
		known, err = a.Find(ctx, email)
		return known, false, err
	}
	if err != nil {
		return Account{}, false, errUnreadable("make account", err)
	}
	return r.toAccount(name), true, nil
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

// SetPassword gives an account a password, in place of any, and ends all its
// sessions at once, on every node. names are those of the person's organizations.
// fault.Invalid for a password that can't be chosen (see passwordrule.Check),
// fault.NotFound for an unknown address, fault.Conflict when another change came
// between.
func (a *Accounts) SetPassword(ctx context.Context, email, password string, names ...string) error {
	email, err := ParseEmail(email)
	if err != nil {
		return err
	}
	who, r, version, err := a.findByEmail(ctx, email)
	if err != nil {
		return err
	}
	return a.replacePassword(ctx, who, r, version, password, names)
}
