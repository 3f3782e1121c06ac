package ingest

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/log"
)

// postBatch serves POST /v1/ingest/events/batch.
func (s *Server) postBatch(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	lines, err := s.splitBatch(w, r, body)
	if err != nil {
		return err
	}
	requested, err := requestsApproval(r.Header, c)
	if err != nil {
		return err
	}
	batch, err := s.takeBatch(r.Context(), c, lines, s.openSubjectToken(r.Context(), c, r.Header))
	if err != nil {
		return err
	}
	s.answerIntents(r.Context(), c, pointersToAll(batch), requested)
	s.countRefused(batch)
	requestID := w.Header().Get(edge.RequestIDHeader)
	s.logFailures(r.Context(), requestID, failuresIn(batch))
	s.writeLines(w, requestID, batch)
	return nil
}

// moveError returns log.ErrNotOwner if the ledger of a batch moved to another node before any line was stored, so that
// the batch can be forwarded as a whole. Otherwise each line has its own response.
func moveError(batch []incomingEvent) (moved error) {
	for i := range batch {
		if in := &batch[i]; in.fate == created {
			return nil
		} else if errors.Is(in.err, log.ErrNotOwner) {
			moved = in.err
		}
	}
	return moved
}

// takeBatch reads a batch and appends it. As soon as the first lines are read, it waits for capacity for all lines, so
// that a batch is accepted or refused as a whole. If it returns an error, no line is stored, and no append is in
// flight. token may be nil; it proves the lines that state its subject.
func (s *Server) takeBatch(ctx context.Context, c caller, lines [][]byte, token *subjectToken) ([]incomingEvent, error) {
	r := s.startReading(ctx, c, lines, token)
	defer func() { <-r.done }()
	if len(r.portions) > 0 {
		if err := r.awaitPortion(ctx, &r.portions[0]); err != nil {
			return nil, err
		}
	}
	if err := s.lines.Acquire(ctx, c.share, len(lines)+1); err != nil {
		return nil, err
	}
	defer s.lines.Release(c.share, len(lines)+1)
	if err := s.settleLines(ctx, c, r); err != nil {
		return r.batch, r.refuseOpen(err)
	}
	return r.batch, moveError(r.batch)
}

// splitBatch returns the lines of a body and checks the headers of the request.
func (s *Server) splitBatch(w http.ResponseWriter, r *http.Request, body []byte) ([][]byte, error) {
	lines, err := splitLines(body)
	if err != nil {
		return nil, err
	}
	if err := s.checkVersion(w, r); err != nil {
		return nil, err
	}
	if len(r.Header["Idempotency-Key"]) > 0 {
		return nil, fault.New(fault.Invalid, "Idempotency-Key is not allowed on a batch: each line is deduplicated by event_id")
	}
	if len(r.Header[replayOnlyHeader]) > 0 {
		return nil, fault.New(fault.Invalid, "X-Replay-Only is not allowed on a batch: send the event alone")
	}
	return lines, nil
}

// countRefused counts the refused lines of a response whose status is 200.
func (s *Server) countRefused(batch []incomingEvent) {
	for i := range batch {
		if batch[i].fate == refused {
			s.edge.Metrics.CountRefusal(batch[i].err)
		}
	}
}

func pointersToAll(batch []incomingEvent) []*incomingEvent {
	events := make([]*incomingEvent, len(batch))
	for i := range batch {
		events[i] = &batch[i]
	}
	return events
}

// lineSize is the length in bytes of a typical line of a response.
const lineSize = 256

// writeLines writes a response with one line for each event, in order.
func (s *Server) writeLines(w http.ResponseWriter, requestID string, batch []incomingEvent) {
	b := make([]byte, 0, lineSize*len(batch))
	for i := range batch {
		b = strconv.AppendInt(append(b, `{"status_code":`...), int64(batch[i].httpStatus()), 10)
		b = append(b, ',')
		if batch[i].fate == refused {
			b = appendError(b, batch[i].err, requestID)
		} else {
			b = batch[i].appendMembers(b)
		}
		b = append(b, "}\n"...)
	}
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(b))}
	s.values.writeAnswer(w, answer{http.StatusOK, b}, s.values.lines)
}

// appendError appends the members of an error response.
func appendError(b []byte, err error, requestID string) []byte {
	body := edge.DescribeError(err)
	b = jcs.AppendString(append(b, `"error":`...), body.Error)
	if body.Code != "" {
		b = jcs.AppendString(append(b, `,"code":`...), body.Code)
	}
	if body.Details != (edge.Details{}) {
		details, _ := json.Marshal(body.Details) // contains only strings, so encoding it cannot fail
		b = append(append(b, ','), details[1:len(details)-1]...)
	}
	if edge.StatusOf(err) >= http.StatusInternalServerError {
		b = jcs.AppendString(append(b, `,"request_id":`...), requestID)
	}
	return b
}
