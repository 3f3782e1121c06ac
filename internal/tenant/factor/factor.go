// Package factor stores the passkeys and the recovery codes of accounts, and verifies them. It hides the WebAuthn
// library and its challenges.
//
// Invariants:
//
//   - A passkey is valid only for the host of the public URL and a page of its origin, with user verification. It is
//     therefore sufficient to sign in, without a password.
//   - A challenge is valid only in the browser that requested it, for five minutes and one purpose. It is sealed in a
//     cookie, so that strangers cannot make the service store anything.
//   - An answered challenge cannot be used again, on any node.
//   - The counter of a passkey only increases. A lower one indicates a cloned passkey, which is rejected and recorded
//     in the login events.
//   - A credential ID belongs to one account of the service.
//   - An account has at most 20 passkeys and 10 recovery codes. Each change of them ends the sessions of the account
//     (account.ChangeFactors). The last way to sign in cannot be removed.
//   - A recovery code has 80 random bits, is stored as a hash, and can be used once.
//   - An account with a passkey or an unused recovery code has a second factor: its password alone is not sufficient
//     to sign in.
//   - Exports of organizations do not contain these records, because passkeys are valid only for one host, and the
//     author of an export could add a way to sign in.
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
	// MaxPasskeys is the maximum number of passkeys of an account.
	MaxPasskeys = 20
	// MaxName is the maximum length of a passkey's name, in code points.
	MaxName = 100
	// Life is how long a challenge, and a sign-in that lacks its second factor, are valid.
	Life = 5 * time.Minute
)

// Records of the service's own partition.
const (
	// kindFactors has one record for each account with passkeys or recovery codes, by account ID.
	kindFactors storage.Kind = "account_factors"
	// kindCredential maps a passkey to its account, by the hex SHA-256 of the credential ID.
	kindCredential storage.Kind = "passkey_account"
	// kindAnswered has the answered challenges until they expire, by the hex of their expiry in milliseconds, "/" and
	// the hex SHA-256 of the challenge.
	kindAnswered storage.Kind = "passkey_answered"
)

// unreadable is the message for clients if a record can't be read.
const unreadable = "Accounts can't be read"

// Options configure New. All fields are required.
type Options struct {
	Records   storage.RecordStore
	Accounts  *account.Accounts
	Sealer    seal.Sealer
	PublicURL string // its host is the relying party ID of the passkeys
	Clock     func() time.Time
}

// Factors manages the passkeys and recovery codes of all accounts. Its methods may be called concurrently.
type Factors struct {
	Options
	factors records.Store[factorsRecord]
	owners  records.Store[ownerRecord]
	party   *webauthn.WebAuthn // nil if the public URL has an IP address, which does not support passkeys
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

// checkParty returns fault.NotFound if the service does not support passkeys.
func (f *Factors) checkParty() error {
	if f.party == nil {
		return fault.New(fault.NotFound, "The service does not support passkeys: its public URL has no host name")
	}
	return nil
}

// factorsRecord contains all passkeys and recovery codes of an account.
type factorsRecord struct {
	Handle   []byte     `json:"handle,omitzero"` // identifies the account to authenticators
	Passkeys []passkey  `json:"passkeys,omitempty"`
	Codes    []string   `json:"codes,omitempty"` // hashes of the unused codes
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

// Passkey is a passkey in the list of its account.
type Passkey struct {
	ID           string
	Name         string
	CredentialID []byte
	CreatedAt    id.Instant
	UsedAt       id.Instant // 0 if never
	BackedUp     bool       // the authenticator has a copy elsewhere
}

// Summary contains all factors of an account except its password.
type Summary struct {
	Passkeys  []Passkey // oldest first
	CodesLeft int
}

// Names of the second factors for clients.
const (
	SecondPasskey = "passkey"
	SecondCode    = "recovery_code"
)

// Second returns the second factors of an account, or nil if its password is sufficient.
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

// RemoveAll removes all passkeys and recovery codes of an account, even if the account cannot sign in afterwards. The
// operator uses it for a person who lost them. It returns fault.NotFound for an unknown account.
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

// credentialKey returns the key of a credential's owner record, because a credential ID may have 1,023 bytes.
func credentialKey(credential []byte) string { return id.Hash(sha256.Sum256(credential)).String() }

func (p *passkey) removeOwner() storage.Change {
	return storage.Change{Kind: kindCredential, Key: credentialKey(p.Credential), If: storage.AnyVersion}
}

func (f *Factors) currentTime() id.Instant { return id.InstantOf(f.Clock()) }

// writeChanges writes changes of the service's own partition. stale reports whether there was a concurrent change.
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

// errBusy returns the error for a use of a factor after several concurrent changes.
func errBusy() error {
	return &fault.Error{Kind: fault.Overloaded, Code: "overloaded", Message: "Too many sign-ins at once",
		RetryAfter: time.Second}
}
