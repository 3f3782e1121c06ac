package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

type evaluateCommand struct {
	Tool    string          `required:"" placeholder:"NAME" help:"Dotted name of the tool."`
	Agent   string          `env:"APS_AGENT" placeholder:"ID" help:"Agent id."`
	Org     id.Organization `env:"APS_ORG" placeholder:"UUID" help:"Organization id."`
	Payload string          `placeholder:"JSON" help:"The call's payload, a JSON object."`
	serviceFlags
}

func (c *evaluateCommand) Run(ctx context.Context, s *streams) error {
	question, err := c.buildQuestion()
	if err != nil {
		return err
	}
	service, err := c.newClient(s.err)
	if err != nil {
		return err
	}
	decision, err := service.Evaluate(ctx, question)
	switch {
	case err != nil:
		return err
	case s.json:
		return s.printJSON(decision)
	}
	return printDecision(s, decision)
}

func (c *evaluateCommand) buildQuestion() (client.Question, error) {
	switch {
	case c.Org == id.Organization{}:
		return client.Question{}, errors.New("no organization: set --org or APS_ORG")
	case c.Agent == "":
		return client.Question{}, errors.New("no agent: set --agent or APS_AGENT")
	}
	q := client.Question{Organization: c.Org, Agent: id.Agent(c.Agent), Tool: id.Tool(c.Tool)}
	if c.Payload != "" {
		value := jsontext.Value(c.Payload)
		if value.Kind() != '{' || !value.IsValid() {
			return client.Question{}, errors.New("--payload must be a JSON object")
		}
		q.Payload = value
	}
	return q, nil
}

func printDecision(s *streams, d client.Decision) error {
	policy := printableText(d.PolicyID)
	if d.PolicyVersion > 0 {
		policy = fmt.Sprintf("%s version %d", policy, d.PolicyVersion)
	}
	if err := s.printLine("%s\npolicy      %s, rule %s\nreason      %s", d.Decision, policy, printableText(d.RuleID),
		printableText(d.Reason)); err != nil {
		return err
	}
	for _, o := range d.Obligations {
		if err := s.printLine("obligation  %s: approvals %d, within %d s", printableText(o.Type), o.Approvals,
			o.TTLSeconds); err != nil {
			return err
		}
	}
	return nil
}
