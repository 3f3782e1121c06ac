package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/password"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/storage"
)

// checkPassword checks the password of a session's account. It returns fault.Unauthorized with code wrong_password if
// it is wrong, and fault.RateLimited after too many attempts, which count together with attempts to sign in.
func (a *Accounts) checkPassword(
	ctx context.Context, s *Session, password string, from netip.Addr, b Browser,
) (*accountRecord, uint64, error) {
	undo, err := a.attempts.countAttempt(s.Email, from, b)
	if err != nil {
		return nil, 0, err
	}
	r, version, err := a.findByID(ctx, s.Account)
	if err != nil {
		return nil, 0, err
	}
	ok, err := a.matchesHash(ctx, r.PasswordHash, password)
	if err != nil {
		return nil, 0, err
	}
	if !ok {
		return nil, 0, &fault.Error{Kind: fault.Unauthorized, Code: "wrong_password", Message: "Wrong password"}
	}
	undo()
	return r, version, nil
}

// StepUp proves the presence of the person of a session with the password. It returns a new token for the session,
// and the previous token becomes invalid: a copy that was stolen before proves nothing. It returns the errors of
// checkPassword, and fault.Unauthorized without a session.
func (a *Accounts) StepUp(
	ctx context.Context, token, password string, from netip.Addr, v Visit,
) (string, *Session, error) {
	s, err := a.Session(ctx, token)
	if err != nil {
		return "", nil, err
	}
	if _, _, err := a.checkPassword(ctx, s, password, from, v.Browser); err != nil {
		return "", nil, err
	}
	event, err := a.loginEvent(ctx, s.Account, v, SteppedUp)
	if err != nil {
		return "", nil, err
	}
	return a.replaceSession(ctx, token, event, func(r *sessionRecord) { r.FactorAt = a.currentTime() })
}

// SwitchSession moves a session to another organization of its account and returns a new token. The last proof of a
// factor keeps its time. It returns fault.NotFound if the account is not a member there.
func (a *Accounts) SwitchSession(ctx context.Context, token string, t id.Tenant) (string, *Session, error) {
	s, err := a.Session(ctx, token)
	if err != nil {
		return "", nil, err
	}
	m, err := a.Membership(ctx, t, s.Account)
	if err != nil {
		return "", nil, err
	}
	return a.replaceSession(ctx, token, nil, func(r *sessionRecord) { r.Tenant, r.Membership = t, m.ID })
}

// replaceSession gives a session a new token in one write.
func (a *Accounts) replaceSession(
	ctx context.Context, token string, more []storage.Change, change func(*sessionRecord),
) (string, *Session, error) {
	hash := hashToken(token)
	var r sessionRecord
	version, err := a.readRecord(ctx, id.Service, kindSession, hash.String(), &r)
	if err != nil {
		return "", nil, asNoSession(err)
	}
	removed := r.removeChanges(hash)
	removed[0].If = version // of two concurrent calls, one succeeds
	now := a.currentTime()
	if r.ID == "" {
		r.OpenedAt, r.EndsAt = now, r.ExpiresAt
	}
	r.ID = id.Rising("ses_", now)
	change(&r)
	token = newToken()
	err = a.storeSession(ctx, hashToken(token), r.seenUntil(now, a.life), append(more, removed...)...)
	a.sessions.Drop(hash)
	if errors.Is(err, storage.ErrStale) {
		return "", nil, errNoSession()
	}
	if err != nil {
		return "", nil, err
	}
	s, err := a.Session(ctx, token)
	return token, s, err
}

func asNoSession(err error) error {
	if fault.Is(err, fault.NotFound) {
		return errNoSession()
	}
	return err
}

// ChangePassword sets the password of a session's account, which ends all its sessions at once. names are the names
// of the person's organizations. It returns the account for Open, and the errors of checkPassword and of SetPassword.
func (a *Accounts) ChangePassword(
	ctx context.Context, s *Session, current, password string, from netip.Addr, v Visit, names ...string,
) (Account, error) {
	r, version, err := a.checkPassword(ctx, s, current, from, v.Browser)
	if err != nil {
		return Account{}, err
	}
	event, err := a.loginEvent(ctx, s.Account, v, ChangedPassword)
	if err != nil {
		return Account{}, err
	}
	if err := a.replacePassword(ctx, s.Account, r, version, password, names, event...); err != nil {
		return Account{}, err
	}
	return r.toAccount(s.Account), nil
}

// replacePassword sets an account's password, ends its sessions, and sends a mail about it, together with other
// changes.
func (a *Accounts) replacePassword(ctx context.Context, who ID, r *accountRecord, version uint64, text string,
	names []string, more ...storage.Change) error {
	if err := password.Check(text, r.Email, names...); err != nil {
		return err
	}
	var err error
	if r.PasswordHash, err = a.hasher.HashPassword(ctx, text); err != nil {
		return err
	}
	r.Generation++
	if a.mail != nil {
		mailed, err := a.mail.PasswordMail(ctx, r.toAccount(who))
		if err != nil {
			return err
		}
		more = append(more, mailed...)
	}
	return a.writeAccount(ctx, who, r, version, more...)
}

// CheckDisplayName returns fault.Invalid for a name that SetWishes rejects.
func CheckDisplayName(name string) error {
	if !textcheck.Name(name, 0, 100) {
		return fault.New(fault.Invalid, "display_name must have at most 100 characters, and no control characters")
	}
	return nil
}

// Wishes are the settings that a person may change for their own account. Nil members remain unchanged.
type Wishes struct {
	DisplayName  *string // shown to others: 0 to 100 characters
	ApprovalMail *bool   // whether to get mails about approvals
	WeeklyMail   *bool   // whether to get a mail about each organization on Mondays
	TimesInUTC   *bool   // whether pages keep times in UTC
}

// SetWishes changes the settings of a person. It returns fault.Invalid for a name that CheckDisplayName rejects.
func (a *Accounts) SetWishes(ctx context.Context, who ID, w Wishes) error {
	if w.DisplayName != nil {
		if err := CheckDisplayName(*w.DisplayName); err != nil {
			return err
		}
	}
	r, version, err := a.findByID(ctx, who)
	if err != nil {
		return err
	}
	if w.DisplayName != nil {
		r.DisplayName = *w.DisplayName
	}
	if w.ApprovalMail != nil {
		r.ApprovalMailOff = !*w.ApprovalMail
	}
	if w.WeeklyMail != nil {
		r.WeeklyMail = *w.WeeklyMail
	}
	if w.TimesInUTC != nil {
		r.TimesInUTC = *w.TimesInUTC
	}
	return a.writeAccount(ctx, who, r, version)
}

func (a *Accounts) writeAccount(
	ctx context.Context, who ID, r *accountRecord, version uint64, more ...storage.Change,
) error {
	value, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write account: %w", err)
	}
	changes := append([]storage.Change{{Kind: kindAccount, Key: string(who), Value: value, If: version}}, more...)
	err = a.records.Write(ctx, id.Service, changes)
	if errors.Is(err, storage.ErrStale) {
		return fault.Wrap(fault.Conflict, "The account was changed in the meantime", err)
	}
	if err != nil {
		return errUnreadable("write account", err)
	}
	return nil
}
