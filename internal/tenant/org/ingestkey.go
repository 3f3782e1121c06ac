package org

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

const (
	// kindIngestKey has one record for each ingest key, by its ID, in the organization's partition.
	kindIngestKey storage.Kind = "ingest_key"
	// kindIngestKeyClaim maps an ingest key's ID to its organization, in the service's own partition.
	kindIngestKeyClaim storage.Kind = "ingest_key_claim"
)

// IngestKey is the public part of an ingest key.
type IngestKey struct {
	ID        string
	Name      string
	Prefix    string // of the token: apl_<env>_<id>
	Scopes    Scopes
	Agents    []id.Agent     // for which it may act; if empty, all
	Asks      bool           // an evaluation with an obligation requests the approval automatically
	Subjects  *SubjectIssuer // nil: on_behalf_of of its events is never verified
	CreatedAt id.Instant
	CreatedBy string     // account, or sysevent.Operator
	ExpiresAt id.Instant // 0 means never
	RevokedAt id.Instant // 0 if not revoked

	// LastUsedAt is the minute of the last request with the key, or 0 if none is known. Only ListIngestKeys and
	// ShowIngestKey set it.
	LastUsedAt id.Instant
}

// SubjectIssuer is whose tokens prove on_behalf_of of the events that an ingest key sends.
type SubjectIssuer struct {
	Issuer   string `json:"issuer"`   // URL, as in the iss of tokens
	Audience string `json:"audience"` // that aud of tokens must contain
	Required bool   `json:"required"` // events without proof are refused
}

func (s *SubjectIssuer) check() error {
	if !event.ValidIssuer(s.Issuer) {
		return fault.New(fault.Invalid, "subject_issuer.issuer must be an https URL without user, query and fragment, at most 512 bytes")
	}
	if !textcheck.Plain(s.Audience, 1, 512) {
		return fault.New(fault.Invalid, "subject_issuer.audience must have 1 to 512 characters and no control characters")
	}
	return nil
}

// WantedKey describes a new ingest key.
type WantedKey struct {
	Name      string
	Scopes    Scopes     // if 0, AllScopes
	Agents    []id.Agent // if empty, all
	ExpiresAt id.Instant // 0 means never
	Asks      bool       // see IngestKey.Asks; requires ScopeEvaluate and ScopeApprovals
}

type ingestKeyRecord struct {
	Name      string         `json:"name"`
	Prefix    string         `json:"prefix"`
	Hash      id.Hash        `json:"hash"` // SHA-256 of the token
	Scopes    []string       `json:"scopes"`
	Agents    []id.Agent     `json:"agents,omitempty"`
	CreatedAt id.Instant     `json:"created_at"`
	CreatedBy string         `json:"created_by"`
	ExpiresAt id.Instant     `json:"expires_at,omitzero"`
	RevokedAt id.Instant     `json:"revoked_at,omitzero"`
	Asks      bool           `json:"asks,omitzero"`
	Subjects  *SubjectIssuer `json:"subject_issuer,omitzero"`
}

func (r *ingestKeyRecord) toIngestKey(key string) (IngestKey, error) {
	scopes, err := ParseScopes(r.Scopes)
	return IngestKey{
		ID: key, Name: r.Name, Prefix: r.Prefix, Scopes: scopes, Agents: r.Agents,
		CreatedAt: r.CreatedAt, CreatedBy: r.CreatedBy, ExpiresAt: r.ExpiresAt, RevokedAt: r.RevokedAt, Asks: r.Asks,
		Subjects: r.Subjects,
	}, err
}

func (o *Orgs) checkWantedKey(w WantedKey) error {
	if err := checkName(w.Name); err != nil {
		return err
	}
	if w.ExpiresAt != 0 && w.ExpiresAt <= o.currentTime() {
		return fault.New(fault.Invalid, "expires_at must be in the future")
	}
	if w.Scopes&^AllScopes != 0 {
		return errMalformedScopes()
	}
	if err := checkAsks(w.Asks, cmp.Or(w.Scopes, AllScopes)); err != nil {
		return err
	}
	return checkAgents(w.Agents)
}

// NewIngestKey claims an ingest key for a new organization and returns the record for the first write of its ledger.
// It states nothing.
func (o *Orgs) NewIngestKey(
	ctx context.Context, t id.Tenant, principal string, w WantedKey,
) (storage.Change, IngestKey, Token, error) {
	fail := func(err error) (storage.Change, IngestKey, Token, error) {
		return storage.Change{}, IngestKey{}, Token{}, err
	}
	if err := o.checkWantedKey(w); err != nil {
		return fail(err)
	}
	if w.Scopes == 0 {
		w.Scopes = AllScopes
	}
	token, key := generateToken(o.env)
	r := ingestKeyRecord{
		Name: w.Name, Prefix: token.shownPrefix(), Hash: token.hashToken(), Scopes: w.Scopes.Names(), Agents: w.Agents,
		CreatedAt: o.currentTime(), CreatedBy: principal, ExpiresAt: w.ExpiresAt,
		Asks: w.Asks,
	}
	shown, err := r.toIngestKey(key)
	if err != nil {
		return fail(err)
	}
	value, err := json.Marshal(r)
	if err != nil {
		return fail(fmt.Errorf("create ingest key: %w", err))
	}
	if err := o.claimIngestKey(ctx, t, key); err != nil {
		return fail(err)
	}
	return storage.Change{Kind: kindIngestKey, Key: key, Value: value}, shown, token, nil
}

// claimIngestKey records the organization of an ID. IDs are random, so they never collide.
func (o *Orgs) claimIngestKey(ctx context.Context, t id.Tenant, key string) error {
	value, err := json.Marshal(claimRecord{Tenant: t})
	if err != nil {
		return fmt.Errorf("claim ingest key: %w", err)
	}
	err = o.records.Write(ctx, id.Service, []storage.Change{{Kind: kindIngestKeyClaim, Key: key, Value: value}})
	if err != nil {
		return errUnreadable("claim ingest key", err)
	}
	return nil
}

// CreateIngestKey creates an ingest key and states it (ledger_ingest_key_created). The token is not stored. It
// returns fault.Invalid for an invalid key, fault.Conflict if the organization has as many keys as its plan allows,
// and fault.RateLimited if changes come too fast.
func (o *Orgs) CreateIngestKey(
	ctx context.Context, t id.Tenant, principal string, w WantedKey,
) (IngestKey, Token, error) {
	if err := o.checkWantedKey(w); err != nil {
		return IngestKey{}, Token{}, err
	}
	if err := o.checkAgentsExist(ctx, t, w.Agents); err != nil {
		return IngestKey{}, Token{}, err
	}
	if _, err := o.countIngestKey(ctx, t); err != nil { // before anything is claimed
		return IngestKey{}, Token{}, err
	}
	change, key, token, err := o.NewIngestKey(ctx, t, principal, w)
	if err != nil {
		return IngestKey{}, Token{}, err
	}
	_, err = o.events.Append(ctx, t, principal, func(ctx context.Context, _ *log.State) (sysevent.Change, error) {
		counted, err := o.countIngestKey(ctx, t)
		act := keyChange(sysevent.IngestKeyCreated, key, append(counted, change)...)
		if key.Asks {
			act.Statements[0].Payload["asks"] = true
		}
		return act, err
	})
	if err != nil {
		return IngestKey{}, Token{}, err
	}
	return key, token, nil
}

func keyChange(kind sysevent.Kind, key IngestKey, changes ...storage.Change) sysevent.Change {
	return sysevent.Change{
		Statements: []sysevent.Statement{{Kind: kind, Payload: map[string]any{
			"key_id": key.ID, "name": key.Name, "scopes": key.Scopes.Names(),
		}}},
		Changes: changes,
	}
}

// ListIngestKeys returns all ingest keys of an organization, including revoked and expired ones, oldest first.
func (o *Orgs) ListIngestKeys(ctx context.Context, t id.Tenant) ([]IngestKey, error) {
	keys := []IngestKey{}
	used, err := o.readLastUses(ctx, t)
	if err != nil {
		return nil, err
	}
	for r, err := range records.Scan(ctx, o.records, t, kindIngestKey, records.Range{}, 0) {
		if err != nil {
			return nil, errUnreadable("list ingest keys", err)
		}
		key, _, err := decodeIngestKey(r)
		if err != nil {
			return nil, err
		}
		key.LastUsedAt = used[key.ID]
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b IngestKey) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return keys, nil
}

// IngestKey returns an ingest key of an organization, even if it is revoked or expired. It returns fault.NotFound if
// there is none with that ID.
func (o *Orgs) IngestKey(ctx context.Context, t id.Tenant, keyID string) (IngestKey, error) {
	r, err := o.records.Get(ctx, t, kindIngestKey, keyID)
	if isAbsent(err) {
		return IngestKey{}, errNotFound()
	}
	if err != nil {
		return IngestKey{}, errUnreadable("read ingest key", err)
	}
	key, _, err := decodeIngestKey(r)
	return key, err
}

func decodeIngestKey(r storage.Record) (IngestKey, *ingestKeyRecord, error) {
	var stored ingestKeyRecord
	if err := json.Unmarshal(r.Value, &stored); err != nil {
		return IngestKey{}, nil, errUnreadable("decode ingest key", err)
	}
	key, err := stored.toIngestKey(r.Key)
	if err != nil {
		return IngestKey{}, nil, errUnreadable("decode ingest key", err)
	}
	return key, &stored, nil
}

// RevokeIngestKey revokes an ingest key and states it (ledger_ingest_key_revoked). If the key is already revoked, it
// does nothing. It returns fault.NotFound if the organization has no such key.
func (o *Orgs) RevokeIngestKey(ctx context.Context, t id.Tenant, principal, keyID string) error {
	var hash id.Hash
	_, err := o.events.Append(ctx, t, principal, func(ctx context.Context, _ *log.State) (sysevent.Change, error) {
		r, err := o.records.Get(ctx, t, kindIngestKey, keyID)
		if isAbsent(err) {
			return sysevent.Change{}, errNotFound()
		}
		if err != nil {
			return sysevent.Change{}, errUnreadable("revoke ingest key", err)
		}
		key, stored, err := decodeIngestKey(r)
		if err != nil {
			return sysevent.Change{}, err
		}
		if stored.RevokedAt != 0 {
			return sysevent.Change{}, nil
		}
		stored.RevokedAt, hash = o.currentTime(), stored.Hash
		value, err := json.Marshal(stored)
		if err != nil {
			return sysevent.Change{}, err
		}
		counted, err := o.quota.End(ctx, t, ingestKeyResource())
		return keyChange(sysevent.IngestKeyRevoked, key, storage.Change{
			Kind:  kindIngestKey,
			Key:   keyID,
			Value: value,
			If:    r.Version,
		}, counted), err
	})
	o.callers.Drop(hash)
	return err
}
