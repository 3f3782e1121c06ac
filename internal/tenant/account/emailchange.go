package account

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// kindEmailChange has one record for each account that requested another address, by account ID, in the service's own
// partition. A later request replaces the earlier one.
const kindEmailChange storage.Kind = "email_change"

// EmailChangeLife is how long another address can be confirmed.
const EmailChangeLife = time.Hour

// maxFormerEmails bounds how often an account can change its address. All former addresses are stored, because a
// person may not vote on a request that was made under one of them (package approval).
const maxFormerEmails = 32

type emailChangeRecord struct {
	Email      string     `json:"email"` // new address
	Hash       id.Hash    `json:"hash"`  // of the token
	Generation uint64     `json:"generation"`
	ExpiresAt  id.Instant `json:"expires_at"`
}

// EmailChange is a requested change of address. Its token is not stored.
type EmailChange struct {
	Account      ID
	Organization id.Tenant // of the session
	Email        string    // new address
	Token        string
	Until        id.Instant
}

// BeginEmailChange mails a token to another address for the account of a session. An address of another account
// causes the same work and the same mail, so the caller learns nothing about it.
//
// It returns fault.Unauthorized with code step_up if the person has not proved a factor recently, fault.Invalid for a
// malformed address, fault.Conflict with code no_mail if the service sends no mail, and fault.RateLimited after too
// many requests of the account or its organization, for the address or from the network.
func (a *Accounts) BeginEmailChange(ctx context.Context, s *Session, typed string, from netip.Addr) error {
	if err := s.CheckFactor(); err != nil {
		return err
	}
	email, err := ParseEmail(typed)
	if err != nil {
		return err
	}
	for _, counted := range []string{"change of " + string(s.Account), "change to " + email} {
		if _, err := a.resets.countAttempt(counted, from, Browser{}); err != nil {
			return err
		}
	}
	r, _, err := a.findByID(ctx, s.Account)
	if err != nil {
		return err
	}
	changes, err := a.newEmailChange(ctx, s, email, r.Generation)
	if err != nil {
		return err
	}
	if err := a.records.Write(ctx, id.Service, changes); err != nil {
		return errUnreadable("begin change of address", err)
	}
	return nil
}

func (a *Accounts) newEmailChange(
	ctx context.Context, s *Session, email string, generation uint64,
) ([]storage.Change, error) {
	c := EmailChange{Account: s.Account, Organization: s.Tenant, Email: email, Token: newToken(),
		Until: id.InstantOf(a.clock().Add(EmailChangeLife))}
	var mailed []storage.Change
	if a.mail != nil {
		var err error
		if mailed, err = a.mail.ConfirmMail(ctx, c); err != nil {
			return nil, err
		}
	}
	if len(mailed) == 0 {
		return nil, &fault.Error{Kind: fault.Conflict, Code: "no_mail",
			Message: "The service sends no mail, so an address can't be confirmed: ask its operator"}
	}
	value, err := json.Marshal(emailChangeRecord{Email: email, Hash: hashToken(c.Token), Generation: generation,
		ExpiresAt: c.Until})
	if err != nil {
		return nil, fmt.Errorf("begin change of address: %w", err)
	}
	return append(mailed, storage.Change{Kind: kindEmailChange, Key: string(s.Account), Value: value,
		If: storage.AnyVersion}), nil
}

// FinishEmailChange changes the address of a session's account to the address that the token was mailed to, sends a
// mail to the previous address, and ends all sessions at once. This proves the address, and an unproved account that
// held it loses it with all its ways to sign in. An account may confirm the address that it already has. If the
// account was unproved, it is taken over: its factors end and it gets password, which must be "" for a proved
// account. names are the names of the person's organizations. The token is used up. FinishEmailChange returns the
// account for Open.
//
// It returns fault.Invalid with code change_over for a token that is wrong, expired, used, replaced by a later one or
// by another password, or that belongs to another account; fault.RateLimited after too many of these; fault.Conflict
// with code address_known if the address belongs to another account, and with code addresses_full after 32 changes;
// and fault.Invalid for a password that is missing (code new_password), not needed or not allowed. After an error the
// token remains valid.
func (a *Accounts) FinishEmailChange(
	ctx context.Context, s *Session, token, password string, from netip.Addr, v Visit, names ...string,
) (Account, error) {
	undo, err := a.resets.countAttempt("confirm "+string(s.Account), from, Browser{})
	if err != nil {
		return Account{}, err
	}
	r, version, err := a.findByID(ctx, s.Account)
	if err != nil {
		return Account{}, err
	}
	requested, used, err := a.findEmailChange(ctx, s.Account, token, r.Generation)
	if err != nil {
		return Account{}, err
	}
	undo()
	if err := a.ensureProof(ctx, s.Account, r); err != nil {
		return Account{}, err
	}
	proved := r.Proof.proved()
	switch {
	case !proved && password == "":
		return Account{}, ErrNewPassword()
	case proved && password != "":
		return Account{}, fault.New(fault.Invalid, "The address of the account is already proved: omit the password")
	}
	changes, err := a.confirmAddress(ctx, s.Account, r, requested.Email, v)
	if err != nil {
		return Account{}, err
	}
	changes = append(changes, used)
	if proved {
		err = a.writeAccount(ctx, s.Account, r, version, changes...)
	} else {
		err = a.replacePassword(ctx, s.Account, r, version, password, names, changes...)
	}
	if errors.Is(err, storage.ErrStale) { // by another call with the token, or by another account
		return Account{}, a.explainStale(ctx, s.Account, requested.Email)
	}
	return r.toAccount(s.Account), err
}

// findEmailChange returns the change of address for a token, and the storage change that uses up the token.
func (a *Accounts) findEmailChange(
	ctx context.Context, who ID, token string, generation uint64,
) (requested emailChangeRecord, used storage.Change, err error) {
	version, err := a.readRecord(ctx, id.Service, kindEmailChange, string(who), &requested)
	if fault.Is(err, fault.NotFound) {
		return requested, used, errChangeOver()
	}
	if err != nil {
		return requested, used, err
	}
	given := hashToken(token)
	matches := subtle.ConstantTimeCompare(given[:], requested.Hash[:]) == 1
	if !matches || a.currentTime() >= requested.ExpiresAt || requested.Generation != generation {
		return requested, used, errChangeOver()
	}
	return requested, storage.Change{Kind: kindEmailChange, Key: string(who), If: version}, nil
}

func errChangeOver() error {
	return &fault.Error{Kind: fault.Invalid, Code: "change_over",
		Message: "The link to confirm the address has expired: request another one"}
}

// confirmAddress changes r for an address that was proved by mail, and returns the changes to write with it. The
// first proof takes over the account, and the caller must then set a new password.
func (a *Accounts) confirmAddress(
	ctx context.Context, who ID, r *accountRecord, email string, v Visit,
) ([]storage.Change, error) {
	kind := ProvedAddress
	var moved []storage.Change
	if email != r.Email || r.Released {
		var err error
		if moved, err = a.moveAddress(ctx, who, r, email); err != nil {
			return nil, err
		}
		kind = ChangedEmail
	}
	if !r.Proof.proved() {
		changes, err := a.takeOver(ctx, who, r, ProvedByMail, v, kind)
		return append(changes, moved...), err
	}
	r.Generation++
	r.Proof = Claim{By: ProvedByMail}.record(a.currentTime())
	event, err := a.loginEvent(ctx, who, v, kind)
	return append(event, moved...), err
}

// moveAddress changes the address in r and returns the changes to write with it.
func (a *Accounts) moveAddress(ctx context.Context, who ID, r *accountRecord, email string) ([]storage.Change, error) {
	held, err := json.Marshal(emailRecord{Account: who})
	if err != nil {
		return nil, fmt.Errorf("change address: %w", err)
	}
	if len(r.FormerEmails) == maxFormerEmails {
		return nil, &fault.Error{Kind: fault.Conflict, Code: "addresses_full",
			Message: "The account has already had 32 other addresses, so it keeps this one"}
	}
	mailed, err := a.mailBefore(ctx, r.toAccount(who))
	if err != nil {
		return nil, err
	}
	released, err := a.releaseAddress(ctx, email)
	if err != nil {
		return nil, err
	}
	changes := slices.Concat(mailed, released)
	changes = slices.DeleteFunc(changes, func(c storage.Change) bool { return c.Kind == kindEmail && c.Key == email })
	claim := storage.Change{Kind: kindEmail, Key: email, Value: held}
	if len(released) > 0 {
		claim.If = storage.AnyVersion // the holder's record is written under its version
	}
	changes = append(changes, claim)
	if !r.Released {
		changes = append(changes, removeChange(kindEmail, r.Email))
	}
	r.FormerEmails = append(slices.DeleteFunc(r.FormerEmails, func(e string) bool { return e == email }), r.Email)
	r.Email, r.Released = email, false
	return changes, nil
}

func (a *Accounts) mailBefore(ctx context.Context, before Account) ([]storage.Change, error) {
	if a.mail == nil {
		return nil, nil
	}
	return a.mail.AddressMail(ctx, before)
}

// explainStale returns the error for a change of address that could not be written.
func (a *Accounts) explainStale(ctx context.Context, who ID, email string) error {
	holder, _, _, err := a.findByEmail(ctx, email)
	if err == nil && holder != who {
		return errAddressKnown()
	}
	return errChangeOver()
}

func errAddressKnown() error {
	return &fault.Error{Kind: fault.Conflict, Code: "address_known", Message: "The address belongs to another account"}
}
