package nodes

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore/nodetable"
	"github.com/agentledger/agentledger/storage/pgstore/schema"
)

// A process that serves alone has a row in the table of nodes too, without a URL, and beats like a node. Nodes ignore
// such a row. So processes that do not know each other's anchors notice each other before both append. A command that
// writes to the store of a stopped server has such a row while it runs.
const (
	sighting  = 2200 * time.Millisecond // a living process beats within this time
	aloneBeat = 500 * time.Millisecond
	leaveTime = time.Second // bounds the deletion of the row when the process stops
)

// replaced is the first byte of the id of a process whose row was deleted while it did not beat. A smaller first byte
// wins, so such a process ends if another one has started in the meantime.
const replaced = 0xff

func servesAlone(n cluster.Node) bool { return n.URL == "" }

// Claim is the row of a process that serves alone. It is nil for a node, and for an engine without a table of nodes.
type Claim struct {
	table *nodetable.Table
	self  cluster.Node
	stop  context.CancelFunc
	done  chan struct{}
}

// ClaimOptions configure Take. All are required.
type ClaimOptions struct {
	URL     string // of the internal listener; "": the process serves alone
	File    string // with the id of the last row; in the folder of anchors, which the caller must have locked
	Version string // of the program
	Key     string // fingerprint of its master key
	Engine  storage.Engine
	Logger  *slog.Logger

	// Conflict is called at most once, if other processes have started to serve from the database. The process must then exit.
	Conflict func(error)
}

// Take refuses to serve alone while other processes serve from the database, and to serve as a node while a process
// serves alone. The error wraps schema.ErrRefused. Take waits only if there is a row of another process. It does not
// wait for the last process with the same folder of anchors, which has ended because the lock of the folder is free.
func Take(ctx context.Context, o ClaimOptions) (*Claim, error) {
	database, is := o.Engine.(nodetable.Transactor)
	if !is {
		return nil, nil
	}
	table, alone := nodetable.New(database), o.URL == ""
	last := readClaim(o.File)
	conflicting := func(n cluster.Node) bool { return n.ID != last && (alone || servesAlone(n)) }
	living, silent, err := findLiving(ctx, table, conflicting)
	switch {
	case err != nil:
		return nil, err
	case len(living) > 0:
		return nil, errBeside(living[0], alone)
	case !alone:
		return nil, nil
	}
	c := &Claim{table: table, self: cluster.Node{ID: cluster.NewNodeID(), Version: o.Version + " on " + machineName(),
		Key: o.Key, Protocol: cluster.Protocol, Leaving: true}}
	c.self.ID[0] %= replaced
	if err := c.join(ctx, o.File); err != nil {
		return nil, err
	}
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop, c.done = stop, make(chan struct{})
	go func() {
		defer close(c.done)
		c.run(beating, o, silent)
	}()
	return c, nil
}

// machineName names this process for the operator of another one.
func machineName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "an unknown machine"
	}
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}

// join writes the id to the file first, so that a start after a crash knows the row.
func (c *Claim) join(ctx context.Context, file string) error {
	host, _ := os.Hostname() // "" is compared like a name
	if err := durable.ReplaceFile(file, []byte(c.self.ID.String()+" "+host+"\n")); err != nil {
		return fmt.Errorf("note the row in the table of nodes: %w", err)
	}
	return c.table.Join(ctx, c.self)
}

// readClaim returns the id of the last row from this folder of anchors. If the file is missing or was copied from
// another machine, it returns the zero id, and the start waits until the row is known to be silent.
func readClaim(file string) (n cluster.NodeID) {
	b, err := os.ReadFile(file)
	host, _ := os.Hostname()
	text, isHere := strings.CutSuffix(string(b), " "+host+"\n")
	if v, bad := hex.DecodeString(text); err == nil && isHere && bad == nil && len(v) == len(n) {
		copy(n[:], v)
	}
	return n
}

// errBeside refuses this process beside a living one.
func errBeside(living cluster.Node, alone bool) error {
	if !servesAlone(living) {
		return fmt.Errorf("%w: nodes serve from it (%s, for example): set --node-listen and --node-url to start one more "+
			"node, or stop all nodes first", schema.ErrRefused, living.URL)
	}
	what := "stop that process, or start it as a node first"
	if alone {
		what = "stop that process, or start all as nodes"
	}
	return fmt.Errorf("%w: a process without --node-listen and --node-url serves from it (version %s): %s",
		schema.ErrRefused, living.Version, what)
}

// findLiving returns the living processes that match, and all processes that are silent. If no row matches, it returns
// none of them without waiting.
func findLiving(ctx context.Context, table *nodetable.Table, match func(cluster.Node) bool) (living []cluster.Node,
	silent []cluster.Sighting, err error) {
	before, err := table.Members(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(matching(before, match)) == 0 {
		return nil, nil, nil
	}
	if err := syncs.Sleep(ctx, sighting); err != nil {
		return nil, nil, err
	}
	after, err := table.Members(ctx)
	return matching(beatenSince(before, after), match), silentSince(before, after), err
}

func matching(all []cluster.Node, match func(cluster.Node) bool) (found []cluster.Node) {
	for _, n := range all {
		if match(n) {
			found = append(found, n)
		}
	}
	return found
}

// beatenSince returns the processes in a later view whose number of beats differs from the one in an earlier view.
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

// conflicts reports whether this process must exit because another one is alive. Of two that serve alone, one exits: the
// one that was replaced while it did not beat, or otherwise the one with the larger ID.
func (c *Claim) conflicts(n cluster.Node) bool {
	return !servesAlone(n) || bytes.Compare(c.self.ID[:], n.ID[:]) > 0
}

// run beats until ctx ends, and then deletes the row. Other living processes are a conflict: they started to serve while
// this process was starting too, or while it did not beat. The first beat deletes the rows of the silent processes.
func (c *Claim) run(ctx context.Context, o ClaimOptions, silent []cluster.Sighting) {
	step := cluster.Step{Node: c.self.ID, Leaving: true, Forget: silent}
	var before []cluster.Node // the earlier view, with which beats are compared
	compared := time.Now()
	for {
		v, err := c.table.Beat(ctx, step)
		if errors.Is(err, cluster.ErrForgotten) {
			c.self.ID = cluster.NewNodeID()
			c.self.ID[0] = replaced
			step = cluster.Step{Node: c.self.ID, Leaving: true}
			before = nil
			_ = c.join(ctx, o.File) // after an error, the next beat returns ErrForgotten again
		}
		if err == nil {
			step.Known, step.Forget = v.Epoch, nil
			if before == nil {
				before, compared = v.Nodes, time.Now()
			}
		}
		if err == nil && time.Since(compared) >= sighting {
			if others := matching(beatenSince(before, v.Nodes), c.conflicts); len(others) > 0 {
				o.Conflict(errBeside(others[0], true))
				<-ctx.Done()
				break
			}
			step.Forget = silentSince(before, v.Nodes)
			before, compared = v.Nodes, time.Now()
		}
		if syncs.Sleep(ctx, aloneBeat) != nil {
			break
		}
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	step.Leave, step.Forget = true, nil
	if _, err := c.table.Beat(leaving, step); err != nil {
		o.Logger.DebugContext(ctx, "cluster: the row of this process stays in the table of nodes", "error", err)
	}
}

// silentSince returns the processes that have not beaten between two views, so that they can be forgotten.
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
