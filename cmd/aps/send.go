package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
)

type sendCommand struct {
	File string `arg:"" optional:"" default:"-" help:"File with events, - for standard input. To be able to resend events after a crash, sign them first with aps sign."`
	batchFlags
	flags.Service
	flags.Signer
}

func (c *sendCommand) Run(ctx context.Context, s *streams) error {
	if err := c.checkBatchSize(); err != nil {
		return err
	}
	service, err := c.NewClient(s.err)
	if err != nil {
		return err
	}
	in, err := s.openInput(c.File)
	if err != nil {
		return err
	}
	defer in.Close()
	d := delivery{streams: s, service: service, flags: c.Signer, closeSigner: func() {}}
	defer func() { d.closeSigner() }()
	return d.sendAllEvents(ctx, in, c.Batch)
}

// delivery is one run of send.
type delivery struct {
	*streams
	service *client.Client
	flags   flags.Signer
	signer  *client.Signer // nil until the first unsigned event

	closeSigner func()

	sent    int
	refused int
	first   error // reason of the first refused event
}

// sendAllEvents sends the events of in, at most batch per request.
func (d *delivery) sendAllEvents(ctx context.Context, in io.Reader, batch int) error {
	for group, err := range readGroups(in, batch) {
		if err != nil {
			return err
		}
		if err := d.sendGroup(ctx, group); err != nil {
			return err
		}
	}
	switch {
	case d.sent == 0:
		return errors.New("no event to send")
	case d.refused > 0:
		return &negative{fmt.Errorf("%d of %s refused, the first: %w", d.refused, textcheck.Count(d.sent, "event"), d.first)}
	}
	return nil
}

// sendGroup sends a group of events, up to the first that can't be signed, and prints the outcome of each. An error ends
// the run.
func (d *delivery) sendGroup(ctx context.Context, group [][]byte) error {
	envelopes := make([][]byte, 0, len(group))
	var unsigned error
	for _, value := range group {
		envelope, err := d.signedEnvelope(value)
		if err != nil {
			unsigned = fmt.Errorf("event %d: %w", d.sent+len(envelopes)+1, err)
			break
		}
		envelopes = append(envelopes, envelope)
	}
	var stop error
	for i, o := range sendEnvelopes(ctx, d.service, envelopes) {
		d.sent++
		if err := d.printOutcome(envelopes[i], o); err != nil && stop == nil {
			stop = fmt.Errorf("event %d: %w", d.sent, err)
		}
	}
	if stop == nil {
		stop = unsigned
	}
	return stop
}

// printOutcome prints the outcome of one event. An error ends the run. A refusal is an error only if it concerns the ingest
// key, because all other events would be refused too.
func (d *delivery) printOutcome(envelope []byte, o client.Outcome) error {
	if o.Err == nil {
		return d.printResult(o.Result)
	}
	var answer *client.Error
	malformed := fault.Is(o.Err, fault.Invalid) || fault.Is(o.Err, fault.TooLarge) // not sent at all
	if !isRefusal(o.Err) && !malformed || errors.As(o.Err, &answer) && answer.Status == http.StatusUnauthorized {
		return o.Err
	}
	if d.refused++; d.first == nil {
		d.first = o.Err
	}
	return d.printRefusal(envelopeEventID(envelope), o.Err)
}

func (d *delivery) signedEnvelope(value []byte) ([]byte, error) {
	if hasSignature(value) {
		return value, nil
	}
	if d.signer == nil {
		signer, closeSigner, err := d.flags.OpenSigner()
		if err != nil {
			return nil, err
		}
		d.signer, d.closeSigner = signer, closeSigner
	}
	return completeAndSign(d.signer, value, event.FormDigest)
}

func (d *delivery) printResult(r client.Result) error {
	switch {
	case d.json:
		return d.printJSON(r)
	case r.Status != client.Created:
		return d.printLine("%-8s  %s", r.Status, r.EventID)
	case r.Tightened():
		return d.printLine("%-8s  %s  #%d  %s  tightened to %s by %s, rule %s", r.Status, r.EventID, r.Sequence,
			r.EventHash, r.Decision, textcheck.Printable(r.PolicyID), textcheck.Printable(r.RuleID))
	}
	return d.printLine("%-8s  %s  #%d  %s", r.Status, r.EventID, r.Sequence, r.EventHash)
}

// refusedLine is a refused event in JSON output.
type refusedLine struct {
	EventID    string `json:"event_id,omitzero"`
	Status     string `json:"status"`
	StatusCode int    `json:"status_code,omitzero"` // 0 if it was not sent
	Code       string `json:"code,omitzero"`
	Error      string `json:"error"`
	RequestID  string `json:"request_id,omitzero"`
}

func (d *delivery) printRefusal(name id.Event, err error) error {
	if !d.json {
		return d.printLine("%-8s  %s  %s", "refused", name, err)
	}
	out := refusedLine{EventID: string(name), Status: "refused", Error: err.Error()}
	var answer *client.Error
	if errors.As(err, &answer) {
		out.StatusCode, out.Code = answer.Status, answer.Code
		out.Error, out.RequestID = answer.Message, answer.RequestID
	}
	return d.printJSON(out)
}

// envelopeEventID returns the ID of an envelope, or "" if it is malformed.
func envelopeEventID(envelope []byte) id.Event {
	e, err := event.Parse(envelope, event.Options{MaxBytes: len(envelope)})
	if err != nil {
		return ""
	}
	return e.EventID
}
