package backup

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/agentledger/agentledger/internal/syncs"
)

// CompactEvery is the time between two compactions after erasures.
const CompactEvery = time.Hour

// CompactionStore is an engine whose files contain erased bytes until they are rewritten.
type CompactionStore interface {
	Compact(ctx context.Context) error
	Erasures() uint64 // changes with each append of an erasure; 0 if there was none since the last compaction
}

// ErrNotCompactable means that the engine has no files that can be compacted.
var ErrNotCompactable = errors.New("only the embedded store is compacted here: " +
	"in PostgreSQL, the owner of the tables runs VACUUM (FULL) event, segment, record")

// Compact rewrites the files of an engine. It returns ErrNotCompactable if the engine is not a CompactionStore.
func Compact(ctx context.Context, engine any) error {
	s, ok := engine.(CompactionStore)
	if !ok {
		return ErrNotCompactable
	}
	return s.Compact(ctx)
}

// RunCompaction compacts an engine at once if events were erased since it was last compacted, and then after each
// interval with an erasure, until ctx ends. A failed compaction is logged and retried after the next interval. It
// changes nothing that a reader sees. RunCompaction returns at once if the engine is not a CompactionStore.
func RunCompaction(ctx context.Context, engine any, every time.Duration, logger *slog.Logger) {
	s, ok := engine.(CompactionStore)
	if !ok {
		return
	}
	var compacted uint64
	for ; ctx.Err() == nil; _ = syncs.Sleep(ctx, every) {
		erased := s.Erasures()
		if erased == compacted {
			continue
		}
		began := time.Now()
		if err := s.Compact(ctx); err != nil {
			if ctx.Err() == nil {
				logger.Error("the store was not compacted after erasures", "err", err)
			}
			continue
		}
		compacted = erased
		logger.Info("the store was compacted after erasures", "seconds", time.Since(began).Seconds())
	}
}
