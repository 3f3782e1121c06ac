package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/http/header"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// retryPauses returns the pauses between attempts that Standard Webhooks proposes.
func retryPauses() []time.Duration {
	return []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
		14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}

// maxRetryAfter bounds how long a receiver may postpone the next attempt by Retry-After.
const maxRetryAfter = 24 * time.Hour

// Run sends due deliveries, each second and as soon as a slot is free, until ctx ends. It returns when no delivery is in
// flight.
func (o *Sender) Run(ctx context.Context, logger *slog.Logger) {
	if o.follower != nil {
		o.slots.Go(func() { o.follower.Run(ctx, logger) })
	}
	o.worker(logger).Run(ctx)
}

// SweepEvents starts to write the notices of events, as far as there are slots.
func (o *Sender) SweepEvents(ctx context.Context, logger *slog.Logger) error {
	if o.follower == nil {
		return nil
	}
	return o.follower.Sweep(ctx, logger)
}

// Sweep starts the deliveries that are due, as far as there are slots.
func (o *Sender) Sweep(ctx context.Context, logger *slog.Logger) error {
	if err := o.worker(logger).Sweep(ctx); err != nil {
		return errUnreadable("read what is due", err)
	}
	return nil
}

func (o *Sender) worker(logger *slog.Logger) *schedule.Worker {
	return &schedule.Worker{
		Index: &o.due, Slots: o.slots, Now: o.currentTime, Attempt: o.attemptDelivery,
		Report: func(err error) { logger.Warn("webhooks: processing due deliveries failed", "err", err) },
	}
}

// attemptDelivery makes one attempt at a delivery, writes its result and returns the outcome of its entry.
func (o *Sender) attemptDelivery(ctx context.Context, e schedule.Entry) (schedule.Outcome, error) {
	t, name := e.Tenant, ID(e.Object())
	stored, err := o.deliveries.Get(ctx, t, string(name))
	if err != nil {
		return schedule.Keep(), err
	}
	if !stored.Exists() {
		return schedule.Absent(e, o.currentTime()), nil
	}
	d := &stored.Value
	if d.NextAt > e.At { // it has another due entry
		return schedule.Done(), nil
	}
	to, reason, err := o.findTarget(ctx, t, d)
	switch {
	case err != nil:
		return schedule.Keep(), err
	case reason == endpointDeleted:
		return o.endDelivery(ctx, t, storage.Change{Kind: kindDelivery, Key: string(name), If: stored.Version})
	case reason != "":
		d.Failure = reason
		return o.moveToDeadLetters(ctx, t, stored)
	}
	return o.sendDelivery(ctx, t, stored, to)
}

// sendDelivery sends a delivery once and writes the result.
func (o *Sender) sendDelivery(
	ctx context.Context, t id.Tenant, stored records.Versioned[delivery], to target,
) (schedule.Outcome, error) {
	name, d, began := ID(stored.Key), &stored.Value, o.clock()
	header, err := o.signatureHeader(to, name, d, began)
	if err != nil {
		return schedule.Keep(), err
	}
	answer, err := o.caller.Post(ctx, to.url, header, d.Body)
	if ctx.Err() != nil {
		return schedule.Keep(), ctx.Err() // the process stops: this does not count as an attempt
	}
	d.Tries++
	reason, final := judgeAnswer(answer, err)
	d.Failure = reason
	tried := Attempt{Delivery: name, Type: d.Type, At: id.InstantOf(began), Try: d.Tries, Failure: reason}
	if reason != noAnswer {
		tried.Status, tried.DurationMS = answer.Status, o.clock().Sub(began).Milliseconds()
	}
	logged, failed, err := o.logAttempt(ctx, t, d.Endpoint, tried)
	if err != nil {
		return schedule.Keep(), err
	}
	if d.Endpoint != "" && (final || failed) { // first, because the delivery is retried after a crash
		if err := o.disableEndpoint(ctx, t, d.Endpoint, disableReason(final)); err != nil {
			return schedule.Keep(), fmt.Errorf("disable endpoint: %w", err)
		}
	}
	return o.moveDelivery(ctx, t, stored, answer, final, logged)
}

// disableReason returns why an endpoint is disabled. final reports whether its receiver asked for that.
func disableReason(final bool) Reason {
	if final {
		return ByReceiver
	}
	return ByFailures
}

// moveDelivery ends a delivery, schedules another attempt or gives it up.
func (o *Sender) moveDelivery(
	ctx context.Context, t id.Tenant, stored records.Versioned[delivery], answer egress.Answer, final bool,
	logged []storage.Change,
) (schedule.Outcome, error) {
	d := &stored.Value
	removal := storage.Change{Kind: kindDelivery, Key: stored.Key, If: stored.Version}
	if d.Failure == "" {
		o.results.WithLabelValues("delivered").Inc()
		return o.endDelivery(ctx, t, append(logged, removal)...)
	}
	if d.Type == testType {
		o.results.WithLabelValues("dead").Inc()
		return o.endDelivery(ctx, t, append(logged, removal)...)
	}
	if pauses := retryPauses(); !final && d.Tries <= len(pauses) {
		requested := min(header.RetryAfter(answer.Header, o.clock()), maxRetryAfter)
		return o.retryLater(ctx, t, stored, max(pauses[d.Tries-1], requested), logged...)
	}
	return o.moveToDeadLetters(ctx, t, stored, logged...)
}

// noAnswer is the message for every receiver that did not answer. A name in a network that the service does not call, a
// name that does not exist and a name without a listener get the same message and the same retries, because the author
// of an address must not learn which names and addresses exist in the operator's network.
const noAnswer = "no answer"

// formerlyRefused is the message that older programs stored for addresses that are not called.
const formerlyRefused = "the address is not one that may be called"

// judgeAnswer returns why an answer is a failure, or "" if it is a success, and whether the delivery must not be
// retried.
func judgeAnswer(answer egress.Answer, err error) (reason string, final bool) {
	switch {
	case errors.Is(err, egress.ErrTooLarge) && answer.Status/100 == 2:
		return "", false
	case err != nil:
		return noAnswer, false
	case answer.Status/100 == 2:
		return "", false
	case answer.Status == http.StatusGone:
		return "answered 410: no more", true
	}
	return fmt.Sprintf("answered %d", answer.Status), false
}

// endDelivery writes the last changes of a delivery. It returns the outcome of its entry.
func (o *Sender) endDelivery(ctx context.Context, t id.Tenant, changes ...storage.Change) (schedule.Outcome, error) {
	err := o.records.Write(ctx, t, changes)
	if errors.Is(err, storage.ErrStale) {
		return schedule.Keep(), nil // another node has moved it, and settles the entry
	}
	return schedule.Done(), err
}

// retryLater schedules another attempt after a pause and up to a fifth more.
func (o *Sender) retryLater(
	ctx context.Context, t id.Tenant, d records.Versioned[delivery], pause time.Duration, logged ...storage.Change,
) (schedule.Outcome, error) {
	o.results.WithLabelValues("failed").Inc()
	pause += time.Duration(rand.Int64N(int64(pause)/5 + 1))
	d.Value.NextAt = o.currentTime() + id.Instant(pause/time.Millisecond)
	if err := o.noteDue(ctx, d.Value.dueEntry(t, ID(d.Key))); err != nil {
		return schedule.Keep(), err
	}
	change, err := o.deliveries.Put(d)
	if err != nil {
		return schedule.Keep(), err
	}
	return o.endDelivery(ctx, t, append(logged, change)...)
}

// moveToDeadLetters turns a delivery into a dead letter.
func (o *Sender) moveToDeadLetters(
	ctx context.Context, t id.Tenant, d records.Versioned[delivery], logged ...storage.Change,
) (schedule.Outcome, error) {
	o.results.WithLabelValues("dead").Inc()
	d.Value.NextAt = o.currentTime()
	dead, err := o.dead.Put(records.Versioned[delivery]{Key: d.Key, Value: d.Value, Version: storage.AnyVersion})
	if err != nil {
		return schedule.Keep(), err
	}
	changes := append(logged, storage.Change{Kind: kindDelivery, Key: d.Key, If: d.Version}, dead)
	all, err := o.records.Scan(ctx, t, kindDead, "", "", MaxDead) // the values are not needed
	if err != nil {
		return schedule.Keep(), err
	}
	if len(all) == MaxDead {
		changes = append(changes, storage.Change{Kind: kindDead, Key: all[0].Key, If: storage.AnyVersion})
	}
	return o.endDelivery(ctx, t, changes...)
}

// CountDue returns how many deliveries are due, including those in flight, and counts no further than limit.
func (o *Sender) CountDue(ctx context.Context, limit int) (int, error) {
	return o.due.CountDue(ctx, o.currentTime(), limit)
}
