package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

const (
	// kindWeek has one record in an organization's partition, under the key "".
	kindWeek storage.Kind = "weekly_mail"

	// lookPause is the time between two looks at all organizations, which read one record of each, except on Mondays.
	lookPause = time.Hour
	// weekLong is the length of a week in milliseconds.
	weekLong            = 7 * 24 * hourLong
	hourLong id.Instant = 3_600_000
	// writeHour is when the mails about a week are written, in hours after its end.
	writeHour = 6
	// maxTopTools is the number of tools that a mail names.
	maxTopTools = 5
)

// weekRecord is how far the mails of an organization are.
type weekRecord struct {
	End   id.Instant `json:"end"`            // of the week that the latest mails are about
	After account.ID `json:"after,omitzero"` // the last recipient, while others wait
}

// WeeklyOptions configure NewWeekly. All but Held are required.
type WeeklyOptions struct {
	Store         storage.Engine
	Ledgers       *log.Ledgers
	Acts          *eventlist.ActReader
	Approvals     *approval.Approvals
	Accounts      *account.Accounts
	Organizations VoterOrganizations
	Outbox        *mail.Outbox
	PublicURL     string
	Clock         func() time.Time
	Held          func() error // returns an error while Run must write nothing; nil: never
}

// Weekly writes the mails about the week before, on Mondays from 6:00 UTC, to the members who asked for them. Looks must not run
// concurrently.
type Weekly struct {
	WeeklyOptions
	weeks records.Store[weekRecord]
}

// NewWeekly returns the writer of a store's weekly mails.
func NewWeekly(o WeeklyOptions) *Weekly {
	return &Weekly{WeeklyOptions: o, weeks: records.New[weekRecord](o.Store, kindWeek, "Weekly mails can't be read")}
}

// Run writes the mails that are due, each hour, until ctx ends.
func (m *Weekly) Run(ctx context.Context, logger *slog.Logger) {
	for ctx.Err() == nil {
		if m.Held == nil || m.Held() == nil {
			if err := m.Look(ctx, logger); err != nil && ctx.Err() == nil {
				logger.Warn("weekly mails: cannot list organizations", "err", err)
			}
		}
		_ = syncs.Sleep(ctx, lookPause)
	}
}

// Look writes the mails that are due. An organization whose mails cannot be written does not keep the others from theirs; the next look
// tries again.
func (m *Weekly) Look(ctx context.Context, logger *slog.Logger) error {
	end := lastMonday(m.Clock())
	if m.Clock().Before(end.Add(writeHour * time.Hour)) {
		return nil
	}
	for t, err := range m.Store.Tenants(ctx) {
		if err != nil {
			return fmt.Errorf("list organizations: %w", err)
		}
		if err := m.writeMails(ctx, t, id.InstantOf(end), logger); err != nil && ctx.Err() == nil {
			logger.Warn("weekly mails: could not write the mails of an organization", "tenant", t, "err", err)
		}
	}
	return nil
}

// lastMonday returns when the latest Monday began, in UTC.
func lastMonday(now time.Time) time.Time {
	day := now.UTC().Truncate(24 * time.Hour)
	return day.AddDate(0, 0, -(int(day.Weekday())+6)%7)
}

// writeMails writes the mails of an organization that this process owns about the week before end. The record is written together with
// each portion of mails, so a repetition begins after it.
func (m *Weekly) writeMails(ctx context.Context, t id.Tenant, end id.Instant, logger *slog.Logger) error {
	s, err := m.Ledgers.State(ctx, t)
	if errors.Is(err, log.ErrNotOwner) || err == nil && s.Trusted() != nil { // a successor has the records of a frozen ledger
		return nil
	}
	if err != nil {
		return err
	}
	w, err := m.weeks.Get(ctx, t, "")
	if err != nil || w.Value.End > end || w.Value.End == end && w.Value.After == "" { // after the end if the clock was wrong
		return err
	}
	if w.Value.End != end {
		w.Value = weekRecord{End: end}
	}
	readers, err := m.findReaders(ctx, t, w.Value.After)
	if err != nil {
		return err
	}
	l := letter{}
	if len(readers) > 0 {
		if l, err = m.summarize(ctx, t, end); err != nil {
			return err
		}
	}
	if l.Title == "" { // nothing happened
		readers = nil
	}
	for {
		portion := readers[:min(len(readers), maxMails)]
		readers = readers[len(portion):]
		var mails []mail.Named
		for i := range portion {
			message := mail.Message{To: portion[i].Email, From: l.Organization}
			if err := l.fill(&message); err != nil {
				logger.Warn("weekly mails: a mail was not written", "tenant", t, "account", portion[i].ID, "err", err)
				continue
			}
			mails = append(mails, mail.Named{Name: "weekly-" + string(portion[i].ID), Message: message})
		}
		w.Value.After = ""
		if len(readers) > 0 {
			w.Value.After = portion[len(portion)-1].ID
		}
		change, err := m.weeks.Put(w)
		if err != nil {
			return err
		}
		changes, err := m.Outbox.WriteMessages(ctx, t, mails...)
		if err != nil {
			return err
		}
		if err := m.Store.Write(ctx, t, append(changes, change)); err != nil || len(readers) == 0 {
			return err
		}
		if w, err = m.weeks.Get(ctx, t, ""); err != nil {
			return err
		}
	}
}

// findReaders returns the accounts that get the mail, in the order of their IDs after the given one.
func (m *Weekly) findReaders(ctx context.Context, t id.Tenant, after account.ID) (found []account.Account, err error) {
	settings, err := m.Organizations.CurrentSettings(ctx, t)
	if err != nil || !settings.Active {
		return nil, err
	}
	members, err := m.Accounts.Members(ctx, t)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(members, func(a, b account.StoredMembership) int { return cmp.Compare(a.Account, b.Account) })
	for i := range members {
		if p := &members[i]; p.Account <= after || !p.IsEffective() || !p.Role.May(account.Read) {
			continue
		}
		who, err := m.Accounts.ByID(ctx, members[i].Account)
		if fault.Is(err, fault.NotFound) || err == nil && !who.WeeklyMail {
			continue
		}
		if err != nil {
			return nil, err
		}
		may, err := MayMail(ctx, m.Outbox, who, t)
		if err != nil {
			return nil, err
		}
		if may {
			found = append(found, who)
		}
	}
	return found, nil
}

// summarize returns the mail about the week before end. Its title is "" if there were no acts and no approval waits.
func (m *Weekly) summarize(ctx context.Context, t id.Tenant, end id.Instant) (letter, error) {
	count := func(from id.Instant, by ...string) ([]wire.Stats, error) {
		values := url.Values{"from": {from.String()}, "to": {(from + weekLong).String()}}
		return m.Acts.CountEach(ctx, eventlist.Asked{Tenant: t, Role: account.Auditor, Values: values}, by...)
	}
	counted, err := count(end-weekLong, "tool")
	if fault.Is(err, fault.Invalid) { // too many tools to count by
		counted, err = count(end-weekLong, "")
	}
	if err != nil {
		return letter{}, err
	}
	before, err := count(end-2*weekLong, "")
	if err != nil {
		return letter{}, err
	}
	pending, err := m.Approvals.List(ctx, t, approval.Filter{Status: approval.Pending}, "", 1)
	if err != nil || counted[0].Acts == 0 && pending.Count == 0 {
		return letter{}, err
	}
	summary, err := m.Organizations.Summary(ctx, t)
	if err != nil {
		return letter{}, err
	}
	service := serviceURL(m.PublicURL)
	l := weeklyLetter(counted[0], before[0], pending, end)
	l.Organization, l.Fewer = OrganizationName(summary), service+"/account#mail"
	l.All = service + "/console/stats?" + url.Values{"from": {(end - weekLong).String()}, "to": {end.String()}}.Encode()
	l.Subject = l.Organization + ": " + l.Title
	return l, nil
}

// weeklyLetter returns the texts about the week before end.
func weeklyLetter(counted, before wire.Stats, pending approval.Page, end id.Instant) letter {
	first, last := (end - weekLong).Time().UTC(), (end - 1).Time().UTC()
	from := first.Format("2 January")
	if first.Month() == last.Month() {
		from = first.Format("2")
	}
	l := letter{Title: countActs(counted.Acts) + " from " + from + " to " + last.Format("2 January"),
		Button: "Open the statistics", Note: "You asked for this mail on Mondays."}
	if counted.Acts > 0 {
		o := counted.Outcomes
		l.addFact("Outcomes", listCounts(numbered{o.Done, "done"}, numbered{o.Failed, "failed"}, numbered{o.Denied, "denied by policy"},
			numbered{o.Refused, "refused by an approver"}, numbered{o.Expired, "expired"}, numbered{o.Cancelled, "cancelled"},
			numbered{o.Unknown, "without a known result"}, numbered{o.Waiting, "waiting for approval"}, numbered{o.Open, "open"}))
	}
	acts := "acts"
	if before.Acts == 1 {
		acts = "act"
	}
	l.addFact("The week before", listCounts(numbered{before.Acts, acts}, numbered{before.Outcomes.Denied, "denied by policy"},
		numbered{before.Outcomes.Refused, "refused by an approver"}))
	if a := counted.Approvals; a.Requested > 0 {
		l.addFact("Approvals", listCounts(numbered{a.Requested, "requested"}, numbered{a.Approved, "approved"}, numbered{a.Refused, "refused"},
			numbered{a.Expired, "expired"}))
		if a.P50 != nil && a.P90 != nil {
			l.addFact("Time to a decision", fmt.Sprintf("Half within %s, nine of ten within %s", roughTime(time.Duration(*a.P50)*time.Millisecond), roughTime(time.Duration(*a.P90)*time.Millisecond)))
		}
	}
	if pending.Count > 0 {
		waiting := groupedNumber(uint64(pending.Count))
		if !pending.Complete {
			waiting = "at least " + waiting
		}
		l.addFact("Approvals waiting now", waiting)
	}
	var tools []string
	for i := range counted.Counts[:min(len(counted.Counts), maxTopTools)] {
		if c := &counted.Counts[i]; c.Tool != nil {
			tools = append(tools, fmt.Sprintf("%s (%s)", cutText(webhook.SafeTool(string(*c.Tool)), 60), groupedNumber(c.Acts)))
		}
	}
	l.addFact("Most used tools", strings.Join(tools, ", "))
	l.Preview = l.Facts[0].Text
	return l
}

// fact is a line of a mail with its name.
type fact struct{ Name, Text string }

// addFact adds a line, unless its text is "".
func (l *letter) addFact(name, text string) {
	if text != "" {
		l.Facts = append(l.Facts, fact{name, text})
	}
}

func countActs(n uint64) string {
	if n == 1 {
		return "1 act"
	}
	return groupedNumber(n) + " acts"
}

func groupedNumber(n uint64) string { return textcheck.GroupDigits(strconv.FormatUint(n, 10)) }

// numbered is a number of things, and what they are.
type numbered struct {
	n    uint64
	what string
}

// listCounts lists the numbers that are not 0.
func listCounts(counts ...numbered) string {
	var all []string
	for _, c := range counts {
		if c.n > 0 {
			all = append(all, groupedNumber(c.n)+" "+c.what)
		}
	}
	return strings.Join(all, ", ")
}
