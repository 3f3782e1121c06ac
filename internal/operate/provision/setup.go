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

// SetupStore lists the existing ledgers and stores the record of tokens.
type SetupStore interface {
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
	storage.RecordStore
}

// OrganizationCreator creates organizations.
type OrganizationCreator interface {
	CreateOrganization(ctx context.Context, r Request) (*Result, error)
}

// Setup creates the first organization of an empty service and its owner, for a caller with a token that only the
// operator has seen. So no stranger can set up the service, however early they connect. Store and Provisioner are
// required. Its methods may be called concurrently.
//
//   - A token exists only while there is no organization. It expires after SetupLife, when the same process creates a
//     newer one or restarts, and when a setup succeeds. The store contains its hash, so every process of the service
//     accepts it. A rejected request, for example with a common password, leaves it valid.
//   - Of several calls, in several processes and with several tokens, at most one creates an organization. The
//     exception is a process that hangs for a minute in the middle of a call.
type Setup struct {
	Store       SetupStore
	Provisioner OrganizationCreator
	Process     string           // name of this process among the processes of the service; "" if it is the only one
	Clock       func() time.Time // default: time.Now
	ReadOnly    bool             // nothing can be written, so there is no token

	mu sync.Mutex // held while a token or an organization is created
}

// NewToken creates a token that replaces the previous one of this process. In a process that is the only one, it
// replaces all tokens. It returns "" if an organization exists or nothing can be written.
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
	if err := s.storeToken(ctx, token); err != nil {
		return "", err
	}
	return token, nil
}

// PrintURL prints the URL with which the operator sets up a service without organizations, with a new token. The
// token is never logged.
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

// foundingTime bounds a call that creates the organization.
const foundingTime = 30 * time.Second

// FoundOrganization creates the organization for the holder of the token. It returns fault.Conflict with code set_up
// if an organization exists, fault.Unauthorized for an invalid token, fault.Overloaded while another process creates
// the organization, and the errors of CreateOrganization.
func (s *Setup) FoundOrganization(
	ctx context.Context, token string, r Request,
) (*Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	setup, err := s.begin(ctx, token)
	if err != nil {
		return nil, err
	}
	founding, cancel := context.WithTimeout(ctx, foundingTime)
	defer cancel()
	result, err := s.Provisioner.CreateOrganization(founding, r)
	s.end(ctx, setup, err)
	return result, err
}

// begin checks the token, checks that there is no organization, and excludes other processes. It reads the record
// first: an organization that another process creates later changes the record, and one created before is seen.
func (s *Setup) begin(ctx context.Context, token string) (setup found, err error) {
	record, err := s.records().Get(ctx, id.Service, "")
	if err != nil {
		return record, err
	}
	empty, err := s.storeIsEmpty(ctx)
	if err != nil {
		return record, err
	}
	if !empty {
		return record, &fault.Error{Kind: fault.Conflict, Code: "set_up", Message: "The service is already set up"}
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

// endTime bounds the write after the organization was created or rejected.
const endTime = 5 * time.Second

// end allows other processes to continue. After an unknown outcome or a failed write they wait until the founding has
// expired.
func (s *Setup) end(ctx context.Context, setup found, err error) {
	if fault.Is(err, fault.OutcomeUnknown) {
		return
	}
	setup.Value.Founding = 0
	if err == nil {
		setup.Value.Tokens = nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	_ = s.write(ctx, setup) // without it, the founding expires
}

// storeIsEmpty reports whether there is no organization. An account without one is left over from a failed call,
// because each account is created with an organization.
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
