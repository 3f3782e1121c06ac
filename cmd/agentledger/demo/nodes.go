package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// playNodes plays the story of several nodes.
func (s *stage) playNodes(ctx context.Context) {
	s.scene(fmt.Sprintf("PostgreSQL and %s", textcheck.Count(s.Nodes, "node starts", "nodes start")))
	s.startDatabase(ctx)
	for range s.Nodes {
		n := s.addNode()
		s.start(ctx, n)
		s.note("%s  %s  process %d", n.name, n.main, n.Process.Pid)
	}
	nodes := &balancer{nodes: s.nodes}
	s.url, s.transport = publicURL, nodes
	s.checkViews(ctx)
	s.conclude("equal processes: only their folders and addresses differ")

	s.scene("An operator creates two organizations, through two nodes")
	acme, globex := s.found(ctx, s.nodes[0], "Acme"), s.found(ctx, s.nodes[1], "Globex")
	for _, o := range []*organization{acme, globex} {
		s.note("%-8s log key %s", o.name, o.LogKey)
		s.note("%-8s %s owns it", "", s.owner(ctx, o).name)
	}
	s.conclude("auditors pin these keys now; no node stores anything of a log that the others can't read")

	s.scene("Agents sign events through any node, and the node that owns Acme's log is killed")
	s.playKill(ctx, acme, globex)
	s.check(nodes.used() == len(s.nodes), "each of the %d nodes has answered requests", len(s.nodes))
	s.conclude("an agent whose node dies sends the same event again: it is stored once")

	s.scene("An outsider with no account checks, through any node, trusting only the pinned keys")
	s.checkLog(ctx, acme)
	s.checkLog(ctx, globex)
	s.conclude("nothing that was acknowledged is lost, and no log has forked")
	if !s.Once {
		s.keepServing(ctx)
	}

	s.scene("The nodes stop, and fsck compares the database, from the first event, with the anchors of each node")
	for _, n := range s.nodes {
		if !n.runs() {
			s.note("%s was killed", n.name)
			continue
		}
		err := n.end(syscall.SIGTERM)
		s.check(err == nil, "%s releases its organizations and exits%s", n.name, because(err))
	}
	for _, n := range s.nodes {
		s.fsck(n, n.name+" ")
	}
	s.conclude("everything acknowledged is in the database, and each node has anchors of the latest trees")
}

// checkViews checks that every node sees all nodes, and that each shard has one owner.
func (s *stage) checkViews(ctx context.Context) {
	ok := await(ctx, func() bool {
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
	s.check(ok, "each node sees %s, and each of the %d shards has one owner", textcheck.Count(len(s.nodes), "node"),
		cluster.Shards)
}

// owner returns the node that serves an organization now.
func (s *stage) owner(ctx context.Context, o *organization) (owner *node) {
	nodes := map[string]*node{}
	for _, n := range s.nodes {
		if n.runs() {
			nodes[n.answering(ctx, "/livez")] = n
		}
	}
	for _, n := range nodes {
		owner = nodes[n.answering(ctx, "/v1/public/orgs/"+string(o.Slug)+"/transparency/head")]
	}
	if owner == nil {
		try(fmt.Errorf("no node owns %s", o.name))
	}
	return owner
}

// balancer sends each request to the next node, as a load balancer does that knows neither organizations nor which nodes
// run. The client retries a request that fails, which then goes to another node.
type balancer struct {
	nodes   []*node
	next    atomic.Uint64
	answers sync.Map // the nodes that have answered with a status below 500
}

// RoundTrip implements http.RoundTripper.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	n := b.nodes[b.next.Add(1)%uint64(len(b.nodes))]
	r = r.Clone(r.Context())
	r.URL.Host = n.main[len("http://"):]
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && answer.StatusCode < http.StatusInternalServerError {
		b.answers.Store(n, true)
	}
	return answer, err
}

// used returns how many nodes have answered requests.
func (b *balancer) used() (nodes int) {
	b.answers.Range(func(any, any) bool { nodes++; return true })
	return nodes
}

// Paces of the traffic, which leave a small machine time for everything else.
const (
	agentsEach = 2 // of each organization
	sendPause  = 40 * time.Millisecond
	readPause  = 20 * time.Millisecond
	laterPause = time.Second // after the checks
	eventsEach = 40          // of each organization, which playKill waits for
)

// playKill kills and restarts the node that owns acme while agents send events of both organizations.
func (s *stage) playKill(ctx context.Context, acme, globex *organization) {
	until, end := context.WithCancel(ctx)
	traffic, working := errgroup.WithContext(until) // working also ends if an agent gives up
	for _, o := range []*organization{acme, globex} {
		for agent := range agentsEach {
			traffic.Go(func() error { return o.send(ctx, working, fmt.Sprint("agent-", agent), sendPause, nil) })
		}
		heads := o.logsAt(s.nodes)
		traffic.Go(func() error { o.read(working, s.nodes, heads); return nil })
	}
	defer func() {
		end()
		try(traffic.Wait())
	}()
	checkProgress := func(when string) {
		for _, o := range []*organization{acme, globex} {
			before, more := o.acknowledged(), 0
			ok := await(working, func() bool {
				more = o.acknowledged() - before
				return more >= eventsEach
			})
			s.check(ok, "%-6s %3d more events are acknowledged %s", o.name, more, when)
		}
	}
	checkProgress("before the kill")
	killed := s.owner(ctx, acme)
	acme.takeLongest()
	globex.takeLongest()
	s.note("%s, process %d, gets SIGKILL", killed.name, killed.Process.Pid)
	killed.kill()
	checkProgress("after it")
	s.note("longest time until an event was acknowledged: Acme %s, Globex %s", acme.takeLongest(), globex.takeLongest())
	next := s.owner(ctx, acme)
	s.check(next != killed, "%s owns Acme's log now", next.name)
	s.start(ctx, killed)
	s.note("%s is started again, process %d", killed.name, killed.Process.Pid)
	s.checkViews(ctx)
	checkProgress("by all nodes again")
}

// send sends signed events one after the other until working ends. It returns once the last event is acknowledged.
// notify, if it is not nil, is called with each event and its time.
func (o *organization) send(ctx, working context.Context, prefix string, pause time.Duration,
	notify func(id.Event, time.Duration)) error {
	for n := 1; working.Err() == nil; n++ {
		e := id.Event(fmt.Sprintf("%s-%04d", prefix, n))
		began := time.Now()
		_, r, err := o.record(ctx, act{kind: "tool_call", tool: "orders.read"}, client.Event{EventID: e})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: event %s: %w", o.name, e, err)
		}
		took := time.Since(began)
		o.mu.Lock()
		o.receipts[e] = r
		o.longest = max(o.longest, took)
		o.mu.Unlock()
		if notify != nil {
			notify(e, took)
		}
		_ = syncs.Sleep(working, pause)
	}
	return nil
}

// acknowledged returns how many events were acknowledged.
func (o *organization) acknowledged() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.receipts)
}

// takeLongest returns the longest time until an event was acknowledged since the last call.
func (o *organization) takeLongest() (longest time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	longest, o.longest = o.longest, 0
	return longest.Round(10 * time.Millisecond)
}

// logsAt returns the log as each node shows it.
func (o *organization) logsAt(nodes []*node) (all []*client.Log) {
	for _, n := range nodes {
		all = append(all, o.logAt(must(client.New(client.Config{BaseURL: n.main, Timeout: 10 * time.Second,
			Retry: client.Retry{Attempts: 1}}))))
	}
	return all
}

// read reads the head from each node in turn until ctx ends, and records heads that contradict earlier ones. It skips
// nodes that do not answer.
func (o *organization) read(ctx context.Context, nodes []*node, logs []*client.Log) {
	var largest id.Index
	for i := 0; ctx.Err() == nil; i = (i + 1) % len(nodes) {
		if _, head, err := logs[i].Head(ctx); err == nil {
			if head.Size < largest {
				o.faults = append(o.faults, fmt.Sprintf("%s shows a tree of %s after one of %d was seen", nodes[i].name,
					leaves(head.Size), largest))
			}
			if root, seen := o.heads[head.Size]; seen && root != head.Root {
				o.faults = append(o.faults, fmt.Sprintf("%s shows another tree of %s", nodes[i].name, leaves(head.Size)))
			}
			o.heads[head.Size], o.shown[nodes[i]] = head.Root, true
			largest = max(largest, head.Size)
		}
		_ = syncs.Sleep(ctx, readPause)
	}
}

// checkLog checks one log from outside, after the traffic.
func (s *stage) checkLog(ctx context.Context, o *organization) {
	latest := o.head(ctx)
	var missing []string
	numbers := map[uint64]id.Event{}
	for event, receipt := range o.receipts {
		bundle, report, err := o.log.Bundle(ctx, event)
		if err == nil {
			err = checkReceipt(receipt, bundle, report, latest.Size)
		}
		if err == nil && numbers[bundle.SequenceNum] != "" {
			err = fmt.Errorf("it has the number of %s", numbers[bundle.SequenceNum])
		}
		if err != nil {
			missing = append(missing, fmt.Sprintf("event %s: %v", event, err))
			continue
		}
		numbers[bundle.SequenceNum] = event
	}
	var forks []string
	for size, root := range o.heads {
		if _, err := o.log.Consistency(ctx, tlog.Checkpoint{Origin: latest.Origin, Size: size, Root: root}, latest); err != nil {
			forks = append(forks, fmt.Sprintf("the tree of %s: %v", leaves(size), err))
		}
	}
	try(ctx.Err())
	s.checkNone(missing, "%-6s each of %s is in the latest tree of %s, under its number and signature", o.name,
		textcheck.Count(len(o.receipts), "acknowledged event"), leaves(latest.Size))
	if len(o.shown) != len(s.nodes) {
		o.faults = append(o.faults, "one node has shown no tree")
	}
	s.checkNone(o.faults, "%-6s trees of %s were seen on %s: they only grew, and each size had one root", o.name,
		textcheck.Count(len(o.heads), "size"), textcheck.Count(len(o.shown), "node"))
	s.checkNone(forks, "%-6s the latest tree extends each of them", o.name)
}

// checkReceipt compares the bundle of an event with its receipt. size is the size of the latest tree.
func checkReceipt(r client.Result, b *verify.Bundle, report verify.Report, size id.Index) error {
	switch {
	case !report.OK:
		return fmt.Errorf("the proof is wrong: %v", report.Errors)
	case report.SignatureOK == nil || !*report.SignatureOK:
		return errors.New("the bundle does not show the agent's signature")
	case b.Inclusion.TreeSize != size:
		return fmt.Errorf("the proof is for a tree of %s, not %d", leaves(b.Inclusion.TreeSize), size)
	case r.Status == client.Created && (b.SequenceNum != r.Sequence || b.EventHash != r.EventHash):
		return fmt.Errorf("it was acknowledged as #%d, and is #%d", r.Sequence, b.SequenceNum)
	}
	return nil
}

// keepServing has an agent send events until ctx ends, so that the user can kill nodes.
func (s *stage) keepServing(ctx context.Context) {
	fmt.Fprintf(s.Out, `
%s. Still serving; everything is removed when the demo stops.
The agent of Initech sends an event each second through any node. Kill a node, and read the log through the others:

`, s.counts())
	for _, n := range s.nodes {
		s.note("%s  kill -9 %d   %s/log/initech", n.name, n.Process.Pid, n.main)
	}
	fmt.Fprint(s.Out, "\nStop with Ctrl-C.\n\n")
	o := s.found(ctx, s.nodes[0], "Initech")
	err := o.send(ctx, ctx, "later", laterPause, func(e id.Event, took time.Duration) {
		s.note("event %s was acknowledged after %s", e, took.Round(time.Millisecond))
	})
	if ctx.Err() == nil { // otherwise a request was interrupted
		try(err)
	}
}

// because returns the text of an error after a colon, or "" if there is no error.
func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}
