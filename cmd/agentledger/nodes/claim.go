package nodes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/wait"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore/nodetable"
	"github.com/agentledger/agentledger/storage/pgstore/schema"
)

// A process that serves alone has a row in the table of nodes too, without a URL, and beats like a node. Nodes pass
// over such a row. So a process that serves alone and a node notice each other before both append, each without the
// anchors of the other.
const (
	sighting  = 2200 * time.Millisecond // in this time a living process has beaten
	aloneBeat = 500 * time.Millisecond
	leaveTime = time.Second // bounds the deletion of the row at a stop
)

func servesAlone(n cluster.Node) bool { return n.URL == "" }

// Claim is the row of a process that serves alone. The nil claim is one of a node, or of an engine without a table.
type Claim struct {
	table *nodetable.Table
	self  cluster.Node
	stop  context.CancelFunc
	done  chan struct{}
}

// ClaimOptions configure Take. All are required.
type ClaimOptions struct {
	URL     string // of the internal listener; "": the process serves alone
	Version string // of the program
	Key     string // fingerprint of its master key
	Engine  storage.Engine
	Logger  *slog.Logger

	// Conflict is called at most once, if nodes have begun to serve from the database. The process must end then.
	Conflict func(error)
}

// Take refuses to serve alone while nodes serve from the database, and to serve as a node while a process serves
// alone. The error wraps schema.ErrRefused.
func Take(ctx context.Context, o ClaimOptions) (*Claim, error) {
	database, is := o.Engine.(nodetable.Transactor)
	if !is {
		return nil, nil
	}
	table, alone := nodetable.New(database), o.URL == ""
	conflicting := func(n cluster.Node) bool { return servesAlone(n) != alone }
	living, err := findLiving(ctx, table, conflicting)
	switch {
	case err != nil:
		return nil, err
	case len(living) > 0 && alone:
		return nil, errBesideNodes(living)
	case len(living) > 0:
		return nil, fmt.Errorf("%w: a process without --node-listen and --node-url serves from it: stop that process, "+
			"or start it as a node first", schema.ErrRefused)
	case !alone:
		return nil, nil
	}
	c := &Claim{table: table, self: cluster.Node{ID: cluster.NewNodeID(), Version: o.Version, Key: o.Key,
		Protocol: cluster.Protocol, Leaving: true}}
	if err := table.Join(ctx, c.self); err != nil {
		return nil, err
	}
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop, c.done = stop, make(chan struct{})
	go func() {
		defer close(c.done)
		c.run(beating, o)
	}()
	return c, nil
}

func errBesideNodes(living []cluster.Node) error {
	return fmt.Errorf("%w: nodes serve from it (%s, for example): set --node-listen and --node-url to start one more "+
		"node, or stop all nodes first", schema.ErrRefused, living[0].URL)
}

// findLiving returns the processes that match and are alive. Without any match it does not wait.
func findLiving(ctx context.Context, table *nodetable.Table, match func(cluster.Node) bool) ([]cluster.Node, error) {
	before, err := table.Members(ctx)
	if err != nil {
		return nil, err
	}
	if living := matching(before, match); len(living) == 0 {
		return nil, nil
	}
	if err := wait.For(ctx, sighting); err != nil {
		return nil, err
	}
	after, err := table.Members(ctx)
	return matching(beatenSince(before, after), match), err
}

func matching(all []cluster.Node, match func(cluster.Node) bool) (found []cluster.Node) {
	for _, n := range all {
		if match(n) {
			found = append(found, n)
		}
	}
	return found
}

// beatenSince returns the processes of a later view whose count of beats is another one than in an earlier view.
func beatenSince(earlier, later []cluster.Node) (alive []cluster.Node) {
	counts := make(map[cluster.NodeID]uint64, len(earlier))
	for _, n := range earlier {
		counts[n.ID] = n.Beats
	}
	for _, n := range later {
		if beats, known := counts[n.ID]; !known || beats != n.Beats {
			alive = append(alive, n)
		}
	}
	return alive
}

// run beats until ctx ends, and then deletes the row. Nodes that live are a conflict: they began to serve while this
// process started too, or while it stood still.
func (c *Claim) run(ctx context.Context, o ClaimOptions) {
	step := cluster.Step{Node: c.self.ID, Leaving: true}
	var before []cluster.Node // of the view that conflicts and silent processes are compared with
	compared := time.Now()
	for wait.For(ctx, aloneBeat) == nil {
		v, err := c.table.Beat(ctx, step)
		if errors.Is(err, cluster.ErrForgotten) {
			c.self.ID = cluster.NewNodeID()
			step = cluster.Step{Node: c.self.ID, Leaving: true}
			before = nil
			_ = c.table.Join(ctx, c.self) // or the next beat is of no member either
			continue
		}
		if err != nil {
			continue // the engine logs it
		}
		step.Known, step.Forget = v.Epoch, nil
		if time.Since(compared) < sighting && before != nil {
			continue
		}
		if before != nil {
			nodes := matching(beatenSince(before, v.Nodes), func(n cluster.Node) bool { return !servesAlone(n) })
			if len(nodes) > 0 {
				o.Conflict(errBesideNodes(nodes))
				<-ctx.Done()
				break
			}
			step.Forget = silentSince(before, v.Nodes)
		}
		before, compared = v.Nodes, time.Now()
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	step.Leave, step.Forget = true, nil
	if _, err := c.table.Beat(leaving, step); err != nil {
		o.Logger.DebugContext(ctx, "cluster: the row of this process stays in the table of nodes", "error", err)
	}
}

// silentSince returns the processes that have not beaten between two views, as they are to be forgotten.
func silentSince(earlier, later []cluster.Node) (silent []cluster.Sighting) {
	counts := make(map[cluster.NodeID]uint64, len(earlier))
	for _, n := range earlier {
		counts[n.ID] = n.Beats
	}
	for _, n := range later {
		if beats, known := counts[n.ID]; known && beats == n.Beats {
			silent = append(silent, cluster.Sighting{Node: n.ID, Beats: n.Beats})
		}
	}
	return silent
}

// Release deletes the row.
func (c *Claim) Release() {
	if c != nil {
		c.stop()
		<-c.done
	}
}
