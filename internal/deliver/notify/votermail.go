package notify

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"
	"sync"
	"time"

	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/policy"
)

const (
	maxLooked = 50 // latest questions that are examined for a recipient
	maxListed = 10 // questions in a mail
)

// letter is the content of a mail about questions, one alone (Lead) or several (Lines), or about a week (Facts).
type letter struct {
	Subject      string
	Preview      string // shown in lists of mails
	Organization string
	Title        string
	Lead         *question // nil if there are several
	Lines        []question
	Facts        []fact
	More         string // about the questions that are not shown; "" if there are none
	All          string // URL of the list
	Button       string // leads to All; not with a Lead
	Note         string
	Fewer        string // URL of the page that turns these mails off
}

// question is what a mail shows of one question.
type question struct {
	Agent, Tool string
	Amount      string // of the first column that the payload has; "" if that is no amount of money or not in mails
	Behalf      string // such as "On behalf of 248289761001 (claimed)"; "" if the agent does not state it
	Values      string // of the other columns, such as "order A-1009, customer Zoë"; "" if none
	Reason      string // of the rule; "" if none
	Until       string // such as "Within 4 hours, until 11:18 UTC"
	URL         string
}

// note is in each mail, because readers expect buttons.
const note = "A vote needs your sign-in: this mail alone decides nothing."

// shorten returns the question with texts so short that maxListed of them fit in a mail, also in HTML.
func (q question) shorten() question {
	q.Agent, q.Tool, q.Reason = cutText(q.Agent, 60), cutText(q.Tool, 100), cutText(q.Reason, 160)
	q.Amount, q.Values, q.Behalf = cutText(q.Amount, 40), cutText(q.Values, 160), cutText(q.Behalf, 120)
	return q
}

// message returns the mail about questions, of which the first ones are recent: one alone is the subject, and several are listed.
func (d *digest) message(to string, open []approval.Approval, recent int) (mail.Message, error) {
	m := mail.Message{To: to, From: d.name + " approvals"}
	for i := range open {
		if d.shows {
			m.Shows = append(m.Shows, string(open[i].ID))
		}
		m.Until = max(m.Until, open[i].ExpiresAt)
	}
	service := serviceURL(d.PublicURL)
	l := letter{Organization: d.name, All: service + "/console/approvals", Button: "Open all", Note: note, Fewer: service + "/account#mail"}
	if recent == 1 || len(open) == 1 {
		l.addLead(d.question(&open[0]))
		if more := len(open) - 1; more > 0 {
			l.More = textcheck.Count(more, "more waits", "more wait")
		}
	} else {
		for i := range open[:min(len(open), maxListed)] {
			l.Lines = append(l.Lines, d.question(&open[i]).shorten())
		}
		l.addTitle(len(open), d.page.Next != "")
		if d.page.Count > len(l.Lines) {
			l.More = fmt.Sprintf("%d are pending in all", d.page.Count)
			if !d.page.Complete {
				l.More = "At least " + l.More
			}
		}
	}
	return m, l.fill(&m)
}

// fill sets the texts of a mail. It returns an error if the mail cannot be sent.
func (l *letter) fill(m *mail.Message) error {
	m.Subject, m.Text, m.Unsubscribe = l.Subject, l.text(), l.Fewer
	var html strings.Builder
	if err := votermail().Execute(&html, l); err != nil {
		return fmt.Errorf("write mail: %w", err)
	}
	m.HTML = html.String()
	return m.Check()
}

// addLead makes one question the subject.
func (l *letter) addLead(q question) {
	l.Lead = &q
	agent, tool, values := cutText(q.Agent, 40), cutText(q.Tool, 60), ""
	if q.Values != "" {
		values = ", " + cutText(q.Values, 50)
	}
	if q.Amount != "" {
		l.Subject = fmt.Sprintf("Approve %s? %s: %s%s", cutText(q.Amount, 30), agent, tool, values)
	} else {
		l.Subject = fmt.Sprintf("%s waits for you: %s%s", agent, tool, values)
	}
	l.Preview = q.what() + q.Until
}

// what returns the values in one line that ends with a dot and a space, or "".
func (q *question) what() string {
	switch {
	case q.Amount != "" && q.Values != "":
		return q.Amount + ", " + q.Values + ". "
	case q.Amount+q.Values != "":
		return q.Amount + q.Values + ". "
	}
	return ""
}

// addTitle makes the number of questions the subject.
func (l *letter) addTitle(n int, more bool) {
	l.Title = textcheck.Count(n, "approval waits for you", "approvals wait for you")
	if more {
		l.Title = "At least " + l.Title
	}
	l.Subject, l.Preview = l.Title, l.Lines[0].Tool+", asked by "+l.Lines[0].Agent
}

// question returns what is shown of a question. Texts of people are on one line.
func (d *digest) question(a *approval.Approval) question {
	q := question{Agent: textcheck.Printable(a.AgentName), Tool: webhook.SafeTool(string(a.Tool)), Reason: cutText(textcheck.Printable(policy.WrittenReason(a.RuleID, a.Reason)), 500),
		Until: untilWords(a.ExpiresAt.Time(), d.now.Time()), URL: serviceURL(d.PublicURL) + "/console/approvals/" + string(a.ID)}
	var values []string
	for i, v := range a.Shown(d.columns) {
		text := safeValue(v.Text)
		if i == 0 && v.Amount {
			q.Amount = text
			continue
		}
		values = append(values, strings.TrimSpace(v.Label+" "+text))
	}
	q.Values = strings.Join(values, ", ")
	if o := a.OnBehalfOf; o != nil {
		subject := onPage
		if d.shows {
			subject = safeValue(o.Subject)
		}
		q.Behalf = fmt.Sprintf("On behalf of %s (%s)", subject, a.Standing.Words())
	}
	return q
}

// onPage takes the place of a text that mails do not show.
const onPage = "(on the page)"

// safeValue returns an agent's text on one line. A text that mail programs would turn into a link is not shown, because
// the mail is the service's.
func safeValue(s string) string {
	s = cutText(textcheck.Printable(s), 80)
	if !isNumberText(s) && address().MatchString(foldDots.Replace(s)) {
		return onPage
	}
	return s
}

// isNumberText reports whether a text begins with a number, whose dot makes no link.
func isNumberText(s string) bool {
	number, _, _ := strings.Cut(s, " ")
	_, isNumber := jcs.ParseNumber(number)
	return isNumber && !strings.ContainsAny(strings.TrimPrefix(s, number), "./:@\\")
}

// text returns the content as plain text.
func (l *letter) text() string {
	var b strings.Builder
	if len(l.Facts) > 0 {
		fmt.Fprintf(&b, "%s\n\n", l.Title)
		for _, f := range l.Facts {
			fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Text)
		}
		fmt.Fprintf(&b, "\n%s: %s\n\n", l.Button, l.All)
	} else if q := l.Lead; q != nil {
		fmt.Fprintf(&b, "%s asks to run %s\n", q.Agent, q.Tool)
		if what := q.what(); what != "" {
			fmt.Fprintf(&b, "%s\n", strings.TrimSuffix(what, ". "))
		}
		if q.Behalf != "" {
			fmt.Fprintf(&b, "%s\n", q.Behalf)
		}
		if q.Reason != "" {
			fmt.Fprintf(&b, "You are asked because: %s\n", q.Reason)
		}
		fmt.Fprintf(&b, "%s\n%s\n\n", q.Until, q.URL)
	} else {
		fmt.Fprintf(&b, "%s:\n\n", l.Title)
		for _, q := range l.Lines {
			fmt.Fprintf(&b, "%s, asked by %s", q.Tool, q.Agent)
			if q.Reason != "" {
				fmt.Fprintf(&b, ": %s", q.Reason)
			}
			if what := q.what(); what != "" {
				fmt.Fprintf(&b, "\n%s", strings.TrimSuffix(what, ". "))
			}
			if q.Behalf != "" {
				fmt.Fprintf(&b, "\n%s", q.Behalf)
			}
			fmt.Fprintf(&b, "\n%s\n%s\n\n", q.Until, q.URL)
		}
	}
	if l.More != "" {
		fmt.Fprintf(&b, "%s: %s\n\n", l.More, l.All)
	}
	fmt.Fprintf(&b, "%s, by agentledger. %s\nFewer mails: %s\n", l.Organization, l.Note, l.Fewer)
	return b.String()
}

//go:embed votermail.html
var votermailHTML string

// votermail returns the mail in HTML, of a letter.
var votermail = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("votermail").Parse(votermailHTML))
})

// untilWords says how much time is left, and until when.
func untilWords(until, now time.Time) string {
	until, now = until.UTC(), now.UTC()
	form := "15:04"
	if until.Format(time.DateOnly) != now.Format(time.DateOnly) {
		form = "2 Jan 15:04"
	}
	return fmt.Sprintf("Within %s, until %s UTC", roughTime(until.Sub(now)), until.Format(form))
}

// roughTime returns a time in words: minutes, hours or days.
func roughTime(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return "1 minute"
	case d < 2*time.Hour:
		return fmt.Sprintf("%d minutes", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d hours", int(d.Round(time.Hour).Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Round(24*time.Hour).Hours()/24))
}

// cutText shortens a text to a number of code points.
func cutText(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}
