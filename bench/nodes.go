package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/bench/load"
)

// fleet is how many processes serve from one database. 0 nodes are one process that is no node.
type fleet struct {
	name  string
	nodes int
}

func fleets() []fleet { return []fleet{{"alone", 0}, {"nodes=1", 1}, {"nodes=3", 3}} }

// nodesMembers is how many organizations send: as many of each node.
const nodesMembers = 12

// way says which node of some gets request n, whose organization is that of node n%nodes.
type way struct {
	name  string
	node  func(n, nodes int) int
	parts int // the offered rate is divided by them
}

// ways are those of a load balancer that knows nothing, by which all but one of the nodes pass a request, and of one that
// knows the organizations. One node has its load whole, and as the part that each of three nodes has.
func (f fleet) ways() []way {
	turns := func(n, nodes int) int { return (n + n/nodesMembers) % nodes }
	if f.nodes < 2 {
		return []way{{"turns", turns, 1}, {"third", turns, 3}}
	}
	return []way{{"turns", turns, 1}, {"organization", func(n, nodes int) int { return n % nodes }, 1}}
}

// nodesCost is processor time of a fleet for one event.
type nodesCost struct {
	program, database float64 // in µs
	appends           float64
}

func (c nodesCost) all() float64 { return c.program + c.database }

// nodes measures what several nodes cost beside one, and beside a process that is none, at the same offered load.
func (s *suite) nodes(ctx context.Context) error {
	costs := map[string]nodesCost{}
	for _, f := range fleets() {
		if err := s.offerFleet(ctx, f, costs); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	alone, one := costs["alone/turns"], costs["nodes=1/turns"]
	three, direct := costs["nodes=3/turns"], costs["nodes=3/organization"]
	s.emit("nodes/ratio", 1, value{three.all() / one.all(), "three/one"}, value{three.program / one.program, "program-three/one"},
		value{three.database / one.database, "db-three/one"}, value{direct.all() / one.all(), "direct-three/one"},
		value{one.all() / alone.all(), "one/alone"}, value{costs["nodes=1/third"].all() / one.all(), "third/one"})
	const passed = 2.0 / 3
	s.emit("nodes/passing", 1, value{(three.program - direct.program) / passed, "cpu-µs/request"})
	return nil
}

// offerFleet starts a fleet on an empty store and measures it at rest and under each way of load.
func (s *suite) offerFleet(ctx context.Context, f fleet, costs map[string]nodesCost) (err error) {
	g, err := s.newNodes(f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.stop(), g.store.drop()) }()
	if err := g.start(); err != nil {
		return err
	}
	members, err := g.found(ctx, nodesMembers)
	if err != nil {
		return err
	}
	rest := g.meter()
	time.Sleep(4 * s.Window)
	s.emit("nodes/rest/"+f.name, 1, rest.rate(4*s.Window)...)
	for _, w := range f.ways() {
		name := f.name + "/" + w.name
		if costs[name], err = g.offer(ctx, name, w, members); err != nil {
			return err
		}
	}
	return nil
}

// offer sends events at the offered rate, in requests of so many as were asked for.
func (g *nodeGroup) offer(ctx context.Context, name string, w way, members []*member) (cost nodesCost, err error) {
	events := lines(g.Lines)
	rate := max(1, g.Rate/g.Lines/w.parts) // of requests
	requests, err := events.posts(w.name, g.requests(3*rate), func(i int) *member { return members[i%len(members)] })
	if err != nil {
		return cost, err
	}
	const connections = 64
	before, err := g.appends(ctx)
	if err != nil {
		return cost, err
	}
	meter := g.meter()
	r, err := load.Open(rate, connections, g.offeredLimit(), func(int) (load.Timed, error) {
		conns, err := g.dial()
		return func(n int, _ time.Time) error {
			return events.send(conns[w.node(n, len(conns))], requests[n])
		}, err
	})
	if err != nil {
		return cost, err
	}
	stored := r.Done * g.Lines
	cost = meter.each(stored)
	after, err := g.appends(ctx)
	if err != nil {
		return cost, err
	}
	cost.appends = (after - before) / float64(stored)
	g.emitLoad(fmt.Sprintf("nodes/rate=%d/%s", rate*g.Lines, name), r, g.Lines, "events/s", value{cost.all(), "cpu-µs/event"},
		value{cost.program, "program-cpu-µs/event"}, value{cost.database, "db-cpu-µs/event"}, value{cost.appends, "appends/event"})
	return cost, nil
}
