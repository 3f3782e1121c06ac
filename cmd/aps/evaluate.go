package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/textcheck"
)

type evaluateCommand struct {
	Tool       string           `required:"" placeholder:"NAME" help:"Dotted name of the tool." type:"tool"`
	Payload    commandline.JSON `placeholder:"JSON|@FILE" help:"The call's payload, a JSON object; @FILE reads it from a file, @- from standard input."`
	OnBehalfOf string           `env:"APS_ON_BEHALF_OF" placeholder:"SUBJECT" help:"Subject on whose behalf the agent acts, as --issuer names it."`
	Issuer     string           `env:"APS_ISSUER" placeholder:"URL" help:"Issuer of --on-behalf-of."`
	flags.Subject
	flags.Names
	flags.Service
}

// noPolicy is the policy_id of a decision that no policy made.
const noPolicy = "none"

func (c *evaluateCommand) Run(ctx context.Context, s *streams) error {
	question, err := c.buildQuestion(s.in)
	if err != nil {
		return err
	}
	service, err := c.NewRetryingClient(client.Retry{Notify: flags.Notify(s.err)}, c.Subject)
	if err != nil {
		return err
	}
	decision, err := service.Evaluate(ctx, question)
	if err != nil {
		return err
	}
	if err := printDecision(s, decision); err != nil {
		return err
	}
	if decision.PolicyID == noPolicy {
		fmt.Fprintln(s.err, "aps: no policy is active: every call is allowed until an admin activates one")
	}
	c.warnOfUnknownAgent(ctx, s, service, question.Agent)
	return map[id.Decision]error{id.Deny: decided(3), id.AllowWithObligation: decided(4)}[decision.Decision]
}

// warnOfUnknownAgent prints a warning if the agent has no active key, for example because its ID is misspelled: the
// service evaluates any agent ID. It prints nothing if the service does not answer.
func (c *evaluateCommand) warnOfUnknownAgent(ctx context.Context, s *streams, service *client.Client, agent id.Agent) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := service.AgentDID(ctx, agent)
	if answer, ok := errors.AsType[*client.Error](err); ok && answer.Status == http.StatusNotFound {
		fmt.Fprintf(s.err, "aps: the service knows no agent %s with an active key: "+
			"the decision is the one for an unknown agent\n", textcheck.Printable(string(agent)))
	}
}

func (c *evaluateCommand) buildQuestion(stdin io.Reader) (client.Question, error) {
	who, err := c.AgentIdentity()
	if err != nil {
		return client.Question{}, err
	}
	of, err := c.Subject.Name(c.OnBehalfOf, c.Issuer)
	if err != nil {
		return client.Question{}, err
	}
	q := client.Question{Organization: who.Organization, Agent: who.Agent, Tool: id.Tool(c.Tool), OnBehalfOf: of}
	payload, err := c.Payload.Read(stdin, maxProven)
	if err == nil && payload != nil {
		q.Payload = jsontext.Value(payload)
	}
	return q, err
}

func printDecision(s *streams, d client.Decision) error {
	if s.json {
		return s.printJSON(d)
	}
	policy := textcheck.Printable(d.PolicyID)
	if d.PolicyVersion > 0 {
		policy = fmt.Sprintf("%s version %d", policy, d.PolicyVersion)
	}
	if err := s.printLine("%s\npolicy      %s, rule %s\nreason      %s", d.Decision, policy, textcheck.Printable(d.RuleID),
		textcheck.Printable(d.Reason)); err != nil {
		return err
	}
	for _, o := range d.Obligations {
		signed := ""
		if o.Signed {
			signed = ", signed by passkeys"
		}
		if err := s.printLine("obligation  %s: approvals %d, within %d s%s", textcheck.Printable(o.Type), o.Approvals,
			o.TTLSeconds, signed); err != nil {
			return err
		}
	}
	return nil
}
