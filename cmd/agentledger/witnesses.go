package main

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/secret"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/trust"
)

// witnessTimeout bounds one call to a witness.
const witnessTimeout = 5 * time.Second

// witnessRules reads the service's witnesses and how they are called.
func witnessRules(c config.Serve) (witness.Rules, *egress.Client, error) {
	client := egress.New(egress.Options{Allow: c.CalloutAllow, Timeout: witnessTimeout, MaxAnswer: witness.MaxAnswer})
	rules := witness.Rules{Address: client.CheckURL}
	if c.WitnessPolicyFile == "" {
		return rules, client, nil
	}
	text, err := secret.ReadSettings(c.WitnessPolicyFile)
	if err != nil {
		return rules, client, fmt.Errorf("--witness-policy-file: %w", err)
	}
	if rules.Service, err = trust.Parse(text); err == nil {
		err = rules.CheckService()
	}
	if err != nil {
		return rules, client, fmt.Errorf("--witness-policy-file: %w", err)
	}
	return rules, client, nil
}

// buildWitnesses creates the witnesses of the service without calling any.
func (s *service) buildWitnesses(c config.Serve, rules witness.Rules, client *egress.Client) {
	s.witnesses = witness.New(witness.Options{
		Store: s.records, Ledgers: s.ledgers, Organizations: s.orgs, Client: client,
		Service: rules.Service, FailClosed: c.WitnessFail == "closed", MaxLag: c.WitnessMaxLag,
		AlarmOnly: c.WitnessContradiction == "alarm", Anchor: c.WitnessAnchor == "quorum", Interval: c.WitnessInterval,
		Clock: s.clock.Now, Logger: s.watch.logger, Metrics: s.watch.registry,
	})
}

// askWitnesses asks the witnesses of a log at once, for the operator.
func (s *service) askWitnesses(ctx context.Context, t id.Tenant) ([]string, error) {
	return s.witnesses.AskNow(ctx, t, witness.Operator)
}

// Confirm asks the witnesses before the first event of a ledger (log.Witness). The ledgers are opened before the witnesses
// exist, and accept no events until then.
func (s *service) Confirm(ctx context.Context, state *log.State) {
	if s.witnesses != nil {
		s.witnesses.Confirm(ctx, state)
	}
}
