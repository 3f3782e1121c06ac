package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/verify"
)

// readDocuments reads the record and the envelope.
func (c replayCommand) readDocuments() (*event.Record, *event.Envelope, error) {
	if c.Bundle == "" && c.Record == "" {
		return nil, nil, errors.New("either --bundle, or --record and --envelope are required")
	}
	record, envelope, err := c.readDocumentTexts()
	if err != nil {
		return nil, nil, err
	}
	r, err := event.ParseRecord(record)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: expected the record of an event: %w", cmp.Or(textIf(c.Bundle != "", "--bundle"), "--record"), err)
	}
	e, err := parseEnvelope(envelope)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: expected the envelope of an event: %w", cmp.Or(textIf(c.Bundle != "", "--bundle"), "--envelope"), err)
	}
	return &r, e, nil
}

func (c replayCommand) readDocumentTexts() (record, envelope []byte, err error) {
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
		return nil, nil, fmt.Errorf("--bundle: expected a bundle in %s: %w", c.Bundle, err)
	}
	if b.Record == nil || b.Envelope == nil {
		return nil, nil, fmt.Errorf("%s: the bundle does not disclose record and envelope", c.Bundle)
	}
	return []byte(*b.Record), []byte(*b.Envelope), nil
}

// readPolicyDocument reads the policy, or returns nil if there is none.
func (c replayCommand) readPolicyDocument() (*policy.Policy, error) {
	if c.Policy == "" {
		return nil, nil
	}
	text, err := os.ReadFile(c.Policy)
	if err != nil {
		return nil, err
	}
	document, wrong, err := parsePolicy(stripVersionMembers(text))
	if err != nil || wrong != "" {
		return nil, errors.Join(err, fmt.Errorf("--policy: expected a policy version in %s: %s", c.Policy, wrong))
	}
	return &document, nil
}

// readIntent reads the documents of a result's intent.
func (c replayCommand) readIntent(result *event.Record) (d simulate.Documents, err error) {
	if c.Intent == "" {
		return d, fmt.Errorf("%s is a result, decided by its intent %s: pass the bundle of the intent with --intent",
			result.EventID, result.Policy.Intent)
	}
	text, err := os.ReadFile(c.Intent)
	if err != nil {
		return d, err
	}
	b, err := verify.ParseBundle(text)
	if err != nil {
		return d, fmt.Errorf("--intent: expected a bundle in %s: %w", c.Intent, err)
	}
	if b.Record == nil {
		return d, fmt.Errorf("%s: the bundle does not disclose the record", c.Intent)
	}
	r, err := event.ParseRecord([]byte(*b.Record))
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
