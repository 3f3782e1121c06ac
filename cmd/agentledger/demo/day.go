package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// playDay plays the story of one process: an operator, an agent's day, what goes wrong in it, and an outsider.
func (s *stage) playDay(ctx context.Context) {
	n := s.addNode()
	s.start(ctx, n)
	s.url = n.main

	s.scene("An operator creates two organizations and gives one a policy")
	acme, globex := s.found(ctx, n, "Acme"), s.found(ctx, n, "Globex")
	s.post(ctx, n.identity+"/v1/id/auth/login", map[string]any{"email": acme.owner(), "password": password}, nil)
	s.post(ctx, n.main+"/v1/console/policies", dayPolicy, nil)
	s.post(ctx, n.main+"/v1/console/policies/support-desk/activate", struct{}{}, nil)
	s.note("log origin  %s", acme.Origin)
	s.note("log key     %s", acme.LogKey)
	s.note("agent       %s", acme.Agent.AgentID)
	s.conclude("each organization has its own log, under its own key; auditors pin that key now")

	morning := acme.head(ctx)
	s.scene("The agent works: it asks before it acts, and signs what it did")
	sent := s.playWork(ctx, acme)
	s.conclude("the agent declared 'allow' each time; where the policy is stricter, its decision is recorded (a policy can only tighten)")

	s.scene("What goes wrong: lost responses, forgeries, strangers")
	s.playFaults(ctx, acme, globex, sent[4])
	s.conclude("retries are safe, and a refused request stores nothing")

	s.scene("An outsider with no account checks, trusting only the pinned key")
	s.playOutsider(ctx, acme, morning)
	if !s.Once {
		s.keepWorking(ctx, n, acme)
	}
	try(n.end(syscall.SIGTERM))
	s.scene("The server has stopped; fsck reads its files from the first event")
	s.fsck(n, "")
	s.conclude("everything acknowledged is on disk: entries, records, signatures, tiles and heads match")
}

var dayPolicy = map[string]any{
	"policy_id": "support-desk", "name": "Support desk", "default": "allow",
	"rules": []map[string]any{
		{"rule_id": "refunds-need-a-person", "tool": "acme.payments.refund", "decision": "allow_with_obligation",
			"reason": "An approver decides on every refund", "obligations": []map[string]any{{"type": "human_approval"}}},
		{"rule_id": "no-deletion", "tool": "acme.customers.**", "decision": "deny",
			"reason": "Customers are not the agent's business"},
	},
}

// act is one act of the agent.
type act struct {
	kind, tool string
	payload    map[string]any
	want       id.Decision // the effective decision
}

var day = []act{
	{"llm_invocation", "", map[string]any{"purpose": "customer_support", "model": "assistant-1",
		"data_touched": []string{"conversation"}}, id.Allow},
	{"tool_call", "acme.orders.read", map[string]any{"order_id": "A-1009", "data_touched": []string{"orders"}}, id.Allow},
	{"result", "acme.orders.read", map[string]any{"phase": "result", "result_status": "ok"}, id.Allow},
	{"llm_invocation", "", map[string]any{"purpose": "draft_answer", "model": "assistant-1"}, id.Allow},
	refund("A-1009"),
	{"tool_call", "acme.customers.delete", map[string]any{"customer_id": "c-77"}, id.Deny},
	{"tool_call", "acme.mail.send", map[string]any{"to": "customer", "template": "refund_pending"}, id.Allow},
	{"result", "acme.mail.send", map[string]any{"phase": "result", "result_status": "ok"}, id.Allow},
}

func refund(order string) act {
	return act{"tool_call", "acme.payments.refund", map[string]any{"order_id": order, "amount_usd": 84.5, "currency": "USD"},
		id.AllowWithObligation}
}

// playWork plays the agent's day. The agent asks before it calls a tool, and signs an event for each act, which always
// declares "allow". playWork returns the signed envelopes.
func (s *stage) playWork(ctx context.Context, o *organization) (sent [][]byte) {
	for i, a := range day {
		if a.kind == "tool_call" {
			d := must(o.client.Evaluate(ctx, client.Question{Organization: o.OrganizationID, Agent: o.Agent.AgentID, Tool: id.Tool(a.tool),
				Payload: a.payload}))
			s.check(d.Decision == a.want, "asks  %-24s %s (rule %s)", a.tool, d.Decision, d.RuleID)
		}
		e := client.Event{EventID: dayEvent(i), TraceID: "conversation-1"}
		if a.kind == "result" { // of the call before it
			e.Extra = map[string]any{"parent_event_id": dayEvent(i - 1)}
		}
		envelope, r, err := o.record(ctx, a, e)
		try(err)
		sent = append(sent, envelope)
		effective := max(r.Decision, id.Allow)
		s.check(r.Status == client.Created && effective == a.want, "signs %-24s #%d %s", cmp.Or(a.tool, a.kind), r.Sequence,
			effective)
	}
	return sent
}

func dayEvent(i int) id.Event { return id.Event(fmt.Sprintf("day-%02d", i+1)) }

// record signs and sends the event of an act, with the IDs and members of e.
func (o *organization) record(ctx context.Context, a act, e client.Event) (envelope []byte, r client.Result, err error) {
	e.ActorPrincipal, e.ActionKind, e.Decision = "support-agent", a.kind, id.Allow
	e.Tool, e.Payload = id.Tool(a.tool), a.payload
	if envelope, err = o.signer.SignEvent(e); err != nil {
		return nil, r, err
	}
	r, err = o.client.Send(ctx, envelope)
	return envelope, r, err
}

// playFaults plays what goes wrong on a normal day. sent is the envelope of the day's refund.
func (s *stage) playFaults(ctx context.Context, acme, globex *organization, sent []byte) {
	before := acme.head(ctx)
	r := must(acme.client.Send(ctx, sent))
	s.check(r.Status == client.Replayed, "the same refund sent again: %s", r.Status)

	forged := strings.NewReplacer("84.5", "9084.5", `"day-05"`, `"day-99"`).Replace(string(sent))
	call := client.Event{ActionKind: "tool_call", ActorPrincipal: "stranger", Decision: id.Allow}
	unregistered := acme.newSigner("key_unknown")
	for _, refused := range []struct {
		what     string
		envelope []byte
		status   int
	}{
		{"amount and id changed after signing", []byte(forged), http.StatusUnprocessableEntity},
		{"another organization's event under this key", must(globex.signer.SignEvent(call)), http.StatusForbidden},
		{"signed by a key that was never registered", must(unregistered.SignEvent(call)), http.StatusUnprocessableEntity},
	} {
		var answer *client.Error
		if _, err := acme.client.Send(ctx, refused.envelope); errors.As(err, &answer) {
			s.check(answer.Status == refused.status, "%s: %d %q", refused.what, answer.Status, answer.Message)
		} else {
			s.check(false, "%s: %v", refused.what, err)
		}
	}
	after := acme.head(ctx)
	s.check(before == after, "the tree did not grow: %s before and after", leaves(after.Size))
}

// playOutsider plays the outsider's checks. morning is the head before the day.
func (s *stage) playOutsider(ctx context.Context, o *organization, morning tlog.Checkpoint) {
	evening := o.head(ctx)
	s.check(evening.Size > morning.Size, "signed head: %s, root %.16s…", leaves(evening.Size), evening.Root)
	_, err := o.log.Consistency(ctx, morning, evening)
	s.check(err == nil, "the morning's head (%s) is a prefix of the evening's", leaves(morning.Size))
	s.conclude("nothing was rewritten in between")
	for _, event := range []id.Event{"day-05", "day-06"} {
		text := must(o.client.FetchBundle(ctx, o.Slug, event))
		report := o.verifyBundle(text)
		s.check(report.OK && report.SignatureOK != nil && *report.SignatureOK,
			"bundle of %s: inclusion, checkpoint, chain, record, signature, envelope", event)
		report = o.verifyBundle(effectiveDecision.ReplaceAll(text, []byte(`\"effective\":\"allow\"`)))
		s.check(!report.OK && len(report.Errors) > 0, "the same with another decision is rejected: %s",
			strings.Join(report.Errors[:min(1, len(report.Errors))], ""))
	}
	s.conclude("offline: the leaf is under the signed root, the leaf before it is the one it names, " +
		"the agent's key signed the envelope")
	document := must(o.client.AgentDID(ctx, o.Agent.AgentID))
	s.check(len(document.VerificationMethod) > 0, "the agent's DID document: %.24s…", document.ID)
}

// effectiveDecision matches the decision in the record of a bundle, which is JSON text in a string.
var effectiveDecision = regexp.MustCompile(`\\"effective\\":\\"(deny|allow_with_obligation)\\"`)

// verifyBundle verifies a bundle offline.
func (o *organization) verifyBundle(text []byte) verify.Report {
	key := must(tlog.ParseVerifierKey(o.LogKey))
	return verify.Check(must(verify.ParseBundle(text)), verify.Options{Key: &key})
}

// keepWorking prints what the user can try, and keeps the agent working until ctx ends.
func (s *stage) keepWorking(ctx context.Context, n *node, o *organization) {
	s.invite(n, o)
	g, working := errgroup.WithContext(ctx)
	g.Go(func() error { // the acts that the policy allows
		for i := range maxLater {
			_ = syncs.Sleep(working, 4*time.Second) // the next request fails if working has ended
			e := client.Event{EventID: id.Event(fmt.Sprintf("later-%03d", i+1)), TraceID: "conversation-2"}
			if _, _, err := o.record(working, day[i%2], e); err != nil {
				return err
			}
		}
		return nil
	})
	g.Go(func() error { // refunds, each of which waits for an approver
		for i := range maxLater {
			if err := s.playRefund(working, o, fmt.Sprintf("A-%d", 1010+i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := g.Wait(); ctx.Err() == nil { // otherwise a request was interrupted
		try(err)
	}
}

// maxLater bounds the acts and the refunds of keepWorking.
const maxLater = 1000

// playRefund asks for the approval of a refund and waits for the decision.
func (s *stage) playRefund(ctx context.Context, o *organization, order string) error {
	a := refund(order)
	approval, err := o.client.AskApproval(ctx, client.ApprovalQuestion{Organization: o.OrganizationID, Agent: o.Agent.AgentID,
		Tool: id.Tool(a.tool), Payload: a.payload, Trace: id.Trace("refund-" + order), Principal: "support-agent"})
	if err != nil {
		return err
	}
	decision, err := o.client.AwaitApproval(ctx, approval.ID)
	if err != nil {
		return err
	}
	if decision.Status != client.ApprovalApproved {
		s.note("the refund of order %s is %s: the agent does not make it", order, decision.Status)
		return nil
	}
	if _, err := o.client.ConsumeApproval(ctx, o.signer, decision); err != nil {
		return err
	}
	e := client.Event{EventID: id.Event("refund-" + order), TraceID: id.Trace("refund-" + order)}
	if _, _, err := o.record(ctx, a, e); err != nil {
		return err
	}
	s.note("approved: the agent refunded order %s, recorded as event refund-%s", order, order)
	return nil
}

// invite prints requests to try while the demo serves, with all credentials.
func (s *stage) invite(n *node, o *organization) {
	agent := provision.FirstAgent{URL: n.main, Organization: o.OrganizationID, Agent: o.Agent.AgentID, Key: o.Agent.KeyID,
		IngestKey: o.IngestKey.Secret, KeyFile: filepath.Join(s.dir, "agent.key")}
	try(durable.CreateFile(agent.KeyFile, []byte(o.Agent.PrivateB64+"\n")))
	pages, _, _ := strings.Cut(string(o.Origin), "/")
	fmt.Fprintf(s.Out, `
%[1]s. Still serving; the files are removed when the demo stops.
The agent continues to work. Open these pages in a browser:

   http://%[2]s/log/acme            the public log: it grows, and the browser checks each tree
   http://%[2]s/console/approvals   a refund waits: approve it, and the agent continues
                              sign in as %[8]s with the password %[3]s

Read the log:

   curl '%[4]s/v1/public/orgs/acme/transparency/head'
   curl '%[4]s/v1/public/orgs/acme/transparency/consistency?from=1'
   curl -s '%[4]s/v1/public/orgs/acme/verify/day-05' > bundle.json; aps verify bundle.json --key '%[5]s'

Sign in to the console as the owner:

   curl -c '%[6]s' '%[4]s/v1/id/auth/login' --json '{"email":"%[8]s","password":"%[3]s"}'
   curl -b '%[6]s' '%[4]s/v1/console/policies'

Act as the agent:

   %[7]s
   aps evaluate --tool acme.payments.refund --payload '{"amount_usd":84.5}'

Stop with Ctrl-C.
`, s.counts(), pages, password, n.main, o.LogKey, filepath.Join(s.dir, "cookies"),
		strings.ReplaceAll(strings.TrimSuffix(agent.Exports(), "\n"), "\n", "\n   "), o.owner())
}
