package org

import (
	"fmt"
	"github.com/agentledger/agentledger/internal/records"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Names are the names and the plan in an organization's own record.
type Names struct {
	ID   id.Organization
	Slug id.Slug
	Plan string
}

// IsFounding reports whether r is the record that makes an organization exist.
func IsFounding(r storage.Record) bool { return r.Kind == kindOrg && r.Key == "" }

// Kind is the kind of that record. Its key is "".
const Kind = kindOrg

// NamesOf returns the names in an organization's founding record. It returns an error that wraps storage.ErrNotFound
// for a void handle.
func NamesOf(r storage.Record) (Names, error) {
	if string(r.Value) == voidValue {
		return Names{}, fmt.Errorf("handle is void: %w", storage.ErrNotFound)
	}
	var stored orgRecord
	if err := json.Unmarshal(r.Value, &stored); err != nil || !IsFounding(r) {
		return Names{}, fmt.Errorf("organization's record: %w", storage.ErrCorrupt)
	}
	return Names{ID: stored.OrganizationID, Slug: stored.Slug, Plan: stored.Plan}, nil
}

// ServiceRecords returns the entries of an organization's record in the service's own partition, for code that copies
// an organization.
func ServiceRecords(t id.Tenant, r storage.Record) ([]storage.Record, error) {
	value, err := json.Marshal(claimRecord{Tenant: t})
	if err != nil {
		return nil, fmt.Errorf("claims: %w", err)
	}
	switch {
	case IsFounding(r):
		names, err := NamesOf(r)
		return []storage.Record{
			{Kind: kindIDClaim, Key: names.ID.String(), Value: value},
			{Kind: kindSlugClaim, Key: string(names.Slug), Value: value},
		}, err
	case r.Kind == kindIngestKey:
		return []storage.Record{{Kind: kindIngestKeyClaim, Key: r.Key, Value: value}}, nil
	}
	return nil, nil
}

// RecordChecks returns a function for each kind of record of this package that reports whether such a record can be
// decoded. An import calls it before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindOrg:            checkOrg,
		kindViews:          records.Check[viewsRecord],
		kindToolKeys:       records.Check[toolKeysRecord],
		kindIngestKey:      checkIngestKey,
		kindIngestKeyUse:   records.Check[ingestKeyUseRecord],
		kindIngestKeyClaim: records.Check[claimRecord],
		kindIDClaim:        records.Check[claimRecord],
		kindSlugClaim:      records.Check[claimRecord],
	}
}

func checkOrg(r storage.Record) error {
	v, err := records.Decode[orgRecord](r)
	if err == nil && (!IsFounding(r) || v.Value.Slug == "" || v.Value.Plan == "") {
		err = fmt.Errorf("organization's record: %w", storage.ErrCorrupt)
	}
	return err
}

func checkIngestKey(r storage.Record) error {
	if _, _, err := decodeIngestKey(r); err != nil {
		return fmt.Errorf("ingest key: %w: %w", storage.ErrCorrupt, err)
	}
	return nil
}

// FactKinds are the kinds of records that have facts.
var FactKinds = []storage.Kind{kindOrg, kindIngestKey}

// Facts returns the facts in a record that events of the log state too (package recordcheck).
func Facts(r storage.Record) (map[string]string, error) {
	switch r.Kind {
	case kindOrg:
		if string(r.Value) == voidValue {
			return nil, nil
		}
		v, err := records.Decode[orgRecord](r)
		if err != nil {
			return nil, err
		}
		digest, err := v.Value.digestSettings()
		return map[string]string{"settings": digest.String()}, err
	case kindIngestKey:
		key, _, err := decodeIngestKey(r)
		at := "ingest_key/" + r.Key
		return map[string]string{
			at: "exists", at + "/name": key.Name, at + "/scopes": strings.Join(key.Scopes.Names(), " "),
			at + "/asks": fmt.Sprint(key.Asks), at + "/revoked": fmt.Sprint(key.RevokedAt != 0),
		}, err
	}
	return nil, nil
}
