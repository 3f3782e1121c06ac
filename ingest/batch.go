package ingest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/internal/fault"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/web"
)

// postBatch serves POST /v1/ingest/events/batch.
func (s *Server) postBatch(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	lines, err := batchOf(w, r, body)
	if err != nil {
		return err
	}
	batch, err := s.readLines(r.Context(), c, lines)
	if err != nil {
		return err
	}
	if err := s.lines.Enter(r.Context(), c.party(), len(batch)+1); err != nil {
		return err
	}
	defer s.lines.Leave(c.party(), len(batch)+1)
	s.settle(r.Context(), c, pointers(batch))
	s.countRefused(batch)
	requestID := w.Header().Get(web.RequestIDHeader)
	s.logFailures(r.Context(), requestID, failuresOf(batch))
	writeLines(w, requestID, batch)
	return nil
}

// batchOf returns the lines of a body and checks the headers of its request.
func batchOf(w http.ResponseWriter, r *http.Request, body []byte) ([][]byte, error) {
	lines, err := splitLines(body)
	if err != nil {
		return nil, err
	}
	if err := version(w, r); err != nil {
		return nil, err
	}
	if len(r.Header["Idempotency-Key"]) > 0 {
		return nil, fault.New(fault.Invalid, "A batch takes no Idempotency-Key: each line goes by its event_id")
	}
	return lines, nil
}

// chunkLines is how many lines are read by one goroutine in one go: about a
// millisecond's work.
const chunkLines = 16

// readLines reads the events of a batch, several at once. Each of them takes its
// turn with all that the server reads.
func (s *Server) readLines(ctx context.Context, c caller, lines [][]byte) ([]intake, error) {
	ctx, read := s.edge.Tracer.Start(ctx, "read batch")
	defer read.End()
	read.Int("lines", len(lines))
	batch := make([]intake, len(lines))
	for i := range batch {
		batch[i] = intake{server: s, caller: c}
	}
	var group errgroup.Group
	group.SetLimit(s.turns.Workers())
	for from := 0; from < len(lines) && ctx.Err() == nil; from += chunkLines {
		to := min(from+chunkLines, len(lines))
		group.Go(func() error { return s.readChunk(ctx, c, batch[from:to], lines[from:to]) })
	}
	return batch, errors.Join(group.Wait(), ctx.Err())
}

// countRefused counts the refusals in an answer that is 200 as a whole.
func (s *Server) countRefused(batch []intake) {
	for i := range batch {
		if batch[i].fate == refused {
			s.edge.Metrics.Refused(batch[i].err)
		}
	}
}

// readChunk reads the events of some lines. A panic becomes an error, since nobody
// above would recover from it.
func (s *Server) readChunk(ctx context.Context, c caller, events []intake, lines [][]byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("read batch: panic: %v\n%s", p, debug.Stack())
		}
	}()
	runtime.Gosched() // single requests go first
	for i := range events {
		events[i].read(ctx, lines[i])
	}
	s.recall(ctx, c, pointers(events)...)
	return nil
}

func pointers(batch []intake) []*intake {
	events := make([]*intake, len(batch))
	for i := range batch {
		events[i] = &batch[i]
	}
	return events
}

// lineRoom is the length in bytes of a usual line of an answer.
const lineRoom = 256

// writeLines answers with a line for each event, in their order.
func writeLines(w http.ResponseWriter, requestID string, batch []intake) {
	b := make([]byte, 0, lineRoom*len(batch))
	for i := range batch {
		b = strconv.AppendInt(append(b, `{"status_code":`...), int64(batch[i].status()), 10)
		b = append(b, ',')
		if batch[i].fate == refused {
			b = appendError(b, batch[i].err, requestID)
		} else {
			b = batch[i].appendMembers(b)
		}
		b = append(b, "}\n"...)
	}
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(b))}
	answer{http.StatusOK, b}.writeAs(w, web.MediaNDJSON)
}

// appendError appends the members of an error answer.
func appendError(b []byte, err error, requestID string) []byte {
	body := web.BodyOf(err)
	b = jcs.AppendString(append(b, `"error":`...), body.Error)
	if body.Code != "" {
		b = jcs.AppendString(append(b, `,"code":`...), body.Code)
	}
	if web.Status(err) >= http.StatusInternalServerError {
		b = jcs.AppendString(append(b, `,"request_id":`...), requestID)
	}
	return b
}
