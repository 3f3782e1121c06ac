package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/syncs"
)

// nodeGroup is equal processes of the server on one store in PostgreSQL.
type nodeGroup struct {
	*suite
	store    store
	dirs     []string // of the nodes
	flags    [][]string
	services []*service
	removes  []func()
}

// newNodes returns a fleet on an empty store. None runs yet.
func (s *suite) newNodes(f fleet) (*nodeGroup, error) {
	d, err := s.postgres()
	if err != nil {
		return nil, err
	}
	st, err := d.fresh()
	if err != nil {
		return nil, err
	}
	g := &nodeGroup{suite: s, store: st}
	for range max(1, f.nodes) {
		dir, remove, err := s.folder()
		if err != nil {
			return nil, errors.Join(err, g.stop(), st.drop())
		}
		g.dirs, g.removes = append(g.dirs, dir), append(g.removes, remove)
		flags := []string{"--storage", st.url, "--metrics-listen", "127.0.0.1:0"}
		if s.Spared {
			settings := filepath.Join(dir, "settings.json")
			if err := os.WriteFile(settings, []byte(`{"tuning": {"anchor_first": "never"}}`), 0o600); err != nil {
				return nil, errors.Join(err, g.stop(), st.drop())
			}
			flags = append(flags, "--config", settings)
		}
		if f.nodes > 0 {
			address, err := freeAddress()
			if err != nil {
				return nil, errors.Join(err, g.stop(), st.drop())
			}
			flags = append(flags, "--node-listen", address, "--node-url", "https://"+address)
		}
		g.flags = append(g.flags, flags)
	}
	return g, nil
}

// freeAddress returns an address of this machine on which nobody listens now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// start starts all, one after the other.
func (g *nodeGroup) start() error {
	for i, dir := range g.dirs {
		v, err := g.serve(dir, g.flags[i]...)
		if err != nil {
			return fmt.Errorf("node %d: %w", i+1, err)
		}
		g.services = append(g.services, v)
	}
	return nil
}

// stop stops those that run and removes their folders.
func (g *nodeGroup) stop() (err error) {
	for _, v := range g.services {
		err = errors.Join(err, v.stop())
	}
	for _, remove := range g.removes {
		remove()
	}
	return err
}

// kill ends the last node at once.
func (g *nodeGroup) kill() error {
	last := g.services[len(g.services)-1]
	g.services = g.services[:len(g.services)-1]
	if err := last.cmd.Process.Kill(); err != nil {
		return err
	}
	<-last.exited
	return nil
}

func (g *nodeGroup) pids() (all []int) {
	for _, v := range g.services {
		all = append(all, v.cmd.Process.Pid)
	}
	return all
}

// dial connects to each node.
func (g *nodeGroup) dial() (conns []*conn, err error) {
	for _, v := range g.services {
		c, err := dialConn(v.url())
		if err != nil {
			return nil, err
		}
		conns = append(conns, c)
	}
	return conns, nil
}

// ownTime is how long a node may take until it owns organizations.
const ownTime = 30 * time.Second

// found makes n organizations. Organization i is that of node i modulo the nodes, because a node makes organizations that
// it owns.
func (g *nodeGroup) found(ctx context.Context, n int) (members []*member, err error) {
	begin := time.Now()
	for len(members) < n {
		m, err := g.services[len(members)%len(g.services)].found(ctx, fmt.Sprint("org-", len(members)))
		switch {
		case err == nil:
			members = append(members, m)
		case time.Since(begin) > ownTime:
			return nil, fmt.Errorf("make organizations: %w", err)
		default: // the node has not joined yet
			if err := syncs.Sleep(ctx, 100*time.Millisecond); err != nil {
				return nil, err
			}
		}
	}
	return members, nil
}

// Metrics of a server that are read.
const (
	appendsMetric = "agentledger_append_events_count"
	passesMetric  = `agentledger_node_passes_total{result="answered"}` // of nodes alone
	shardsMetric  = "agentledger_node_shards"                          // of nodes alone
)

// readMetrics returns the sum of a metric of all nodes.
func (g *nodeGroup) readMetrics(ctx context.Context, name string) (total float64, err error) {
	for _, v := range g.services {
		n, err := v.readMetric(ctx, name)
		if err != nil {
			return 0, fmt.Errorf("read a metric of a node: %w", err)
		}
		total += n
	}
	return total, nil
}

// awaitShares waits until each of several nodes owns about as many shards as the others.
func (g *nodeGroup) awaitShares(ctx context.Context) error {
	for begin := time.Now(); ; {
		least := float64(cluster.Shards)
		for _, v := range g.services {
			n, err := v.readMetric(ctx, shardsMetric)
			if err != nil {
				return err
			}
			least = min(least, n)
		}
		if least > cluster.Shards/2/float64(len(g.services)) {
			return nil
		}
		if time.Since(begin) > ownTime {
			return fmt.Errorf("a node owns %.0f shards only", least)
		}
		if err := syncs.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// readMetric returns a metric of a server, 0 for one that is not a node's.
func (v *service) readMetric(ctx context.Context, metric string) (n float64, err error) {
	page, err := v.scrape(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	defer page.Body.Close()
	lines := bufio.NewScanner(page.Body)
	for lines.Scan() {
		if name, number, _ := strings.Cut(lines.Text(), " "); name == metric {
			return strconv.ParseFloat(number, 64)
		}
	}
	if err := lines.Err(); err != nil || strings.HasPrefix(metric, "agentledger_node_") {
		return 0, err
	}
	return 0, fmt.Errorf("the metrics do not name %s", metric)
}

// nodesMeter tells the processor time of all processes of a group, and that of its database.
type nodesMeter struct {
	group             *nodeGroup
	pids              []int
	program, database time.Duration
}

func (g *nodeGroup) meter() nodesMeter {
	m := nodesMeter{group: g, pids: g.pids()}
	m.program, m.database = m.read()
	return m
}

func (m nodesMeter) read() (program, database time.Duration) {
	return spent(m.pids...), spent(m.group.store.database.pid())
}

// since returns the time that was spent since the meter was made.
func (m nodesMeter) since() (program, database time.Duration) {
	program, database = m.read()
	return program - m.program, database - m.database
}

// each is the time of one of n operations.
func (m nodesMeter) each(n int) nodesCost {
	program, database := m.since()
	return nodesCost{program: float64(program.Microseconds()) / float64(n),
		database: float64(database.Microseconds()) / float64(n)}
}

// rate is the time in each second.
func (m nodesMeter) rate(of time.Duration) []value {
	program, database := m.since()
	return []value{{program.Seconds() * 1000 / of.Seconds(), "cpu-ms/s"}, {database.Seconds() * 1000 / of.Seconds(), "db-cpu-ms/s"}}
}
