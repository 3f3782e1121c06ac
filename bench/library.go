package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// collect creates the large log. The server creates the organization, and the events are appended below HTTP while the
// server is stopped. They have no envelopes, as if erased, because only the tree is read.
func (s *suite) collect(ctx context.Context) (*library, error) {
	dir, _, err := s.folder() // removed with the suite's
	if err != nil {
		return nil, err
	}
	v, err := s.serve(dir)
	if err != nil {
		return nil, err
	}
	m, err := v.foundWithPolicy(ctx)
	if err := errors.Join(err, v.stop()); err != nil {
		return nil, err
	}
	size, err := s.grow(ctx, dir, m)
	if err != nil {
		return nil, err
	}
	if _, err := s.rested(ctx, dir); err != nil {
		return nil, err
	}
	if v, err = s.serveLibrary(ctx, dir, size); err != nil {
		return nil, err
	}
	l := &library{service: v, member: m, size: size, events: s.Leaves}
	if err := l.warm(); err != nil {
		return nil, errors.Join(err, v.stop())
	}
	return l, nil
}

// serveLibrary starts a server whose cache fits all leaf hashes of the log, and waits for its background work: the events
// were added below HTTP, so it first indexes all of them.
func (s *suite) serveLibrary(ctx context.Context, dir string, size int) (*service, error) {
	const leavesInMiB, usual = 30_000, 128
	settings := filepath.Join(dir, "settings.json")
	content := fmt.Sprintf(`{"tuning": {"leaf_cache_mib": %d}}`, max(usual, s.Leaves/leavesInMiB+1))
	if err := os.WriteFile(settings, []byte(content), 0o600); err != nil {
		return nil, err
	}
	v, err := s.serve(dir, "--config", settings, "--metrics-listen", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	background, err := v.settle(ctx, size)
	if err != nil {
		return nil, errors.Join(err, v.stop())
	}
	s.emit(fmt.Sprintf("read/background/leaves=%d", s.Leaves), 1, value{background, "cpus"})
	return v, nil
}

// warm asks for a proof below every tile once.
func (l *library) warm() error {
	const connections = 16
	limit := loopLimit{Time: 10 * time.Minute, Count: (l.size + tlog.TileWidth - 1) / tlog.TileWidth}
	_, err := closedLoop(connections, limit, func(int) (step, error) {
		c, err := dialConn(l.service.url())
		return func(n int) error {
			_, err := c.Expect(http.StatusOK, l.member.proof(n*tlog.TileWidth))
			return err
		}, err
	})
	return err
}

// grow appends the leaves and returns the size of the log.
func (s *suite) grow(ctx context.Context, dir string, by *member) (size int, err error) {
	l, err := openLedgers(ctx, dir, s.key.key, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	t, err := l.only(ctx)
	if err != nil {
		return 0, err
	}
	if err := l.erased(ctx, t, by, s.Leaves); err != nil {
		return 0, err
	}
	state, err := l.State(ctx, t)
	if err != nil {
		return 0, err
	}
	return int(state.Size()), l.reverified(ctx, t, state)
}

// reverified records that the whole ledger was just re-verified, so that the server does not start with a re-verification,
// which would find the missing envelopes.
func (l *ledgers) reverified(ctx context.Context, t id.Tenant, s *log.State) error {
	now := id.InstantOf(time.Now())
	value, err := json.Marshal(log.Reverified{To: s.Size(), Root: s.Root(), At: now, Since: now})
	if err != nil {
		return err
	}
	return l.store.Write(ctx, t, []storage.Change{{Kind: "ledger_reverified", Value: value, If: storage.AnyVersion}})
}

// only returns the only organization of a store.
func (l *ledgers) only(ctx context.Context) (found id.Tenant, err error) {
	for t, err := range l.store.Tenants(ctx) {
		if err != nil {
			return 0, err
		}
		found = t
	}
	return found, nil
}

// erased appends n events of an agent without envelopes, in submissions as large as one
// engine batch.
func (l *ledgers) erased(ctx context.Context, t id.Tenant, by *member, n int) error {
	const each, workers = 1000, 4
	public, err := base64.StdEncoding.DecodeString(by.Agent.PublicB64)
	if err != nil {
		return err
	}
	multikey := did.Multikey([32]byte(public)) // of the key that the organization has registered, or the server would hold it
	group, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		group.Go(func() error {
			for first := w * each; first < n; first += workers * each {
				_, err := l.Append(ctx, t, func(_ context.Context, s *log.State) (log.Submission, error) {
					var sub log.Submission
					for i := first; i < min(first+each, n); i++ {
						d := draft(s.Identity(), by.Agent.AgentID, by.Agent.KeyID, multikey, fmt.Sprint("e", i), nil)
						sub.Drafts = append(sub.Drafts, d)
					}
					return sub, nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
