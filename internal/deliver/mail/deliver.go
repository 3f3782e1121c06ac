package mail

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// maxInFlight is how many messages are sent concurrently.
const maxInFlight = 4

// retryPauses returns the pauses between attempts.
func retryPauses() []time.Duration {
	return []time.Duration{
		10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour, 12 * time.Hour,
	}
}

// Run sends due messages, each second and as soon as a slot is free, until ctx ends. It returns when no message is in
// flight.
func (o *Outbox) Run(ctx context.Context, logger *slog.Logger) { o.worker(logger).Run(ctx) }

// Sweep starts to send the messages that are due, as far as there are slots.
func (o *Outbox) Sweep(ctx context.Context, logger *slog.Logger) error {
	return o.worker(logger).Sweep(ctx)
}

func (o *Outbox) worker(logger *slog.Logger) *schedule.Worker {
	return &schedule.Worker{
		Index: &o.due, Slots: o.slots, Now: o.currentTime,
		Attempt: func(ctx context.Context, e schedule.Entry) (schedule.Outcome, error) {
			return o.attemptMessage(ctx, e, logger)
		},
		Report: func(err error) { logger.Warn("mail: sending due messages failed", "err", err) },
	}
}

// checkSlots bounds the messages in flight.
func checkSlots(inFlight schedule.Jobs, _ schedule.Job, _ string) schedule.Outcome {
	if len(inFlight) >= maxInFlight {
		return schedule.AllFull()
	}
	return schedule.Keep()
}

// attemptMessage makes one attempt at a message, writes the result and returns the outcome of its entry.
func (o *Outbox) attemptMessage(ctx context.Context, e schedule.Entry, logger *slog.Logger) (schedule.Outcome, error) {
	stored, err := o.stored.Get(ctx, e.Tenant, e.Name)
	if err != nil {
		return schedule.Outcome{}, err
	}
	now := o.currentTime()
	if !stored.Exists() {
		return schedule.Absent(e, now), nil
	}
	if stored.Value.NextAt > e.At { // it has another entry
		return schedule.Done(), nil
	}
	failure := o.sendStored(ctx, stored, now)
	if ctx.Err() != nil {
		return schedule.Outcome{}, ctx.Err() // the process stops: this does not count as an attempt
	}
	pauses := retryPauses()
	again := failure != nil && !errors.Is(failure, ErrRefused) && stored.Value.Tries < len(pauses)
	if !again {
		o.reportEnd(failure, logger)
		return schedule.Done(), o.removeMessage(ctx, e.Tenant, stored)
	}
	o.results.WithLabelValues("failed").Inc()
	logger.Warn("mail: attempt failed; will be retried", "err", failure)
	pause := pauses[stored.Value.Tries]
	pause += time.Duration(rand.Int64N(int64(pause)/5 + 1))
	return o.retryLater(ctx, e, stored, now+id.Instant(pause/time.Millisecond))
}

// sendStored unseals a message and sends it. It does nothing for a message without a recipient.
func (o *Outbox) sendStored(ctx context.Context, stored records.Versioned[storedMessage], now id.Instant) error {
	if now >= stored.Value.Until {
		return errLate
	}
	text, err := o.Keyring.Open(sealContext(stored.Key), stored.Value.Sealed)
	var m Message
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return errors.Join(ErrRefused, err)
	}
	if m.To == "" {
		return nil
	}
	if o.Transport == nil {
		return errNoServer
	}
	return o.Transport.Send(ctx, m)
}

func (o *Outbox) reportEnd(failure error, logger *slog.Logger) {
	if failure == nil {
		o.results.WithLabelValues("sent").Inc()
		return
	}
	o.results.WithLabelValues("dead").Inc()
	logger.Warn("mail: message given up", "err", failure)
}

// removeMessage deletes a message, unless it was replaced in the meantime. A message that was only resealed is still
// the same one.
func (o *Outbox) removeMessage(ctx context.Context, t id.Tenant, m records.Versioned[storedMessage]) error {
	for {
		err := o.Records.Write(ctx, t, []storage.Change{{Kind: kindMail, Key: m.Key, If: m.Version}})
		if !errors.Is(err, storage.ErrStale) {
			return err
		}
		now, err := o.stored.Get(ctx, t, m.Key)
		same := now.Value.NextAt == m.Value.NextAt && now.Value.Tries == m.Value.Tries
		if err != nil || !now.Exists() || !same {
			return err
		}
		m = now
	}
}

// retryLater schedules another attempt: first its entry, then the message.
func (o *Outbox) retryLater(ctx context.Context, e schedule.Entry, m records.Versioned[storedMessage],
	at id.Instant) (schedule.Outcome, error) {
	m.Value.Tries++
	m.Value.NextAt = at
	change, err := o.stored.Put(m)
	if err == nil {
		err = o.due.NoteEntries(ctx, schedule.Entry{At: at, Tenant: e.Tenant, Name: e.Name})
	}
	if err == nil {
		err = o.Records.Write(ctx, e.Tenant, []storage.Change{change})
	}
	if errors.Is(err, storage.ErrStale) { // the message was replaced
		err = nil
	}
	return schedule.Done(), err
}
