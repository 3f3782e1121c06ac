package provision

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// kindSetup is the only record of its kind, in the service's own partition under the key "".
const kindSetup storage.Kind = "setup"

// tokens is the record of the setup.
type tokens struct {
	Tokens   []stored   `json:"tokens"`
	Founding id.Instant `json:"founding,omitzero"` // when a process started to create the organization; 0 if none does
}

// stored is a stored token.
type stored struct {
	Process string     `json:"process,omitzero"` // that printed it
	Hash    id.Hash    `json:"hash"`             // SHA-256 of the token
	Until   id.Instant `json:"until"`
}

type found = records.Versioned[tokens]

func (s *Setup) records() records.Store[tokens] {
	return records.New[tokens](s.Store, kindSetup, "The setup can't be read")
}

// write writes the record if it has not changed since it was read. Otherwise it returns storage.ErrStale.
func (s *Setup) write(ctx context.Context, record found) error {
	change, err := s.records().Put(record)
	if err != nil {
		return err
	}
	err = s.Store.Write(ctx, id.Service, []storage.Change{change})
	if err == nil || errors.Is(err, storage.ErrStale) {
		return err
	}
	return fault.Wrap(fault.Unavailable, "The setup can't be written", err)
}

const (
	maxTokens   = 64 // of all processes
	maxAttempts = 16 // of processes that start together
)

// storeToken adds a token to the record and removes the tokens that are no longer valid.
func (s *Setup) storeToken(ctx context.Context, token string) (err error) {
	now := s.currentTime()
	for range maxAttempts {
		var record found
		if record, err = s.records().Get(ctx, id.Service, ""); err != nil {
			return err
		}
		if s.Process == "" {
			record.Value = tokens{} // also removes a founding during which this process died
		}
		record.Value.Tokens = append(slices.DeleteFunc(record.Value.Tokens, func(t stored) bool {
			return t.Process == s.Process || !now.Before(t.Until.Time())
		}), stored{s.Process, sha256.Sum256([]byte(token)), id.InstantOf(now.Add(SetupLife))})
		record.Value.Tokens = record.Value.Tokens[max(0, len(record.Value.Tokens)-maxTokens):]
		if err = s.write(ctx, record); !errors.Is(err, storage.ErrStale) {
			return err
		}
	}
	return err
}

// accepts reports whether a token is valid. It compares hashes of random tokens, so its timing reveals nothing.
func (t tokens) accepts(token string, now time.Time) bool {
	hash := id.Hash(sha256.Sum256([]byte(token)))
	return slices.ContainsFunc(t.Tokens, func(s stored) bool { return s.Hash == hash && now.Before(s.Until.Time()) })
}

// foundingLife is how long a founding excludes others. It is longer than foundingTime and endTime together.
const foundingLife = time.Minute

// isFounding reports whether a process is creating the organization.
func (t tokens) isFounding(now time.Time) bool {
	return t.Founding != 0 && now.Before(t.Founding.Time().Add(foundingLife))
}
