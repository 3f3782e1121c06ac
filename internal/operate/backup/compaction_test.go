package backup_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/operate/backup"
)

// store counts compactions, and ends the run after the last round.
type store struct {
	erasures  []uint64 // result of each round
	failures  []error  // result of each compaction
	compacted []int    // rounds in which it compacted
	round     int
	end       context.CancelFunc
}

func (s *store) Erasures() uint64 {
	s.round++
	if s.round == len(s.erasures) {
		s.end()
	}
	return s.erasures[s.round-1]
}

func (s *store) Compact(context.Context) error {
	s.compacted = append(s.compacted, s.round)
	if n := len(s.compacted); n <= len(s.failures) {
		return s.failures[n-1]
	}
	return nil
}

func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		erasures []uint64
		failures []error
		want     []int
	}{
		"never erased":    {[]uint64{0, 0, 0}, nil, nil},
		"erased before":   {[]uint64{1, 1, 1}, nil, []int{1}},
		"erased again":    {[]uint64{0, 1, 1, 2, 2, 5}, nil, []int{2, 4, 6}},
		"a failure":       {[]uint64{1, 1, 1, 1}, []error{errors.New("full")}, []int{1, 2}},
		"erased and full": {[]uint64{1, 2, 2, 2}, []error{errors.New("full"), errors.New("full")}, []int{1, 2, 3}},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		s := &store{erasures: test.erasures, failures: test.failures, end: cancel}
		backup.RunCompaction(ctx, s, time.Microsecond, slog.New(slog.DiscardHandler))
		if len(s.compacted) != len(test.want) {
			t.Errorf("%s: got rounds %v, want %v", name, s.compacted, test.want)
			continue
		}
		for i := range test.want {
			if s.compacted[i] != test.want[i] {
				t.Errorf("%s: got rounds %v, want %v", name, s.compacted, test.want)
				break
			}
		}
	}
}

func TestOtherEngines(t *testing.T) {
	backup.RunCompaction(t.Context(), 7, time.Hour, slog.New(slog.DiscardHandler))
	if err := backup.Compact(t.Context(), 7); !errors.Is(err, backup.ErrNotCompactable) {
		t.Errorf("got %v, want %v", err, backup.ErrNotCompactable)
	}
	s := &store{}
	if err := backup.Compact(t.Context(), s); err != nil || len(s.compacted) != 1 {
		t.Errorf("got %v, %d compactions", err, len(s.compacted))
	}
}
