package notify

import (
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/flow/approval"
)

const (
	maxLooked = 50 // latest questions that are examined for a recipient
	maxListed = 10 // questions in a mail
)

// message returns the mail about questions, latest first.
func (d *digest) message(to string, open []approval.Approval) mail.Message {
	console := strings.TrimRight(d.PublicURL, "/") + "/console/approvals"
	m := mail.Message{To: to, Subject: "Approvals wait for your vote"}
	var b strings.Builder
	fmt.Fprintf(&b, "Agents of %s wait for your vote:\n\n", d.name)
	for i := range open[:min(len(open), maxListed)] {
		a := &open[i]
		fmt.Fprintf(&b, "%s, asked by %s, until %s\n%s/%s\n\n", a.Tool, a.Agent, a.ExpiresAt, console, a.ID)
	}
	most := id.Instant(0)
	for i := range open {
		most = max(most, open[i].ExpiresAt)
	}
	m.Until = most
	if d.page.Count > 1 {
		more := ""
		if !d.page.Complete {
			more = "at least "
		}
		fmt.Fprintf(&b, "%s%d are pending in all: %s\n\n", more, d.page.Count, console)
	}
	b.WriteString("You get at most one such mail in ten minutes. " +
		"To stop these mails, turn off \"approval_mail\" in your account.\n")
	m.Text = b.String()
	return m
}
