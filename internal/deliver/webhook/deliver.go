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

// retryPauses is how long the tries are apart: those that Standard Webhooks proposes.
func retryPauses() []time.Duration {
	return []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
		14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
	}
}

// longestTold bounds for how long a receiver may put a try off by Retry-After.
const longestTold = 24 * time.Hour

// Run sends due deliveries, each second and when there is room again, until ctx ends. It returns
// when no delivery is under way any more.
func (o *Sender) Run(ctx context.Context, logger *slog.Logger) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	defer o.flown.Wait()
	if o.follower != nil {
		o.flown.Go(func() { o.follower.Run(ctx, logger) })
	}
	for {
		if err := o.Sweep(ctx, logger); err != nil && ctx.Err() == nil {
			logger.Warn("outbox: deliveries can't be read", "err", err)
		}
		select {
		case <-tick.C:
		case <-o.room:
		case <-ctx.Done():
			return
		}
	}
}

// SweepEvents begins to make the notices of events, as far as there is room.
func (o *Sender) SweepEvents(ctx context.Context, logger *slog.Logger) error {
	if o.follower == nil {
		return nil
	}
	return o.follower.Sweep(ctx, logger)
}

// Sweep begins the deliveries that are due, as far as there is room.
func (o *Sender) Sweep(ctx context.Context, logger *slog.Logger) error {
	err := o.due.Sweep(ctx, o.currentTime, func(ctx context.Context, e schedule.Entry) (schedule.Outcome, error) {
		return o.beginDelivery(ctx, e, logger), nil
	})
	if err != nil {
		return errUnreadable("read what is due", err)
	}
	return nil
}

// beginDelivery makes one delivery, in a goroutine of its own, if there is room for it. The
// delivery settles its due entry.
func (o *Sender) beginDelivery(ctx context.Context, e schedule.Entry, logger *slog.Logger) schedule.Outcome {
	outcome, departs := o.reserveSlot(e)
	if !departs {
		return outcome
	}
	o.flown.Go(func() {
		defer o.releaseSlot(deliveryName(e))
		err := o.attemptDelivery(ctx, e, deliveryName(e))
		if err == nil || ctx.Err() != nil {
			return
		}
		logger.Warn("outbox: a delivery could not be moved on", "delivery", deliveryName(e), "err", err)
		if err := o.due.Settle(ctx, e, schedule.Failed(o.currentTime())); err != nil && ctx.Err() == nil {
			logger.Warn("outbox: a delivery could not be put off", "delivery", deliveryName(e), "err", err)
		}
	})
	return outcome
}

// attemptDelivery tries a delivery once and writes the result.
func (o *Sender) attemptDelivery(ctx context.Context, e schedule.Entry, name ID) error {
	t := e.Tenant
	stored, err := o.deliveries.Get(ctx, t, string(name))
	if err != nil {
		return err
	}
	if !stored.Exists() {
		return o.due.Settle(ctx, e, schedule.Absent(e, o.currentTime()))
	}
	d := &stored.Value
	if d.NextAt > e.At { // it has another due entry
		return o.due.Settle(ctx, e, schedule.Done())
	}
	to, trouble, err := o.findTarget(ctx, t, d)
	switch {
	case err != nil:
		return err
	case trouble == endpointDeleted:
		return o.endDelivery(ctx, e, storage.Change{Kind: kindDelivery, Key: string(name), If: stored.Version})
	case trouble != "":
		d.Trouble = trouble
		return o.moveToDeadLetters(ctx, e, stored)
	}
	return o.sendDelivery(ctx, e, stored, to)
}

// sendDelivery makes one try and writes its result.
func (o *Sender) sendDelivery(
	ctx context.Context, e schedule.Entry, stored records.Versioned[delivery], to target,
) error {
	name, d, began := ID(stored.Key), &stored.Value, o.clock()
	header, err := o.signatureHeader(to, name, d, began)
	if err != nil {
		return err
	}
	answer, err := o.caller.Post(ctx, to.url, header, d.Body)
	if ctx.Err() != nil {
		return ctx.Err() // the process stops: it counts as no try
	}
	d.Tries++
	trouble, final := judgeAnswer(answer, err)
	d.Trouble = trouble
	tried := Attempt{Delivery: name, Type: d.Type, At: id.InstantOf(began), Try: d.Tries, Trouble: trouble}
	if trouble != noAnswer {
		tried.Status, tried.DurationMS = answer.Status, o.clock().Sub(began).Milliseconds()
	}
	logged, failed, err := o.logAttempt(ctx, e.Tenant, d.Endpoint, tried)
	if err != nil {
		return err
	}
	if d.Endpoint != "" && (final || failed) { // first, because the delivery comes again after a crash
		if err := o.disableEndpoint(ctx, e.Tenant, d.Endpoint, reasonOfEnd(final)); err != nil {
			return fmt.Errorf("disable endpoint: %w", err)
		}
	}
	return o.moveDelivery(ctx, e, stored, answer, final, logged)
}

// reasonOfEnd says why an endpoint is disabled. A final answer is the receiver's own word.
func reasonOfEnd(final bool) Reason {
	if final {
		return ByReceiver
	}
	return ByFailures
}

// moveDelivery ends a delivery, plans another try or gives it up.
func (o *Sender) moveDelivery(
	ctx context.Context, e schedule.Entry, stored records.Versioned[delivery], answer egress.Answer, final bool,
	logged []storage.Change,
) error {
	d := &stored.Value
	removal := storage.Change{Kind: kindDelivery, Key: stored.Key, If: stored.Version}
	if d.Trouble == "" {
		o.results.WithLabelValues("delivered").Inc()
		return o.endDelivery(ctx, e, append(logged, removal)...)
	}
	if d.Type == testType {
		o.results.WithLabelValues("dead").Inc()
		return o.endDelivery(ctx, e, append(logged, removal)...)
	}
	if plan := retryPauses(); !final && d.Tries <= len(plan) {
		told := min(header.RetryAfter(answer.Header, o.clock()), longestTold)
		return o.retryLater(ctx, e, stored, max(plan[d.Tries-1], told), logged...)
	}
	return o.moveToDeadLetters(ctx, e, stored, logged...)
}

// noAnswer is the message for every receiver that gave no answer. A name in a network that
// the service does not call, a name that does not exist and one without a listener get the
// same message and the same retries: the author of an address must not learn
// which names and addresses the operator's own network has.
const noAnswer = "no answer"

// formerlyRefused is the message of older programs for addresses that are not called.
const formerlyRefused = "the address is not one that may be called"

// judgeAnswer returns the fault of an answer, "" for none, and whether another
// try would be in vain.
func judgeAnswer(answer egress.Answer, err error) (trouble string, final bool) {
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

// endDelivery writes the last change of a delivery and drops its due record.
func (o *Sender) endDelivery(ctx context.Context, e schedule.Entry, changes ...storage.Change) error {
	err := o.records.Write(ctx, e.Tenant, changes)
	if errors.Is(err, storage.ErrStale) {
		return nil // another node has moved it; the due record is that one's
	}
	if err != nil {
		return err
	}
	return o.due.Settle(ctx, e, schedule.Done())
}

// retryLater plans another try, so much later and up to a fifth of that.
func (o *Sender) retryLater(
	ctx context.Context, e schedule.Entry, d records.Versioned[delivery], pause time.Duration,
	logged ...storage.Change,
) error {
	o.results.WithLabelValues("failed").Inc()
	pause += time.Duration(rand.Int64N(int64(pause)/5 + 1))
	d.Value.NextAt = o.currentTime() + id.Instant(pause/time.Millisecond)
	if err := o.noteDue(ctx, d.Value.dueEntry(e.Tenant, ID(d.Key))); err != nil {
		return err
	}
	change, err := o.deliveries.Put(d)
	if err != nil {
		return err
	}
	return o.endDelivery(ctx, e, append(logged, change)...)
}

// moveToDeadLetters makes a dead letter of a delivery.
func (o *Sender) moveToDeadLetters(
	ctx context.Context, e schedule.Entry, d records.Versioned[delivery], logged ...storage.Change,
) error {
	o.results.WithLabelValues("dead").Inc()
	d.Value.NextAt = o.currentTime()
	dead, err := o.dead.Put(records.Versioned[delivery]{Key: d.Key, Value: d.Value, Version: storage.AnyVersion})
	if err != nil {
		return err
	}
	changes := append(logged, storage.Change{Kind: kindDelivery, Key: d.Key, If: d.Version}, dead)
	all, err := o.records.Scan(ctx, e.Tenant, kindDead, "", "", MaxDead) // the values are not needed
	if err != nil {
		return err
	}
	if len(all) == MaxDead {
		changes = append(changes, storage.Change{Kind: kindDead, Key: all[0].Key, If: storage.AnyVersion})
	}
	return o.endDelivery(ctx, e, changes...)
}

// CountDue returns how many deliveries are due and wait, those under way included. It counts no further than limit.
func (o *Sender) CountDue(ctx context.Context, limit int) (int, error) {
	return o.due.CountDue(ctx, o.currentTime(), limit)
}
