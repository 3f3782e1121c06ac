package account

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// SignInChange is a change of how a member signs in that was not proved with a factor that the account had before. It
// was made by the operator, a mailed link or an identity provider, so it may have let in another person.
type SignInChange struct {
	Number uint64     `json:"number"` // 1 for the first change of the account
	Kind   SignInKind `json:"change"`
	By     SignInBy   `json:"by"`
	At     id.Instant `json:"at"`
}

// SignInKind is the kind of a change.
type SignInKind string

// The kinds of changes.
const (
	PasswordSet    SignInKind = "password_set"
	FactorsRemoved SignInKind = "second_factors_removed"
	AccountTaken   SignInKind = "account_taken_over" // all ways to sign in ended with the first proof of the address
	PersonLinked   SignInKind = "provider_linked"
)

// SignInBy is the author of a change.
type SignInBy string

// The authors of changes.
const (
	SignInByOperator SignInBy = "operator"
	SignInByMail     SignInBy = "mail"     // a link that was mailed to the address
	SignInByProvider SignInBy = "provider" // an identity provider
)

// signInBy returns the author of a change by a proof of an address.
func signInBy(p Proof) SignInBy {
	switch p {
	case ProvedByMail:
		return SignInByMail
	case ProvedByProvider:
		return SignInByProvider
	}
	return SignInByOperator
}

const (
	// KindSignInDue has an entry (package schedule) for each change and organization of the account, by account. It
	// is written before the change.
	KindSignInDue storage.Kind = "sign_in_change_due"
	// maxSignInChanges bounds the changes that an account stores until its organizations have stated them.
	maxSignInChanges = 32
	// dueAtOnce is the number of entries that are written together.
	dueAtOnce = 500
)

// noteSignIn adds a change to r, which the caller must write. It first records in each organization of the account
// that the change must be stated, so that a crash in between loses nothing: an entry without a change does no harm.
func (a *Accounts) noteSignIn(ctx context.Context, who ID, r *accountRecord, by SignInBy, kinds ...SignInKind) error {
	now := a.currentTime()
	for _, kind := range kinds {
		next := SignInChange{Number: 1, Kind: kind, By: by, At: now}
		if last := len(r.SignInChanges) - 1; last >= 0 {
			next.Number = r.SignInChanges[last].Number + 1
		}
		r.SignInChanges = append(slices.Clone(r.SignInChanges), next)
	}
	r.SignInChanges = r.SignInChanges[max(0, len(r.SignInChanges)-maxSignInChanges):]
	return a.noteDue(ctx, who)
}

// noteDue schedules each organization of an account to examine the account's ways to sign in.
func (a *Accounts) noteDue(ctx context.Context, who ID) error {
	now := a.currentTime()
	due := schedule.Index{Records: a.records, Kind: KindSignInDue}
	var entries []schedule.Entry
	keys := records.Range{Begin: membershipKey(who, 0), End: string(who) + "0"} // "0" follows "/"
	for place, err := range records.Scan(ctx, a.records, id.Service, kindPlace, keys, 0) {
		if err != nil {
			return errUnreadable("list memberships", err)
		}
		t, err := strconv.ParseUint(strings.TrimPrefix(place.Key, string(who)+"/"), 16, 64)
		if err != nil {
			return errUnreadable("list memberships", err)
		}
		entries = append(entries, schedule.Entry{At: now, Tenant: id.Tenant(t), Name: string(who)})
	}
	for some := range slices.Chunk(entries, dueAtOnce) {
		if err := due.NoteEntries(ctx, some...); err != nil {
			return errUnreadable("note change of sign-in", err)
		}
	}
	return nil
}

// SignInChanges returns the latest changes of an account, oldest first. It returns nil for an unknown account.
func (a *Accounts) SignInChanges(ctx context.Context, who ID) ([]SignInChange, error) {
	found, err := a.records.Get(ctx, id.Service, kindAccount, string(who))
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, errUnreadable("read account", err)
	}
	r, err := records.Decode[accountRecord](found)
	if err != nil {
		return nil, errUnreadable("read account", fmt.Errorf("decode: %w", err))
	}
	return r.Value.SignInChanges, nil
}

// StoredMembership returns the membership of an account, even if it is suspended or only offered. It returns
// fault.NotFound if there is none.
func (a *Accounts) StoredMembership(ctx context.Context, t id.Tenant, who ID) (Membership, error) {
	m, err := a.readMembership(ctx, t, who)
	return m.Membership, err
}
