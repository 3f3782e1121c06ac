package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// shop is the API. It trusts no agent with money: a refund needs a grant, which it checks offline.
type shop struct {
	service      *client.Client
	slug         id.Slug
	organization id.Organization

	mu   sync.Mutex
	used map[grant.Nonce]bool // with the refunds, in a database
}

// ServeHTTP answers.
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == "GET":
		fmt.Fprint(w, `{"status":"delivered","paid_usd":84.5}`)
	case r.Method == "POST" && r.URL.Path == "/refunds":
		if err := s.checkRefundGrant(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		fmt.Fprint(w, `{"refunded":true}`)
	default:
		fmt.Fprint(w, `{}`)
	}
}

func (s *shop) checkRefundGrant(r *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return err
	}
	key, err := s.fetchGrantKey(r.Context())
	if err != nil {
		return err
	}
	note, err := base64.StdEncoding.DecodeString(r.Header.Get(guard.GrantHeader))
	if err != nil {
		return err
	}
	g, err := grant.Open(note, key)
	if err != nil {
		return err
	}
	// The approvers approved a tool and a payload, so the same function describes this request.
	described, err := describeRequest(r, body)
	if err != nil {
		return err
	}
	payload, err := base64.StdEncoding.DecodeString(r.Header.Get(guard.CallHeader))
	if err != nil {
		return err
	}
	if err := guard.CheckCall(payload, described.Payload); err != nil {
		return err
	}
	action, err := grant.NewAction(s.organization, g.Agent, described.Tool, payload)
	if err != nil {
		return err
	}
	if err := g.Check(action.Digest(), id.InstantOf(time.Now())); err != nil {
		return err
	}
	return s.useGrantOnce(g.Nonce)
}

// useGrantOnce returns an error if a grant was used before, which the grant itself can't show.
func (s *shop) useGrantOnce(n grant.Nonce) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[n] {
		return errors.New("the grant was used before")
	}
	if s.used == nil {
		s.used = make(map[grant.Nonce]bool)
	}
	s.used[n] = true
	return nil
}

// fetchGrantKey returns the key that signs the organization's grants. A real shop has it
// in its configuration, because the service's answer is unverified.
func (s *shop) fetchGrantKey(ctx context.Context) (tlog.VerifierKey, error) {
	keys, err := s.service.Keys(ctx, s.slug)
	if err != nil {
		return tlog.VerifierKey{}, err
	}
	for _, k := range keys {
		if k.Use == "grant" {
			return tlog.ParseVerifierKey(k.VerifierKey)
		}
	}
	return tlog.VerifierKey{}, errors.New("the organization has given no grant yet")
}
