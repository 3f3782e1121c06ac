package client

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"

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
		lines = append(lines, batchLine{text: e.Canonical, event: e.EventID, outcome: &outcomes[i]})
	}
	for len(lines) > 0 {
		n := linesPerRequest(lines)
		if err := c.sendBatchLines(ctx, lines[:n]); err != nil {
			failUndecided(lines, err)
			break
		}
		lines = lines[n:]
	}
	return outcomes
}

// batchLine is an envelope in a batch. It is done once its outcome is set.
type batchLine struct {
	text    []byte // canonical, so it contains no LF
	event   id.Event
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
		if size += len(lines[n].text) + 1; n == maxBatchLines || size > maxBatchBytes {
			return n
		}
	}
	return len(lines)
}

// sendBatchLines sends lines in one request. It sends lines without a final answer again until
// there are none left or the retries are exhausted.
func (c *Client) sendBatchLines(ctx context.Context, lines []batchLine) error {
	for try := 1; ; try++ {
		body, err := c.sendRequestOnce(ctx, call{
			method: http.MethodPost, path: "/v1/ingest/events/batch", body: encodeLines(lines),
			media: mediaNDJSON, ingest: true,
		})
		if err == nil {
			lines, err = readBatchAnswer(body, lines)
		}
		if err == nil {
			return nil
		}
		if err := c.retry.waitForNext(ctx, try, err); err != nil {
			return err
		}
	}
}

func encodeLines(lines []batchLine) []byte {
	size := 0
	for i := range lines {
		size += len(lines[i].text) + 1
	}
	body := make([]byte, 0, size)
	for i := range lines {
		body = append(append(body, lines[i].text...), '\n')
	}
	return body
}

// readBatchAnswer sets the final outcomes. It returns the lines that may be sent again and the
// error of the first such line.
func readBatchAnswer(body []byte, lines []batchLine) (open []batchLine, why error) {
	answers := bytes.Split(bytes.TrimSuffix(body, []byte{'\n'}), []byte{'\n'})
	if len(answers) != len(lines) {
		return lines, malformedAnswer(fmt.Errorf("%d results for %d lines", len(answers), len(lines)))
	}
	for i, answer := range answers {
		r, err := readBatchLine(answer, lines[i].event)
		if err != nil && isRetryable(err) {
			open = append(open, lines[i])
			why = cmp.Or(why, err)
			continue
		}
		if err != nil {
			err = fmt.Errorf("send event: %w", err)
		}
		*lines[i].outcome = Outcome{Result: r, Err: err}
	}
	return open, why
}

func readBatchLine(answer []byte, sent id.Event) (Result, error) {
	var l struct {
		Status int `json:"status_code"`
		errorBody
	}
	if err := decodeAnswer(answer, &l); err != nil {
		return Result{}, err
	}
	if l.Status/100 == 2 {
		return parseSendResult(answer, sent)
	}
	return Result{}, l.errorBody.toStatusError(l.Status)
}
