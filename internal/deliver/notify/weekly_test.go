package notify_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/notify"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// weekly returns the writer of weekly mails on a store, which may be a wrapper of the world's.
func (w *voterWorld) weekly(store storage.Engine) *notify.Weekly {
	reader := &eventlist.Reader{Index: index.New(index.Options{Ledgers: w.Ledgers, Store: w.Engine, Clock: w.Clock}), Ledgers: w.Ledgers}
	return notify.NewWeekly(notify.WeeklyOptions{Store: store, Ledgers: w.Ledgers, Acts: &eventlist.ActReader{Events: reader, Agents: w.agents, People: w.accounts},
		Approvals: w.approvals, Accounts: w.accounts, Organizations: settings{&w.asker, &w.inMail}, Outbox: w.outbox, PublicURL: "https://log.example/", Clock: w.Clock})
}

// act appends an act of an organization.
func (w *voterWorld) act(tenant id.Tenant, name string) {
	w.t.Helper()
	agent := ledgertest.NewAgent()
	e := agent.Envelope(w.t, tenant, name, nil)
	attested := agent.Attestation(e)
	attested.Policy.Evaluated = true
	_, err := w.Ledgers.Append(w.t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, attested)}}, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// wish turns the weekly mails of a member on or off.
func (w *voterWorld) wish(address string, weekly bool) {
	w.t.Helper()
	who, _, err := w.accounts.Ensure(w.t.Context(), address, "")
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.accounts.SetWishes(w.t.Context(), who.ID, account.Wishes{WeeklyMail: &weekly}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *voterWorld) look(m *notify.Weekly) {
	w.t.Helper()
	if err := m.Look(w.t.Context(), slog.New(slog.NewTextHandler(w.t.Output(), nil))); err != nil {
		w.t.Fatal(err)
	}
}

// Members who want it get one mail about each week of their organization, on Monday from 6:00 UTC, also if the process dies.
func TestWeeklyMail(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newVoterWorld(t, open(t)) // on Friday, 20 November, at noon
		auditor, owner, other := address(account.Auditor, red), address(account.Owner, red), address(account.Auditor, blue)
		for _, who := range []string{auditor, owner, other} {
			w.wish(who, true)
		}
		for i := range 3 {
			w.act(red, fmt.Sprint("red-", i))
		}
		w.act(blue, "blue")
		monday := 2*24*time.Hour + 12*time.Hour
		w.Pass(monday + 5*time.Hour + 59*time.Minute)
		w.mustAsk(red, 1, "ik_operator")
		m := w.weekly(w.Engine)
		w.look(m)
		w.Pass(time.Minute)
		got := w.sweep()
		for address := range got {
			if len(got[address]) > 1 || strings.Contains(got[address][0].Text, "week") {
				t.Errorf("before six o'clock: got %q, want no mail", got[address][0].Text)
			}
		}
		w.look(m)
		got = w.sweep()
		wantMailed(t, "Monday", got, auditor, owner, other)
		want := `3 acts from 16 to 22 November

Outcomes: 3 done
Approvals waiting now: 1
Most used tools: acme.orders.read (3)

Open the statistics: https://log.example/console/stats?from=2026-11-16T00%3A00%3A00.000Z&to=2026-11-23T00%3A00%3A00.000Z

Number, by agentledger. You asked for this mail on Mondays.
Fewer mails: https://log.example/account#mail
`
		if mail := got[auditor][0]; mail.Text != want || mail.Subject != "Number: 3 acts from 16 to 22 November" || mail.Unsubscribe != "https://log.example/account#mail" {
			t.Errorf("got %q, %q and %q, want %q", mail.Subject, mail.Unsubscribe, mail.Text, want)
		}
		if mail := got[other][0]; !strings.HasPrefix(mail.Text, "1 act from") {
			t.Errorf("the other organization: got %q, want its own act", mail.Text)
		}

		w.wish(other, false)
		w.open()
		m = w.weekly(w.Engine)
		w.look(m) // of a new process
		wantMailed(t, "again", w.sweep())
		w.Pass(2 * 24 * time.Hour)
		w.act(red, "red-next")
		w.Pass(5 * 24 * time.Hour)
		w.look(m)
		got = w.sweep()
		wantMailed(t, "the next Monday", got, auditor, owner)
		if text := got[owner][0].Text; !strings.HasPrefix(text, "1 act from 23 to 29 November\n\nOutcomes: 1 done\nThe week before: 3 acts\n") {
			t.Errorf("the next Monday: got %q", text)
		}
		w.Pass(14 * 24 * time.Hour)
		w.look(m)
		wantMailed(t, "a week without acts", w.sweep())
	})
}

// A process that dies before or after it writes a portion of the mails has written each mail once when its successor is done.
func TestWeeklyMailPortions(t *testing.T) {
	w := newVoterWorld(t, enginetest.Pebble(t))
	var want []string
	var members []storage.Change
	for i := range 120 {
		who, _, err := w.accounts.Ensure(t.Context(), fmt.Sprintf("reader-%d@example.com", i), "")
		if err != nil {
			t.Fatal(err)
		}
		record, _, err := w.accounts.NewMembership(t.Context(), red, who.ID, account.Auditor)
		if err != nil {
			t.Fatal(err)
		}
		members, want = append(members, record), append(want, who.Email)
		w.wish(who.Email, true)
	}
	if err := w.Engine.Write(t.Context(), red, members); err != nil {
		t.Fatal(err)
	}
	w.Pass(3 * 24 * time.Hour)
	for n := range 3 {
		for _, after := range []bool{false, true} {
			w.act(red, fmt.Sprintf("act-%d-%t", n, after))
			w.Pass(7 * 24 * time.Hour)
			mortal := &enginetest.Mortal{Engine: w.Engine}
			mortal.DieAt(n, after)
			w.look(w.weekly(mortal))
			if !mortal.Dead() {
				t.Fatalf("write %d: the process did not die", n)
			}
			w.open()
			m := w.weekly(w.Engine)
			w.look(m)
			w.look(m)
			wantMailed(t, fmt.Sprintf("write %d, after %t", n, after), w.sweep(), want...)
		}
	}
}

// An organization whose agents use more tools than can be counted gets its mail without them.
func TestWeeklyMailOfManyTools(t *testing.T) {
	w := newVoterWorld(t, enginetest.Pebble(t))
	auditor := address(account.Auditor, red)
	w.wish(auditor, true)
	agent := ledgertest.NewAgent()
	const batches, size = 11, 1000
	for batch := range batches {
		_, err := w.Ledgers.Append(t.Context(), red, func(_ context.Context, s *log.State) (submission log.Submission, err error) {
			for i := range size {
				e := agent.Envelope(t, red, fmt.Sprintf("act-%d-%d", batch, i), nil)
				attested := agent.Attestation(e)
				attested.Policy.Evaluated = true
				draft := log.NewDraft(s.Identity(), e, attested)
				draft.Columns.Tool = id.Tool(fmt.Sprintf("acme.tool%d-%d", batch, i))
				submission.Drafts = append(submission.Drafts, draft)
			}
			return submission, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.Pass(3 * 24 * time.Hour)
	w.look(w.weekly(w.Engine))
	got := w.sweep()
	wantMailed(t, "many tools", got, auditor)
	if text := got[auditor][0].Text; !strings.HasPrefix(text, "11,000 acts from") || strings.Contains(text, "tool") {
		t.Errorf("got %q, want all acts and no tools", text)
	}
}
