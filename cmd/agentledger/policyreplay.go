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
	"github.com/agentledger/agentledger/id"
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
	Intent   string `help:"For a result: a verification bundle that discloses the record of its intent." placeholder:"FILE"`
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
	replayed, err := c.replay(rehearsal.Documents{Record: record, Envelope: envelope})
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if err := c.tell(out, record, replayed); err != nil {
		return err
	}
	if len(replayed.Differences) > 0 {
		return errFound
	}
	return nil
}

// replay decides again. A result is not judged, so its intent is looked at in place of a
// policy.
func (c policyReplayCommand) replay(event rehearsal.Documents) (rehearsal.Replayed, error) {
	if event.Record.Policy.Intent != "" {
		intent, err := c.intent(event.Record)
		if err != nil {
			return rehearsal.Replayed{}, err
		}
		return rehearsal.Replayed{Differences: rehearsal.ReplayResult(event, intent)}, nil
	}
	p, err := c.policy()
	if err != nil {
		return rehearsal.Replayed{}, err
	}
	return rehearsal.Replay(p, event.Record, event.Envelope)
}

// policy reads the policy, nil for none.
func (c policyReplayCommand) policy() (*policy.Policy, error) {
	if c.Policy == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.Policy)
	if err != nil {
		return nil, err
	}
	document, wrong, err := parsePolicy(asShown(text))
	if err != nil || wrong != "" {
		return nil, errors.Join(err, fmt.Errorf("%s: %s", c.Policy, wrong))
	}
	return &document, nil
}

// intent reads the documents of a result's intent.
func (c policyReplayCommand) intent(result *chain.Record) (d rehearsal.Documents, err error) {
	if c.Intent == "" {
		return d, fmt.Errorf("%s is a result, decided by its intent %s: give the bundle of that with --intent", result.EventID, result.Policy.Intent)
	}
	text, err := os.ReadFile(c.Intent)
	if err != nil {
		return d, err
	}
	b, err := verify.ParseBundle(text)
	if err != nil {
		return d, fmt.Errorf("%s: %w", c.Intent, err)
	}
	if b.Record == nil {
		return d, fmt.Errorf("%s: the bundle does not disclose the record", c.Intent)
	}
	r, err := chain.ParseRecord([]byte(*b.Record))
	if d.Record = &r; err != nil || b.Envelope == nil {
		return d, err
	}
	d.Envelope, err = parseEnvelope([]byte(*b.Envelope))
	return d, err
}

func parseEnvelope(text []byte) (*event.Envelope, error) {
	e, err := event.Parse(text, event.Options{MaxBytes: max(len(text), 1), Server: true})
	if err != nil {
		return nil, fmt.Errorf("envelope: %w", err)
	}
	return e, nil
}

// replayAnswer is the answer as JSON.
type replayAnswer struct {
	EventID     string                 `json:"event_id"`
	SequenceNum uint64                 `json:"sequence_num"`
	Same        bool                   `json:"same"`
	Decision    string                 `json:"decision"`
	RuleID      *string                `json:"rule_id"`
	Differences []rehearsal.Difference `json:"differences"`
	Formerly    bool                   `json:"formerly,omitzero"` // see rehearsal.Replayed
	Intent      id.Event               `json:"intent,omitzero"`   // of a result
}

func (c policyReplayCommand) tell(out terminal, record *chain.Record, replayed rehearsal.Replayed) error {
	differences := replayed.Differences
	if c.JSON {
		answer := replayAnswer{string(record.EventID), record.SequenceNum, len(differences) == 0, record.Policy.Effective.String(), nil, differences, replayed.Formerly, record.Policy.Intent}
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
	_, err := fmt.Fprintf(out.stdout, "same: %s #%d %s (%s)\n", record.EventID, record.SequenceNum, record.Policy.Effective, decidedBy(record, replayed.Formerly))
	return err
}

// decidedBy says what a decision rests on.
func decidedBy(record *chain.Record, formerly bool) string {
	p := &record.Policy
	by := "by " + p.PolicyID + "/" + p.RuleID
	switch {
	case p.Intent != "":
		return by + ", as its intent " + string(p.Intent)
	case !p.Evaluated:
		return "no policy was asked"
	case formerly:
		return by + "; limits counted tool_call alone then"
	}
	return by
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
	e, err := parseEnvelope(envelope)
	return &r, e, err
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
