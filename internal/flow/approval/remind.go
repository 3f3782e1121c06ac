package approval

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/policy"
)

// Reminder is the name of the notice that an approval still waits for votes.
const Reminder = "reminder"

// addReminders sets when the voters are notified again.
func (r *record) addReminders(obligations []policy.Obligation) {
	after := func(seconds int) id.Instant {
		if seconds == 0 {
			return 0
		}
		return r.CreatedAt + id.Instant(seconds)*1000
	}
	for _, o := range obligations { // at most one
		r.RemindAt, r.EscalateAt, r.EscalateTo = after(o.RemindAfterSeconds), after(o.EscalateAfterSeconds), account.Role(o.EscalateTo)
	}
}

// dueEntries returns the times at which an open approval must be examined: its expiry and its reminders.
func (r *record) dueEntries(t id.Tenant, name string) []schedule.Entry {
	due := []schedule.Entry{{At: r.ExpiresAt, Tenant: t, Name: name}}
	for _, at := range []id.Instant{r.RemindAt, r.EscalateAt} {
		if at > 0 {
			due = append(due, schedule.Entry{At: at, Tenant: t, Name: name})
		}
	}
	return due
}

// mustRemind reports whether the voters must be notified again.
func (r *record) mustRemind(now id.Instant) bool {
	passed := func(at id.Instant) bool { return at > 0 && r.RemindedAt < at && at <= now }
	return r.statusByTime(now) == Pending && (passed(r.RemindAt) || passed(r.EscalateAt))
}

// remind notifies the voters of a pending approval again if a reminder is due. The notices are written together with the time
// of the reminder, under the version of the approval, so a repetition or another node does not write them again.
func (a *Approvals) remind(ctx context.Context, t id.Tenant, name ID) error {
	r, err := a.readApproval(ctx, t, name)
	if err != nil || !r.Value.mustRemind(a.currentTime()) {
		return err
	}
	s, err := a.ledgers.State(ctx, t)
	if err != nil {
		return err
	}
	settings, err := a.orgs.Settings(ctx, s)
	if err != nil || !settings.Active { // nobody may vote
		return err
	}
	r.Value.RemindedAt = a.currentTime()
	change, err := a.stores.approvals.Put(r)
	if err != nil {
		return err
	}
	notice, _ := noticeMessage(name, &r.Value, string(Pending), settings.Columns)
	notice.Type, notice.Title = "approval."+Reminder, "Still waiting: "+notice.Title
	notice.Card.Header = "Still waiting: " + notice.Card.Header
	deliveries, err := a.webhooks.WriteDelivery(ctx, t, s.Identity().Organization, notice)
	if err != nil {
		return err
	}
	if err := a.stores.approvals.Records.Write(ctx, t, append(deliveries, change)); err != nil {
		return errUnreadable("remind voters", err)
	}
	return nil
}

// Notified returns when voters with a role are notified of the approval, first and, by now, last: when it is requested, or
// escalates to them, and at its reminder and its escalation. first may be later than now.
func (a *Approval) Notified(role account.Role, now id.Instant) (first, last id.Instant) {
	first = a.CreatedAt
	if role == a.escalateTo {
		first = a.escalateAt
	}
	last = first
	for _, at := range []id.Instant{a.remindAt, a.escalateAt} {
		if at <= now {
			last = max(last, at)
		}
	}
	return first, last
}
