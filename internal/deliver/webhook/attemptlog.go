package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

const (
	// kindAttempt contains the latest attempts of each endpoint, by its ID and a position in a ring. The latest attempt
	// overwrites the oldest one, so that readers meet no deleted keys.
	kindAttempt storage.Kind = "webhook_attempt"
	// kindHealth has one record for each endpoint whose last attempt failed, by its ID.
	kindHealth storage.Kind = "webhook_health"
)

// maxAttempts is the number of attempts of an endpoint that are kept.
const maxAttempts = 50

// longestFailure is the time after which an endpoint is disabled if no attempt succeeds.
const longestFailure = 5 * 24 * time.Hour

// failureGap is the pause after which a failure starts a new series. It is longer than the longest pause between two
// attempts of one delivery.
const failureGap = 2 * 24 * time.Hour

// Attempt is one attempt to deliver to an endpoint.
type Attempt struct {
	Number     uint64     `json:"number"` // increases with each attempt of the endpoint
	Delivery   ID         `json:"delivery_id"`
	Type       string     `json:"type"`
	At         id.Instant `json:"at"`
	Try        int        `json:"try"`
	Status     int        `json:"status,omitzero"`      // 0 without a response
	DurationMS int64      `json:"duration_ms,omitzero"` // only with a response, because a duration reveals facts about networks
	Failure    string     `json:"trouble,omitzero"`     // "" if it was delivered
}

type healthRecord struct {
	FailingSince id.Instant `json:"failing_since"`
	FailedAt     id.Instant `json:"failed_at"` // the latest failure
}

func attemptsOf(name EndpointID) records.Range {
	return records.Range{Begin: string(name) + "/", End: string(name) + "0"}
}

// Attempts returns the latest attempts of an endpoint, latest first. It returns none if the organization has no such
// endpoint.
func (o *Sender) Attempts(ctx context.Context, t id.Tenant, name EndpointID) ([]Attempt, error) {
	found, err := o.attempts.List(ctx, t, attemptsOf(name), maxAttempts)
	all := make([]Attempt, len(found))
	for i := range found {
		all[i] = found[i].Value
	}
	slices.SortFunc(all, func(a, b Attempt) int { return cmp.Compare(b.Number, a.Number) })
	return all, err
}

// numbered identifies an endpoint whose attempts are numbered.
type numbered struct {
	tenant   id.Tenant
	endpoint EndpointID
}

// maxNumbered bounds Sender.numbers. A forgotten number is read again.
const maxNumbered = 4096

// takeNumber returns the number of an endpoint's next attempt.
func (o *Sender) takeNumber(ctx context.Context, t id.Tenant, endpoint EndpointID) (uint64, error) {
	key := numbered{t, endpoint}
	o.mu.Lock()
	_, known := o.numbers[key]
	o.mu.Unlock()
	newest := uint64(0)
	if !known {
		all, err := o.Attempts(ctx, t, endpoint)
		if err != nil {
			return 0, err
		}
		if len(all) > 0 {
			newest = all[0].Number
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.numbers) >= maxNumbered {
		clear(o.numbers)
	}
	o.numbers[key] = max(o.numbers[key], newest) + 1
	return o.numbers[key], nil
}

// logAttempt returns the changes that record an attempt, and whether the endpoint has failed for too long.
func (o *Sender) logAttempt(
	ctx context.Context, t id.Tenant, endpoint EndpointID, a Attempt,
) (changes []storage.Change, failed bool, err error) {
	if endpoint == "" {
		return nil, false, nil
	}
	if a.Number, err = o.takeNumber(ctx, t, endpoint); err != nil {
		return nil, false, err
	}
	put, err := o.attempts.Put(records.Versioned[Attempt]{
		Key: fmt.Sprintf("%s/%02d", endpoint, a.Number%maxAttempts), Value: a, Version: storage.AnyVersion,
	})
	if err != nil {
		return nil, false, err
	}
	health, failed, err := o.moveHealth(ctx, t, endpoint, a)
	return append(health, put), failed, err
}

// moveHealth returns the changes of an endpoint's health after an attempt.
func (o *Sender) moveHealth(
	ctx context.Context, t id.Tenant, endpoint EndpointID, a Attempt,
) (changes []storage.Change, failed bool, err error) {
	stored, err := o.health.Get(ctx, t, string(endpoint))
	if err != nil {
		return nil, false, err
	}
	if a.Failure == "" {
		if stored.Exists() {
			changes = []storage.Change{{Kind: kindHealth, Key: string(endpoint), If: storage.AnyVersion}}
		}
		return changes, false, nil
	}
	h := &stored.Value
	if h.FailingSince == 0 || a.At-h.FailedAt > id.Instant(failureGap.Milliseconds()) {
		h.FailingSince = a.At
	}
	h.FailedAt, stored.Version = max(h.FailedAt, a.At), storage.AnyVersion
	put, err := o.health.Put(stored)
	return []storage.Change{put}, a.At-h.FailingSince >= id.Instant(longestFailure.Milliseconds()), err
}
