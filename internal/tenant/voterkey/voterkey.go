// Package voterkey manages the passkeys with which members sign votes in an organization. It hides how keys are
// stored, and how their registration and retirement are signed and stated.
//
// Invariants:
//
//   - A key is registered and retired by an event of the log (sysevent.VoterKey) in one append with its record.
//   - A registration has a signature by the new passkey and, if the account has other voter keys, one by one of these.
//   - A key belongs to one log: it cannot sign for a successor of that log or at another service.
//   - A key is valid only while its passkey belongs to the account and its account is a member. Events retire keys
//     afterwards, even after a crash.
//   - An account has at most MaxKeys keys in an organization.
package voterkey

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// MaxKeys is the maximum number of voter keys of an account in an organization.
const MaxKeys = 5

// kindKey has one record for each voter key, by account, "/" and the hash of the credential ID, in the organization's
// partition.
const kindKey storage.Kind = "voter_key"

// Key is a voter key.
type Key struct {
	Account      account.ID       `json:"account_id"`
	CredentialID signedvote.Bytes `json:"credential_id"`
	PublicKey    signedvote.Key   `json:"public_key"`
	RPID         string           `json:"rp_id"`
	WebOrigin    string           `json:"web_origin"`
	Log          id.Origin        `json:"log"`
	RegisteredAt id.Instant       `json:"registered_at"`
	ConsentBy    string           `json:"consent_by,omitzero"` // thumbprint of the key that consented
	UsedAt       id.Instant       `json:"used_at,omitzero"`    // 0: it signed no vote
}

func (k *Key) credential() *signedvote.Credential {
	return &signedvote.Credential{ID: k.CredentialID, Key: k.PublicKey, RPID: k.RPID, WebOrigin: k.WebOrigin}
}

// Mail sends mails to the owners of voter keys.
type Mail interface {
	// VoterKeyMail returns the changes of the organization's partition that report a registration or a retirement.
	VoterKeyMail(ctx context.Context, t id.Tenant, who account.Account, registered bool, thumbprint string) (
		[]storage.Change, error)
}

// Options configure New. All fields except Mail are required.
type Options struct {
	Records storage.RecordStore
	Events  *sysevent.Appender
	Ledgers interface {
		State(ctx context.Context, t id.Tenant) (*log.State, error)
	}
	Accounts *account.Accounts
	Factors  *factor.Factors
	Clock    func() time.Time
	Mail     Mail // nil: nothing is mailed
}

// Keys manages the voter keys of all organizations. Its methods may be called concurrently.
type Keys struct {
	Options
	keys records.Store[Key]
}

// New returns the voter keys of a store.
func New(o Options) *Keys {
	return &Keys{Options: o, keys: records.New[Key](o.Records, kindKey, "Voter keys can't be read")}
}

// RecordChecks returns a function for each kind of record of this package that reports whether such a record can be
// decoded. An import calls it before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{kindKey: checkKey}
}

func checkKey(r storage.Record) error {
	if err := records.Check[Key](r); err != nil {
		return err
	}
	var k Key
	if err := json.Unmarshal(r.Value, &k); err != nil {
		return fmt.Errorf("voter key: %w: %w", storage.ErrCorrupt, err)
	}
	if r.Key != recordKey(k.Account, k.CredentialID) {
		return fmt.Errorf("voter key: %w: it has another account or credential", storage.ErrCorrupt)
	}
	return nil
}

// FactKinds are the kinds of records that have facts.
var FactKinds = []storage.Kind{kindKey}

// NoConsent is the value of the consent fact of a key that was registered without a consent.
const NoConsent = "none"

const factPrefix = "voter_key/"

// FactName returns the name of the fact that a credential is a voter key of an account. Its value is the thumbprint of the
// public key. The names of further facts about the key follow a "/".
func FactName(who account.ID, credential []byte) string {
	return factPrefix + recordKey(who, credential)
}

// IsFactName reports whether a name was created by FactName.
func IsFactName(name string) bool {
	return strings.HasPrefix(name, factPrefix) && strings.Count(name, "/") == 2
}

// Facts returns the facts in a record that the events of its log state too (package recordcheck). A key of another
// log has no facts.
func Facts(r storage.Record, origin id.Origin) (map[string]string, error) {
	if r.Kind != kindKey {
		return nil, nil
	}
	v, err := records.Decode[Key](r)
	k := v.Value
	if err != nil || k.Log != origin {
		return nil, err
	}
	name := factPrefix + r.Key
	return map[string]string{
		name: k.PublicKey.Thumbprint(), name + "/rp_id": k.RPID, name + "/web_origin": k.WebOrigin,
		name + "/registered_at": fmt.Sprint(int64(k.RegisteredAt)), name + "/consent_by": cmp.Or(k.ConsentBy, NoConsent),
	}, nil
}

func (k *Keys) now() id.Instant { return id.InstantOf(k.Clock()) }

func recordKey(who account.ID, credential []byte) string {
	return string(who) + "/" + id.Hash(sha256.Sum256(credential)).String()
}

// accountRange returns the range of record keys of an account.
func accountRange(who account.ID) records.Range {
	return records.Range{Begin: string(who) + "/", End: string(who) + "0"} // "0" follows "/"
}

// List returns voter keys of an organization, or of one account if who is not "", after the given name, and the name
// to continue with, or "" at the end.
func (k *Keys) List(ctx context.Context, t id.Tenant, who account.ID, after string, limit int) (found []Key, next string, err error) {
	var keys records.Range
	if who != "" {
		keys = accountRange(who)
	}
	if after != "" {
		keys.Begin = max(keys.Begin, after+"\x00")
	}
	if who != "" && keys.Begin >= keys.End {
		return nil, "", nil
	}
	s, err := k.Ledgers.State(ctx, t)
	if err != nil {
		return nil, "", err
	}
	last := ""
	for r, err := range k.keys.Scan(ctx, t, keys, 0) {
		if err != nil {
			return nil, "", err
		}
		if r.Value.Log != s.Identity().Origin {
			continue
		}
		if len(found) == limit {
			return found, last, nil
		}
		found, last = append(found, r.Value), r.Key
	}
	return found, "", nil
}

// stored returns the voter keys of an account in a log.
func (k *Keys) stored(ctx context.Context, s *log.State, who account.ID) (found []records.Versioned[Key], err error) {
	for r, err := range k.keys.Scan(ctx, s.Identity().Tenant, accountRange(who), 0) {
		if err != nil {
			return nil, err
		}
		if r.Value.Log == s.Identity().Origin {
			found = append(found, r)
		}
	}
	return found, nil
}

// active returns the voter keys of an account that can sign now: their passkeys are still the account's own.
func (k *Keys) active(ctx context.Context, s *log.State, who account.ID) ([]records.Versioned[Key], error) {
	found, err := k.stored(ctx, s, who)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	own, err := k.Factors.Signers(ctx, who)
	return slices.DeleteFunc(found, func(r records.Versioned[Key]) bool {
		return !slices.ContainsFunc(own, func(s factor.Signer) bool {
			return bytes.Equal(s.ID, r.Value.CredentialID) && s.Key.Thumbprint() == r.Value.PublicKey.Thumbprint() &&
				s.RPID == r.Value.RPID && s.WebOrigin == r.Value.WebOrigin
		})
	}), err
}

// Active returns the voter keys of an account that can sign now.
func (k *Keys) Active(ctx context.Context, t id.Tenant, who account.ID) ([]Key, error) {
	s, err := k.Ledgers.State(ctx, t)
	if err != nil {
		return nil, err
	}
	found, err := k.active(ctx, s, who)
	keys := make([]Key, len(found))
	for i := range found {
		keys[i] = found[i].Value
	}
	return keys, err
}

// Begun is what a person must sign to register a voter key.
type Begun struct {
	Time string
	Text []byte
	RPID string
	// Consents are the credentials of which one must consent. It is empty for the first key of the account.
	Consents []signedvote.Bytes
}

// Begin returns what the person of an account must sign to register a passkey. It returns fault.NotFound if the
// account does not have the passkey, and fault.Conflict if it is already registered, if the account has too many
// keys, or if the pages are not served securely.
func (k *Keys) Begin(ctx context.Context, t id.Tenant, who account.ID, credential []byte) (Begun, error) {
	s, err := k.Ledgers.State(ctx, t)
	if err != nil {
		return Begun{}, err
	}
	signer, others, err := k.prepare(ctx, s, who, credential)
	if err != nil {
		return Begun{}, err
	}
	b := Begun{Time: signedvote.Bucket(k.now()), RPID: signer.RPID}
	for _, o := range others {
		b.Consents = append(b.Consents, o.Value.CredentialID)
	}
	b.Text, err = signedvote.KeyText(s.Identity().Origin, string(who), signer.ID, signer.Key, b.Time)
	return b, err
}

// prepare returns the passkey to register and the active keys of the account.
func (k *Keys) prepare(ctx context.Context, s *log.State, who account.ID, credential []byte) (
	factor.Signer, []records.Versioned[Key], error) {
	if len(credential) == 0 {
		return factor.Signer{}, nil, fault.New(fault.Invalid, "credential_id is required")
	}
	signer, err := k.Factors.Signer(ctx, who, credential)
	if err != nil {
		return signer, nil, err
	}
	if !signedvote.ValidParty(signer.RPID, signer.WebOrigin) { // verifiers would refuse the registration
		return signer, nil, &fault.Error{Kind: fault.Conflict, Code: "insecure_origin",
			Message: "Votes can be signed only if the pages are served over HTTPS, or on localhost"}
	}
	others, err := k.active(ctx, s, who)
	if err != nil {
		return signer, nil, err
	}
	if slices.ContainsFunc(others, func(r records.Versioned[Key]) bool { return bytes.Equal(r.Value.CredentialID, credential) }) {
		return signer, nil, &fault.Error{Kind: fault.Conflict, Code: "voter_key_known", Message: "The passkey signs votes already"}
	}
	if len(others) >= MaxKeys {
		return signer, nil, &fault.Error{Kind: fault.Conflict, Code: "voter_key_limit",
			Message: fmt.Sprintf("You have %d passkeys that sign votes here, as many as you can", MaxKeys)}
	}
	return signer, others, nil
}

// Register registers a passkey as a voter key and states it. It returns fault.Invalid with code signature_refused for
// an invalid signature, fault.Invalid with code consent_required if another voter key of the account must consent,
// and otherwise the errors of Begin.
func (k *Keys) Register(ctx context.Context, t id.Tenant, who account.Account, credential []byte,
	possession signedvote.Assertion, consent *signedvote.Assertion, v account.Visit) (Key, error) {
	if err := k.RetireLost(ctx, t, who.ID); err != nil {
		return Key{}, err
	}
	var made Key
	spent := false
	_, err := k.Events.Append(ctx, t, string(who.ID), func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		signer, others, err := k.prepare(ctx, s, who.ID, credential)
		if err != nil {
			return sysevent.Change{}, err
		}
		r := signedvote.Registration{AccountID: string(who.ID), Consent: consent, CredentialID: signer.ID,
			Possession: possession, PublicKey: signer.Key, RPID: signer.RPID, Transition: signedvote.Registered,
			WebOrigin: signer.WebOrigin}
		guard, by, err := k.checkRegistration(s, &r, others)
		if err != nil {
			return sysevent.Change{}, err
		}
		if !spent { // of each preparation again, the signatures count once
			if err := k.spend(ctx, who.ID, v, &possession, consent); err != nil {
				return sysevent.Change{}, err
			}
			spent = true
		}
		made = Key{Account: who.ID, CredentialID: signer.ID, PublicKey: signer.Key, RPID: signer.RPID,
			WebOrigin: signer.WebOrigin, Log: s.Identity().Origin, RegisteredAt: k.now(), ConsentBy: by}
		put, err := k.keys.Put(records.Versioned[Key]{Key: recordKey(who.ID, signer.ID), Value: made,
			Version: storage.AnyVersion})
		if err != nil {
			return sysevent.Change{}, err
		}
		return k.state(ctx, t, who, true, signer.Key.Thumbprint(), r, append(guard, put)...)
	})
	return made, err
}

// checkRegistration verifies the signatures of a registration, and returns a change that makes the append fail if the
// consenting key is retired in the meantime.
func (k *Keys) checkRegistration(s *log.State, r *signedvote.Registration, others []records.Versioned[Key]) (
	guard []storage.Change, by string, err error) {
	origin := s.Identity().Origin
	if err := k.onTime(&r.Possession, r.Consent); err != nil {
		return nil, "", err
	}
	if err := r.CheckPossession(origin, k.now()); err != nil {
		return nil, "", errRefused(err)
	}
	if len(others) == 0 {
		if r.Consent != nil {
			return nil, "", errRefused(fmt.Errorf("consent: the account has no voter key"))
		}
		return nil, "", nil
	}
	if r.Consent == nil {
		return nil, "", &fault.Error{Kind: fault.Invalid, Code: "consent_required",
			Message: "Another passkey of yours that signs votes here has to consent"}
	}
	at := slices.IndexFunc(others, func(o records.Versioned[Key]) bool {
		return bytes.Equal(o.Value.CredentialID, r.Consent.CredentialID)
	})
	if at < 0 {
		return nil, "", errRefused(fmt.Errorf("consent: not by a voter key of the account"))
	}
	if err := r.CheckConsent(origin, others[at].Value.credential(), k.now()); err != nil {
		return nil, "", errRefused(err)
	}
	put, err := k.keys.Put(others[at])
	return []storage.Change{put}, others[at].Value.PublicKey.Thumbprint(), err
}

// late is how long the append of an event may take, in milliseconds: the time of a signature must be acceptable until
// then.
const late id.Instant = 60_000

// onTime checks the format of assertions, and that their times are acceptable for an event within the next minute.
func (k *Keys) onTime(assertions ...*signedvote.Assertion) error {
	for _, a := range assertions {
		if a == nil {
			continue
		}
		if err := a.Validate(); err != nil {
			return errRefused(err)
		}
		if !signedvote.Fits(a.Time, k.now()) || !signedvote.Fits(a.Time, k.now()+late) {
			return errRefused(fmt.Errorf("time: too old or in the future"))
		}
	}
	return nil
}

// spend records the use of the passkeys of assertions.
func (k *Keys) spend(ctx context.Context, who account.ID, v account.Visit, assertions ...*signedvote.Assertion) error {
	for _, a := range assertions {
		if a == nil {
			continue
		}
		if err := k.Factors.UseAssertion(ctx, who, a, v); err != nil {
			return err
		}
	}
	return nil
}

func errRefused(cause error) error {
	return &fault.Error{Kind: fault.Invalid, Code: "signature_refused", Message: "The signature of the passkey was refused",
		Err: cause}
}

// state returns the change that states a registration or a retirement.
func (k *Keys) state(ctx context.Context, t id.Tenant, who account.Account, registered bool, thumbprint string, payload any,
	changes ...storage.Change) (sysevent.Change, error) {
	statement, err := newStatement(payload)
	if err != nil {
		return sysevent.Change{}, err
	}
	if k.Mail != nil {
		mailed, err := k.Mail.VoterKeyMail(ctx, t, who, registered, thumbprint)
		if err != nil {
			return sysevent.Change{}, err
		}
		changes = append(changes, mailed...)
	}
	// The event ID of a retirement follows from the account, the key and the config version. A registration raises the
	// version, so that the key can be retired again.
	return sysevent.Change{Statements: []sysevent.Statement{statement}, Changes: changes, KeepConfigVersion: !registered}, nil
}

func newStatement(payload any) (sysevent.Statement, error) {
	text, err := jcs.Marshal(payload)
	if err != nil {
		return sysevent.Statement{}, err
	}
	var object map[string]any
	err = json.Unmarshal(text, &object)
	return sysevent.Statement{Kind: sysevent.VoterKey, Payload: object}, err
}

// Retire retires a voter key of an account and states it. by is the requesting account. It returns fault.NotFound if
// the key is not registered.
func (k *Keys) Retire(ctx context.Context, t id.Tenant, by, who account.ID, credential []byte) error {
	_, err := k.Events.Append(ctx, t, string(by), func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		found, err := k.stored(ctx, s, who)
		if err != nil {
			return sysevent.Change{}, err
		}
		found = slices.DeleteFunc(found, func(r records.Versioned[Key]) bool {
			return !bytes.Equal(r.Value.CredentialID, credential)
		})
		if len(found) == 0 {
			return sysevent.Change{}, fault.New(fault.NotFound, "Not found")
		}
		return k.retireAll(ctx, t, who, found)
	})
	return err
}

// FindAccount returns the accounts with a voter key for a credential ID.
func (k *Keys) FindAccount(ctx context.Context, t id.Tenant, credential []byte) (account.ID, error) {
	suffix := recordKey("", credential)
	for r, err := range k.keys.Scan(ctx, t, records.Range{}, 0) {
		if err != nil {
			return "", err
		}
		if strings.HasSuffix(r.Key, suffix) {
			return r.Value.Account, nil
		}
	}
	return "", fault.New(fault.NotFound, "Not found")
}

func (k *Keys) retireAll(ctx context.Context, t id.Tenant, who account.ID, keys []records.Versioned[Key]) (
	all sysevent.Change, err error) {
	all.KeepConfigVersion = true
	person, err := k.Accounts.ByID(ctx, who)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return all, err
	}
	for i := range keys {
		one, err := k.state(ctx, t, person, false, keys[i].Value.PublicKey.Thumbprint(),
			signedvote.Retirement{AccountID: string(who), CredentialID: keys[i].Value.CredentialID, Transition: signedvote.Retired},
			storage.Change{Kind: kindKey, Key: keys[i].Key, If: keys[i].Version})
		if err != nil {
			return all, err
		}
		all.Statements, all.Changes = append(all.Statements, one.Statements...), append(all.Changes, one.Changes...)
	}
	return all, nil
}

// RetireLost retires the voter keys of an account whose passkeys the account no longer has, and states it.
func (k *Keys) RetireLost(ctx context.Context, t id.Tenant, who account.ID) error {
	s, err := k.Ledgers.State(ctx, t)
	if err != nil {
		return err
	}
	if lost, err := k.lost(ctx, s, who); err != nil || len(lost) == 0 {
		return err
	}
	_, err = k.Events.Append(ctx, t, sysevent.Operator, func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		lost, err := k.lost(ctx, s, who)
		if err != nil || len(lost) == 0 {
			return sysevent.Change{}, err
		}
		return k.retireAll(ctx, t, who, lost)
	})
	return err
}

func (k *Keys) lost(ctx context.Context, s *log.State, who account.ID) ([]records.Versioned[Key], error) {
	all, err := k.stored(ctx, s, who)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	active, err := k.active(ctx, s, who)
	return slices.DeleteFunc(all, func(r records.Versioned[Key]) bool {
		return slices.ContainsFunc(active, func(a records.Versioned[Key]) bool { return a.Key == r.Key })
	}), err
}

// EndMembership returns the change that retires all voter keys of an account, for the append that ends its membership.
func (k *Keys) EndMembership(ctx context.Context, t id.Tenant, who account.ID) (sysevent.Change, error) {
	s, err := k.Ledgers.State(ctx, t)
	if err != nil {
		return sysevent.Change{}, err
	}
	all, err := k.stored(ctx, s, who)
	if err != nil || len(all) == 0 {
		return sysevent.Change{}, err
	}
	return k.retireAll(ctx, t, who, all)
}

// CheckVote verifies the assertion of a vote, and counts it as a use of its passkey. It returns fault.Invalid with
// code signature_refused if it is invalid.
func (k *Keys) CheckVote(ctx context.Context, t id.Tenant, who account.ID, vote signedvote.Vote, a *signedvote.Assertion,
	v account.Visit) error {
	s, err := k.Ledgers.State(ctx, t)
	if err != nil {
		return err
	}
	if err := k.onTime(a); err != nil {
		return err
	}
	key, err := k.find(ctx, s, who, a.CredentialID)
	if err != nil {
		return err
	}
	vote.Origin = s.Identity().Origin
	text, err := vote.Text(a.Time)
	if err == nil {
		err = key.Value.credential().Check(text, a, k.now())
	}
	if err != nil {
		return errRefused(err)
	}
	return k.Factors.UseAssertion(ctx, who, a, v)
}

func (k *Keys) find(ctx context.Context, s *log.State, who account.ID, credential []byte) (records.Versioned[Key], error) {
	active, err := k.active(ctx, s, who)
	if err != nil {
		return records.Versioned[Key]{}, err
	}
	at := slices.IndexFunc(active, func(r records.Versioned[Key]) bool { return bytes.Equal(r.Value.CredentialID, credential) })
	if at < 0 {
		return records.Versioned[Key]{}, errRefused(fmt.Errorf("credential_id: not a voter key of the account"))
	}
	return active[at], nil
}

// UseChange returns a change that makes the append of a vote fail if the key is retired in the meantime. It also
// returns the thumbprint and the time of the registration.
func (k *Keys) UseChange(ctx context.Context, s *log.State, who account.ID, a *signedvote.Assertion) (
	change storage.Change, thumbprint string, registeredAt id.Instant, err error) {
	key, err := k.find(ctx, s, who, a.CredentialID)
	if err != nil {
		return change, "", 0, err
	}
	if !k.fitsUntilAppended(a) {
		return change, "", 0, errRefused(fmt.Errorf("time: too old"))
	}
	thumbprint, registeredAt = key.Value.PublicKey.Thumbprint(), key.Value.RegisteredAt
	key.Value.UsedAt = k.now()
	change, err = k.keys.Put(key)
	return change, thumbprint, registeredAt, err
}

func (k *Keys) fitsUntilAppended(a *signedvote.Assertion) bool {
	return signedvote.Fits(a.Time, k.now()) && signedvote.Fits(a.Time, k.now()+late/2)
}
