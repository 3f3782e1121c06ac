package ingest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/fault"
	"github.com/agentledger/agentledger/internal/web"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/org"
)

// replayTries bounds how often an event waits for another one of its name. One
// round is enough unless that other one fails.
const replayTries = 8

// postEvent serves POST /v1/ingest/events.
func (s *Server) postEvent(w http.ResponseWriter, r *http.Request) error {
	c, err := s.enter(r, org.ScopeEvents, "Invalid API key")
	if err != nil {
		return err
	}
	body, err := web.ReadBody(r, int64(s.maxBytes))
	if err != nil {
		return err
	}
	if err := version(w, r); err != nil {
		return err
	}
	key, err := idempotencyKey(r.Header)
	if err != nil {
		return err
	}
	a, err := s.take(r.Context(), c, body, key)
	if err != nil {
		return err
	}
	a.write(w)
	return nil
}

// take is the way of one event from its text to its answer. It keeps body. key is
// the Idempotency-Key, "" for none.
func (s *Server) take(ctx context.Context, c caller, body []byte, key string) (answer, error) {
	e, err := event.Parse(body, event.Options{MaxBytes: s.maxBytes, Organization: c.Organization})
	if err != nil {
		return answer{}, err
	}
	if err := c.speaksFor(e.AgentID); err != nil {
		return answer{}, err
	}
	form, err := s.verify(ctx, c.state, e)
	if err != nil {
		return answer{}, err
	}
	j := judgement{server: s, caller: c, envelope: e, form: form, idempotencyKey: key}
	for range replayTries {
		known, err := s.ledgers.Replayed(ctx, c.Tenant, e.EventID, key, e.Digest)
		if err != nil {
			return answer{}, err
		}
		if known {
			return replayed(e.EventID), nil
		}
		receipts, err := s.ledgers.Append(ctx, c.Tenant, j.prepare)
		if errors.Is(err, log.ErrDuplicate) {
			continue
		}
		if err != nil {
			return answer{}, err
		}
		return created(e.EventID, receipts[0], &j.policy), nil
	}
	return answer{}, &fault.Error{Kind: fault.Overloaded, Code: "overloaded", RetryAfter: time.Second,
		Message: "Too many requests for the same event"}
}

// verify finds the key that an envelope names, in whatever state it is, and
// checks the signature.
func (s *Server) verify(ctx context.Context, state *log.State, e *event.Envelope) (event.Form, error) {
	key, err := s.agents.SigningKey(ctx, state, e.AgentID, e.KeyID)
	if fault.Is(err, fault.NotFound) {
		return 0, fault.Wrap(fault.Invalid, "Unknown signing key", err)
	}
	if err != nil {
		return 0, err
	}
	form, ok := e.Verify(key.Public)
	if !ok {
		return 0, fault.New(fault.Invalid, "Invalid signature")
	}
	return form, nil
}
