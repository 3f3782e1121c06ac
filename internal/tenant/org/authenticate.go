package org

import (
	"context"
	"crypto/subtle"
	"sync/atomic"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// Caller is the holder of a valid ingest key. It is immutable.
type Caller struct {
	Tenant       id.Tenant
	Organization id.Organization
	KeyID        string
	Scopes       Scopes
	Agents       []id.Agent     // for which it may act; if empty, all
	Asks         bool           // IngestKey.Asks
	Subjects     *SubjectIssuer // IngestKey.Subjects
}

// ingestKeyCaller is a caller with the expiry of its key.
type ingestKeyCaller struct {
	Caller
	expiresAt id.Instant   // 0 means never
	used      atomic.Int64 // minute of the last recorded use
}

// Authenticate returns the holder of an ingest key. It returns fault.Unauthorized for every invalid key, and
// fault.Unavailable if the store fails. The cached state of a key is at most a second old, or staleCaller older while
// the store does not respond. A key that was revoked through these Orgs is rejected at once, whether or not the store
// responds.
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

// findCaller returns the caller with a token. If the hash of a token is cached, the token is known to be well-formed.
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
	claim, err := o.readHolder(ctx, kindIngestKeyClaim, keyID)
	if err != nil {
		return nil, err
	}
	r, err := o.records.Get(ctx, claim.tenant, kindIngestKey, keyID)
	if isAbsent(err) { // also for tenant 0, which has no records
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
	organization, _, err := o.readRecord(ctx, claim.tenant)
	if err != nil {
		return nil, errUnreadable("read ingest key", err)
	}
	return &ingestKeyCaller{expiresAt: key.ExpiresAt, Caller: Caller{
		Tenant:       claim.tenant,
		Organization: organization.OrganizationID,
		KeyID:        keyID,
		Scopes:       key.Scopes,
		Agents:       key.Agents,
		Asks:         key.Asks,
		Subjects:     key.Subjects,
	}}, nil
}
