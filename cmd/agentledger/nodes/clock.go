package nodes

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/cluster"
)

// comparedTable is a table that compares the time of this node with the database's time at each beat. A node whose clock
// is wrong would give events timestamps that are in the future for the other nodes, which would then accept no events of
// these logs. No lease depends on the comparison: a node whose clock deviates hands its organizations to other nodes.
type comparedTable struct {
	cluster.Table
	now    func() time.Time // trusted time of this node
	logger *slog.Logger
	apart  atomic.Bool // deviates by more than clock.Bound
}

// Beat implements cluster.Table.
func (t *comparedTable) Beat(ctx context.Context, s cluster.Step) (cluster.View, error) {
	before := t.now()
	v, err := t.Table.Beat(ctx, s)
	v.Nodes = slices.DeleteFunc(v.Nodes, servesAlone) // such a process exits when it notices this node (Claim)
	if err != nil || v.Time.IsZero() {
		return v, err
	}
	apart := v.Time.Before(before.Add(-clock.Bound)) || v.Time.After(t.now().Add(clock.Bound))
	if t.apart.Swap(apart) != apart {
		t.report(ctx, apart, before.Sub(v.Time))
	}
	return v, nil
}

func (t *comparedTable) report(ctx context.Context, apart bool, ahead time.Duration) {
	if !apart {
		t.logger.InfoContext(ctx, "cluster: the times of this node and of the database agree", "ahead", ahead)
		return
	}
	t.logger.ErrorContext(ctx, "cluster: the times of this node and of the database differ: this node owns no "+
		"organizations while another node can", "ahead", ahead)
}
