package nodes

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
)

// datedTable is a node table with its own time.
type datedTable struct {
	cluster.Table
	time time.Time
	err  error
}

func (t *datedTable) Beat(context.Context, cluster.Step) (cluster.View, error) {
	return cluster.View{Time: t.time}, t.err
}

// A node whose time differs from the database's by more than 5 s is out of step until a beat shows that it agrees
// again. The duration of a beat does not count, and a beat without an answer changes nothing.
func TestTimesAreCompared(t *testing.T) {
	began := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	now, took := began, time.Duration(0)
	database := &datedTable{}
	table := &comparedTable{Table: database, logger: slog.New(slog.DiscardHandler), now: func() time.Time {
		now = now.Add(took) // between the two readings of a beat
		return now
	}}
	for _, step := range []struct {
		name  string
		ahead time.Duration // of the node's clock
		took  time.Duration
		err   error
		want  bool
	}{
		{"the same", 0, 0, nil, false},
		{"5 s ahead", 5 * time.Second, 0, nil, false},
		{"a beat of a minute", -time.Minute, time.Minute, nil, false},
		{"minutes ahead", 5 * time.Minute, time.Second, nil, true},
		{"no answer", 0, 0, context.DeadlineExceeded, true},
		{"right", 0, time.Second, nil, false},
		{"behind", -6 * time.Second, 0, nil, true},
		{"behind, and a slow beat", -7 * time.Second, time.Second, nil, true},
	} {
		database.time, database.err = now.Add(step.took-step.ahead), step.err
		took = step.took
		if _, err := table.Beat(t.Context(), cluster.Step{}); err != step.err {
			t.Errorf("%s: got %v, want %v", step.name, err, step.err)
		}
		if got := table.apart.Load(); got != step.want {
			t.Errorf("%s: got apart %v, want %v", step.name, got, step.want)
		}
	}
	took, database.time, database.err = 0, time.Time{}, nil
	if _, err := table.Beat(t.Context(), cluster.Step{}); err != nil || !table.apart.Load() {
		t.Errorf("a table without a time: got apart %v, %v, want no change", table.apart.Load(), err)
	}
}
