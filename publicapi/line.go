package publicapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// An organization has one log, or a line of logs: each except the newest is frozen and has a successor.

// findInLine returns the first state that match accepts, from state backward in its line. It returns
// fault.NotFound if there is none.
func (s *Server) findInLine(ctx context.Context, state *log.State, match func(*log.State) bool) (*log.State, error) {
	for !match(state) {
		var err error
		if state, err = s.ledgers.Predecessor(ctx, state); err != nil {
			return nil, err
		}
		if state == nil {
			return nil, errNotFound()
		}
	}
	return state, nil
}

// findByOrigin returns the log with an origin: state or an earlier log of its line. If origin is "", it returns state.
func (s *Server) findByOrigin(ctx context.Context, state *log.State, origin id.Origin) (*log.State, error) {
	if origin == "" {
		return state, nil
	}
	return s.findInLine(ctx, state, func(l *log.State) bool { return l.Identity().Origin == origin })
}

// findByNumber returns the log of the line that a path of tiles names: the first one, or a later one
// by its number.
func (s *Server) findByNumber(r *request, state *log.State) (*log.State, error) {
	want, err := numberOfPath(r.Request)
	if err != nil {
		return nil, err
	}
	return s.findInLine(r.Context(), state, func(l *log.State) bool {
		_, number := l.Identity().Origin.Split()
		return number == want
	})
}

// numberOfPath returns the number of a log in its line, from a path of tiles.
func numberOfPath(r *http.Request) (int, error) {
	text := chi.URLParam(r, "number")
	if text == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 || strconv.Itoa(n) != text {
		return 0, errNotFound()
	}
	return n, nil
}

// findHoldingLog returns the newest log of the line that contains an event, and the event's index.
func (s *Server) findHoldingLog(ctx context.Context, state *log.State, event id.Event) (*log.State, id.Index, error) {
	var at id.Index
	var failed error
	found, err := s.findInLine(ctx, state, func(l *log.State) bool {
		at, failed = s.ledgers.Find(ctx, l, event)
		return !fault.Is(failed, fault.NotFound)
	})
	if err == nil {
		err = failed
	}
	return found, at, err
}

// succession is the response of successor: the log that succeeds a frozen log, and its first event, which states the
// succession.
type succession struct {
	Origin   id.Origin `json:"origin"`
	LogKey   string    `json:"log_key"`
	LogIndex id.Index  `json:"log_index"`
	Record   string    `json:"record"`
	Envelope string    `json:"envelope"`
}

// answerSuccessor serves successor below a log's prefix. It returns fault.NotFound if the log has no successor.
func (s *Server) answerSuccessor(r *request) (response, error) {
	state, err := s.byID(r)
	if err != nil {
		return response{}, err
	}
	successor, err := s.ledgers.Successor(r.Context(), state)
	if err != nil {
		return response{}, err
	}
	if successor == nil {
		return response{}, errNotFound()
	}
	first, err := s.ledgers.Event(r.Context(), successor, 0, storage.FieldRecord|storage.FieldEnvelope)
	if err != nil {
		return response{}, err
	}
	return newJSONResponse(succession{successor.Identity().Origin, successor.VerifierKey().String(), 0, string(first.Record),
		string(first.Envelope)}, revalidate)
}
