// Package factor keeps the passkeys and the recovery codes of accounts, and checks them.
//
// Invariants:
//
//   - A passkey counts for the host of the public URL and a page of its origin alone, with user
//     verification. It is therefore a sign-in of its own, without a password.
//   - A challenge comes back in the browser that asked for it, within five minutes, for one purpose.
//     It is sealed in a cookie, so that strangers can make the service keep nothing.
//   - A challenge that was answered rightly is of no use again, on no node.
//   - The counter of a passkey only rises. A lower one is the sign of a copy, which is refused and
//     in the login events.
//   - A credential id is of one account of the service.
//   - An account has at most 20 passkeys and 10 recovery codes. Each of these changes ends the
//     sessions of the account (account.ChangeFactors); a person keeps one way in.
//   - A recovery code has 80 random bits and is stored as a hash, for one use.
//   - An account with a passkey or an unused recovery code has a second factor: its password alone
//     signs nobody in.
//   - All these records are of this service alone. An export of an organization leaves them out,
//     because passkeys count for one host, and the maker of an export could add a way in.
package factor

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

const (
	// MaxPasskeys is how many passkeys an account has at most.
	MaxPasskeys = 20
	// MaxName is the length of the longest name of a passkey, in code points.
	MaxName = 100
	// Life is how long a challenge and a sign-in that lacks its second factor are good.
	Life = 5 * time.Minute
)

// Records of the service's own partition.
const (
	// kindFactors has one record for each account with passkeys or recovery codes, by account id.
	kindFactors storage.Kind = "account_factors"
	// kindCredential names the account of a passkey, by the hex SHA-256 of the credential id.
	kindCredential storage.Kind = "passkey_account"
	// kindAnswered has the challenges that were answered rightly until they are over, by the hex of
	// their end in milliseconds, "/" and the hex SHA-256 of the challenge.
	kindAnswered storage.Kind = "passkey_answered"
)

// unreadable is for clients when a record can't be read.
const unreadable = "Accounts can't be read"

// Options configure New. All are required.
type Options struct {
	Records   storage.RecordStore
	Accounts  *account.Accounts
	Sealer    seal.Sealer
	PublicURL string // its host is the name that passkeys are of
	Clock     func() time.Time
}

// Factors is the passkeys and recovery codes of all accounts. Its methods may be called
// concurrently.
type Factors struct {
	Options
	factors records.Store[factorsRecord]
	owners  records.Store[ownerRecord]
	party   *webauthn.WebAuthn // nil: the public URL has an IP address, which can have no passkeys
}

// New returns the factors of a store.
func New(o Options) (*Factors, error) {
	f := &Factors{Options: o, factors: records.New[factorsRecord](o.Records, kindFactors, unreadable),
		owners: records.New[ownerRecord](o.Records, kindCredential, unreadable)}
	u, err := url.Parse(o.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("passkeys: public URL: %w", err)
	}
	host := strings.ToLower(u.Hostname())
	if protocol.ValidateRPID(host) != nil {
		return f, nil
	}
	f.party, err = webauthn.New(&webauthn.Config{
		RPID: host, RPDisplayName: host, RPOrigins: []string{strings.ToLower(u.Scheme + "://" + u.Host)},
		AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification: protocol.VerificationRequired,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("passkeys: %w", err)
	}
	return f, nil
}

// checkParty returns fault.NotFound where the service can have no passkeys.
func (f *Factors) checkParty() error {
	if f.party == nil {
		return fault.New(fault.NotFound, "The service has no passkeys: its public URL has no host name")
	}
	return nil
}

// factorsRecord is all passkeys and recovery codes of an account.
type factorsRecord struct {
	Handle   []byte     `json:"handle,omitzero"` // names the account to its authenticators
	Passkeys []passkey  `json:"passkeys,omitempty"`
	Codes    []string   `json:"codes,omitempty"` // hashes of the unused ones
	MadeAt   id.Instant `json:"codes_made_at,omitzero"`
}

// passkey is one passkey in the record of its account.
type passkey struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Credential []byte     `json:"credential"`
	PublicKey  []byte     `json:"public_key"` // COSE
	Counter    uint32     `json:"counter"`
	Eligible   bool       `json:"backup_eligible"`
	BackedUp   bool       `json:"backed_up"`
	Transports []string   `json:"transports,omitempty"`
	CreatedAt  id.Instant `json:"created_at"`
	UsedAt     id.Instant `json:"used_at,omitzero"`
}

type ownerRecord struct {
	Account account.ID `json:"account"`
}

// Passkey is a passkey as its account lists it.
type Passkey struct {
	ID           string
	Name         string
	CredentialID []byte
	CreatedAt    id.Instant
	UsedAt       id.Instant // 0: not yet
	BackedUp     bool       // the authenticator keeps a copy elsewhere
}

// Summary is all factors of an account but its password.
type Summary struct {
	Passkeys  []Passkey // oldest first
	CodesLeft int
}

// Second factors as clients know them.
const (
	SecondPasskey = "passkey"
	SecondCode    = "recovery_code"
)

// Second returns the second factors of an account, none when its password is enough.
func (s Summary) Second() (names []string) {
	if len(s.Passkeys) > 0 {
		names = append(names, SecondPasskey)
	}
	if s.CodesLeft > 0 {
		names = append(names, SecondCode)
	}
	return names
}

// Summary returns the factors of an account.
func (f *Factors) Summary(ctx context.Context, who account.ID) (Summary, error) {
	r, err := f.readFactors(ctx, who)
	if err != nil {
		return Summary{}, err
	}
	s := Summary{CodesLeft: len(r.Value.Codes), Passkeys: make([]Passkey, len(r.Value.Passkeys))}
	for i := range r.Value.Passkeys {
		s.Passkeys[i] = r.Value.Passkeys[i].toPasskey()
	}
	return s, nil
}

func (p *passkey) toPasskey() Passkey {
	return Passkey{ID: p.ID, CredentialID: p.Credential, Name: p.Name, CreatedAt: p.CreatedAt, UsedAt: p.UsedAt, BackedUp: p.BackedUp}
}

func (f *Factors) readFactors(ctx context.Context, who account.ID) (records.Versioned[factorsRecord], error) {
	return f.factors.Get(ctx, id.Service, string(who))
}

// RemoveAll takes all passkeys and recovery codes from an account, also the last way in: the
// operator's help for a person who lost them. fault.NotFound for an unknown account.
func (f *Factors) RemoveAll(ctx context.Context, who account.ID) error {
	found, err := f.Accounts.ByID(ctx, who)
	if err != nil {
		return err
	}
	_, err = f.Accounts.ChangeFactors(ctx, found, account.RemovedFactors, account.Visit{},
		func(ctx context.Context, _ account.Account) ([]storage.Change, error) {
			return f.RemoveChanges(ctx, who)
		})
	return err
}

// RemoveChanges implements account.Factors.
func (f *Factors) RemoveChanges(ctx context.Context, who account.ID) ([]storage.Change, error) {
	r, err := f.readFactors(ctx, who)
	if err != nil || !r.Exists() {
		return nil, err
	}
	changes := []storage.Change{{Kind: kindFactors, Key: string(who), If: r.Version}}
	for i := range r.Value.Passkeys {
		changes = append(changes, r.Value.Passkeys[i].removeOwner())
	}
	return changes, nil
}

// HasAny implements account.Factors.
func (f *Factors) HasAny(ctx context.Context, who account.ID) (bool, error) {
	s, err := f.Summary(ctx, who)
	return len(s.Second()) > 0, err
}

// credentialKey is the key of a credential's owner, because a credential id may have 1,023 bytes.
func credentialKey(credential []byte) string { return id.Hash(sha256.Sum256(credential)).String() }

func (p *passkey) removeOwner() storage.Change {
	return storage.Change{Kind: kindCredential, Key: credentialKey(p.Credential), If: storage.AnyVersion}
}

func (f *Factors) currentTime() id.Instant { return id.InstantOf(f.Clock()) }

// writeChanges writes changes of the service's own partition; stale says that another call came between.
func (f *Factors) writeChanges(ctx context.Context, step string, changes []storage.Change) (stale bool, err error) {
	err = f.Records.Write(ctx, id.Service, changes)
	if errors.Is(err, storage.ErrStale) {
		return true, nil
	}
	if err != nil {
		return false, records.Unreadable(unreadable, step, err)
	}
	return false, nil
}

// errBusy is for a use of a factor that other uses outran several times.
func errBusy() error {
	return &fault.Error{Kind: fault.Overloaded, Code: "overloaded", Message: "Too many sign-ins at once",
		RetryAfter: time.Second}
}
