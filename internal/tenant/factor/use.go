package factor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// BeginUse requests a passkey of any account from a browser.
func (f *Factors) BeginUse() (Begun, error) {
	if err := f.checkParty(); err != nil {
		return Begun{}, err
	}
	options, session, err := f.party.BeginDiscoverableLogin()
	if err != nil {
		return Begun{}, err
	}
	options.Response.Timeout = int(Life.Milliseconds())
	cookie, err := f.beginCeremony(useContext, ceremony{Challenge: session.Challenge})
	return Begun{Options: options, Cookie: cookie}, err
}

// attempts is how often a use is tried if there are concurrent uses.
const attempts = 5

// Use verifies the browser's response to BeginUse and returns the account of the passkey for
// account.Accounts.OpenFrom. It returns fault.Unauthorized with the same text for every rejection.
func (f *Factors) Use(ctx context.Context, cookie string, answer []byte, v account.Visit) (account.Account, error) {
	if err := f.checkParty(); err != nil {
		return account.Account{}, err
	}
	c, err := f.openCeremony(useContext, cookie)
	if err != nil {
		return account.Account{}, Refuse(err)
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return account.Account{}, Refuse(explain(err))
	}
	owner, err := f.owners.Get(ctx, id.Service, credentialKey(parsed.RawID))
	if err != nil {
		return account.Account{}, err
	}
	if !owner.Exists() {
		return account.Account{}, Refuse(errors.New("unknown credential"))
	}
	// The account is read before the challenge is used up: a failure uses up nothing, and a session that is opened
	// after a change of the account's factors has the previous generation, which is no longer valid.
	who, err := f.findAccount(ctx, owner.Value.Account)
	if err != nil {
		return account.Account{}, err
	}
	for range attempts {
		stale, err := f.useOnce(ctx, who.ID, &c, parsed, v)
		if err != nil {
			return account.Account{}, err
		}
		if !stale {
			return who, nil
		}
	}
	return account.Account{}, errBusy()
}

func (f *Factors) findAccount(ctx context.Context, who account.ID) (account.Account, error) {
	found, err := f.Accounts.ByID(ctx, who)
	if fault.Is(err, fault.NotFound) {
		err = Refuse(err)
	}
	return found, err
}

// useOnce verifies a response against the record of an account, and records the use.
func (f *Factors) useOnce(ctx context.Context, who account.ID, c *ceremony,
	parsed *protocol.ParsedCredentialAssertionData, v account.Visit) (stale bool, err error) {
	answered, err := f.wasAnswered(ctx, c)
	if err != nil {
		return false, err
	}
	if answered {
		return false, Refuse(errors.New("the challenge was already answered"))
	}
	r, err := f.readFactors(ctx, who)
	if err != nil {
		return false, err
	}
	used, err := f.validate(&r.Value, c, parsed)
	if err != nil {
		return false, Refuse(explain(err))
	}
	if used.Authenticator.CloneWarning {
		return false, f.refuseCopy(ctx, who, v)
	}
	return f.noteUse(ctx, r, c, used)
}

// validate verifies a response against the passkeys of an account.
//
// The library compares the backup-eligible flag of the response with the stored one. Providers that start to sync a
// passkey set the flag later, so a response with the flag is verified as if it had been stored. The signature covers
// the flag, so only the authenticator can set it. A response without a stored flag is rejected.
func (f *Factors) validate(r *factorsRecord, c *ceremony, parsed *protocol.ParsedCredentialAssertionData) (
	*webauthn.Credential, error) {
	passkeys := slices.Clone(r.Passkeys)
	for i := range passkeys {
		if k := &passkeys[i]; bytes.Equal(k.Credential, parsed.RawID) {
			k.Eligible = k.Eligible || parsed.Response.AuthenticatorData.Flags.HasBackupEligible()
		}
	}
	owner := func(_, _ []byte) (webauthn.User, error) {
		return &person{handle: r.Handle, passkeys: passkeys}, nil
	}
	return f.party.ValidateDiscoverableLogin(owner, webauthn.SessionData{
		Challenge: c.Challenge, UserVerification: protocol.VerificationRequired}, parsed)
}

// refuseCopy records in the login events that the counter of a passkey decreased.
func (f *Factors) refuseCopy(ctx context.Context, who account.ID, v account.Visit) error {
	event, err := f.Accounts.DescribeLogin(ctx, who, account.RefusedCopy, v)
	if err == nil {
		_, err = f.writeChanges(ctx, "record cloned passkey", event)
	}
	return Refuse(errors.Join(errors.New("signature counter decreased: the passkey may have been cloned"), err))
}

func (f *Factors) noteUse(ctx context.Context, r records.Versioned[factorsRecord], c *ceremony,
	used *webauthn.Credential) (stale bool, err error) {
	for i := range r.Value.Passkeys {
		if k := &r.Value.Passkeys[i]; string(k.Credential) == string(used.ID) {
			k.Counter, k.UsedAt = used.Authenticator.SignCount, f.currentTime()
			k.Eligible, k.BackedUp = used.Flags.BackupEligible, used.Flags.BackupState
		}
	}
	stored, err := f.factors.Put(r)
	if err != nil {
		return false, fmt.Errorf("use passkey: %w", err)
	}
	changes, err := f.answeredChanges(ctx, c)
	if err != nil {
		return false, err
	}
	return f.writeChanges(ctx, "use passkey", append([]storage.Change{stored}, changes...))
}
