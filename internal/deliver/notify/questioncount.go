package notify

import (
	"context"
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

const (
	// kindQuestions has one record in an organization's partition, under key "".
	kindQuestions storage.Kind = "voter_mail"
	// kindTold has one record for each person who was mailed, by account, there too.
	kindTold storage.Kind = "voter_mail_told"
	// kindDue has an entry (package schedule) for each organization with questions to tell.
	kindDue storage.Kind = "voter_mail_due"
)

const (
	// gatherTime is how long a first question waits for others that are asked with it.
	gatherTime = id.Instant(3 * time.Second / time.Millisecond)
	// mailPause is how long the mails to a person are apart.
	mailPause = id.Instant(10 * time.Minute / time.Millisecond)
)

// questionsRecord counts the questions of an organization.
type questionsRecord struct {
	Asked uint64 `json:"asked"`
	// NextAt is when people are to be told; 0: all are. The index has an entry not later than that.
	NextAt id.Instant `json:"next_at,omitzero"`
}

// toldRecord is the last mail to a person.
type toldRecord struct {
	Asked uint64     `json:"asked"` // questions that were counted then
	At    id.Instant `json:"at"`
}

const unreadableMessage = "Mails to voters can't be read"

func questionsOf(r storage.RecordStore) records.Store[questionsRecord] {
	return records.New[questionsRecord](r, kindQuestions, unreadableMessage)
}

func dueEntry(t id.Tenant, at id.Instant) schedule.Entry {
	return schedule.Entry{At: at, Tenant: t, Name: "questions"}
}

// Counter counts questions by the notices that are written, because it stands before the webhooks of
// package approval.
type Counter struct {
	approval.Deliveries
	Records storage.RecordStore
	Clock   func() time.Time
	Enabled bool // whether mails are sent
}

// WriteDelivery implements approval.Deliveries.
func (c *Counter) WriteDelivery(
	ctx context.Context, t id.Tenant, organization id.Organization, messages ...webhook.Message,
) ([]storage.Change, error) {
	changes, err := c.Deliveries.WriteDelivery(ctx, t, organization, messages...)
	if err != nil || !c.Enabled || !slices.ContainsFunc(messages, isQuestion) {
		return changes, err
	}
	counted, err := c.countQuestion(ctx, t)
	return append(changes, counted), err
}

func isQuestion(m webhook.Message) bool {
	return m.URL == "" && m.Type == "approval."+string(approval.Pending)
}

// countQuestion returns the change that counts a question. Of two appends that count at once one is
// prepared again.
func (c *Counter) countQuestion(ctx context.Context, t id.Tenant) (storage.Change, error) {
	store := questionsOf(c.Records)
	q, err := store.Get(ctx, t, "")
	if err != nil {
		return storage.Change{}, err
	}
	q.Value.Asked++
	if q.Value.NextAt == 0 {
		q.Value.NextAt = id.InstantOf(c.Clock()) + gatherTime
		due := schedule.Index{Records: c.Records, Kind: kindDue}
		if err := due.NoteEntries(ctx, dueEntry(t, q.Value.NextAt)); err != nil {
			return storage.Change{}, records.Unreadable(unreadableMessage, "count question", err)
		}
	}
	return store.Put(q)
}

// ServiceRecords returns the records of the service's own partition that stand there for one of an
// organization's records, for code that copies an organization: when people are to be told.
func ServiceRecords(t id.Tenant, r storage.Record) ([]storage.Record, error) {
	if r.Kind != kindQuestions {
		return nil, nil
	}
	q, err := records.Decode[questionsRecord](r)
	if err != nil || q.Value.NextAt == 0 {
		return nil, err
	}
	return []storage.Record{dueEntry(t, q.Value.NextAt).Record(kindDue)}, nil
}

// RecordChecks returns, by kind, what reports whether a record of this package can be read. An import asks it before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindQuestions: records.Check[questionsRecord],
		kindTold:      records.Check[toldRecord],
		kindDue:       records.Check[struct{}],
	}
}
