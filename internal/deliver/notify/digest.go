package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// maxMails bounds the mails of one turn of an organization.
const maxMails = 50

// VotersOptions configure NewVoters. All but Held are required.
type VotersOptions struct {
	Records       storage.RecordStore
	Approvals     *approval.Approvals
	Accounts      *account.Accounts
	Organizations Organizations
	Outbox        *mail.Outbox
	PublicURL     string
	Clock         func() time.Time
	Held          func() error // returns an error while Run must write nothing; nil: never
}

// Voters writes the mails of all organizations. Sweeps must not run concurrently.
type Voters struct {
	VotersOptions
	questions records.Store[questionsRecord]
	notified  records.Store[notifiedRecord]
	due       schedule.Index
}

// NewVoters returns the mailer of a store.
func NewVoters(o VotersOptions) *Voters {
	return &Voters{VotersOptions: o, questions: questionsOf(o.Records),
		notified: records.New[notifiedRecord](o.Records, kindNotified, unreadableMessage),
		due:      schedule.Index{Records: o.Records, Kind: kindDue}}
}

func (m *Voters) currentTime() id.Instant { return id.InstantOf(m.Clock()) }

// Run writes the mails that are due, each second, until ctx ends.
func (m *Voters) Run(ctx context.Context, logger *slog.Logger) {
	sweep := func(ctx context.Context) error { return m.Sweep(ctx, logger) }
	schedule.Every(ctx, m.Held, sweep, func(err error) { logger.Warn("mails to approvers: cannot read due organizations", "err", err) })
}

// Sweep writes the mails that are due.
func (m *Voters) Sweep(ctx context.Context, logger *slog.Logger) error {
	return m.due.Sweep(ctx, m.currentTime, func(ctx context.Context, e schedule.Entry) (schedule.Outcome, error) {
		outcome, err := m.lookAt(ctx, e)
		if err != nil {
			if ctx.Err() == nil {
				logger.Warn("mails to approvers: could not write the mails of an organization", "tenant", e.Tenant, "err", err)
			}
			return schedule.Failed(m.currentTime()), ctx.Err()
		}
		return outcome, nil
	})
}

// lookAt writes the mails of one organization. Each mail is written together with the record that its recipient was
// notified, so a repetition does not write it again.
func (m *Voters) lookAt(ctx context.Context, e schedule.Entry) (schedule.Outcome, error) {
	q, err := m.questions.Get(ctx, e.Tenant, "")
	switch {
	case err != nil:
		return schedule.Outcome{}, err
	case q.Value.NextAt == 0: // everybody was notified, or the append of a question is in flight
		return schedule.Absent(e, m.currentTime()), nil
	case q.Value.NextAt > e.At: // it has another entry
		return schedule.Done(), nil
	}
	d := &digest{Voters: m, tenant: e.Tenant, asked: q.Value.Asked}
	if err := d.writeMails(ctx); err != nil {
		return schedule.Outcome{}, err
	}
	if d.full {
		return schedule.Until(m.currentTime()), nil
	}
	q.Value.NextAt = d.later
	change, err := m.questions.Put(q)
	if err == nil && d.later > 0 {
		err = m.due.NoteEntries(ctx, dueEntry(e.Tenant, d.later))
	}
	if err == nil {
		err = m.Records.Write(ctx, e.Tenant, []storage.Change{change})
	}
	if errors.Is(err, storage.ErrStale) { // another question was asked in the meantime
		return schedule.Until(m.currentTime() + gatherTime), nil
	}
	return schedule.Done(), err
}

// digest is the mails of an organization at one time.
type digest struct {
	*Voters
	tenant  id.Tenant
	asked   uint64
	page    approval.Page
	name    string // of the organization
	mails   []mail.Named
	changes []storage.Change
	later   id.Instant // when the next voter must be notified; 0 if none
	full    bool       // some voters wait for another turn
}

func (d *digest) writeMails(ctx context.Context) (err error) {
	pending := approval.Filter{Status: approval.Pending}
	if d.page, err = d.Approvals.List(ctx, d.tenant, pending, "", maxLooked); err != nil {
		return err
	}
	if len(d.page.Approvals) == 0 {
		return nil
	}
	summary, err := d.Organizations.Summary(ctx, d.tenant)
	if err != nil {
		return err
	}
	d.name = fmt.Sprintf("%s (%s)", OrganizationName(summary), summary.Slug)
	members, err := d.Accounts.Members(ctx, d.tenant)
	if err != nil {
		return err
	}
	for i := range members {
		if p := &members[i]; p.IsEffective() && p.Role.May(account.Vote) && !d.full {
			if err := d.addPerson(ctx, p.Account); err != nil {
				return err
			}
		}
	}
	if len(d.changes) == 0 {
		return nil
	}
	written, err := d.Outbox.WriteMessages(ctx, d.tenant, d.mails...)
	if err != nil {
		return err
	}
	return d.Records.Write(ctx, d.tenant, append(d.changes, written...))
}

// addPerson adds the mail to a voter who has not been notified of all questions and may be notified now.
func (d *digest) addPerson(ctx context.Context, who account.ID) error {
	notified, err := d.notified.Get(ctx, d.tenant, string(who))
	if err != nil || notified.Value.Asked >= d.asked {
		return err
	}
	person, err := d.Accounts.ByID(ctx, who)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil || person.ApprovalMailOff {
		return err
	}
	now := d.currentTime()
	if next := notified.Value.At + mailPause; notified.Exists() && now < next {
		if d.later == 0 || next < d.later {
			d.later = next
		}
		return nil
	}
	open, err := d.findOpen(ctx, person)
	if err != nil || len(open) == 0 {
		return err
	}
	if len(d.mails) == maxMails {
		d.full = true
		return nil
	}
	may, err := MayMail(ctx, d.Outbox, person, d.tenant)
	if err != nil {
		return err
	}
	notified.Value = notifiedRecord{Asked: d.asked, At: now}
	change, err := d.notified.Put(notified)
	d.changes = append(d.changes, change)
	if !may {
		return err
	}
	d.mails = append(d.mails, mail.Named{Name: "approvals-" + string(who), Message: d.message(person.Email, open)})
	return err
}

// findOpen returns the questions that a voter may vote on, latest first.
func (d *digest) findOpen(ctx context.Context, person account.Account) ([]approval.Approval, error) {
	obstacles, err := d.Approvals.Obstacles(ctx, d.tenant, person.ID, d.page.Approvals)
	if err != nil {
		return nil, err
	}
	var open []approval.Approval
	for i, o := range obstacles {
		if o == "" {
			open = append(open, d.page.Approvals[i])
		}
	}
	return open, nil
}
