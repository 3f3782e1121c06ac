package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/chain"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/rehearsal"
	"github.com/agentledger/agentledger/verify"
)

// policyReplayCommand decides one event again.
type policyReplayCommand struct {
	Policy   string `help:"The policy version that was active, as a document or as the console shows it; none when none was." placeholder:"FILE"`
	Bundle   string `help:"A verification bundle that discloses record and envelope." placeholder:"FILE" xor:"documents,with-record,with-envelope"`
	Record   string `help:"The record (JSON)." placeholder:"FILE" xor:"with-record" and:"pair"`
	Envelope string `help:"The envelope (JSON)." placeholder:"FILE" xor:"with-envelope" and:"pair"`
	JSON     bool   `help:"Answer as JSON."`
}

// Run tells whether the recorded decision follows from the documents, and if not
// which of its inputs is another one. It checks no signature and no proof: aps
// verify does.
func (c policyReplayCommand) Run(out terminal) error {
	record, envelope, err := c.documents()
	if err != nil {
		return err
	}
	var p *policy.Policy
	if c.Policy != "" {
		text, err := os.ReadFile(c.Policy)
		if err != nil {
			return err
		}
		document, wrong, err := parsePolicy(asShown(text))
		if err != nil || wrong != "" {
			return errors.Join(err, fmt.Errorf("%s: %s", c.Policy, wrong))
		}
		p = &document
	}
	differences, err := rehearsal.Replay(p, record, envelope)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if err := c.tell(out, record, differences); err != nil {
		return err
	}
	if len(differences) > 0 {
		return errFound
	}
	return nil
}

// replayAnswer is the answer as JSON.
type replayAnswer struct {
	EventID     string                 `json:"event_id"`
	SequenceNum uint64                 `json:"sequence_num"`
	Same        bool                   `json:"same"`
	Decision    string                 `json:"decision"`
	RuleID      *string                `json:"rule_id"`
	Differences []rehearsal.Difference `json:"differences"`
}

func (c policyReplayCommand) tell(out terminal, record *chain.Record, differences []rehearsal.Difference) error {
	if c.JSON {
		answer := replayAnswer{string(record.EventID), record.SequenceNum, len(differences) == 0, record.Policy.Effective.String(), nil, differences}
		if record.Policy.RuleID != "" {
			answer.RuleID = &record.Policy.RuleID
		}
		return json.MarshalWrite(out.stdout, answer, jsontext.Multiline(true))
	}
	for _, d := range differences {
		fmt.Fprintf(out.stdout, "%s: the record says %q, the documents say %q\n", d.Member, d.Record, d.Documents)
	}
	if len(differences) > 0 {
		return nil
	}
	by := "no policy was asked"
	if record.Policy.Evaluated {
		by = "by " + record.Policy.PolicyID + "/" + record.Policy.RuleID
	}
	_, err := fmt.Fprintf(out.stdout, "same: %s #%d %s (%s)\n", record.EventID, record.SequenceNum, record.Policy.Effective, by)
	return err
}

// documents reads record and envelope.
func (c policyReplayCommand) documents() (*chain.Record, *event.Envelope, error) {
	if c.Bundle == "" && c.Record == "" {
		return nil, nil, errors.New("give --bundle, or --record and --envelope")
	}
	record, envelope, err := c.texts()
	if err != nil {
		return nil, nil, err
	}
	r, err := chain.ParseRecord(record)
	if err != nil {
		return nil, nil, err
	}
	e, err := event.Parse(envelope, event.Options{MaxBytes: max(len(envelope), 1), Server: true})
	if err != nil {
		return nil, nil, fmt.Errorf("envelope: %w", err)
	}
	return &r, e, nil
}

func (c policyReplayCommand) texts() (record, envelope []byte, err error) {
	if c.Bundle == "" {
		record, err = os.ReadFile(c.Record)
		if err != nil {
			return nil, nil, err
		}
		envelope, err = os.ReadFile(c.Envelope)
		return bytes.TrimSpace(record), bytes.TrimSpace(envelope), err
	}
	text, err := os.ReadFile(c.Bundle)
	if err != nil {
		return nil, nil, err
	}
	b, err := verify.ParseBundle(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.Bundle, err)
	}
	if b.Record == nil || b.Envelope == nil {
		return nil, nil, fmt.Errorf("%s: the bundle does not disclose record and envelope", c.Bundle)
	}
	return []byte(*b.Record), []byte(*b.Envelope), nil
}
