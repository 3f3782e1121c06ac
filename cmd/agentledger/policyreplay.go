package main

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/simulate"
)

// replayCommand decides one event again.
type replayCommand struct {
	Policy   string `help:"The policy version that was active, if one was." placeholder:"FILE" type:"file" expected:"a file with a policy version"`
	Bundle   string `help:"A bundle that discloses record and envelope." placeholder:"FILE" xor:"documents,with-record,with-envelope" type:"file" expected:"a file with a bundle"`
	Record   string `help:"The record (JSON)." placeholder:"FILE" xor:"with-record" and:"pair" type:"file" expected:"a file with a record"`
	Envelope string `help:"The envelope (JSON)." placeholder:"FILE" xor:"with-envelope" and:"pair" type:"file" expected:"a file with an envelope"`
	Intent   string `help:"For a result: a bundle that discloses its intent's record." placeholder:"FILE" type:"file" expected:"a file with a bundle"`
	JSON     bool   `help:"Print the result as JSON."`
}

// Run prints whether the recorded decision follows from the documents, and otherwise which of its inputs differ. It checks
// no signatures and no proofs: aps verify does.
func (c replayCommand) Run(out io.Writer) error {
	record, envelope, err := c.readDocuments()
	if err != nil {
		return err
	}
	replayed, err := c.replayDecision(simulate.Documents{Record: record, Envelope: envelope})
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if err := c.printAnswer(out, record, replayed); err != nil {
		return err
	}
	if len(replayed.Differences) > 0 {
		return errPolicyFound
	}
	return nil
}

// replayDecision decides again. A result is not judged by a policy but takes the decision of its intent.
func (c replayCommand) replayDecision(event simulate.Documents) (simulate.Replayed, error) {
	if event.Record.Policy.Intent != "" {
		intent, err := c.readIntent(event.Record)
		if err != nil {
			return simulate.Replayed{}, err
		}
		return simulate.Replayed{Differences: simulate.ReplayResult(event, intent)}, nil
	}
	p, err := c.readPolicyDocument()
	if err != nil {
		return simulate.Replayed{}, err
	}
	return simulate.Replay(p, event.Record, event.Envelope)
}

// replayAnswer is the JSON output.
type replayAnswer struct {
	EventID     string                `json:"event_id"`
	SequenceNum uint64                `json:"sequence_num"`
	Same        bool                  `json:"same"`
	Decision    string                `json:"decision"`
	RuleID      *string               `json:"rule_id"`
	Differences []simulate.Difference `json:"differences"`
	Formerly    bool                  `json:"formerly,omitzero"` // see simulate.Replayed
	Intent      id.Event              `json:"intent,omitzero"`   // of a result
}

func (c replayCommand) printAnswer(out io.Writer, record *event.Record, replayed simulate.Replayed) error {
	differences := replayed.Differences
	if c.JSON {
		answer := replayAnswer{string(record.EventID), record.SequenceNum, len(differences) == 0,
			record.Policy.Effective.String(), nil, differences, replayed.Formerly, record.Policy.Intent}
		if record.Policy.RuleID != "" {
			answer.RuleID = &record.Policy.RuleID
		}
		return json.MarshalWrite(out, answer, jsontext.Multiline(true))
	}
	for _, d := range differences {
		fmt.Fprintf(out, "%s: the record says %q, the documents say %q\n", d.Member, d.Record, d.Documents)
	}
	if len(differences) > 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "same: %s #%d %s (%s)\n", record.EventID, record.SequenceNum,
		record.Policy.Effective, describeDecider(record, replayed.Formerly))
	return err
}

// describeDecider names the rule or the intent behind a decision.
func describeDecider(record *event.Record, formerly bool) string {
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
