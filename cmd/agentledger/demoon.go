package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// The agent works on with so many events at most, one after each pause.
const (
	maxLater   = 1000
	laterPause = 4 * time.Second
)

// playOn prints what a person can do, and lets the agent work on until ctx ends.
func (s *stage) playOn(ctx context.Context, running *server, w *worker) error {
	if err := s.printInvitation(running); err != nil {
		return err
	}
	g, working := errgroup.WithContext(ctx)
	g.Go(func() error { return w.workOn(working) })
	g.Go(func() error { return w.workOnRefunds(working, s) })
	err := g.Wait()
	if ctx.Err() != nil {
		return nil // requests that the end has cut off are no fault
	}
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// workOn sends the acts of the day that the policy allows, again and again.
func (w *worker) workOn(ctx context.Context) error {
	for i := range maxLater {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(laterPause):
		}
		e := client.Event{EventID: id.Event(fmt.Sprintf("later-%03d", i+1)), TraceID: "conversation-2"}
		if _, _, err := w.sendAct(ctx, day[i%2], e); err != nil {
			return err
		}
	}
	return nil
}

// workOnRefunds asks for the approval of a refund, and does it when a person agrees. Then the next refund is asked for.
func (w *worker) workOnRefunds(ctx context.Context, s *stage) error {
	for i := range maxLater {
		order := fmt.Sprintf("A-%d", 1010+i)
		refund := act{"tool_call", "acme.payments.refund", map[string]any{"order_id": order, "amount_usd": 84.5,
			"currency": "USD"}, id.AllowWithObligation}
		asked, err := w.client.AskApproval(ctx, client.ApprovalQuestion{Organization: w.org.OrganizationID,
			Agent: w.org.Agent.AgentID, Tool: id.Tool(refund.tool), Payload: refund.payload,
			Trace: id.Trace("refund-" + order), Principal: "support-agent"})
		if err != nil {
			return err
		}
		decided, err := w.client.AwaitApproval(ctx, asked.ID)
		if err != nil {
			return err
		}
		if decided.Status != client.ApprovalApproved {
			s.PrintNote("the refund of order %s is %s: the agent leaves it", order, decided.Status)
			continue
		}
		if _, err := w.client.ConsumeApproval(ctx, w.signer, decided); err != nil {
			return err
		}
		if _, _, err := w.sendAct(ctx, refund, client.Event{EventID: id.Event("refund-" + order),
			TraceID: id.Trace("refund-" + order)}); err != nil {
			return err
		}
		s.PrintNote("a person agreed: the agent refunded order %s, as event refund-%s says", order, order)
	}
	return nil
}

// printInvitation prints requests to try while the demo goes on serving, with all credentials.
func (s *stage) printInvitation(running *server) error {
	main, acme := running.mainURL(), s.acme
	pages := running.settings.PublicURL
	agent := provision.FirstAgent{URL: main, Organization: acme.OrganizationID, Agent: acme.Agent.AgentID,
		Key: acme.Agent.KeyID, IngestKey: acme.IngestKey.Secret, KeyFile: filepath.Join(s.dir, "agent.key")}
	if err := durable.CreateFile(agent.KeyFile, []byte(acme.Agent.PrivateB64+"\n")); err != nil {
		return err
	}
	public, jar := main+"/v1/public/orgs/acme", filepath.Join(s.dir, "cookies")
	passed, failed := s.Counts()
	fmt.Fprintf(s.Out, `
%s passed, %d failed. Still serving; the files are gone when it stops.
The agent works on. Open these pages in a browser and watch:

   %[10]s/log/acme            the public log: it grows, and the browser checks each tree
   %[10]s/console/approvals   a refund waits for a person: say yes, and the agent goes on
                              sign in as %[5]s with the password %[6]s

Programs read the log:

   curl '%[3]s/transparency/head'
   curl '%[3]s/transparency/consistency?from=1'
   curl -s '%[3]s/verify/day-05' > bundle.json; aps verify bundle.json --key '%[4]s'

They sign in to the console, as its owner does:

   curl -c '%[7]s' '%[8]s/v1/id/auth/login' --json '{"email":"%[5]s","password":"%[6]s"}'
   curl -b '%[7]s' '%[8]s/v1/console/policies'

Be its agent:

%[9]s   aps evaluate --tool acme.payments.refund --payload '{"amount_usd":84.5}'

Stop with Ctrl-C.
`, textcheck.Count(passed, "check"), failed, public, acme.LogKey, demoEmail, demoPassword, jar, main,
		"   "+strings.ReplaceAll(strings.TrimSuffix(agent.Exports(), "\n"), "\n", "\n   ")+"\n", pages)
	return nil
}
