// Package sysevent writes the service's own events: statements about an organization's keys, agents, policies and
// settings. They are signed with the organization's system key and stored in its ledger like all other events. It hides
// the system keys and the retries of an append.
//
// Invariants:
//
//   - An event and the record changes that it represents are committed in one append, or neither is.
//   - The system key signs only system envelopes. It is stored sealed in the organization's partition and is generated
//     with the organization.
//   - The event ID is a function of the statement, the config version under which it was made, and the system key. So a
//     repeated attempt does not record it twice, and no other party can predict the ID.
//   - Append increments the config version unless KeepConfigVersion is set.
package sysevent

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// Kind is the action_kind of an event of the service.
type Kind string

// The statements of the service.
const (
	KeyRegistered    Kind = "ledger_key_registered"
	KeyRetired       Kind = "ledger_key_retired"
	KeyRevoked       Kind = "ledger_key_revoked"
	AgentCreated     Kind = "ledger_agent_created"
	AgentChanged     Kind = "ledger_agent_changed"
	PolicyActivated  Kind = "ledger_policy_activated"
	PolicyArchived   Kind = "ledger_policy_archived"
	SettingsChanged  Kind = "ledger_settings_changed"
	IngestKeyCreated Kind = "ledger_ingest_key_created"
	IngestKeyChanged Kind = "ledger_ingest_key_changed"
	IngestKeyRevoked Kind = "ledger_ingest_key_revoked"
	Approval         Kind = "ledger_approval"
	LogKey           Kind = verify.LogKeyKind
	Clock            Kind = log.ClockKind
	Run              Kind = "ledger_run"
	WebhookCreated   Kind = "ledger_webhook_created"
	WebhookChanged   Kind = "ledger_webhook_changed"
	WebhookDeleted   Kind = "ledger_webhook_deleted"
	WebhookDisabled  Kind = "ledger_webhook_disabled"
	TokenCreated     Kind = "ledger_token_created"
	TokenDeleted     Kind = "ledger_token_deleted"
	Successor        Kind = verify.SuccessorKind
	Directory        Kind = verify.DirectoryKind
	MemberAdded      Kind = "ledger_member_added"
	MemberChanged    Kind = "ledger_member_changed"
	MemberRemoved    Kind = "ledger_member_removed"
	// VoterKey registers or retires a passkey by which a member signs votes (package signedvote).
	VoterKey Kind = signedvote.KeyKind

	// MemberSignIn is a change of how a member signs in (account.SignInChange).
	MemberSignIn Kind = "ledger_member_sign_in_changed"

	// DeputyNamed and DeputyEnded are about a deputy who votes in place of a member for a time.
	DeputyNamed Kind = "ledger_deputy_named"
	DeputyEnded Kind = "ledger_deputy_ended"

	// SlackLinked and SlackUnlinked begin and end the link of a member to a user of Slack, by whom the member votes.
	SlackLinked   Kind = "ledger_slack_linked"
	SlackUnlinked Kind = "ledger_slack_unlinked"

	EvidenceExported Kind = "ledger_evidence_exported"
	CoverageCompared Kind = "ledger_coverage_compared"

	StreamExportChanged Kind = "ledger_stream_export_changed"
	StreamExportDeleted Kind = "ledger_stream_export_deleted"

	EnvelopeErased   Kind = event.KindErasure
	ErasureRequested Kind = "ledger_erasure_requested"
	ApprovalErased   Kind = "ledger_approval_erased"

	InvitationCreated Kind = "ledger_invitation_created"
	InvitationRenewed Kind = "ledger_invitation_renewed"
	InvitationRevoked Kind = "ledger_invitation_revoked"

	// ToolKeysChanged has all keys of an organization's tools after a change.
	ToolKeysChanged Kind = "ledger_tool_keys_changed"

	ViewSaved   Kind = "ledger_view_saved"
	ViewRemoved Kind = "ledger_view_removed"

	RecordsAccepted Kind = "ledger_records_accepted"

	ShareCreated Kind = "ledger_share_created"
	ShareOpened  Kind = "ledger_share_opened"
	ShareRevoked Kind = "ledger_share_revoked"
)

// Operator is the principal of changes that were made with the platform secret.
const Operator = "operator"

// agentID is the agent of the service's own events.
const agentID = "system"

// Statement is one event of the service.
type Statement struct {
	Kind    Kind
	Payload map[string]any // a JSON object
	Trace   id.Trace       // of the subject; "" means ledger

	// Principal is the actor if it is not the principal of the change. For example, an agent asks again, and its older
	// request has expired, which the service records in its own name.
	Principal string

	// Erases are the ranges whose envelopes the statement erases (log.Draft). Only package erasure sets it, because it
	// creates the payload that describes the erasure.
	Erases []id.Range
}

// Change is one change of an organization and the statements that record it.
type Change struct {
	Statements []Statement // in the order of the ledger; if empty, nothing changes and nothing is appended
	Changes    []storage.Change
	Keys       *log.KeyChange   // of the log's keys; may be nil
	Clock      *log.ClockChange // of a ledger that is ahead of the clock, with one statement; may be nil

	// KeepConfigVersion means that the change does not affect how events are decided: the config version stays, and
	// events that were prepared in the meantime are appended.
	KeepConfigVersion bool
}

// Appender appends the service's own events. Its methods may be called concurrently.
type Appender struct {
	Ledgers *log.Ledgers
	Records storage.RecordStore
	Keyring *seal.Keyring

	// Disclosure returns the organization's setting for new events. It is called for each change,
	// because organizations and their appender need each other.
	Disclosure func(ctx context.Context, s *log.State) (id.Disclosure, error)

	Clock      func() time.Time
	Processors *admission.FairQueue // in which changes are prepared, shared with the other work of the process; may be nil

	acting syncs.KeyLocks[id.Tenant] // one change of an organization at a time

	keepKeys sync.Once // makes keys
	keys     *cache.Map[id.Organization, systemKey]
}

// systemKey is an unsealed system key. It never changes while its organization exists.
type systemKey struct {
	id      id.Key
	private edkey.Private
}

// maxKeys bounds the cached system keys, about 200 bytes each.
const maxKeys = 4096

// kindSystemKey has the record of an organization's system key, under the key "".
const kindSystemKey storage.Kind = "system_key"

type systemKeyRecord struct {
	KeyID  id.Key `json:"key_id"`
	Sealed []byte `json:"sealed"`
}

func sealContext(organization id.Organization) string {
	return "system-key\n" + organization.String()
}

// SealedSystemKey describes the record with an organization's system key.
func SealedSystemKey() seal.Record {
	return seal.RecordOf(kindSystemKey, "system key", seal.ForOrganization(sealContext),
		func(r *systemKeyRecord) []*[]byte { return []*[]byte{&r.Sealed} })
}

// NewSystemKey generates a system key and returns its record, for a new organization.
func NewSystemKey(keyring *seal.Keyring, organization id.Organization) (storage.Change, error) {
	seed := edkey.NewPrivate().Seed()
	sealed, err := keyring.Seal(sealContext(organization), seed[:])
	if err != nil {
		return storage.Change{}, fmt.Errorf("generate system key: %w", err)
	}
	var name [12]byte
	rand.Read(name[:])
	value, err := json.Marshal(systemKeyRecord{KeyID: id.Key("system_" + hex.EncodeToString(name[:])), Sealed: sealed})
	if err != nil {
		return storage.Change{}, fmt.Errorf("generate system key: %w", err)
	}
	return storage.Change{Kind: kindSystemKey, Value: value}, nil
}

// Append appends the change that prepare returns, under the ledger state that prepare was given. If the config version
// of that state changed in the meantime, Append calls prepare again. Each call waits for a processor, so the caller
// must not hold one. If nothing changes, there is no receipt and no error. principal is the account, the ingest key or
// Operator, for the statements without a principal.
//
// A call with a credential (WithCredential) has the principal "<principal>/<credential>".
//
// Append returns the errors of prepare and of log.Ledgers.Append. If a record has another version than the change
// expects, prepare is called again.
func (n *Appender) Append(
	ctx context.Context, t id.Tenant, principal string, prepare func(context.Context, *log.State) (Change, error),
) ([]log.Receipt, error) {
	leave, err := n.acting.Lock(ctx, t)
	if err != nil {
		return nil, err
	}
	defer leave()
	receipts, err := n.Ledgers.Append(ctx, t, func(ctx context.Context, s *log.State) (log.Submission, error) {
		give, err := n.takeTurn(ctx, t)
		if err != nil {
			return log.Submission{}, err
		}
		defer give()
		act, err := prepare(ctx, s)
		if err != nil || len(act.Statements) == 0 {
			return log.Submission{}, err
		}
		drafts, events, err := n.signDrafts(ctx, s, principalFor(ctx, principal), act.Statements)
		if err != nil {
			return log.Submission{}, err
		}
		sources, err := sourceChanges(ctx, act.Statements, events)
		return log.Submission{
			Drafts:       drafts,
			Changes:      slices.Concat(act.Changes, sources),
			Keys:         act.Keys,
			Clock:        act.Clock,
			Reconfigures: !act.KeepConfigVersion,
		}, err
	})
	if len(receipts) > 0 {
		noteStatement(ctx)
	}
	if fault.Is(err, fault.OutcomeUnknown) {
		err = errOutcome("The change may have taken effect: check before you retry", err)
	}
	return receipts, err
}

// takeTurn waits for a processor for prepare, which must not wait for another one.
func (n *Appender) takeTurn(ctx context.Context, t id.Tenant) (give func(), err error) {
	if n.Processors == nil {
		return func() {}, nil
	}
	tenant := admission.TenantOf(t)
	if err := n.Processors.AcquireQuietly(ctx, tenant, 1); err != nil {
		return nil, fmt.Errorf("wait for a turn: %w", err)
	}
	return func() { n.Processors.Release(tenant, 1) }, nil
}

// Draft signs statements for an append of another package, which also writes the records that they represent. principal
// is as in Append.
func (n *Appender) Draft(
	ctx context.Context, s *log.State, principal string, statements []Statement,
) ([]log.Draft, error) {
	drafts, _, err := n.signDrafts(ctx, s, principal, statements)
	return drafts, err
}

// signDrafts signs statements and also returns their event IDs.
func (n *Appender) signDrafts(
	ctx context.Context, s *log.State, principal string, statements []Statement,
) ([]log.Draft, []id.Event, error) {
	keyID, key, err := n.openSystemKey(ctx, s.Identity())
	if err != nil {
		return nil, nil, err
	}
	disclosure, err := n.Disclosure(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	drafts, events := make([]log.Draft, len(statements)), make([]id.Event, len(statements))
	for i, statement := range statements {
		envelope, err := n.signStatement(s, principal, statement, keyID, key)
		if err != nil {
			return nil, nil, fmt.Errorf("state %s: %w", statement.Kind, err)
		}
		events[i] = envelope.EventID
		drafts[i] = log.NewDraft(s.Identity(), envelope, log.Attestation{
			Form:       event.FormDigest,
			PublicKey:  did.Multikey(key.Public().Bytes()),
			Signer:     event.SignerSystem,
			Custody:    event.CustodyServer,
			Policy:     event.Policy{Declared: id.Allow, Effective: id.Allow},
			Disclosure: disclosure,
		})
		drafts[i].Erases = statement.Erases
	}
	return drafts, events, nil
}

// openSystemKey returns the system key of an organization. It reads and unseals each key once.
func (n *Appender) openSystemKey(ctx context.Context, identity *log.Identity) (id.Key, edkey.Private, error) {
	n.keepKeys.Do(func() {
		n.keys = cache.NewMap(cache.MapOptions[id.Organization, systemKey]{Limit: maxKeys})
	})
	if k, ok := n.keys.Get(identity.Organization); ok {
		return k.id, k.private, nil
	}
	name, private, err := n.readSystemKey(ctx, identity)
	if err == nil {
		n.keys.Put(identity.Organization, systemKey{name, private})
	}
	return name, private, err
}

func (n *Appender) readSystemKey(ctx context.Context, identity *log.Identity) (id.Key, edkey.Private, error) {
	r, err := n.Records.Get(ctx, identity.Tenant, kindSystemKey, "")
	if err != nil {
		return "", edkey.Private{}, fmt.Errorf("read system key: %w", err)
	}
	var stored systemKeyRecord
	if err := json.Unmarshal(r.Value, &stored); err != nil {
		return "", edkey.Private{}, fmt.Errorf("read system key: %w", err)
	}
	seed, err := n.Keyring.Open(sealContext(identity.Organization), stored.Sealed)
	if err != nil {
		return "", edkey.Private{}, fmt.Errorf("open system key: %w", err)
	}
	key, err := edkey.PrivateFromSeed(seed)
	return stored.KeyID, key, err
}

// signStatement returns the signed envelope of one statement.
func (n *Appender) signStatement(
	s *log.State, principal string, statement Statement, keyID id.Key, key edkey.Private,
) (*event.Envelope, error) {
	name, err := deriveEventID(s, statement, key)
	if err != nil {
		return nil, err
	}
	trace := statement.Trace
	if trace == "" {
		trace = "ledger"
	}
	if statement.Principal != "" {
		principal = statement.Principal
	}
	unsigned, err := json.Marshal(map[string]any{
		"schema_version":  1,
		"event_id":        name,
		"organization_id": s.Identity().Organization.String(),
		"trace_id":        trace,
		"agent_id":        agentID,
		"key_id":          keyID,
		"emitted_at":      id.InstantOf(n.Clock()),
		"actor_type":      "system",
		"actor_principal": principal,
		"action_kind":     statement.Kind,
		"policy_decision": id.Allow,
		"payload":         statement.Payload,
	})
	if err != nil {
		return nil, err
	}
	return event.SignEnvelope(unsigned, key)
}

// EventID returns the ID of a statement that is made under the state s. It follows from the statement and the config
// version of s.
func (n *Appender) EventID(ctx context.Context, s *log.State, statement Statement) (id.Event, error) {
	_, key, err := n.openSystemKey(ctx, s.Identity())
	if err != nil {
		return "", err
	}
	return deriveEventID(s, statement, key)
}

// deriveEventID uses a key: an agent that could predict the ID of a statement about it would use the ID for an event of
// its own first, and the statement would be rejected.
func deriveEventID(s *log.State, statement Statement, key edkey.Private) (id.Event, error) {
	payload, err := jcs.Marshal(statement.Payload)
	if err != nil {
		return "", fmt.Errorf("name statement: %w", err)
	}
	seed := key.Seed()
	h := hmac.New(sha256.New, seed[:])
	fmt.Fprintf(h, "event_id\n%s\n%d\n%s", statement.Kind, s.ConfigVersion(), payload)
	return id.Event(string(statement.Kind) + ":" + hex.EncodeToString(h.Sum(nil)[:16])), nil
}
