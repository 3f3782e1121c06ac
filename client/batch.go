package client

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// Limits of the service for one request.
const (
	maxBatchLines = 1000
	maxBatchBytes = 8 << 20
)

// Outcome is the result of one envelope of a batch, as Send would have returned it.
type Outcome struct {
	Result Result // zero if Err is set
	Err    error
}

// SendBatch is Send for many signed envelopes, in as few requests as the service allows. The
// outcomes are in the order of envelopes. A rejected envelope does not prevent the others from
// being stored. Events are stored in the order of envelopes, except for those that the service
// could not accept at first: they are sent again after the others.
//
// After a request that failed as a whole, SendBatch makes no further request, and the error is the
// outcome of every envelope that has none yet.
func (c *Client) SendBatch(ctx context.Context, envelopes [][]byte) []Outcome {
	outcomes := make([]Outcome, len(envelopes))
	lines := make([]batchLine, 0, len(envelopes))
	for i, envelope := range envelopes {
		e, err := event.Parse(envelope, event.Options{MaxBytes: maxBatchBytes - 1})
		if err != nil {
			outcomes[i].Err = fmt.Errorf("send event: %w", err)
			continue
		}
		lines = append(lines, batchLine{event: e, outcome: &outcomes[i]})
	}
	for most := maxBatchLines; len(lines) > 0; {
		n := min(most, linesPerRequest(lines))
		err := c.sendBatchLines(ctx, lines[:n])
		if n > 1 && isRefusedTogether(err) {
			most = n / 2
			lines = slices.DeleteFunc(lines, func(l batchLine) bool { return !l.isUndecided() })
			continue
		}
		if err != nil {
			failUndecided(lines, err)
			break
		}
		lines = lines[n:]
	}
	return outcomes
}

// batchLine is an envelope in a batch. It is done once its outcome is set.
type batchLine struct {
	event   *event.Envelope // canonical, so it contains no LF
	outcome *Outcome
}

func (l *batchLine) isUndecided() bool { return l.outcome.Err == nil && l.outcome.Result.Status == "" }

// failUndecided sets the outcome of all lines that have none.
func failUndecided(lines []batchLine, err error) {
	for i := range lines {
		if lines[i].isUndecided() {
			lines[i].outcome.Err = fmt.Errorf("send event: %w", err)
		}
	}
}

// linesPerRequest returns how many of the lines fit into one request.
func linesPerRequest(lines []batchLine) int {
	size := 0
	for n := range lines {
		if size += len(lines[n].event.Canonical) + 1; n == maxBatchLines || size > maxBatchBytes {
			return n
		}
	}
	return len(lines)
}

// sendBatchLines sends lines in one request. It sends lines without a final answer again until
// there are none left or the retries are exhausted.
func (c *Client) sendBatchLines(ctx context.Context, lines []batchLine) error {
	for try := 1; ; try++ {
		events := make([]*event.Envelope, len(lines))
		for i, l := range lines {
			events[i] = l.event
		}
		outcomes, err := c.sendBatchOnce(ctx, events)
		if err == nil {
			lines, err = settle(lines, outcomes)
		}
		if err == nil {
			return nil
		}
		if err := c.retry.waitForNext(ctx, try, err, isRetryableEvent); err != nil {
			return err
		}
	}
}

// settle sets the outcomes that are final. It returns the lines that may be sent again and the
// error of the first such line.
func settle(lines []batchLine, outcomes []Outcome) (open []batchLine, why error) {
	for i, o := range outcomes {
		if o.Err != nil && isRetryableEvent(o.Err) {
			open = append(open, lines[i])
			why = cmp.Or(why, o.Err)
			continue
		}
		if o.Err != nil {
			o.Err = fmt.Errorf("send event: %w", o.Err)
		}
		*lines[i].outcome = o
	}
	return open, why
}

// sendBatchOnce sends events in one request, once, and returns the outcome of each. An error is about
// none of them.
func (c *Client) sendBatchOnce(ctx context.Context, events []*event.Envelope) ([]Outcome, error) {
	answer, err := c.sendRequestOnce(ctx, call{
		method: http.MethodPost, path: "/v1/ingest/events/batch", body: encodeLines(events),
		media: mediaNDJSON, ingest: true, proves: true,
	})
	if refused, ok := errors.AsType[*Error](err); ok && IsRefused(err) {
		refused.Proved = false
	}
	if err != nil {
		return nil, err
	}
	return readBatchAnswer(answer, events)
}

// readBatchAnswer returns the outcome of each event of a batch. A line with an error names no event,
// so if another line is not about its event, the lines may have changed places, and none proves that
// an event was refused.
func readBatchAnswer(answer received, events []*event.Envelope) ([]Outcome, error) {
	answers := bytes.Split(bytes.TrimSuffix(answer.body, []byte{'\n'}), []byte{'\n'})
	if len(answers) != len(events) {
		return nil, malformedAnswer(fmt.Errorf("%d results for %d lines", len(answers), len(events)))
	}
	outcomes := make([]Outcome, len(events))
	displaced := false
	for i, line := range answers {
		outcomes[i].Result, outcomes[i].Err = readBatchLine(line, answer.requestID, events[i].EventID)
		displaced = displaced || errors.Is(outcomes[i].Err, ErrAnswer)
	}
	for _, o := range outcomes {
		if refused, ok := errors.AsType[*Error](o.Err); ok && displaced {
			refused.Proved = false
		}
	}
	return outcomes, nil
}

func encodeLines(events []*event.Envelope) []byte {
	size := 0
	for _, e := range events {
		size += len(e.Canonical) + 1
	}
	body := make([]byte, 0, size)
	for _, e := range events {
		body = append(append(body, e.Canonical...), '\n')
	}
	return body
}

func readBatchLine(answer []byte, requestID string, sent id.Event) (Result, error) {
	var l struct {
		Status int `json:"status_code"`
		errorBody
	}
	if err := decodeAnswer(answer, &l); err != nil {
		return Result{}, err
	}
	if l.Status == 0 {
		return Result{}, malformedAnswer(errors.New("a line without status_code"))
	}
	if l.Status/100 == 2 {
		return parseSendResult(answer, sent)
	}
	return Result{}, l.errorBody.toStatusError(l.Status, requestID)
}
