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

// Watcher compares the records of each organization with its log, once at the start of the service and then from time to time,
// and holds an organization whose records contradict its log.
type Watcher struct {
	Ledgers *log.Ledgers
	Store   Store
	Keyring *seal.Keyring
	Logger  *slog.Logger
}

const (
	// Every is the pause between two looks at all organizations.
	Every = time.Hour
	// restFactor is for how many times as long as it worked a Watcher rests.
	restFactor = 4
)

// Run looks at all organizations until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.RunOnce(ctx); err != nil && ctx.Err() == nil {
			w.Logger.Error("records are not compared with their logs", "err", err)
		}
		_ = syncs.Sleep(ctx, Every)
	}
}

// RunOnce looks at each organization once. One that can't be read does not keep others from their turn.
func (w *Watcher) RunOnce(ctx context.Context) error {
	for t, err := range w.Store.Tenants(ctx) {
		if err != nil {
			return fmt.Errorf("compare records with logs: %w", err)
		}
		began := time.Now()
		if err := w.check(ctx, t); err != nil && ctx.Err() == nil {
			w.Logger.Error("records are not compared with their log", "tenant", t, "err", err)
		}
		if err := syncs.Sleep(ctx, restFactor*time.Since(began)); err != nil {
			return err
		}
	}
	return nil
}

// check compares one organization. Another node may own it, or its records may not be in force anyway.
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
	if stated.Size > s.Size() { // of a newer store
		stated = Statements{}
	}
	before := stated.Size
	found, err := stated.CompareStore(ctx, w.Store, s.Identity())
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return w.Ledgers.MarkFault(ctx, t, log.Held, fmt.Sprintf("the records contradict the log in %s, first %v",
			textcheck.Count(len(found), "place"), found[0]))
	}
	if stated.Size == before {
		return nil
	}
	return w.keep(ctx, t, &stated)
}

// kindStated has, under key "", what the events of a log stated up to a size, so that a start does not read them again.
const kindStated storage.Kind = "derived/stated"

// purpose is the purpose of the authenticators of these records: whoever edits the store can't replace what the log states.
// Each kind of statement that a new version of the program follows needs a new purpose, so that all events are read again.
// v2 is with voter keys.
const purpose = "agentledger/stated/v2"

// maxKept bounds the record in bytes. The statements of an organization with more are read anew at each look.
const maxKept = 4 << 20

type statedRecord struct {
	Stated        jsontext.Value `json:"stated"` // Statements
	Authenticator id.Hash        `json:"authenticator"`
}

// bound is the text that the authenticator covers.
func bound(t id.Tenant, stated []byte) []byte { return fmt.Appendf(nil, "%d\n%s", t, stated) }

// recall returns what the first events of a log stated, or the zero value if it is not known for sure.
func (w *Watcher) recall(ctx context.Context, t id.Tenant) (s Statements, err error) {
	r, err := w.Store.Get(ctx, t, kindStated, "")
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrCorrupt) {
		return Statements{}, nil
	}
	if err != nil {
		return Statements{}, err
	}
	var kept statedRecord
	if json.Unmarshal(r.Value, &kept) != nil || !w.Keyring.IsAuthentic(purpose, bound(t, kept.Stated), kept.Authenticator[:]) ||
		json.Unmarshal(kept.Stated, &s) != nil {
		return Statements{}, nil
	}
	return s, nil
}

func (w *Watcher) keep(ctx context.Context, t id.Tenant, s *Statements) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("keep statements: %w", err)
	}
	value, err := json.Marshal(statedRecord{text, w.Keyring.Authenticate(purpose, bound(t, text))})
	if err != nil {
		return fmt.Errorf("keep statements: %w", err)
	}
	if len(value) > maxKept {
		return nil
	}
	return w.Store.Write(ctx, t, []storage.Change{{Kind: kindStated, Value: value, If: storage.AnyVersion}})
}
