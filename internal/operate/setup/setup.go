// Package setup makes the first organization of an empty service and its owner, for the
// person who holds a token that only the operator has seen.
//
// Invariants:
//
//   - There is a token only while no organization exists. Strangers can't set the service up,
//     however early they come.
//   - A token lives for 30 minutes in the memory of one process. A newer one, a restart and a
//     setup that succeeded end it.
//   - Of several calls with one token at most one makes an organization.
//   - A refused request, for example one with a common password, leaves the token as it is.
package setup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/provision"
)

// Life is how long a token is good.
const Life = 30 * time.Minute

// tokenSize is the number of random bytes of a token.
const tokenSize = 32

// Store tells the ledgers that exist (package storage).
type Store interface {
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}

// Provisioner makes organizations (package provision).
type Provisioner interface {
	CreateOrganization(ctx context.Context, r provision.Request) (*provision.Result, error)
}

// Setup is the first run of a service. Store and Provisioner are required; its methods may
// be called concurrently.
type Setup struct {
	Store       Store
	Provisioner Provisioner
	Clock       func() time.Time // default: time.Now
	ReadOnly    bool             // nothing can be written: there is no token

	mu    sync.Mutex
	hash  [sha256.Size]byte // of the token
	until time.Time         // the token's end; zero: there is none
}

// NewToken returns a new token in place of any, and "" when there is an organization or nothing can
// be written.
func (s *Setup) NewToken(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Time{}
	empty, err := s.storeIsEmpty(ctx)
	if err != nil || !empty || s.ReadOnly {
		return "", err
	}
	var secret [tokenSize]byte
	rand.Read(secret[:]) // never fails since Go 1.24
	token := base64.RawURLEncoding.EncodeToString(secret[:])
	s.hash, s.until = sha256.Sum256([]byte(token)), s.currentTime().Add(Life)
	return token, nil
}

// PrintURL prints the URL by which the operator sets up a service without organizations, with a
// new token. The token is in no log.
func (s *Setup) PrintURL(ctx context.Context, out io.Writer, logger *slog.Logger, publicURL string) {
	token, err := s.NewToken(ctx)
	if err != nil {
		logger.Warn("setup: no URL was printed", "err", err)
	}
	if token == "" {
		return
	}
	fmt.Fprintf(out, "set up the service within %.0f minutes, once: %s/setup#token=%s\n", Life.Minutes(),
		strings.TrimRight(publicURL, "/"), token)
}

// FoundOrganization makes the organization of the holder of the token. fault.Conflict with
// code set_up when there is an organization, fault.Unauthorized for another
// token, and the errors of provision.CreateOrganization.
func (s *Setup) FoundOrganization(
	ctx context.Context, token string, r provision.Request,
) (*provision.Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	empty, err := s.storeIsEmpty(ctx)
	if err != nil {
		return nil, err
	}
	if !empty {
		return nil, &fault.Error{Kind: fault.Conflict, Code: "set_up", Message: "The service is set up already"}
	}
	given := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(given[:], s.hash[:]) != 1 || !s.currentTime().Before(s.until) {
		return nil, fault.New(fault.Unauthorized, "Invalid setup token: the service prints a new one at its next start")
	}
	result, err := s.Provisioner.CreateOrganization(ctx, r)
	if err == nil {
		s.until = time.Time{}
	}
	return result, err
}

// storeIsEmpty reports whether there is no organization. An account alone is the leftover of
// a call that failed, because each account is made with an organization.
func (s *Setup) storeIsEmpty(ctx context.Context) (bool, error) {
	for _, err := range s.Store.Tenants(ctx) {
		if err != nil {
			err = fmt.Errorf("list ledgers: %w", err)
			return false, fault.Wrap(fault.Unavailable, "Organizations can't be read", err)
		}
		return false, nil
	}
	return true, nil
}

func (s *Setup) currentTime() time.Time {
	if s.Clock == nil {
		return time.Now()
	}
	return s.Clock()
}
