package ingest

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"github.com/agentledger/agentledger/fault"
)

// failure is one reason why lines of a batch failed with a 5xx status.
type failure struct {
	err   error // of the first such line
	first int   // number of that line, from 1
	lines int
}

// failuresIn returns the failures of a batch, one for each message in the response.
func failuresIn(batch []incomingEvent) []failure {
	var found []failure
	for i := range batch {
		in := &batch[i]
		if in.fate != refused || in.httpStatus() < http.StatusInternalServerError {
			continue
		}
		message := fault.Of(in.err).Message
		at := slices.IndexFunc(found, func(f failure) bool { return fault.Of(f.err).Message == message })
		if at < 0 {
			at = len(found)
			found = append(found, failure{err: in.err, first: i + 1})
		}
		found[at].lines++
	}
	return found
}

// logFailures logs the causes, because the request itself is logged with status 200.
func (s *Server) logFailures(ctx context.Context, requestID string, failures []failure) {
	if s.edge.Logger == nil {
		return
	}
	for _, f := range failures {
		level := slog.LevelWarn
		if fault.Is(f.err, fault.Internal) {
			level = slog.LevelError
		}
		s.edge.Logger.LogAttrs(ctx, level, "batch lines failed", slog.String("request_id", requestID),
			slog.Int("lines", f.lines), slog.Int("first_line", f.first), slog.String("err", f.err.Error()))
	}
}
