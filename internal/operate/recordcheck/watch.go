package recordcheck

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Watcher compares the records of each organization with its log, at the start of the service and then periodically,
// and holds an organization whose records contradict its log.
type Watcher struct {
	Ledgers *log.Ledgers
	Store   Store
	Keyring *seal.Keyring
	Logger  *slog.Logger
}

const (
	// Every is the pause between two passes over all organizations.
	Every = time.Hour
	// restFactor is the pause after each organization, as a multiple of the time that it took.
	restFactor = 4
)

// Run checks all organizations periodically until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.RunOnce(ctx); err != nil && ctx.Err() == nil {
			w.Logger.Error("comparison of records with their logs failed", "err", err)
		}
		_ = syncs.Sleep(ctx, Every)
	}
}

// RunOnce checks each organization once. An organization that can't be read does not prevent others from being checked.
func (w *Watcher) RunOnce(ctx context.Context) error {
	for t, err := range w.Store.Tenants(ctx) {
		if err != nil {
			return fmt.Errorf("compare records with logs: %w", err)
		}
		began := time.Now()
		if err := w.check(ctx, t); err != nil && ctx.Err() == nil {
			w.Logger.Error("comparison of records with their log failed", "tenant", t, "err", err)
		}
		if err := syncs.Sleep(ctx, restFactor*time.Since(began)); err != nil {
			return err
		}
	}
	return nil
}

// check compares one organization. It does nothing if another node owns the organization or its records are not
// trusted anyway.
func (w *Watcher) check(ctx context.Context, t id.Tenant) error {
	s, err := w.Ledgers.State(ctx, t)
	if errors.Is(err, log.ErrNotOwner) || err == nil && s.Trusted() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	stated, err := w.recall(ctx, t)
	if err != nil {
		return err
	}
	if stated.Size > s.Size() { // the record is from a newer store
		stated = Statements{}
	}
	before := stated.Size
	found, err := stated.CompareStore(ctx, w.Store, s.Identity())
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return w.Ledgers.MarkFault(ctx, t, log.Held, fmt.Sprintf("the records contradict the log in %s; the first: %v",
			textcheck.Count(len(found), "place"), found[0]))
	}
	if stated.Size == before {
		return nil
	}
	return w.save(ctx, t, &stated)
}

// kindStated contains, under key "", what the events of a log stated up to a size, so that a restart does not read
// them again.
const kindStated storage.Kind = "derived/stated"

// purpose is the purpose of the authenticators of these records: whoever edits the store cannot replace what the log
// states. Each kind of statement that a new version of the program follows needs a new purpose, so that all events
// are read again. v2 includes voter keys.
const purpose = "agentledger/stated/v2"

// maxCached bounds the size of the record in bytes. Larger statements of an organization are rebuilt in each pass.
const maxCached = 4 << 20

type statedRecord struct {
	Stated        jsontext.Value `json:"stated"` // Statements
	Authenticator id.Hash        `json:"authenticator"`
}

// bound is the text that the authenticator covers.
func bound(t id.Tenant, stated []byte) []byte { return fmt.Appendf(nil, "%d\n%s", t, stated) }

// recall returns what the first events of a log stated, or the zero value if the record is missing or not authentic.
func (w *Watcher) recall(ctx context.Context, t id.Tenant) (s Statements, err error) {
	r, err := w.Store.Get(ctx, t, kindStated, "")
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrCorrupt) {
		return Statements{}, nil
	}
	if err != nil {
		return Statements{}, err
	}
	var cached statedRecord
	if json.Unmarshal(r.Value, &cached) != nil || !w.Keyring.IsAuthentic(purpose, bound(t, cached.Stated), cached.Authenticator[:]) ||
		json.Unmarshal(cached.Stated, &s) != nil {
		return Statements{}, nil
	}
	return s, nil
}

// save stores the statements for recall.
func (w *Watcher) save(ctx context.Context, t id.Tenant, s *Statements) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("save statements: %w", err)
	}
	value, err := json.Marshal(statedRecord{text, w.Keyring.Authenticate(purpose, bound(t, text))})
	if err != nil {
		return fmt.Errorf("save statements: %w", err)
	}
	if len(value) > maxCached {
		return nil
	}
	return w.Store.Write(ctx, t, []storage.Change{{Kind: kindStated, Value: value, If: storage.AnyVersion}})
}
