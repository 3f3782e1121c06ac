package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// policyOfTheDay is what the demo's organization decides about its agent.
var policyOfTheDay = map[string]any{
	"policy_id": "support-desk", "name": "Support desk", "default": "allow",
	"rules": []map[string]any{
		{"rule_id": "refunds-need-a-person", "tool": "acme.payments.refund", "decision": "allow_with_obligation",
			"reason": "A person looks at every refund", "obligations": []map[string]any{{"type": "human_approval"}}},
		{"rule_id": "no-deletion", "tool": "acme.customers.**", "decision": "deny", "reason": "Customers are not the agent's business"},
	},
}

// play is the story. An error means that it could not go on; what merely does
// not hold is counted by the stage.
func play(ctx context.Context, s *stage, running *server) error {
	acme, other, err := setUp(ctx, s, running)
	if err != nil {
		return err
	}
	worker, err := newWorker(running.mainURL(), acme, client.Retry{})
	if err != nil {
		return err
	}
	morning, err := worker.log.head(ctx)
	if err != nil {
		return err
	}
	sent, err := work(ctx, s, worker)
	if err != nil {
		return err
	}
	if err := trouble(ctx, s, worker, other, sent); err != nil {
		return err
	}
	return outsider(ctx, s, running, acme, morning, sent)
}

// setUp is the operator's part: two organizations, a policy for one.
func setUp(ctx context.Context, s *stage, running *server) (acme, other founded, err error) {
	s.scene("An operator makes two organizations and gives one a policy")
	o, err := newOperator(running.mainURL(), running.identityURL())
	if err != nil {
		return acme, other, err
	}
	const email, password = "ops@acme.example", "correct horse battery staple"
	if acme, err = o.found(ctx, running.platformSecret, map[string]any{
		"name": "Acme", "slug": "acme", "admin_email": email, "admin_password": password, "disclosure": "full"}); err != nil {
		return acme, other, err
	}
	if other, err = o.found(ctx, running.platformSecret, map[string]any{
		"name": "Globex", "slug": "globex", "admin_email": "ops@globex.example", "admin_password": password}); err != nil {
		return acme, other, err
	}
	if err = o.login(ctx, email, password); err != nil {
		return acme, other, err
	}
	if err = o.console(ctx, "POST", "/policies", policyOfTheDay, nil); err != nil {
		return acme, other, err
	}
	if err = o.console(ctx, "POST", "/policies/support-desk/activate", map[string]any{}, nil); err != nil {
		return acme, other, err
	}
	s.say("log origin  %s", acme.Origin)
	s.say("log key     %s", acme.LogKey)
	s.say("agent       %s", acme.Agent.AgentID)
	s.proves("each organization has its own log, under its own key; auditors pin that key now")
	return acme, other, nil
}

// worker is the demo's agent: a client and a signer.
type worker struct {
	org    founded
	client *client.Client
	signer *client.Signer
	log    publicLog
}

// publicLog is an organization's log as a stranger sees it.
type publicLog struct {
	client *client.Client
	log    *client.Log
	slug   id.Slug
}

func newWorker(url string, org founded, retry client.Retry) (*worker, error) {
	c, err := client.New(client.Config{BaseURL: url, Token: org.IngestKey.Secret, Retry: retry})
	if err != nil {
		return nil, err
	}
	seed, err := base64.StdEncoding.DecodeString(org.Agent.PrivateB64)
	if err != nil {
		return nil, err
	}
	signer, err := client.NewSigner(client.Identity{Organization: org.OrganizationID, Agent: org.Agent.AgentID, Key: org.Agent.KeyID}, seed)
	if err != nil {
		return nil, err
	}
	l, err := newPublicLog(url, org)
	return &worker{org: org, client: c, signer: signer, log: l}, err
}

// newPublicLog needs no account: the address, the slug and the key to trust.
func newPublicLog(url string, org founded) (publicLog, error) {
	c, err := client.New(client.Config{BaseURL: url})
	if err != nil {
		return publicLog{}, err
	}
	key, err := tlog.ParseVerifierKey(org.LogKey)
	if err != nil {
		return publicLog{}, err
	}
	return publicLog{client: c, log: c.Log(org.Slug, key), slug: org.Slug}, nil
}

func (l publicLog) head(ctx context.Context) (tlog.Checkpoint, error) {
	_, c, err := l.log.Head(ctx)
	return c, err
}

// act is one thing that the agent does in its day.
type act struct {
	kind, tool string
	payload    map[string]any
	want       id.Decision // what the service makes of it
}

var day = []act{
	{"llm_invocation", "", map[string]any{"purpose": "customer_support", "model": "assistant-1", "data_touched": []string{"conversation"}}, id.Allow},
	{"tool_call", "acme.orders.read", map[string]any{"order_id": "A-1009", "data_touched": []string{"orders"}}, id.Allow},
	{"result", "acme.orders.read", map[string]any{"result_status": "ok"}, id.Allow},
	{"llm_invocation", "", map[string]any{"purpose": "draft_answer", "model": "assistant-1"}, id.Allow},
	{"tool_call", "acme.payments.refund", map[string]any{"order_id": "A-1009", "amount_usd": 84.5, "currency": "USD"}, id.AllowWithObligation},
	{"tool_call", "acme.customers.delete", map[string]any{"customer_id": "c-77"}, id.Deny},
	{"tool_call", "acme.mail.send", map[string]any{"to": "customer", "template": "refund_pending"}, id.Allow},
	{"result", "acme.mail.send", map[string]any{"result_status": "ok"}, id.Allow},
}

// work is the agent's day: it asks before it calls a tool and records what it
// did, always declaring that it may. It returns the signed envelopes.
func work(ctx context.Context, s *stage, w *worker) ([][]byte, error) {
	s.scene("The agent works: it asks before it acts, and signs what it did")
	var sent [][]byte
	for i, a := range day {
		if a.tool != "" && a.kind == "tool_call" {
			d, err := w.client.Evaluate(ctx, client.Question{Organization: w.org.OrganizationID, Agent: w.org.Agent.AgentID, Tool: id.Tool(a.tool), Payload: a.payload})
			if err != nil {
				return nil, err
			}
			s.check(d.Decision == a.want, "asks  %-24s %s (rule %s)", a.tool, d.Decision, d.RuleID)
		}
		envelope, err := w.signer.SignEvent(client.Event{
			EventID: id.Event(fmt.Sprintf("day-%02d", i+1)), TraceID: "conversation-1", ActorPrincipal: "support-agent",
			ActionKind: a.kind, Decision: id.Allow, Tool: id.Tool(a.tool), Payload: a.payload,
		})
		if err != nil {
			return nil, err
		}
		r, err := w.client.Send(ctx, envelope)
		if err != nil {
			return nil, err
		}
		sent = append(sent, envelope)
		effective := max(r.Decision, id.Allow)
		s.check(r.Status == client.Created && effective == a.want, "signs %-24s #%d %s", orKind(a), r.Sequence, effective)
	}
	s.proves("the agent declared 'allow' each time; where the policy is stricter, the record says so (it only ever tightens)")
	return sent, nil
}

func orKind(a act) string {
	if a.tool == "" {
		return a.kind
	}
	return a.tool
}

// trouble is what goes wrong on a normal day: a lost answer, a forged event,
// another organization's event, a key that nobody knows.
func trouble(ctx context.Context, s *stage, w *worker, other founded, sent [][]byte) error {
	s.scene("What goes wrong: lost answers, forgeries, strangers")
	before, err := w.log.head(ctx)
	if err != nil {
		return err
	}
	r, err := w.client.Send(ctx, sent[4])
	if err != nil {
		return err
	}
	s.check(r.Status == client.Replayed, "the same refund sent again: %s", r.Status)

	forged := bytes.Replace(sent[4], []byte("84.5"), []byte("9084.5"), 1)
	forged = bytes.Replace(forged, []byte(`"day-05"`), []byte(`"day-99"`), 1)
	s.refused(w.send(ctx, forged), http.StatusUnprocessableEntity, "amount and id changed after signing")

	stranger, err := newWorker("http://unused.example", other, client.Retry{})
	if err != nil {
		return err
	}
	foreign, err := stranger.signer.SignEvent(client.Event{ActionKind: "tool_call", ActorPrincipal: "stranger", Decision: id.Allow})
	if err != nil {
		return err
	}
	s.refused(w.send(ctx, foreign), http.StatusForbidden, "another organization's event under this key")

	posing, err := client.NewSigner(client.Identity{Organization: w.org.OrganizationID, Agent: w.org.Agent.AgentID, Key: "key_unknown"}, make([]byte, 32))
	if err != nil {
		return err
	}
	unknown, err := posing.SignEvent(client.Event{ActionKind: "tool_call", ActorPrincipal: "nobody", Decision: id.Allow})
	if err != nil {
		return err
	}
	s.refused(w.send(ctx, unknown), http.StatusUnprocessableEntity, "signed by a key that was never registered")
	after, err := w.log.head(ctx)
	if err != nil {
		return err
	}
	s.check(before == after, "the tree did not move: %d leaves before and after", after.Size)
	s.proves("retries are safe, and nothing of a refused request is stored")
	return nil
}

func (w *worker) send(ctx context.Context, envelope []byte) error {
	_, err := w.client.Send(ctx, envelope)
	return err
}

func (s *stage) refused(err error, status int, what string) {
	var answer *client.Error
	ok := errors.As(err, &answer) && answer.Status == status
	if !ok {
		s.check(false, "%s: %v", what, err)
		return
	}
	s.check(true, "%s: %d %q", what, answer.Status, answer.Message)
}

// outsider checks from outside, with the pinned key and nothing else.
func outsider(ctx context.Context, s *stage, running *server, acme founded, morning tlog.Checkpoint, sent [][]byte) error {
	s.scene("An outsider with no account checks, trusting only the pinned key")
	l, err := newPublicLog(running.mainURL(), acme)
	if err != nil {
		return err
	}
	head, evening, err := l.log.Head(ctx)
	if err != nil {
		return err
	}
	s.check(evening.Size > morning.Size, "signed head: %d leaves, root %.16s…", evening.Size, head.RootHash)
	_, err = l.log.Consistency(ctx, morning, evening)
	s.check(err == nil, "the morning's head (%d leaves) is a prefix of the evening's", morning.Size)
	s.proves("nothing was rewritten in between")
	for _, name := range []id.Event{"day-05", "day-06"} {
		raw, err := l.client.FetchBundle(ctx, acme.Slug, name)
		if err != nil {
			return err
		}
		if err := s.checkBundle(raw, acme.LogKey, name); err != nil {
			return err
		}
	}
	s.proves("offline: the leaf is under the signed root, the leaf before it is the one it names, the agent's key signed the envelope")
	document, err := l.client.AgentDID(ctx, acme.Agent.AgentID)
	if err != nil {
		return err
	}
	s.check(len(document.VerificationMethod) > 0, "the agent's DID document: %.24s…", document.ID)
	return nil
}

// decided is the effective decision in a bundle's record, which is text in JSON.
var decided = regexp.MustCompile(`\\"effective\\":\\"(deny|allow_with_obligation)\\"`)

// checkBundle verifies a bundle offline, and that a changed one is found out.
func (s *stage) checkBundle(raw []byte, vkey string, name id.Event) error {
	key, err := tlog.ParseVerifierKey(vkey)
	if err != nil {
		return err
	}
	bundle, err := verify.ParseBundle(raw)
	if err != nil {
		return err
	}
	report := verify.Check(bundle, verify.Options{Key: &key})
	s.check(report.OK && report.SignatureOK != nil && *report.SignatureOK, "bundle of %s: inclusion, checkpoint, chain, record, signature, envelope", name)
	bent := decided.ReplaceAll(raw, []byte(`\"effective\":\"allow\"`))
	tampered, err := verify.ParseBundle(bent)
	if err != nil {
		return err
	}
	report = verify.Check(tampered, verify.Options{Key: &key})
	s.check(!report.OK && len(report.Errors) > 0, "the same with its decision changed is found out: %s", first(report.Errors))
	return nil
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// invite says what to try while the demo goes on serving.
func (s *stage) invite(running *server) {
	public := running.mainURL() + "/v1/public"
	fmt.Fprintf(s.out, "\n%d checks passed, %d failed. Still serving; try:\n\n", s.passed, s.failed)
	for _, path := range []string{"/orgs/acme/transparency/head", "/orgs/acme/transparency/checkpoint", "/orgs/acme/verify/day-05?verify=1", "/orgs/acme/transparency/consistency?from=1"} {
		fmt.Fprintf(s.out, "   curl '%s%s'\n", public, path)
	}
	fmt.Fprintf(s.out, "\nStop with Ctrl-C.\n")
}
