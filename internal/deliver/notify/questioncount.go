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
	// kindQuestions has one record in an organization's partition, under the key "".
	kindQuestions storage.Kind = "voter_mail"
	// kindNotified has one record in an organization's partition for each recipient, by account.
	kindNotified storage.Kind = "voter_mail_told"
	// kindDue has an entry (package schedule) for each organization with questions to report.
	kindDue storage.Kind = "voter_mail_due"
)

const (
	// gatherTime is the time that a first question waits for others.
	gatherTime = id.Instant(3 * time.Second / time.Millisecond)
	// mailPause is the minimum time between two mails to a recipient.
	mailPause = id.Instant(10 * time.Minute / time.Millisecond)
)

// questionsRecord counts the questions of an organization.
type questionsRecord struct {
	Asked uint64 `json:"asked"`
	// NextAt is when approvers must be notified; 0 if all were. The index has an entry whose time is not later.
	NextAt id.Instant `json:"next_at,omitzero"`
}

// notifiedRecord is the last mail to a recipient.
type notifiedRecord struct {
	Asked uint64     `json:"asked"` // number of questions at that time
	At    id.Instant `json:"at"`
	// Seen are the questions that were asked within the last minute then, and were in the store. The others of that minute are new to the
	// recipient.
	Seen []approval.ID `json:"seen,omitempty"`
}

const unreadableMessage = "Mails to voters can't be read"

func questionsOf(r storage.RecordStore) records.Store[questionsRecord] {
	return records.New[questionsRecord](r, kindQuestions, unreadableMessage)
}

func dueEntry(t id.Tenant, at id.Instant) schedule.Entry {
	return schedule.Entry{At: at, Tenant: t, Name: "questions"}
}

// Counter counts questions by the notices that are written, because package approval calls it in place of the webhooks.
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

// isQuestion reports whether a notice is about an approval that waits for votes, for the first time or as a reminder.
func isQuestion(m webhook.Message) bool {
	return m.URL == "" && (m.Type == "approval."+string(approval.Pending) || m.Type == "approval."+approval.Reminder)
}

// countQuestion returns the change that counts a question. If two appends count at the same time, one of them is
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

// ServiceRecords returns the due entry of an organization's questions in the service's own partition. Code that copies
// an organization uses it.
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

// RecordChecks returns functions, by kind, that report whether a record of this package can be decoded. An import calls
// them before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindQuestions: records.Check[questionsRecord],
		kindNotified:  records.Check[notifiedRecord],
		kindWeek:      records.Check[weekRecord],
		kindDue:       records.Check[struct{}],
	}
}
