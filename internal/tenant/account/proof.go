package account

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Proof is how it was proved that an account's address belongs to its person.
type Proof string

// The proofs. An account of an older program has no stored proof; see inferProof.
const (
	Unproved         Proof = "none"
	ProvedByMail     Proof = "mail"     // a token that was mailed only to the address
	ProvedByProvider Proof = "provider" // an OpenID provider verified the address
	ProvedByOperator Proof = "operator" // the operator entered the address or set the password
)

// Claim describes how an address was assigned to a new account.
type Claim struct {
	By   Proof
	Home id.Tenant // the organization in which an unproved account exists
}

// ClaimByInvitation returns the claim of an account that is created by an invitation of an organization. mailed
// reports whether the token was sent only to the address: if the inviter has seen the token, it proves nothing.
func ClaimByInvitation(t id.Tenant, mailed bool) Claim {
	if mailed {
		return Claim{By: ProvedByMail}
	}
	return Claim{By: Unproved, Home: t}
}

// proofRecord is the proof in the record of an account.
type proofRecord struct {
	By   Proof      `json:"by"`
	At   id.Instant `json:"at,omitzero"`
	Home id.Tenant  `json:"home,omitzero"` // of an unproved account
}

func (c Claim) record(now id.Instant) *proofRecord {
	return &proofRecord{By: c.By, At: now, Home: c.Home}
}

func (p *proofRecord) proved() bool { return p.By != Unproved }

// ensureProof sets the proof in the record of an account that an older program stored.
func (a *Accounts) ensureProof(ctx context.Context, who ID, r *accountRecord) error {
	if r.Proof != nil {
		return nil
	}
	by, err := a.inferProof(ctx, who, r)
	if err != nil {
		return err
	}
	r.Proof = &proofRecord{By: by, At: a.currentTime()}
	return nil
}

// inferProof returns the proof that follows from the data of an older program. Changes of the address and resets of
// the password were confirmed by mail. The operator entered the address of an account that was created with an
// organization. All other accounts are unproved: it is unknown who accepted their invitation.
func (a *Accounts) inferProof(ctx context.Context, who ID, r *accountRecord) (Proof, error) {
	if len(r.FormerEmails) > 0 {
		return ProvedByMail, nil
	}
	events, err := a.loginEvents(ctx, who)
	if err != nil {
		return "", err
	}
	for i := range events {
		if kind := events[i].Value.Kind; kind == ResetPassword || kind == ChangedEmail {
			return ProvedByMail, nil
		}
	}
	founded, err := a.wasFoundedWith(ctx, who, r)
	if err != nil || !founded {
		return Unproved, err
	}
	return ProvedByOperator, nil
}

// longestFounding bounds the time between the creation of the owner's account and of the ledger within one founding,
// in milliseconds.
const longestFounding id.Instant = 30_000

// wasFoundedWith reports whether an account was created together with an organization. A founding creates the owner's
// account, then its membership, then the ledger, so the membership is not younger than the ledger, and the account is
// not much older. An account that was in another organization before may have been invited.
func (a *Accounts) wasFoundedWith(ctx context.Context, who ID, r *accountRecord) (bool, error) {
	all, gone, err := a.scanPlaces(ctx, who)
	if err != nil || gone || len(all) == 0 {
		return false, err
	}
	first := slices.MinFunc(all, compareAge)
	began, isFirst, err := log.BeganAt(ctx, a.records, first.Tenant)
	if err != nil {
		return false, errUnreadable("read founding", err)
	}
	return isFirst && !first.Offered && first.Since <= began && r.CreatedAt <= first.Since &&
		r.CreatedAt+longestFounding >= began, nil
}

// Proof returns how the address of an account was proved.
func (a *Accounts) Proof(ctx context.Context, who ID) (Proof, error) {
	found, err := a.ByID(ctx, who)
	return found.Proof, err
}

func errUnproved() error {
	return &fault.Error{Kind: fault.Forbidden, Code: "address_unproved", Message: "The address of the account is not " +
		"proved: confirm it by mail, sign in at an OpenID provider, or ask the operator"}
}

// CheckProved returns fault.Forbidden with code address_unproved if the account's address is not proved.
func (a *Accounts) CheckProved(ctx context.Context, who ID) error {
	proof, err := a.Proof(ctx, who)
	if err == nil && proof == Unproved {
		err = errUnproved()
	}
	return err
}

// CheckJoin is like CheckProved for an account that is about to become a member of an organization. An unproved
// account may join the organization in which it was created.
func (a *Accounts) CheckJoin(ctx context.Context, who ID, t id.Tenant) error {
	r, _, err := a.findByID(ctx, who)
	if err != nil || r.Proof != nil && r.Proof.By == Unproved && r.Proof.Home == t {
		return err
	}
	return a.CheckProved(ctx, who)
}

// ErrNewPassword returns the fault.Invalid error with code new_password, for a first proof of an address without the
// new password that the takeover requires.
func ErrNewPassword() error {
	return &fault.Error{Kind: fault.Invalid, Code: "new_password",
		Message: "The address of the account has not been proved: choose a new password"}
}

// takeOver gives an unproved account to the person who proves its address. It changes r and returns the changes that
// must be written with it, including login events of the given kinds. All ways to sign in of the previous holder end:
// sessions, password, passkeys, recovery codes and mailed tokens. The previous holder's settings are reset too.
func (a *Accounts) takeOver(
	ctx context.Context, who ID, r *accountRecord, by Proof, v Visit, kinds ...LoginKind,
) ([]storage.Change, error) {
	changes, err := a.loginEvent(ctx, who, v, append([]LoginKind{TakenOver}, kinds...)...)
	if err != nil {
		return nil, err
	}
	if err := a.noteSignIn(ctx, who, r, signInBy(by), AccountTaken); err != nil {
		return nil, err
	}
	removed, err := a.endWaysIn(ctx, who, r)
	r.Proof = Claim{By: by}.record(a.currentTime())
	r.DisplayName, r.ApprovalMailOff, r.WeeklyMail, r.TimesInUTC = "", false, false, false
	return append(changes, removed...), err
}

// endWaysIn removes all ways to sign in to an account. It changes r and returns the changes that must be written with
// it.
func (a *Accounts) endWaysIn(ctx context.Context, who ID, r *accountRecord) ([]storage.Change, error) {
	if err := a.noteDue(ctx, who); err != nil {
		return nil, err
	}
	r.PasswordHash = ""
	r.Generation++
	r.TakenOverAt = a.currentTime()
	factors := a.factors()
	if factors == nil {
		return nil, nil
	}
	return factors.RemoveChanges(ctx, who)
}

// TakenOverAt returns when the account was last taken over from a previous holder, or 0. What that holder created in
// organizations, such as API tokens, ended at that time.
func (a *Accounts) TakenOverAt(ctx context.Context, who ID) (id.Instant, error) {
	r, _, err := a.findByID(ctx, who)
	if fault.Is(err, fault.NotFound) {
		return 0, nil
	}
	return r.TakenOverAt, err
}

// TakeOverByMail gives the unproved account of an address to the person with a token that was mailed there. The
// caller must then add a way to sign in. It returns fault.NotFound for an address without an account, and
// fault.Conflict for a proved account.
func (a *Accounts) TakeOverByMail(ctx context.Context, email string, v Visit) (Account, error) {
	who, r, version, err := a.findByEmail(ctx, email)
	if err == nil {
		err = a.ensureProof(ctx, who, r)
	}
	if err == nil && r.Proof.proved() {
		err = fault.New(fault.Conflict, "The account was changed in the meantime")
	}
	if err != nil {
		return Account{}, err
	}
	changes, err := a.takeOver(ctx, who, r, ProvedByMail, v)
	if err != nil {
		return Account{}, err
	}
	if err := a.writeAccount(ctx, who, r, version, changes...); err != nil {
		return Account{}, err
	}
	return r.toAccount(who), nil
}

// releaseAddress takes an address away from the unproved account that holds it, because another account has proved
// it. The unproved account keeps its memberships but can no longer sign in. It returns no changes for an address
// without an account, and fault.Conflict with code address_known if the address belongs to a proved account.
func (a *Accounts) releaseAddress(ctx context.Context, email string) ([]storage.Change, error) {
	who, r, version, err := a.findByEmail(ctx, email)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err == nil {
		err = a.ensureProof(ctx, who, r)
	}
	if err == nil && r.Proof.proved() {
		err = errAddressKnown()
	}
	if err != nil {
		return nil, err
	}
	changes, err := a.loginEvent(ctx, who, Visit{}, TakenOver)
	if err != nil {
		return nil, err
	}
	removed, err := a.endWaysIn(ctx, who, r)
	if err != nil {
		return nil, err
	}
	r.Released = true
	value, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("release address: %w", err)
	}
	return append(slices.Concat(changes, removed),
		storage.Change{Kind: kindAccount, Key: string(who), Value: value, If: version}), nil
}

// SharesAddress reports whether two accounts count as one person for the two-person rule: they have or had a common
// address, and at least one of them has not proved its own.
func (a Account) SharesAddress(other Account) bool {
	if a.ID == other.ID || a.isProved() && other.isProved() {
		return false
	}
	theirs := other.addresses()
	return slices.ContainsFunc(a.addresses(), func(e string) bool { return slices.Contains(theirs, e) })
}

func (a Account) isProved() bool { return a.Proof != "" && a.Proof != Unproved }

func (a Account) addresses() []string {
	if a.Email == "" {
		return nil
	}
	return append([]string{a.Email}, a.FormerEmails...)
}

// ImportedRecord returns the record of an account as an import stores it for an organization: a proof of the address
// at another service proves nothing here.
func ImportedRecord(r storage.Record, t id.Tenant) (storage.Record, error) {
	var stored accountRecord
	if err := json.Unmarshal(r.Value, &stored); err != nil || !IsAccount(r) {
		return storage.Record{}, fmt.Errorf("account: %w", storage.ErrCorrupt)
	}
	stored.Proof = Claim{By: Unproved, Home: t}.record(0)
	stored.Linked = false
	value, err := json.Marshal(stored)
	r.Value = value
	return r, err
}

// ErrOtherHolder means that there is an unproved account here whose holder may not be the holder of the imported
// account.
var ErrOtherHolder = errors.New("the account exists here with an unproved address and another password: " +
	"set its password by the platform call first")

// CheckHolder returns ErrOtherHolder unless the existing account may get a membership from an import of want.
func CheckHolder(have, want storage.Record) error {
	var here, there accountRecord
	if json.Unmarshal(have.Value, &here) != nil || json.Unmarshal(want.Value, &there) != nil {
		return fmt.Errorf("account: %w", storage.ErrCorrupt)
	}
	if here.Proof != nil && !here.Proof.proved() && here.PasswordHash != there.PasswordHash {
		return ErrOtherHolder
	}
	return nil
}
