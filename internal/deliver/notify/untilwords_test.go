package notify

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

func TestUntilWords(t *testing.T) {
	now := time.Date(2026, 11, 28, 22, 30, 0, 0, time.UTC)
	for left, want := range map[time.Duration]string{
		-time.Second:                "Within 1 minute, until 22:29 UTC",
		30 * time.Second:            "Within 1 minute, until 22:30 UTC",
		89 * time.Minute:            "Within 89 minutes, until 23:59 UTC",
		2 * time.Hour:               "Within 2 hours, until 29 Nov 00:30 UTC",
		4*time.Hour - 3*time.Second: "Within 4 hours, until 29 Nov 02:29 UTC",
		47 * time.Hour:              "Within 47 hours, until 30 Nov 21:30 UTC",
		7 * 24 * time.Hour:          "Within 7 days, until 5 Dec 22:30 UTC",
	} {
		if got := untilWords(now.Add(left), now); got != want {
			t.Errorf("%v: got %q, want %q", left, got, want)
		}
	}
}

// Texts of people and agents stay texts in HTML, and on their line in plain text.
func TestHostileTexts(t *testing.T) {
	now := id.InstantOf(time.Date(2026, 11, 28, 22, 30, 0, 0, time.UTC))
	d := &digest{Voters: &Voters{VotersOptions: VotersOptions{PublicURL: "https://log.example/"}}, name: "Nord <b>", now: now}
	hostile := approval.Approval{ID: "apr_1", AgentName: "<script>" + strings.Repeat("x", 200), Tool: "acme.refund", Reason: "one\nhttps://evil.example\r\n<img src=x>",
		CreatedAt: now, ExpiresAt: now + 3_600_000}
	for _, n := range []int{1, 2} {
		m, err := d.message("ann@example.com", []approval.Approval{hostile, hostile}[:n], 0)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(m.HTML, "<script") || strings.Contains(m.HTML, "<img") || strings.Contains(m.HTML, "Nord <b>") {
			t.Errorf("%d: got %s", n, m.HTML)
		}
		if strings.Contains(m.Text, "\nhttps://evil") || strings.ContainsAny(m.Subject+m.From, "\r\n") || len([]rune(m.Subject)) > 200 {
			t.Errorf("%d: got %q, %q", n, m.Subject, m.Text)
		}
	}
}

// Ten questions with the longest texts fit in a mail, and so does one.
func TestLongestMail(t *testing.T) {
	now := id.InstantOf(time.Date(2026, 11, 28, 22, 30, 0, 0, time.UTC))
	d := &digest{Voters: &Voters{VotersOptions: VotersOptions{PublicURL: "https://" + strings.Repeat("x", 250) + ".example/"}},
		name: strings.Repeat("ü", 200), now: now}
	var payload strings.Builder
	for i := range column.Max {
		path := fmt.Sprint(strings.Repeat("p", 60), i)
		d.columns = append(d.columns, org.Column{Path: path})
		fmt.Fprintf(&payload, `,%q:%q`, path, strings.Repeat("'", 500))
	}
	for _, wide := range []string{"'", "日", "𝕏"} {
		long := approval.Approval{ID: "apr_06pr0000000000000000000000", AgentName: strings.Repeat(wide, 200), Tool: id.Tool(strings.Repeat("t", 256)),
			Reason: strings.Repeat(wide, 2000), Payload: []byte("{" + payload.String()[1:] + "}"), CreatedAt: now, ExpiresAt: now + 7*24*3_600_000}
		for n := range maxLooked {
			m, err := d.message("ann@example.com", slices.Repeat([]approval.Approval{long}, n+1), 0)
			if err != nil {
				t.Errorf("%d with %s: got %v, with texts of %d and %d", n+1, wide, err, len([]rune(m.Text)), len([]rune(m.HTML)))
			}
		}
	}
}

// A tool's name that mail programs would turn into a link is nowhere in a mail.
func TestToolIsNoLink(t *testing.T) {
	d := &digest{Voters: &Voters{VotersOptions: VotersOptions{PublicURL: "https://log.example/"}}, name: "Nord"}
	linked := approval.Approval{ID: "apr_1", AgentName: "Refund bot", Tool: "https://evil.example/approve", ExpiresAt: 3_600_000}
	for _, n := range []int{1, 2} {
		m, err := d.message("ann@example.com", []approval.Approval{linked, linked}[:n], 0)
		if all := m.Subject + m.Text + m.HTML; err != nil || strings.Contains(all, "evil") || !strings.Contains(all, "(on the page)") {
			t.Errorf("%d: got %v, %s", n, err, all)
		}
	}
}
