package provision

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// SetupLife is how long a token is valid.
const SetupLife = 30 * time.Minute

// tokenSize is the number of random bytes of a token.
const tokenSize = 32

// SetupStore tells the ledgers that exist, and has the record of tokens (package storage).
type SetupStore interface {
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
	storage.RecordStore
}

// OrganizationCreator makes organizations.
type OrganizationCreator interface {
	CreateOrganization(ctx context.Context, r Request) (*Result, error)
}

// Setup makes the first organization of an empty service and its owner, for a person who holds a token that only the
// operator has seen. So no stranger can set the service up, however early they come. Store and Provisioner are required;
// the methods may be called concurrently.
//
//   - There is a token only while no organization exists. It ends after SetupLife, with a newer token of the same
//     process, with a restart of that process, and when a setup succeeds. The store has its hash, so every process of
//     the service accepts it. A refused request, for example one with a common password, leaves it valid.
//   - Of several calls, in several processes and with several tokens, at most one makes an organization. The exception
//     is a process that stands still for a minute in the middle of a call.
type Setup struct {
	Store       SetupStore
	Provisioner OrganizationCreator
	Process     string           // a name among the processes of the service; "": it serves alone
	Clock       func() time.Time // default: time.Now
	ReadOnly    bool             // nothing can be written: there is no token

	mu sync.Mutex // held while a token or an organization is made
}

// NewToken returns a new token in place of that of this process, and "" when there is an organization or nothing can
// be written. In a process that serves alone it takes the place of all tokens.
func (s *Setup) NewToken(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	empty, err := s.storeIsEmpty(ctx)
	if err != nil || !empty || s.ReadOnly {
		return "", err
	}
	var secret [tokenSize]byte
	rand.Read(secret[:]) // never fails since Go 1.24
	token := base64.RawURLEncoding.EncodeToString(secret[:])
	if err := s.keepToken(ctx, token); err != nil {
		return "", err
	}
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
	fmt.Fprintf(out, "set up the service within %.0f minutes, once: %s/setup#token=%s\n", SetupLife.Minutes(),
		strings.TrimRight(publicURL, "/"), token)
}

// foundingTime bounds a call that makes the organization.
const foundingTime = 30 * time.Second

// FoundOrganization makes the organization of the holder of the token. fault.Conflict with
// code set_up when there is an organization, fault.Unauthorized for another
// token, fault.Overloaded while another process makes the organization, and the errors of
// provision.CreateOrganization.
func (s *Setup) FoundOrganization(
	ctx context.Context, token string, r Request,
) (*Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	begun, err := s.begin(ctx, token)
	if err != nil {
		return nil, err
	}
	founding, cancel := context.WithTimeout(ctx, foundingTime)
	defer cancel()
	result, err := s.Provisioner.CreateOrganization(founding, r)
	s.end(ctx, begun, err)
	return result, err
}

// begin checks the token and that there is no organization, and excludes other processes. The record is read first:
// an organization that another process makes later changes the record, and one made before is seen.
func (s *Setup) begin(ctx context.Context, token string) (begun found, err error) {
	record, err := s.records().Get(ctx, id.Service, "")
	if err != nil {
		return record, err
	}
	empty, err := s.storeIsEmpty(ctx)
	if err != nil {
		return record, err
	}
	if !empty {
		return record, &fault.Error{Kind: fault.Conflict, Code: "set_up", Message: "The service is set up already"}
	}
	now := s.currentTime()
	if !record.Value.accepts(token, now) {
		return record, errInvalid()
	}
	if record.Value.isFounding(now) {
		return record, errFounding()
	}
	record.Value.Founding = id.InstantOf(now)
	if err = s.write(ctx, record); errors.Is(err, storage.ErrStale) {
		return record, errFounding()
	}
	record.Version++
	return record, err
}

func errInvalid() error {
	return fault.New(fault.Unauthorized, "Invalid setup token: the service prints a new one at its next start")
}

func errFounding() error {
	return &fault.Error{Kind: fault.Overloaded, Code: "overloaded", RetryAfter: time.Second,
		Message: "The service is being set up; try again"}
}

// endTime bounds the write after the organization was made or refused.
const endTime = 5 * time.Second

// end lets other processes go on. After an unknown outcome and a failed write they wait until the founding is over
// by its time.
func (s *Setup) end(ctx context.Context, begun found, err error) {
	if fault.Is(err, fault.OutcomeUnknown) {
		return
	}
	begun.Value.Founding = 0
	if err == nil {
		begun.Value.Tokens = nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	_ = s.write(ctx, begun) // the organization, or its refusal, holds all the same
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
