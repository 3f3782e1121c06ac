package account

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// kindSubject has one record for each person of an identity provider who signs in to an account, by the hash of
// issuer and subject, in the service's own partition. Exports do not contain these records, because the author of an
// export could otherwise link accounts of another service with arbitrary persons.
const kindSubject storage.Kind = "account_subject"

// Subject identifies a person at an identity provider. Issuer and Name together never pass to another person (OpenID
// Connect Core, section 2).
type Subject struct {
	Issuer string
	Name   string
	Email  string // verified by the provider; "" if there is none
}

type subjectRecord struct {
	Account ID         `json:"account"`
	Issuer  string     `json:"issuer"`
	Subject string     `json:"subject"`
	Since   id.Instant `json:"since"`
}

// key returns the key of a subject's record. An issuer cannot contain a NUL, because it is a URL.
func (s Subject) key() string {
	return id.Hash(sha256.Sum256([]byte(s.Issuer + "\x00" + s.Name))).String()
}

// AuthenticateSubject returns the account of a person whom an identity provider has authenticated. After the first
// sign-in the person is linked with the account, and the address no longer matters.
//
// The first sign-in requires the verified address of an account. If the provider is the first to prove that address,
// the person takes over the account. Otherwise the person is linked at once only if the account has no factor of its
// own.
//
// It returns fault.Forbidden if no account has the address, and fault.Unauthorized with code link_required together
// with the account if one of its own factors must be proved first (LinkSubject).
func (a *Accounts) AuthenticateSubject(ctx context.Context, s Subject, v Visit) (Account, error) {
	who, err := a.findSubject(ctx, s, v)
	if !fault.Is(err, fault.NotFound) {
		return who, err
	}
	if s.Email == "" {
		return Account{}, errNoAccount(errors.New("the provider returned no verified address"))
	}
	email, err := ParseEmail(s.Email)
	if err != nil {
		return Account{}, errNoAccount(errors.New("the provider returned a malformed address"))
	}
	name, r, version, err := a.findByEmail(ctx, email)
	if fault.Is(err, fault.NotFound) {
		return Account{}, errNoAccount(errors.New("no account has the verified address"))
	}
	if err == nil {
		err = a.ensureProof(ctx, name, r)
	}
	if err != nil {
		return Account{}, err
	}
	if !r.Proof.proved() {
		return a.takeOverBySubject(ctx, s, name, r, version, v)
	}
	own, err := a.hasOwnFactor(ctx, name, r)
	if err != nil {
		return Account{}, err
	}
	if own {
		if who, err = a.findSubject(ctx, s, v); !fault.Is(err, fault.NotFound) { // another call has linked it
			return who, err
		}
		return r.toAccount(name), &fault.Error{Kind: fault.Unauthorized, Code: "link_required",
			Message: "The account has another way to sign in: use it once, in this browser, to connect the provider",
			Err:     errors.New("the account is proved and is not linked with this person")}
	}
	if err := a.noteSignIn(ctx, name, r, SignInByProvider, PersonLinked); err != nil {
		return Account{}, err
	}
	return a.linkSubject(ctx, s, name, r, version, v)
}

func errNoAccount(cause error) error {
	return fault.Wrap(fault.Forbidden, "No account belongs to this sign-in: ask for an invitation", cause)
}

// hasOwnFactor reports whether an account has a factor that its person can prove.
func (a *Accounts) hasOwnFactor(ctx context.Context, who ID, r *accountRecord) (bool, error) {
	factors := a.factors()
	if r.PasswordHash != "" || r.Linked || factors == nil {
		return r.PasswordHash != "" || r.Linked, nil
	}
	return factors.HasAny(ctx, who)
}

// takeOverBySubject gives an unproved account to the person whose provider proves its address.
func (a *Accounts) takeOverBySubject(
	ctx context.Context, s Subject, who ID, r *accountRecord, version uint64, v Visit,
) (Account, error) {
	changes, err := a.takeOver(ctx, who, r, ProvedByProvider, v, LinkedProvider)
	if err != nil {
		return Account{}, err
	}
	return a.writeLink(ctx, s, who, r, version, v, changes)
}

// LinkSubject links a person of a provider with an account returned by AuthenticateSubject, after its own factor was
// proved. It returns fault.Conflict if the account was changed in between.
func (a *Accounts) LinkSubject(ctx context.Context, s Subject, who Account, v Visit) (Account, error) {
	r, version, err := a.findByID(ctx, who.ID)
	if err == nil && r.Generation != who.generation {
		err = fault.New(fault.Conflict, "The account was changed in the meantime")
	}
	if err != nil {
		return Account{}, err
	}
	return a.linkSubject(ctx, s, who.ID, r, version, v)
}

func (a *Accounts) linkSubject(
	ctx context.Context, s Subject, who ID, r *accountRecord, version uint64, v Visit,
) (Account, error) {
	event, err := a.loginEvent(ctx, who, v, LinkedProvider)
	if err != nil {
		return Account{}, err
	}
	return a.writeLink(ctx, s, who, r, version, v, event)
}

// writeLink writes a link together with the account. Of two concurrent first sign-ins, the first link counts.
func (a *Accounts) writeLink(ctx context.Context, s Subject, who ID, r *accountRecord, version uint64, v Visit,
	changes []storage.Change) (Account, error) {
	value, err := json.Marshal(subjectRecord{
		Account: who, Issuer: s.Issuer, Subject: s.Name, Since: id.InstantOf(a.clock())})
	if err != nil {
		return Account{}, fmt.Errorf("link subject: %w", err)
	}
	r.Linked = true
	err = a.writeAccount(ctx, who, r, version,
		append(changes, storage.Change{Kind: kindSubject, Key: s.key(), Value: value})...)
	if errors.Is(err, storage.ErrStale) {
		linked, found := a.findSubject(ctx, s, v)
		if fault.Is(found, fault.NotFound) {
			return Account{}, err
		}
		return linked, found
	}
	if err != nil {
		return Account{}, err
	}
	return r.toAccount(who), nil
}

// findSubject returns the account with which a person is linked. A link of an older program may refer to an account
// that was created by someone else for the address: the first sign-in with the verified address takes it over.
func (a *Accounts) findSubject(ctx context.Context, s Subject, v Visit) (Account, error) {
	var linked subjectRecord
	if _, err := a.readRecord(ctx, id.Service, kindSubject, s.key(), &linked); err != nil {
		return Account{}, err
	}
	r, version, err := a.findByID(ctx, linked.Account)
	if err != nil {
		return Account{}, err
	}
	if r.Linked && r.Proof != nil {
		return r.toAccount(linked.Account), nil
	}
	if err := a.ensureProof(ctx, linked.Account, r); err != nil {
		return Account{}, err
	}
	var changes []storage.Change
	if email, err := ParseEmail(s.Email); err == nil && email == r.Email && !r.Released && !r.Proof.proved() {
		if changes, err = a.takeOver(ctx, linked.Account, r, ProvedByProvider, v); err != nil {
			return Account{}, err
		}
	}
	r.Linked = true
	if err := a.writeAccount(ctx, linked.Account, r, version, changes...); err != nil {
		return Account{}, err
	}
	return r.toAccount(linked.Account), nil
}
