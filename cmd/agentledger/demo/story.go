package demo

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/storage/pgstore/pgprograms"
)

// platformSecret is that of the demo's operator. The service ends with the demo.
const platformSecret = "the platform secret of a demo"

// patience bounds each wait for the service to go on.
const patience = time.Minute

// playStart starts the database and the nodes.
func (s *stage) playStart(ctx context.Context, installed pgprograms.Installation) (err error) {
	s.BeginScene(fmt.Sprintf("PostgreSQL and %s", textcheck.Count(s.options.Nodes, "node starts", "nodes start")))
	if s.database, err = startDatabase(ctx, installed); err != nil {
		return err
	}
	s.PrintNote("PostgreSQL %s, process %d, in a folder of the demo", installed.Version,
		s.database.process.command.Process.Pid)
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	secrets := []string{"AGENTLEDGER_PLATFORM_SECRET=" + platformSecret,
		"AGENTLEDGER_MASTER_KEY=" + base64.StdEncoding.EncodeToString(key[:])}
	for number := 1; number <= s.options.Nodes; number++ {
		n, err := newNode(number, s.database.url(), s.dir, secrets)
		if err != nil {
			return err
		}
		s.nodes = append(s.nodes, n)
		if err := n.start(ctx); err != nil {
			return err
		}
		s.PrintNote("%s  %s  process %d", n.name, n.main, n.process.command.Process.Pid)
	}
	s.balancer = &balancer{nodes: s.nodes, taken: map[*node]int{}}
	s.checkViews(ctx)
	s.PrintConclusion("equal processes: they have all settings in common but for folders and addresses")
	return ctx.Err()
}

// checkViews checks that every node sees all, and that each shard has one owner.
func (s *stage) checkViews(ctx context.Context) {
	good := s.await(ctx, func() bool {
		owned := 0
		for _, n := range s.nodes {
			nodes, shards, err := n.view(ctx)
			if err != nil || nodes != len(s.nodes) || shards == 0 {
				return false
			}
			owned += shards
		}
		return owned == cluster.Shards
	})
	s.CountCheck(good, "each node sees %s, and each of the %d shards has one owner",
		textcheck.Count(len(s.nodes), "node"), cluster.Shards)
}

// await returns true once look does, and false after the patience.
func (s *stage) await(ctx context.Context, look func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !look() {
		if syncs.Sleep(ctx, 20*time.Millisecond) != nil {
			return false
		}
	}
	return true
}

// playFounding makes two organizations, through two nodes.
func (s *stage) playFounding(ctx context.Context) (acme, globex *organization, err error) {
	s.BeginScene("An operator makes two organizations, through two nodes")
	if acme, err = s.found(ctx, s.nodes[0], "Acme", "acme"); err != nil {
		return nil, nil, err
	}
	if globex, err = s.found(ctx, s.nodes[1], "Globex", "globex"); err != nil {
		return nil, nil, err
	}
	for _, o := range []*organization{acme, globex} {
		owner, err := s.owner(ctx, o)
		if err != nil {
			return nil, nil, err
		}
		s.PrintNote("%-8s log key %s", o.name, o.key)
		s.PrintNote("%-8s %s owns it", "", owner.name)
	}
	s.PrintConclusion("auditors pin these keys now; no node keeps anything of a log that another one can't read")
	return acme, globex, nil
}

// eventsOfPart is how many events of each organization a part of the story has at least.
const eventsOfPart = 40

// playKill has agents send events while the owner of one log is killed, and started again.
func (s *stage) playKill(ctx context.Context, acme, globex *organization) error {
	s.BeginScene("Agents sign events through any node, and the node that owns Acme's log is killed")
	if err := s.startTraffic(ctx, acme, globex); err != nil {
		return err
	}
	s.checkProgress(ctx, "before the kill", acme, globex)
	killed, err := s.owner(ctx, acme)
	if err != nil {
		return err
	}
	acme.takeLongest()
	globex.takeLongest()
	s.PrintNote("%s, process %d, gets SIGKILL", killed.name, killed.process.command.Process.Pid)
	killed.kill()
	s.checkProgress(ctx, "after it", acme, globex)
	s.PrintNote("longest time until an event was acknowledged: Acme %s, Globex %s", round(acme.takeLongest()),
		round(globex.takeLongest()))
	next, err := s.owner(ctx, acme)
	if err != nil {
		return err
	}
	s.CountCheck(next != killed, "%s owns Acme's log now", next.name)
	if err := killed.start(ctx); err != nil {
		return err
	}
	s.PrintNote("%s is started again, process %d", killed.name, killed.process.command.Process.Pid)
	s.checkViews(ctx)
	s.checkProgress(ctx, "by all nodes again", acme, globex)
	err = s.traffic.stop()
	s.CountCheck(s.balancer.asked() == len(s.nodes), "each of the %d nodes has taken requests in", len(s.nodes))
	s.PrintConclusion("an agent whose node dies sends the same event again: it is stored once")
	return err
}

// checkProgress checks that each organization gets more events acknowledged.
func (s *stage) checkProgress(ctx context.Context, when string, all ...*organization) {
	for _, o := range all {
		began := o.acknowledged()
		s.await(ctx, func() bool { return o.acknowledged() >= began+eventsOfPart || s.traffic.failure() != nil })
		got := o.acknowledged() - began
		s.CountCheck(got >= eventsOfPart, "%-6s %3d more events are acknowledged %s", o.name, got, when)
	}
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }

// playOutsider checks one log from outside, by its key alone.
func (s *stage) playOutsider(ctx context.Context, o *organization) error {
	if o.slug == "acme" {
		s.BeginScene("An outsider with no account checks, through any node, trusting only the pinned keys")
	}
	_, newest, err := o.log().Head(ctx)
	if err != nil {
		return err
	}
	missing, err := s.verifyReceipts(ctx, o, newest.Size)
	if err != nil {
		return err
	}
	s.CountCheck(len(missing) == 0, "%-6s each of %s is in the newest tree of %s, under its number and signature",
		o.name, textcheck.Count(len(o.receipts), "acknowledged event"), textcheck.Count(newest.Size, "leaf", "leaves"))
	for _, what := range missing {
		s.PrintNote("%s", what)
	}
	s.CountCheck(len(o.faults) == 0 && len(o.shown) == len(s.nodes), "%-6s trees of %s were seen on %s: "+
		"none smaller than one before, one for each size", o.name, textcheck.Count(len(o.heads), "size"),
		textcheck.Count(len(o.shown), "node"))
	for _, what := range o.faults {
		s.PrintNote("%s", what)
	}
	forks, err := o.findForks(ctx, newest)
	if err != nil {
		return err
	}
	s.CountCheck(len(forks) == 0, "%-6s the newest tree extends each of them", o.name)
	for _, what := range forks {
		s.PrintNote("%s", what)
	}
	return nil
}

// playOn lets the agents work on until ctx ends, so that a person can kill nodes.
func (s *stage) playOn(ctx context.Context) error {
	s.printInvitation()
	o, err := s.found(ctx, s.nodes[0], "Initech", "initech")
	if err != nil {
		return err
	}
	err = o.send(ctx, ctx, "later", laterPause, func(e id.Event, took time.Duration) {
		s.PrintNote("event %s was acknowledged after %s", e, took.Round(time.Millisecond))
	})
	if errors.Is(err, ctx.Err()) {
		return nil // a request that the end has cut off is no fault
	}
	return err
}

// printInvitation prints the commands for a person, while the demo goes on serving.
func (s *stage) printInvitation() {
	passed, failed := s.Counts()
	fmt.Fprintf(s.Out, `
%s passed, %d failed. Still serving; all is gone when it stops.
The agent of Initech works on, once a second, through any node. Kill a node, and look at the log through the others:

`, textcheck.Count(passed, "check"), failed)
	for _, n := range s.nodes {
		s.PrintNote("%s  kill -9 %d   %s/log/initech", n.name, n.process.command.Process.Pid, n.main)
	}
	fmt.Fprint(s.Out, "\nStop with Ctrl-C.\n\n")
}

// playStop stops the nodes, and reads the database again beside the anchors of each.
func (s *stage) playStop(ctx context.Context) error {
	s.BeginScene("The nodes stop, and the database is read again from the first event, beside the anchors of each node")
	for _, n := range s.nodes {
		if !n.runs() {
			s.PrintNote("%s was killed", n.name)
			continue
		}
		err := n.terminate()
		s.CountCheck(err == nil, "%s gives its organizations away and ends%s", n.name, because(err))
	}
	for _, n := range s.nodes {
		said, err := n.fsck()
		s.CountCheck(err == nil, "%s fsck: %s%s", n.name, said, because(err))
	}
	s.PrintConclusion("what was acknowledged is in the database, and each node knows the newest trees of all logs")
	return ctx.Err()
}

// because returns the text of an error behind a colon, "" for none.
func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
