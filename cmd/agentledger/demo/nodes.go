// Package demo plays the demo of several nodes: processes of this program on one PostgreSQL server. One is killed
// while agents send events.
//
// Invariants:
//
//   - The database, the nodes and all files are the demo's own, and go with it, also after an error or a signal.
//   - The agents and the outsider use HTTP alone, as strangers do. They choose any node for each request.
//   - The outsider trusts the keys of the logs that the operator was told, and nothing else.
//   - No check depends on how long a thing takes.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/agentledger/agentledger/storage/pgstore/pgprograms"
)

// Bounds of NodesOptions.Nodes.
const (
	minNodes = 2
	maxNodes = 9
)

// NodesOptions configure PlayNodes. All are required.
type NodesOptions struct {
	Nodes   int  // 2 to 9
	Once    bool // end after the checks
	Printer *Printer
	Errors  io.Writer // gets the logs of the nodes when the demo can't go on
}

// PlayNodes plays the demo. The printer has the checks. An error means that the demo could not go on. It wraps
// ErrNoPostgreSQL where that is not installed, and the error of ctx when that ends before the checks.
func PlayNodes(ctx context.Context, o NodesOptions) (err error) {
	if o.Nodes < minNodes || o.Nodes > maxNodes {
		return fmt.Errorf("--nodes: %d, want %d to %d, or 1 for a service of one process", o.Nodes, minNodes, maxNodes)
	}
	installed, err := findPostgreSQL()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "agentledger-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &stage{Printer: o.Printer, options: o, dir: dir}
	defer func() {
		if err != nil && ctx.Err() == nil {
			s.writeLogs(o.Errors)
		}
	}()
	defer func() { err = errors.Join(err, s.stopAll()) }()
	return s.play(ctx, installed)
}

// stage is the demo on its way.
type stage struct {
	*Printer
	options  NodesOptions
	dir      string
	database *database // nil before its start
	nodes    []*node
	balancer *balancer
	traffic  *traffic
}

// play plays all scenes.
func (s *stage) play(ctx context.Context, installed pgprograms.Installation) error {
	if err := s.playStart(ctx, installed); err != nil {
		return err
	}
	acme, globex, err := s.playFounding(ctx)
	if err != nil {
		return err
	}
	if err := s.playKill(ctx, acme, globex); err != nil {
		return err
	}
	for _, o := range []*organization{acme, globex} {
		if err := s.playOutsider(ctx, o); err != nil {
			return err
		}
	}
	s.PrintConclusion("nothing that was acknowledged is lost, and no log has forked")
	if !s.options.Once {
		if err := s.playOn(ctx); err != nil {
			return err
		}
	}
	return s.playStop(context.WithoutCancel(ctx))
}

// stopAll ends the processes that still run.
func (s *stage) stopAll() error {
	if s.traffic != nil {
		s.traffic.stop()
	}
	for _, n := range s.nodes {
		n.kill()
	}
	if s.database == nil {
		return nil
	}
	return s.database.stop()
}

// writeLogs writes the ends of the logs of the nodes and of the database.
func (s *stage) writeLogs(w io.Writer) {
	for _, n := range s.nodes {
		fmt.Fprintf(w, "The log of %s:\n%s\n", n.name, n.log.String())
	}
	if s.database != nil {
		fmt.Fprintf(w, "The log of PostgreSQL:\n%s\n", s.database.log.String())
	}
}
