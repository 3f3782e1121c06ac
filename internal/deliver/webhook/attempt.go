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
	// kindAttempt has the newest tries of each endpoint, by its id and a place in a ring: the newest
	// one overwrites the oldest one, so that a reader meets no deleted keys.
	kindAttempt storage.Kind = "webhook_attempt"
	// kindHealth has one record for each endpoint whose last try failed, by its id.
	kindHealth storage.Kind = "webhook_health"
)

// maxAttempts is how many tries of an endpoint are kept: the newest.
const maxAttempts = 50

// longestFailure is how long tries may fail with no success between before the endpoint is disabled.
const longestFailure = 5 * 24 * time.Hour

// failureGap is the pause after which a failure begins a new series: it is longer than the longest
// pause between two tries of one delivery.
const failureGap = 2 * 24 * time.Hour

// Attempt is one try to deliver to an endpoint.
type Attempt struct {
	Number     uint64     `json:"number"` // rises with each try of the endpoint
	Delivery   ID         `json:"delivery_id"`
	Type       string     `json:"type"`
	At         id.Instant `json:"at"`
	Try        int        `json:"try"`
	Status     int        `json:"status,omitzero"`      // 0: no answer
	DurationMS int64      `json:"duration_ms,omitzero"` // only with an answer, because a pause tells of networks
	Trouble    string     `json:"trouble,omitzero"`     // "" for one that was delivered
}

type healthRecord struct {
	FailingSince id.Instant `json:"failing_since"`
	FailedAt     id.Instant `json:"failed_at"` // the newest failure
}

func attemptsOf(name EndpointID) records.Range {
	return records.Range{Begin: string(name) + "/", End: string(name) + "0"}
}

// Attempts returns the newest tries of an endpoint, newest first; none for an endpoint that the
// organization does not have.
func (o *Sender) Attempts(ctx context.Context, t id.Tenant, name EndpointID) ([]Attempt, error) {
	found, err := o.attempts.List(ctx, t, attemptsOf(name), maxAttempts)
	all := make([]Attempt, len(found))
	for i := range found {
		all[i] = found[i].Value
	}
	slices.SortFunc(all, func(a, b Attempt) int { return cmp.Compare(b.Number, a.Number) })
	return all, err
}

// numbered is an endpoint whose tries are numbered.
type numbered struct {
	tenant   id.Tenant
	endpoint EndpointID
}

// maxNumbered bounds Sender.numbers; a forgotten number is read again.
const maxNumbered = 4096

// takeNumber returns the number of an endpoint's next try.
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

// logAttempt returns the changes that log a try, and whether the endpoint has failed for too long.
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

// moveHealth returns the changes of an endpoint's health by one try.
func (o *Sender) moveHealth(
	ctx context.Context, t id.Tenant, endpoint EndpointID, a Attempt,
) (changes []storage.Change, failed bool, err error) {
	stored, err := o.health.Get(ctx, t, string(endpoint))
	if err != nil {
		return nil, false, err
	}
	if a.Trouble == "" {
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
