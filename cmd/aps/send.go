package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/commandline"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
)

type sendCommand struct {
	File string `arg:"" optional:"" default:"-" help:"File with events, - for standard input. To be able to resend events after a crash, sign them first with aps sign." type:"input" expected:"a file with events, or - for standard input"`
	batchFlags
	flags.Service
	flags.Signer
	flags.Subject
}

func (c *sendCommand) Run(ctx context.Context, s *streams) error {
	if err := c.checkBatchSize(); err != nil {
		return err
	}
	service, err := c.NewRetryingClient(client.Retry{Notify: flags.Notify(s.err)}, c.Subject)
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
	syncs.BeginStep(ctx, "sending", "events")
	if c.File == stdin && commandline.IsTerminal(s.in) {
		syncs.BeginStep(ctx, "", "") // events are typed
	}
	return d.sendAllEvents(ctx, in, c.Batch)
}

// delivery is one run of send.
type delivery struct {
	*streams
	service *client.Client
	flags   flags.Signer
	signer  *client.Signer // nil until the first unsigned event

	closeSigner func()

	sent      int
	refused   int
	table     *commandline.Table // of the outcomes; nil before the first
	first     error              // reason of the first refused event
	kept      int                // events that were not delivered
	firstKept error
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
	case d.kept > 0:
		return &negative{fmt.Errorf("%d of %s not delivered and %d refused: send the input again. The first: %w", d.kept, textcheck.Count(d.sent, "event"), d.refused, d.firstKept)}
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
		syncs.CountWork(ctx, 1)
		if err := d.printOutcome(envelopes[i], o); err != nil && stop == nil {
			stop = fmt.Errorf("event %d: %w", d.sent, err)
		}
	}
	if stop == nil {
		stop = unsigned
	}
	return stop
}

// printOutcome prints the outcome of one event. An error ends the run. An answer that refuses the request is an error only
// if the ingest key is invalid, because no other event would be delivered either.
func (d *delivery) printOutcome(envelope []byte, o client.Outcome) error {
	if o.Err == nil {
		return d.printResult(o.Result)
	}
	var answer *client.Error
	malformed := fault.Is(o.Err, fault.Invalid) || fault.Is(o.Err, fault.TooLarge) // not sent at all
	if !isRefusal(o.Err) && !malformed || errors.As(o.Err, &answer) && answer.Status == http.StatusUnauthorized {
		return o.Err
	}
	name := envelopeEventID(envelope)
	if !client.IsRefused(o.Err) { // not the service's answer, or not about the event
		d.kept++
		d.firstKept = cmp.Or(d.firstKept, o.Err)
		return d.printRefusal(name, "kept", o.Err)
	}
	d.refused++
	d.first = cmp.Or(d.first, o.Err)
	return d.printRefusal(name, "refused", o.Err)
}

func (d *delivery) signedEnvelope(value []byte) ([]byte, error) {
	value = unwrapRefused(value)
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

// printRow prints the outcome of an event.
func (d *delivery) printRow(format string, cells ...any) error {
	if d.table == nil {
		d.table = commandline.NewTable(d.out, "STATUS", "EVENT", "NUMBER", "HASH", "TIGHTENED TO", "BY", "RULE")
	}
	return d.table.PrintRow(format, cells...)
}

func (d *delivery) printResult(r client.Result) error {
	switch {
	case d.json:
		return d.printJSON(r)
	case r.Status != client.Created:
		return d.printRow("%-8s  %s", r.Status, r.EventID)
	case r.Tightened():
		return d.printRow("%-8s  %s  #%d  %s  tightened to %s by %s, rule %s", r.Status, r.EventID, r.Sequence,
			r.EventHash, r.Decision, textcheck.Printable(r.PolicyID), textcheck.Printable(r.RuleID))
	}
	return d.printRow("%-8s  %s  #%d  %s", r.Status, r.EventID, r.Sequence, r.EventHash)
}

// unwrapRefused returns the event of a line of a queue's file of refused events, {"status", "code", "message", "event"}. It
// returns other values as they are.
func unwrapRefused(value []byte) []byte {
	var line struct {
		Status  int            `json:"status"`
		Code    string         `json:"code"`
		Message string         `json:"message"`
		Event   jsontext.Value `json:"event"`
	}
	if json.Unmarshal(value, &line, json.RejectUnknownMembers(true)) != nil || line.Event.Kind() != '{' {
		return value
	}
	return line.Event
}

// refusedLine is an event in JSON output that was not stored: refused, or kept because it was not delivered.
type refusedLine struct {
	EventID    string `json:"event_id,omitzero"`
	Status     string `json:"status"`
	StatusCode int    `json:"status_code,omitzero"` // 0 if it was not sent
	Code       string `json:"code,omitzero"`
	Error      string `json:"error"`
	RequestID  string `json:"request_id,omitzero"`
}

func (d *delivery) printRefusal(name id.Event, status string, err error) error {
	if !d.json {
		return d.printRow("%-8s  %s  %s", status, name, err)
	}
	out := refusedLine{EventID: string(name), Status: status, Error: err.Error()}
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
