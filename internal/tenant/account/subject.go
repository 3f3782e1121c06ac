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

// kindSubject has one record for each person of an identity provider that signs in as an
// account, by the hash of issuer and subject, in the service's own partition. These records
// are of this service alone: an export of an organization leaves them out, because
// the maker of an export could link accounts of another service to persons of a choice.
const kindSubject storage.Kind = "account_subject"

// Subject is a person as an identity provider names it. Issuer and Name together never pass
// to another person (OpenID Connect Core, section 2).
type Subject struct {
	Issuer string
	Name   string
	Email  string // verified by the provider; "" when none is
}

type subjectRecord struct {
	Account ID         `json:"account"`
	Issuer  string     `json:"issuer"`
	Subject string     `json:"subject"`
	Since   id.Instant `json:"since"`
}

// key returns the key of a subject's record. A NUL can be in no issuer, because that is a URL.
func (s Subject) key() string {
	return id.Hash(sha256.Sum256([]byte(s.Issuer + "\x00" + s.Name))).String()
}

// AuthenticateSubject returns the account of a person that an identity provider has
// authenticated. The first sign-in links the person with the account of the verified
// address, and from then on the address does not matter. fault.Forbidden when there is no
// such account.
func (a *Accounts) AuthenticateSubject(ctx context.Context, s Subject) (Account, error) {
	who, err := a.findSubject(ctx, s)
	if !fault.Is(err, fault.NotFound) {
		return who, err
	}
	if s.Email == "" {
		return Account{}, errNoAccount(errors.New("no verified address"))
	}
	known, err := a.Find(ctx, s.Email)
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) {
		return Account{}, errNoAccount(err)
	}
	if err != nil {
		return Account{}, err
	}
	return a.linkSubject(ctx, s, known)
}

func errNoAccount(cause error) error {
	return fault.Wrap(fault.Forbidden, "No account belongs to this sign-in: ask for an invitation", cause)
}

// findSubject returns the account that a person is linked with.
func (a *Accounts) findSubject(ctx context.Context, s Subject) (Account, error) {
	var linked subjectRecord
	if _, err := a.readRecord(ctx, id.Service, kindSubject, s.key(), &linked); err != nil {
		return Account{}, err
	}
	r, _, err := a.findByID(ctx, linked.Account)
	if err != nil {
		return Account{}, err
	}
	return r.toAccount(linked.Account), nil
}

// linkSubject links a person with an account. Of two first sign-ins at once, the link of
// the first one counts.
func (a *Accounts) linkSubject(ctx context.Context, s Subject, who Account) (Account, error) {
	value, err := json.Marshal(subjectRecord{
		Account: who.ID, Issuer: s.Issuer, Subject: s.Name, Since: id.InstantOf(a.clock())})
	if err != nil {
		return Account{}, fmt.Errorf("link subject: %w", err)
	}
	err = a.records.Write(ctx, id.Service, []storage.Change{{Kind: kindSubject, Key: s.key(), Value: value}})
	if errors.Is(err, storage.ErrStale) {
		return a.findSubject(ctx, s)
	}
	if err != nil {
		return Account{}, errUnreadable("link subject", err)
	}
	return who, nil
}
