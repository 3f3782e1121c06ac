package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// idleNodes measures three nodes with many organizations that do nothing: start, memory, what they and the database do at
// rest, and what a take-over costs when one of them dies.
func (s *suite) idleNodes(ctx context.Context) error {
	for _, n := range append([]int{0}, s.Idle...) {
		if err := s.idleNodesWith(ctx, n); err != nil {
			return fmt.Errorf("%d organizations: %w", n, err)
		}
	}
	return nil
}

func (s *suite) idleNodesWith(ctx context.Context, n int) (err error) {
	g, err := s.newNodes(fleet{nodes: 3})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop(), g.store.drop()) }()
	if err := g.fill(ctx, n); err != nil {
		return fmt.Errorf("fill the store: %w", err)
	}
	name := fmt.Sprintf("idlenodes/organizations=%d", n)
	begin := time.Now()
	if err := g.start(); err != nil {
		return err
	}
	started := time.Since(begin) / time.Duration(len(g.services))
	probes, err := g.found(ctx, probesOfNode*len(g.services))
	if err != nil {
		return err
	}
	meter := g.meter()
	settled, err := g.settle(ctx)
	if err != nil {
		return err
	}
	program, database := meter.since()
	s.emit(name+"/start", max(1, n), value{started.Seconds() * 1000, "ms/node"}, value{settled.Seconds(), "settled-s"},
		value{program.Seconds(), "cpu-s"}, value{database.Seconds(), "db-cpu-s"})
	if err := g.measureRest(ctx, name, n); err != nil {
		return err
	}
	return g.measureTakeover(ctx, name, probes)
}

// fill makes n organizations with an event each, which were re-verified a moment ago.
func (g *nodeGroup) fill(ctx context.Context, n int) error {
	store, err := g.store.open(ctx)
	if err != nil {
		return err
	}
	l, err := openLedgersOn(ctx, store, g.dirs[0], g.key.key)
	if err != nil {
		return err
	}
	if err := errors.Join(l.found(ctx, n), l.begin(ctx, n), l.Close()); err != nil {
		return err
	}
	return g.store.rest(ctx)
}

// begin appends the first event of each of the organizations 1..n.
func (l *ledgers) begin(ctx context.Context, n int) error {
	payload := newProse().piece(1)
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range min(n, creators) {
		group.Go(func() error {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				_, err := l.add(ctx, id.Tenant(i), "first", payload)
				if err = errors.Join(err, l.noteReverified(ctx, id.Tenant(i))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// noteReverified writes what the re-verification of the whole ledger would.
func (l *ledgers) noteReverified(ctx context.Context, t id.Tenant) error {
	state, err := l.State(ctx, t)
	if err != nil {
		return err
	}
	now := id.InstantOf(time.Now())
	value, err := json.Marshal(log.Reverified{To: state.Size(), Root: state.Root(), At: now, Since: now})
	if err != nil {
		return err
	}
	return l.store.Write(ctx, t, []storage.Change{{Kind: log.KindReverified, Value: value, If: storage.AnyVersion}})
}

// settleTime bounds the wait for a rest: a group that never comes to rest is measured as it is.
const settleTime = 10 * time.Minute

// settle waits until nodes and database did next to nothing for three seconds.
func (g *nodeGroup) settle(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	for calm := 0; calm < 3 && time.Since(begin) < settleTime; calm++ {
		meter := g.meter()
		if err := syncs.Sleep(ctx, time.Second); err != nil {
			return 0, err
		}
		if program, database := meter.since(); program+database > 200*time.Millisecond {
			calm = -1
		}
	}
	return time.Since(begin), nil
}

const transactionsSQL = "SELECT (xact_commit + xact_rollback)::int8 FROM pg_stat_database WHERE datname = current_database()"

// measureRest takes as long as a round of the re-verification with a window of a second.
func (g *nodeGroup) measureRest(ctx context.Context, name string, n int) error {
	before, err := g.store.number(ctx, transactionsSQL)
	if err != nil {
		return err
	}
	meter, window := g.meter(), 60*g.Window
	if err := syncs.Sleep(ctx, window); err != nil {
		return err
	}
	values := meter.rate(window)
	after, err := g.store.number(ctx, transactionsSQL)
	if err != nil {
		return err
	}
	resident, live, err := g.memoryOfNodes(ctx)
	if err != nil {
		return err
	}
	g.emit(name+"/rest", max(1, n), append(values, value{float64(after-before) / window.Seconds(), "transactions/s"},
		value{resident, "MiB/node"}, value{live, "live-MiB/node"})...)
	return nil
}

// memoryOfNodes returns means in MiB, behind a collection.
func (g *nodeGroup) memoryOfNodes(ctx context.Context) (resident, live float64, err error) {
	each := 1 / float64(len(g.services)) / (1 << 20)
	for _, v := range g.services {
		heap, err := v.scrape(ctx, "/debug/pprof/heap?gc=1")
		if err != nil {
			return 0, 0, err
		}
		_, err = io.Copy(io.Discard, heap.Body)
		heap.Body.Close()
		used, readErr := anonymousMemory(v.cmd.Process.Pid)
		objects, _, scrapeErr := v.readRuntime(ctx)
		if err := errors.Join(err, readErr, scrapeErr); err != nil {
			return 0, 0, err
		}
		resident, live = resident+used*each, live+objects*each
	}
	return resident, live, nil
}

// probesOfNode is how many organizations of each node take events.
const probesOfNode = 10

// measureTakeover kills a node and sends an event of each of its organizations to another one.
func (g *nodeGroup) measureTakeover(ctx context.Context, name string, probes []*member) error {
	var orphans []*member
	for i := len(g.services) - 1; i < len(probes); i += len(g.services) {
		orphans = append(orphans, probes[i])
	}
	killed := time.Now()
	if err := g.kill(); err != nil {
		return err
	}
	meter, gaps := g.meter(), make(latencies, len(orphans))
	var group errgroup.Group
	for i, m := range orphans {
		group.Go(func() (err error) {
			gaps[i], err = g.awaitAppend(ctx, m, killed)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	settled, err := g.settle(ctx)
	if err != nil {
		return err
	}
	program, database := meter.since()
	g.emit(name+"/takeover", len(gaps), value{gaps.Quantile(0.5).Seconds() * 1000, "p50-ms"},
		value{gaps.Quantile(1).Seconds() * 1000, "longest-ms"}, value{settled.Seconds(), "settled-s"},
		value{program.Seconds(), "cpu-s"}, value{database.Seconds(), "db-cpu-s"})
	return nil
}

// awaitAppend sends an event again and again until it is acknowledged, and returns since when.
func (g *nodeGroup) awaitAppend(ctx context.Context, m *member, since time.Time) (time.Duration, error) {
	body, err := m.event("after", newProse().piece(2))
	if err != nil {
		return 0, err
	}
	c, err := dialConn(g.services[0].url())
	if err != nil {
		return 0, err
	}
	defer c.Close()
	for request := m.post(eventsPath, mediaJSON, body); ; {
		status, answer, err := c.Do(request)
		switch {
		case err != nil:
			return 0, err
		case status == http.StatusCreated || status == http.StatusOK:
			return time.Since(since), nil
		case time.Since(since) > ownTime:
			return 0, fmt.Errorf("status %d: %.300s", status, answer)
		}
		if err := syncs.Sleep(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
	}
}
