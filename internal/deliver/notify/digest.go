package notify

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// maxMails bounds the mails of one turn of an organization.
const maxMails = 50

// VotersOptions configure NewVoters. All but Held are required.
type VotersOptions struct {
	Records       storage.RecordStore
	Approvals     *approval.Approvals
	Accounts      *account.Accounts
	Organizations VoterOrganizations
	Outbox        *mail.Outbox
	PublicURL     string
	Clock         func() time.Time
	Held          func() error // returns an error while Run must write nothing; nil: never
}

// VoterOrganizations returns the names and settings of organizations. org.Orgs implements it.
type VoterOrganizations interface {
	Organizations
	CurrentSettings(ctx context.Context, t id.Tenant) (*org.Settings, error)
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
		outcome, err := m.lookAt(ctx, e, logger)
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
func (m *Voters) lookAt(ctx context.Context, e schedule.Entry, logger *slog.Logger) (schedule.Outcome, error) {
	q, err := m.questions.Get(ctx, e.Tenant, "")
	switch {
	case err != nil:
		return schedule.Outcome{}, err
	case q.Value.NextAt == 0: // everybody was notified, or the append of a question is in flight
		return schedule.Absent(e, m.currentTime()), nil
	case q.Value.NextAt > e.At: // it has another entry
		return schedule.Done(), nil
	}
	d := &digest{Voters: m, logger: logger, tenant: e.Tenant, asked: q.Value.Asked, now: m.currentTime()}
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
	logger  *slog.Logger
	tenant  id.Tenant
	asked   uint64
	now     id.Instant // before the questions are read
	page    approval.Page
	voters  *approval.Electorate
	name    string       // of the organization
	shows   bool         // mails contain values of columns, and subjects
	columns []org.Column // whose values mails contain
	mails   []mail.Named
	changes []storage.Change
	later   id.Instant // when the next voter must be notified; 0 if none
	full    bool       // some voters wait for another turn
}

func (d *digest) writeMails(ctx context.Context) (err error) {
	if d.page, err = d.listPending(ctx); err != nil {
		return err
	}
	if len(d.page.Approvals) == 0 {
		return nil
	}
	summary, err := d.Organizations.Summary(ctx, d.tenant)
	if err != nil {
		return err
	}
	d.name = OrganizationName(summary)
	settings, err := d.Organizations.CurrentSettings(ctx, d.tenant)
	if err != nil {
		return err
	}
	if d.shows = settings.ColumnsInMail; d.shows {
		d.columns = settings.Columns
	}
	members, err := d.Accounts.Members(ctx, d.tenant)
	if err != nil {
		return err
	}
	if d.voters, err = d.Approvals.NewElectorate(ctx, d.tenant); err != nil {
		return err
	}
	roles := make(map[account.ID]account.Role, len(members))
	for i := range members {
		roles[members[i].Account] = members[i].Role
	}
	for i := range members {
		p := &members[i]
		role := p.Role // by which the member votes: its own, or that of the member whose deputy it is
		if person := d.voters.Represents(p.Account); person != "" {
			role = roles[person]
		}
		if !d.full && p.IsEffective() && role.May(account.Vote) {
			if err := d.addPerson(ctx, p.Account, role); err != nil {
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

// listPending returns the latest pending questions, and after them the oldest ones, which are those to be reminded of or that escalate.
func (d *digest) listPending(ctx context.Context) (approval.Page, error) {
	page, err := d.Approvals.List(ctx, d.tenant, approval.Filter{Status: approval.Pending}, "", maxLooked)
	if err != nil || page.Next == "" {
		return page, err
	}
	oldest, err := d.Approvals.List(ctx, d.tenant, approval.Filter{Status: approval.Pending, Oldest: true}, "", maxLooked)
	for _, a := range oldest.Approvals {
		if !slices.ContainsFunc(page.Approvals, func(b approval.Approval) bool { return b.ID == a.ID }) {
			page.Approvals = append(page.Approvals, a)
		}
	}
	return page, err
}

// addPerson adds the mail to a voter who has not been notified of all questions and may be notified now. A mail that cannot
// be written counts as a notification, because a repetition would fail too and keep the others from their mails.
func (d *digest) addPerson(ctx context.Context, who account.ID, role account.Role) error {
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
	if next := notified.Value.At + mailPause; notified.Exists() && d.now < next {
		if d.later == 0 || next < d.later {
			d.later = next
		}
		return nil
	}
	open, recent, known, err := d.findOpen(ctx, person, role, notified.Value)
	if err != nil || len(open) == 0 {
		return err
	}
	if recent == 0 { // what was asked concerns others
		notified.Value.Asked = d.asked
		change, err := d.notified.Put(notified)
		d.changes = append(d.changes, change)
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
	notified.Value = notifiedRecord{Asked: d.asked, At: d.now, Seen: d.justAsked()}
	change, err := d.notified.Put(notified)
	d.changes = append(d.changes, change)
	if err != nil || !may {
		return err
	}
	message, err := d.message(person.Email, open, recent)
	if err == nil && known {
		message.Subject = "Reminder: " + message.Subject
		err = message.Check()
	}
	if err != nil {
		d.logger.Warn("mails to approvers: a mail was not written", "tenant", d.tenant, "account", who, "err", err)
		return nil
	}
	d.mails = append(d.mails, mail.Named{Name: "approvals-" + string(who), Message: message})
	return nil
}

// findOpen returns the questions that a voter may vote on and is notified of by now. It begins with the recent ones, of which the voter
// has not been notified since the last mail, latest first. known is whether earlier mails told of all of these.
func (d *digest) findOpen(ctx context.Context, person account.Account, role account.Role, before notifiedRecord) (open []approval.Approval, recent int, known bool, err error) {
	obstacles, err := d.voters.Obstacles(ctx, person.ID, d.page.Approvals)
	if err != nil {
		return nil, 0, false, err
	}
	var earlier []approval.Approval
	known = true
	for i, o := range obstacles {
		a := &d.page.Approvals[i]
		first, last := a.Notified(role, d.now)
		isNew := first > before.At
		if first == a.CreatedAt {
			isNew = first+writeTime > before.At && !slices.Contains(before.Seen, a.ID)
		}
		switch {
		case o != "" || first > d.now:
		case isNew || last > before.At:
			open, known = append(open, *a), known && !isNew
		default:
			earlier = append(earlier, *a)
		}
	}
	return append(open, earlier...), len(open), known, nil
}

// writeTime is the longest time that a question takes until it is in the store, in milliseconds. A mail in the meantime does not have it.
const writeTime id.Instant = 60_000

// justAsked returns the questions in the store that were asked within the last writeTime.
func (d *digest) justAsked() (all []approval.ID) {
	for i := range d.page.Approvals {
		if a := &d.page.Approvals[i]; a.CreatedAt+writeTime > d.now {
			all = append(all, a.ID)
		}
	}
	return all
}
