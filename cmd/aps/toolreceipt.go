package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// toolReceipt is the verdict on the receipt of a tool in an event.
type toolReceipt struct {
	// OK is whether one of the tools' keys signed it for the act that the event is the result of. Absent if nothing is known.
	OK        *bool                `json:"ok,omitzero"`
	Confirmed *verify.Confirmation `json:"confirmed,omitzero"` // if OK
	Error     string               `json:"error,omitzero"`     // why it is wrong, or why nothing is known
}

// maxToolKeys bounds the keys of tools.
const maxToolKeys = 256

func (c *verifyCommand) readToolKeys() ([]tlog.VerifierKey, error) {
	if len(c.ToolKey) > maxToolKeys {
		return nil, fmt.Errorf("--tool-key may be given at most %d times", maxToolKeys)
	}
	if c.Intent != "" && len(c.ToolKey) == 0 {
		return nil, errors.New("--intent needs --tool-key")
	}
	var keys []tlog.VerifierKey
	for _, text := range c.ToolKey {
		key, err := tlog.ParseVerifierKey(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("--tool-key: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// checkToolReceipt returns the verdict on the receipt in a proved bundle, or nil if the bundle shows none.
func (c *verifyCommand) checkToolReceipt(ctx context.Context, s *streams, b *verify.Bundle, trusted auditorTrust, tools []tlog.VerifierKey) (
	*toolReceipt, error) {
	record, result := readProvedEvent(b)
	if result == nil || verify.FindToolReceipt(result) == "" {
		return nil, nil
	}
	if len(tools) == 0 {
		return &toolReceipt{Error: "no key of the tool is given"}, nil
	}
	var action id.Hash
	if record.Policy.Intent != "" && (c.Intent != "" || c.URL != "") {
		var err error
		if action, err = c.readIntent(ctx, s, record, trusted); err != nil {
			return nil, err
		}
	}
	confirmed, err := verify.ConfirmAct(result, record.Policy.Intent, action, tools)
	r, ok := &toolReceipt{}, err == nil
	switch {
	case errors.Is(err, verify.ErrUnknownTool):
		r.Error = err.Error()
	case errors.Is(err, verify.ErrUnknownAct) && record.Policy.Intent == "":
		r.Error = "the event is not the result of an intent, so nothing shows which act the receipt is for"
	case errors.Is(err, verify.ErrUnknownAct):
		r.Error = fmt.Sprintf("signed by %s with status %d, and which act it is for is not known without the envelope of the intent %s",
			confirmed.By, confirmed.Status, record.Policy.Intent)
	case err != nil:
		r.Error = err.Error()
		r.OK = &ok
	default:
		r.OK, r.Confirmed = &ok, &confirmed
	}
	return r, nil
}

// readProvedEvent returns the record and the envelope of a proved bundle. The envelope is nil unless both are disclosed.
func readProvedEvent(b *verify.Bundle) (event.Record, *event.Envelope) {
	if b.Record == nil || b.Envelope == nil {
		return event.Record{}, nil
	}
	record, err := event.ParseRecord([]byte(*b.Record))
	if err != nil {
		return event.Record{}, nil
	}
	e, err := event.Parse([]byte(*b.Envelope), event.Options{MaxBytes: len(*b.Envelope), Server: true})
	if err != nil {
		return event.Record{}, nil
	}
	return record, e
}

// readIntent returns the digest of the act whose intent the record of a result names, from the bundle of the intent, which must be of
// the same log and proved under the same keys. The digest is zero if the envelope is not disclosed.
func (c *verifyCommand) readIntent(ctx context.Context, s *streams, result event.Record, trusted auditorTrust) (id.Hash, error) {
	var text []byte
	var err error
	if c.Intent != "" {
		text, err = s.readInput(c.Intent, maxProven)
	} else {
		text, err = c.fetchEvent(ctx, s, result.Policy.Intent)
	}
	if err != nil {
		return id.Hash{}, fmt.Errorf("--intent: %w", err)
	}
	b, err := verify.ParseBundle(text)
	if err != nil {
		return id.Hash{}, fmt.Errorf("--intent: %w", err)
	}
	if proved := verify.Check(b, trusted.bundleOptions(b)); !proved.OK {
		return id.Hash{}, fmt.Errorf("--intent: not proved: %s", textcheck.Printable(proved.Errors[0]))
	}
	if b.Record != nil && (b.Origin != result.Origin || b.EventID != result.Policy.Intent) {
		return id.Hash{}, fmt.Errorf("--intent: expected the bundle of the event %s", textcheck.Printable(string(result.Policy.Intent)))
	}
	_, e := readProvedEvent(b)
	if e == nil {
		return id.Hash{}, nil
	}
	return grant.ActionOf(e).WithoutSubject().Digest(), nil
}

func (r *toolReceipt) isWrong() bool { return r != nil && isFalse(r.OK) }

// checkConfirmed returns an error if a tool's key was given and the act is not confirmed.
func (r *toolReceipt) checkConfirmed(wanted, disclosed bool) error {
	switch {
	case !wanted || r != nil && r.OK != nil:
		return nil
	case r != nil:
		return fmt.Errorf("can't tell whether the tool did it: the receipt: %s", textcheck.Printable(r.Error))
	case !disclosed:
		return errors.New("can't tell whether the tool did it: the envelope is not disclosed")
	}
	return errors.New("can't tell whether the tool did it: the event has no receipt of a tool")
}

// line describes the verdict. Everything else in the event is what the agent says.
func (r *toolReceipt) line() string {
	words := "the tool's own statement about the act, unchecked: " + textcheck.Printable(r.Error)
	switch {
	case r.isWrong():
		return "FAIL  receipt     of the tool: " + textcheck.Printable(r.Error)
	case r.OK == nil:
		return "--    receipt     " + words
	}
	words = fmt.Sprintf("confirmed by %s: it answered with status %d at %s", textcheck.Printable(r.Confirmed.By), r.Confirmed.Status, r.Confirmed.At)
	if r.Confirmed.Approval == "" {
		words += ", and checked no grant"
	}
	return "ok    receipt     " + words
}
