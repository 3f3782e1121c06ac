package factor

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/storage"
)

// handleSize is the number of random bytes that identify an account to authenticators.
const handleSize = 32

// person is an account in the form that the WebAuthn library requires.
type person struct {
	handle      []byte
	email, name string
	passkeys    []passkey
}

func (p *person) WebAuthnID() []byte          { return p.handle }
func (p *person) WebAuthnName() string        { return p.email }
func (p *person) WebAuthnDisplayName() string { return p.name }

func (p *person) WebAuthnCredentials() []webauthn.Credential {
	all := make([]webauthn.Credential, len(p.passkeys))
	for i := range p.passkeys {
		k := &p.passkeys[i]
		all[i] = webauthn.Credential{
			ID: k.Credential, PublicKey: k.PublicKey,
			Flags:         webauthn.CredentialFlags{BackupEligible: k.Eligible, BackupState: k.BackedUp},
			Authenticator: webauthn.Authenticator{SignCount: k.Counter},
		}
		for _, t := range k.Transports {
			all[i].Transport = append(all[i].Transport, protocol.AuthenticatorTransport(t))
		}
	}
	return all
}

// algorithms returns the accepted signature algorithms of passkeys.
func algorithms() []protocol.CredentialParameter {
	kinds := []webauthncose.COSEAlgorithmIdentifier{webauthncose.AlgES256, webauthncose.AlgEdDSA, webauthncose.AlgRS256}
	all := make([]protocol.CredentialParameter, len(kinds))
	for i, kind := range kinds {
		all[i] = protocol.CredentialParameter{Type: protocol.PublicKeyCredentialType, Algorithm: kind}
	}
	return all
}

// Begun is a challenge for a browser.
type Begun struct {
	Options any    // for navigator.credentials, as JSON
	Cookie  string // must be sent back with the response; HttpOnly, valid for Life
}

// BeginCreation starts the creation of a passkey for an existing account. It returns fault.Conflict with code
// passkey_limit if the account has the maximum number.
func (f *Factors) BeginCreation(ctx context.Context, who account.Account) (Begun, error) {
	r, err := f.readFactors(ctx, who.ID)
	if err != nil {
		return Begun{}, err
	}
	if len(r.Value.Passkeys) >= MaxPasskeys {
		return Begun{}, errTooMany()
	}
	p := &person{handle: r.Value.Handle, email: who.Email, name: who.DisplayName, passkeys: r.Value.Passkeys}
	return f.beginCreation(p, who.ID)
}

// BeginNew starts the creation of a passkey for an account that will be created for an address.
func (f *Factors) BeginNew(email, name string) (Begun, error) {
	email, err := account.ParseEmail(email)
	if err == nil {
		err = account.CheckDisplayName(name)
	}
	if err != nil {
		return Begun{}, err
	}
	return f.beginCreation(&person{email: email, name: name}, "")
}

func (f *Factors) beginCreation(p *person, who account.ID) (Begun, error) {
	if err := f.checkParty(); err != nil {
		return Begun{}, err
	}
	if p.handle == nil {
		p.handle = make([]byte, handleSize)
		rand.Read(p.handle) // never fails since Go 1.24
	}
	if p.name == "" {
		p.name = p.email
	}
	exclusions := webauthn.Credentials(p.WebAuthnCredentials()).CredentialDescriptors()
	options, session, err := f.party.BeginRegistration(p, webauthn.WithCredentialParameters(algorithms()),
		webauthn.WithExclusions(exclusions))
	if err != nil {
		return Begun{}, err
	}
	options.Response.Timeout = int(Life.Milliseconds())
	cookie, err := f.beginCeremony(createContext, ceremony{
		Challenge: session.Challenge, Handle: p.handle, Account: who})
	return Begun{Options: options, Cookie: cookie}, err
}

// Created is a new passkey that was verified but not yet stored.
type Created struct {
	ceremony ceremony
	passkey  passkey
}

// CheckCreation verifies the browser's response to BeginCreation or BeginNew. It returns fault.Invalid for an invalid
// name and, with the same text, for every rejected response.
func (f *Factors) CheckCreation(cookie, name string, answer []byte) (*Created, error) {
	if err := f.checkParty(); err != nil {
		return nil, err
	}
	if !textcheck.Name(name, 1, MaxName) {
		return nil, fault.New(fault.Invalid,
			"The passkey's name must have 1 to 100 characters, and no control characters")
	}
	c, err := f.openCeremony(createContext, cookie)
	if err != nil {
		return nil, errCreationRejected(err)
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return nil, errCreationRejected(explain(err))
	}
	made, err := f.party.CreateCredential(&person{handle: c.Handle}, webauthn.SessionData{
		Challenge: c.Challenge, UserID: c.Handle, UserVerification: protocol.VerificationRequired,
		CredParams: algorithms(),
	}, parsed)
	if err != nil {
		return nil, errCreationRejected(explain(err))
	}
	now := f.currentTime()
	k := passkey{ID: id.Rising("pk_", now), Name: name, Credential: made.ID, PublicKey: made.PublicKey,
		Counter: made.Authenticator.SignCount, Eligible: made.Flags.BackupEligible, BackedUp: made.Flags.BackupState,
		CreatedAt: now}
	for _, t := range made.Transport[:min(len(made.Transport), 8)] {
		if textcheck.Plain(string(t), 1, 32) {
			k.Transports = append(k.Transports, string(t))
		}
	}
	return &Created{ceremony: c, passkey: k}, nil
}

// maxReason bounds the part of a reason that quotes the browser's response, in bytes.
const maxReason = 300

// explain returns the library's detailed reason, for the log.
func explain(err error) error {
	detailed, ok := errors.AsType[*protocol.Error](err)
	if !ok {
		return err
	}
	reason := detailed.Details
	if info := strings.ToValidUTF8(detailed.DevInfo[:min(len(detailed.DevInfo), maxReason)], ""); info != "" {
		reason += ": " + info
	}
	return errors.New(reason)
}

// Add stores a new passkey of the account for which it was created, and ends the account's sessions. It returns
// fault.Conflict with code passkey_limit or passkey_known, and after a concurrent change.
func (f *Factors) Add(ctx context.Context, who account.Account, made *Created, v account.Visit) (
	account.Account, Passkey, error) {
	if made.ceremony.Account != who.ID {
		return account.Account{}, Passkey{}, errCreationRejected(errors.New("created for another account"))
	}
	return f.storePasskey(ctx, who, made, v)
}

// AddFirst is like Add for an account that was created after BeginNew and has no factor.
func (f *Factors) AddFirst(ctx context.Context, who account.Account, made *Created, v account.Visit) (
	account.Account, error) {
	if made.ceremony.Account != "" {
		return account.Account{}, errCreationRejected(errors.New("created for an existing account"))
	}
	owner, _, err := f.storePasskey(ctx, who, made, v)
	return owner, err
}

func (f *Factors) storePasskey(ctx context.Context, who account.Account, made *Created, v account.Visit) (
	account.Account, Passkey, error) {
	changed, err := f.Accounts.ChangeFactors(ctx, who, account.AddedPasskey, v,
		func(ctx context.Context, _ account.Account) ([]storage.Change, error) {
			r, err := f.readFactors(ctx, who.ID)
			if err != nil {
				return nil, err
			}
			return f.addChanges(ctx, who.ID, r, made)
		})
	return changed, made.passkey.toPasskey(), err
}

// Create creates the account of a new passkey. It returns fault.Conflict if the address has an account or the passkey
// is already registered.
func (f *Factors) Create(
	ctx context.Context, email, name string, c account.Claim, made *Created,
) (account.Account, error) {
	if made.ceremony.Account != "" {
		return account.Account{}, errCreationRejected(errors.New("created for an existing account"))
	}
	return f.Accounts.CreateWithFactor(ctx, email, name, c, func(who account.ID) ([]storage.Change, error) {
		return f.addChanges(ctx, who, records.Versioned[factorsRecord]{Key: string(who)}, made)
	})
}

// addChanges returns the changes that add a new passkey to the record of an account.
func (f *Factors) addChanges(ctx context.Context, who account.ID, r records.Versioned[factorsRecord],
	made *Created) ([]storage.Change, error) {
	if len(r.Value.Passkeys) >= MaxPasskeys {
		return nil, errTooMany()
	}
	if r.Value.Handle != nil && !bytes.Equal(r.Value.Handle, made.ceremony.Handle) {
		return nil, errCreationRejected(errors.New("another first passkey was added concurrently"))
	}
	if err := f.checkFree(ctx, made); err != nil {
		return nil, err
	}
	r.Value.Handle = made.ceremony.Handle
	r.Value.Passkeys = append(slices.Clone(r.Value.Passkeys), made.passkey)
	stored, err := f.factors.Put(r)
	if err != nil {
		return nil, err
	}
	owner, err := json.Marshal(ownerRecord{Account: who})
	if err != nil {
		return nil, err
	}
	changes, err := f.answeredChanges(ctx, &made.ceremony)
	return append(changes, stored,
		storage.Change{Kind: kindCredential, Key: credentialKey(made.passkey.Credential), Value: owner}), err
}

// checkFree returns an error if an account already has the credential ID or the challenge was already answered.
func (f *Factors) checkFree(ctx context.Context, made *Created) error {
	answered, err := f.wasAnswered(ctx, &made.ceremony)
	if err != nil {
		return err
	}
	if answered {
		return errCreationRejected(errors.New("the challenge was already answered"))
	}
	owner, err := f.owners.Get(ctx, id.Service, credentialKey(made.passkey.Credential))
	if err == nil && owner.Exists() {
		err = &fault.Error{Kind: fault.Conflict, Code: "passkey_known", Message: "The passkey is known already"}
	}
	return err
}

func errTooMany() error {
	return &fault.Error{Kind: fault.Conflict, Code: "passkey_limit",
		Message: "The account has 20 passkeys, as many as it can"}
}

// Remove removes a passkey from an account and ends its sessions. It returns fault.NotFound if the account has no
// such passkey, and fault.Conflict with code last_way_in if the person could no longer sign in.
func (f *Factors) Remove(
	ctx context.Context, who account.Account, name string, v account.Visit,
) (account.Account, error) {
	return f.Accounts.ChangeFactors(ctx, who, account.RemovedPasskey, v,
		func(ctx context.Context, current account.Account) ([]storage.Change, error) {
			r, err := f.readFactors(ctx, who.ID)
			if err != nil {
				return nil, err
			}
			at := slices.IndexFunc(r.Value.Passkeys, func(k passkey) bool { return k.ID == name })
			if at < 0 {
				return nil, fault.New(fault.NotFound, "Not found")
			}
			if len(r.Value.Passkeys) == 1 && !current.HasPassword {
				return nil, &fault.Error{Kind: fault.Conflict, Code: "last_way_in",
					Message: "It is the last way into the account: set a password first"}
			}
			owner := r.Value.Passkeys[at].removeOwner()
			r.Value.Passkeys = slices.Delete(slices.Clone(r.Value.Passkeys), at, at+1)
			stored, err := f.factors.Put(r)
			return []storage.Change{stored, owner}, err
		})
}
