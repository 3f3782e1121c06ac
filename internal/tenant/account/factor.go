package account

import (
	"context"
	"crypto/rand"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/storage"
)

// Method is how a session was signed in. An organization may require one.
type Method string

// The methods. A session of an older program has none.
const (
	ByPassword     Method = "password"
	ByPasskey      Method = "passkey"
	ByRecoveryCode Method = "recovery_code" // with the password
	ByProvider     Method = "oidc:"         // followed by the name of an OpenID provider
)

// Provider returns the name of the OpenID provider of a method, and reports whether it has one.
func (m Method) Provider() (name string, found bool) {
	return strings.CutPrefix(string(m), string(ByProvider))
}

// Allow returns fault.Forbidden with code sign_in_required if m is required and a session was signed in with another
// method. The empty method requires nothing.
func (m Method) Allow(by Method) error {
	if m == "" || m == by {
		return nil
	}
	how := "a passkey"
	if name, found := m.Provider(); found {
		how = "the provider " + name
	}
	return &fault.Error{Kind: fault.Forbidden, Code: "sign_in_required",
		Message: "The organization requires signing in with " + how}
}

// Generation is incremented by each change of the password, the passkeys and the recovery codes. It determines
// whether a sign-in that started before such a change may still finish.
func (a Account) Generation() uint64 { return a.generation }

// ChangeFactors changes the factors of an account, which ends all its sessions at once. The changes returned by
// change are written together with the account that was passed to change. It returns the account for Open. It returns
// fault.Unauthorized if the factors of the account have changed since the caller read seen, because the session of
// the caller has then ended, and fault.Conflict after a concurrent change.
func (a *Accounts) ChangeFactors(ctx context.Context, seen Account, kind LoginKind, v Visit,
	change func(context.Context, Account) ([]storage.Change, error)) (Account, error) {
	who := seen.ID
	r, version, err := a.findByID(ctx, who)
	if err != nil {
		return Account{}, err
	}
	if r.Generation != seen.generation {
		return Account{}, errNoSession()
	}
	changes, err := change(ctx, r.toAccount(who))
	if err != nil {
		return Account{}, err
	}
	event, err := a.loginEvent(ctx, who, v, kind)
	if err != nil {
		return Account{}, err
	}
	mailed, err := a.factorMail(ctx, r.toAccount(who), kind)
	if err != nil {
		return Account{}, err
	}
	r.Generation++
	if kind == RemovedPasskey {
		if err := a.noteDue(ctx, who); err != nil {
			return Account{}, err
		}
	}
	if kind == RemovedFactors {
		if err := a.noteSignIn(ctx, who, r, SignInByOperator, FactorsRemoved); err != nil {
			return Account{}, err
		}
	}
	if err := a.writeAccount(ctx, who, r, version, slices.Concat(changes, event, mailed)...); err != nil {
		return Account{}, err
	}
	return r.toAccount(who), nil
}

func (a *Accounts) factorMail(ctx context.Context, who Account, kind LoginKind) ([]storage.Change, error) {
	if a.mail == nil {
		return nil, nil
	}
	return a.mail.FactorMail(ctx, who, kind)
}

// CreateWithFactor creates an account without a password. The changes returned by more, which add its factor, are
// written with it. It returns fault.Conflict if the address has an account.
func (a *Accounts) CreateWithFactor(ctx context.Context, email, name string, c Claim,
	more func(ID) ([]storage.Change, error)) (Account, error) {
	email, err := ParseEmail(email)
	if err == nil {
		err = CheckDisplayName(name)
	}
	if err != nil {
		return Account{}, err
	}
	who := newID()
	changes, err := more(who)
	if err != nil {
		return Account{}, err
	}
	now := a.currentTime()
	r := accountRecord{Email: email, CreatedAt: now, DisplayName: name, Proof: c.record(now)}
	err = a.createAccount(ctx, who, r, changes...)
	if errors.Is(err, storage.ErrStale) {
		return Account{}, fault.Wrap(fault.Conflict, "The account was changed in the meantime", err)
	}
	if err != nil {
		return Account{}, errUnreadable("make account", err)
	}
	return r.toAccount(who), nil
}

func newID() ID { return ID("acc_" + strings.ToLower(rand.Text())) }

// StepUpBy is like StepUp for a person who has proved another factor than the password.
func (a *Accounts) StepUpBy(ctx context.Context, token string, v Visit) (string, *Session, error) {
	s, err := a.Session(ctx, token)
	if err != nil {
		return "", nil, err
	}
	event, err := a.loginEvent(ctx, s.Account, v, SteppedUp)
	if err != nil {
		return "", nil, err
	}
	return a.replaceSession(ctx, token, event, func(r *sessionRecord) { r.FactorAt = a.currentTime() })
}

// DescribeLogin returns the changes that add a login event to an account. They must be written together with their
// cause.
func (a *Accounts) DescribeLogin(ctx context.Context, who ID, kind LoginKind, v Visit) ([]storage.Change, error) {
	return a.loginEvent(ctx, who, v, kind)
}

// DescribeCodeUse is like DescribeLogin for a used recovery code, and adds the mail about it.
func (a *Accounts) DescribeCodeUse(ctx context.Context, who Account, v Visit) ([]storage.Change, error) {
	event, err := a.loginEvent(ctx, who.ID, v, UsedCode)
	if err != nil {
		return nil, err
	}
	mailed, err := a.factorMail(ctx, who, UsedCode)
	return append(event, mailed...), err
}

// CountWrongCode counts a wrong recovery code of an account, like the sign-in counts passwords. It returns
// fault.RateLimited after too many.
func (a *Accounts) CountWrongCode(who Account, from netip.Addr, b Browser) error {
	_, err := a.codes.countAttempt(who.Email, from, b)
	return err
}
