package account

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

const (
	// MaxSessions is the maximum number of sessions of an account. A further one ends the oldest.
	MaxSessions = 100
	// MaxLoginEvents is the maximum number of stored login events of an account.
	MaxLoginEvents = 100
)

// ListedSession is a session in the list of its account.
type ListedSession struct {
	ID        string
	Tenant    id.Tenant
	OpenedAt  id.Instant
	SeenAt    id.Instant // at most five minutes late
	ExpiresAt id.Instant
	Visit

	hash   id.Hash
	record sessionRecord
}

// listChange returns the changes that add a new session to the list of its account, and remove the oldest ones if
// there are too many.
func (a *Accounts) listChange(ctx context.Context, r *sessionRecord, hash id.Hash) ([]storage.Change, error) {
	value, err := json.Marshal(sessionOfRecord{Hash: hash.String()})
	if err != nil {
		return nil, err
	}
	changes := []storage.Change{{Kind: kindSessionOf, Key: r.listKey(), Value: value}}
	listed, err := a.scanSessions(ctx, r.Account)
	if err != nil {
		return nil, err
	}
	for len(listed) >= MaxSessions {
		var oldest sessionOfRecord
		if err := json.Unmarshal(listed[0].Value, &oldest); err != nil {
			return nil, errUnreadable("list sessions", err)
		}
		changes = append(changes, removeChange(kindSessionOf, listed[0].Key), removeChange(kindSession, oldest.Hash))
		listed = listed[1:]
	}
	return changes, nil
}

// scanSessions returns the entries of an account's list, oldest session first.
func (a *Accounts) scanSessions(ctx context.Context, who ID) ([]storage.Record, error) {
	var found []storage.Record
	keys := records.Range{Begin: string(who) + "/", End: string(who) + "0"} // "0" follows "/"
	for r, err := range records.Scan(ctx, a.records, id.Service, kindSessionOf, keys, 0) {
		if err != nil {
			return nil, errUnreadable("list sessions", err)
		}
		found = append(found, r)
	}
	return found, nil
}

// Sessions returns the valid sessions of an account, latest first.
func (a *Accounts) Sessions(ctx context.Context, who ID) ([]ListedSession, error) {
	account, _, err := a.findByID(ctx, who)
	if err != nil {
		return nil, err
	}
	listed, err := a.scanSessions(ctx, who)
	if err != nil {
		return nil, err
	}
	var found []ListedSession
	for i := range listed {
		s, err := a.readListed(ctx, listed[i])
		if fault.Is(err, fault.NotFound) || err == nil &&
			(s.record.Generation != account.Generation || s.ExpiresAt <= a.currentTime()) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	slices.Reverse(found)
	return found, nil
}

// maxSeen is the maximum number of sessions that LastSeen reads.
const maxSeen = 5

// LastSeen returns when an account last used one of its latest five sessions in an organization, at most five minutes
// late. It returns 0 if none of them is stored.
func (a *Accounts) LastSeen(ctx context.Context, who ID, t id.Tenant) (id.Instant, error) {
	listed, err := a.scanSessions(ctx, who)
	if err != nil {
		return 0, err
	}
	var last id.Instant
	for _, entry := range listed[max(0, len(listed)-maxSeen):] {
		s, err := a.readListed(ctx, entry)
		switch {
		case fault.Is(err, fault.NotFound): // it ended in the meantime
		case err != nil:
			return 0, err
		case s.Tenant == t:
			last = max(last, s.SeenAt)
		}
	}
	return last, nil
}

func (a *Accounts) readListed(ctx context.Context, entry storage.Record) (ListedSession, error) {
	var named sessionOfRecord
	if err := json.Unmarshal(entry.Value, &named); err != nil {
		return ListedSession{}, errUnreadable("list sessions", err)
	}
	hash, err := id.ParseHash(named.Hash)
	if err != nil {
		return ListedSession{}, errUnreadable("list sessions", err)
	}
	var r sessionRecord
	if _, err := a.readRecord(ctx, id.Service, kindSession, named.Hash, &r); err != nil {
		return ListedSession{}, err
	}
	return ListedSession{ID: r.ID, Tenant: r.Tenant, OpenedAt: r.OpenedAt, SeenAt: r.SeenAt, ExpiresAt: r.ExpiresAt,
		Visit: r.Visit, hash: hash, record: r}, nil
}

// EndSessions ends the sessions of an account for which end returns true, and returns their number. Other nodes
// notice it within a second.
func (a *Accounts) EndSessions(ctx context.Context, who ID, v Visit, end func(ListedSession) bool) (int, error) {
	all, err := a.Sessions(ctx, who)
	if err != nil {
		return 0, err
	}
	chosen := slices.DeleteFunc(all, func(s ListedSession) bool { return !end(s) })
	if len(chosen) == 0 {
		return 0, nil
	}
	changes, err := a.loginEvent(ctx, who, v, EndedSessions)
	if err != nil {
		return 0, err
	}
	for i := range chosen {
		changes = append(changes, chosen[i].record.removeChanges(chosen[i].hash)...)
	}
	err = a.records.Write(ctx, id.Service, changes)
	for i := range chosen {
		a.sessions.Drop(chosen[i].hash)
	}
	if err != nil {
		return 0, errUnreadable("end sessions", err)
	}
	return len(chosen), nil
}
