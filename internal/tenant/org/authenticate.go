package org

import (
	"context"
	"crypto/subtle"
	"sync/atomic"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// Caller is the holder of a good ingest key. A value that was handed out
// never changes.
type Caller struct {
	Tenant       id.Tenant
	Organization id.Organization
	KeyID        string
	Scopes       Scopes
	Agents       []id.Agent // that it may speak for; empty: all
	Asks         bool       // IngestKey.Asks
}

// ingestKeyCaller is a caller and when that is over.
type ingestKeyCaller struct {
	Caller
	expiresAt id.Instant   // 0: never
	used      atomic.Int64 // the minute of the last use that was noted
}

// Authenticate returns the holder of an ingest key. Every bad key is
// fault.Unauthorized; an error of the store is fault.Unavailable. The knowledge
// about a key is at most a second old, and staleCaller older while the store
// does not answer. A key that was revoked through these Orgs is refused at once,
// whether the store answers or not.
func (o *Orgs) Authenticate(ctx context.Context, token string) (*Caller, error) {
	c, err := o.findCaller(ctx, token)
	if err != nil {
		return nil, err
	}
	if c.expiresAt != 0 && o.currentTime() >= c.expiresAt {
		return nil, errUnauthorized()
	}
	o.noteCaller(c)
	return &c.Caller, nil
}

// findCaller returns the caller with a token. A token that is known by its hash was parsed before.
func (o *Orgs) findCaller(ctx context.Context, token string) (*ingestKeyCaller, error) {
	if len(token) > maxToken {
		return nil, errUnauthorized()
	}
	hash := hashTokenText(token)
	if c, found := o.callers.Lookup(hash, 0); found {
		return c, nil
	}
	keyID, ok := parseToken(token)
	if !ok {
		return nil, errUnauthorized()
	}
	return o.callers.Get(ctx, hash, func(ctx context.Context) (*ingestKeyCaller, error) {
		return o.readCaller(ctx, keyID, hash)
	})
}

func errUnauthorized() error { return fault.New(fault.Unauthorized, "Invalid API key") }

func (o *Orgs) readCaller(ctx context.Context, keyID string, hash id.Hash) (*ingestKeyCaller, error) {
	held, err := o.readHolder(ctx, kindIngestKeyClaim, keyID)
	if err != nil {
		return nil, err
	}
	r, err := o.records.Get(ctx, held.tenant, kindIngestKey, keyID)
	if isAbsent(err) { // also for tenant 0, which has none
		return nil, errUnauthorized()
	}
	if err != nil {
		return nil, errUnreadable("read ingest key", err)
	}
	key, stored, err := decodeIngestKey(r)
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare(stored.Hash[:], hash[:]) != 1 || key.RevokedAt != 0 {
		return nil, errUnauthorized()
	}
	organization, _, err := o.readRecord(ctx, held.tenant)
	if err != nil {
		return nil, errUnreadable("read ingest key", err)
	}
	return &ingestKeyCaller{expiresAt: key.ExpiresAt, Caller: Caller{
		Tenant:       held.tenant,
		Organization: organization.OrganizationID,
		KeyID:        keyID,
		Scopes:       key.Scopes,
		Agents:       key.Agents,
		Asks:         key.Asks,
	}}, nil
}
