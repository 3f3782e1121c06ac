package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
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
	appends, passes   float64 // of an event
}

func (c nodesCost) all() float64 { return c.program + c.database }

// nodesTurns is how often each fleet has the load in each way. The fleets have it by short turns, because the machine
// is faster at one time than at another. The first turn is not counted: connections open, and heaps grow.
const nodesTurns = 9

// offeredWay is a fleet that gets the load in one way.
type offeredWay struct {
	*nodeGroup
	way
	name    string
	members []*member
	costs   []nodesCost // of counted turns
	total   loopResult
}

// nodes measures what several nodes cost beside one, and beside a process that is none, at the same offered load.
func (s *suite) nodes(ctx context.Context) (err error) {
	var all []*offeredWay
	for _, f := range fleets() {
		g, failed := s.newNodes(f)
		if failed != nil {
			return fmt.Errorf("%s: %w", f.name, failed)
		}
		defer func() { err = errors.Join(err, g.stop(), g.store.drop()) }()
		ways, failed := g.startFleet(ctx, f)
		if failed != nil {
			return fmt.Errorf("%s: %w", f.name, failed)
		}
		all = append(all, ways...)
	}
	for turn := range nodesTurns {
		for _, o := range all {
			if err := o.offer(ctx, turn); err != nil {
				return fmt.Errorf("%s: %w", o.name, err)
			}
		}
	}
	costs := map[string][]nodesCost{}
	for _, o := range all {
		o.emitCosts()
		costs[o.name] = o.costs
	}
	s.emitRatios(costs)
	return nil
}

// startFleet starts a fleet on an empty store, and measures it at rest.
func (g *nodeGroup) startFleet(ctx context.Context, f fleet) (all []*offeredWay, err error) {
	if err := g.start(); err != nil {
		return nil, err
	}
	if f.nodes > 0 {
		if err := g.awaitShares(ctx); err != nil {
			return nil, err
		}
	}
	members, err := g.found(ctx, nodesMembers)
	if err != nil {
		return nil, err
	}
	rest := g.meter()
	time.Sleep(4 * g.Window)
	g.emit("nodes/rest/"+f.name, 1, rest.rate(4 * g.Window)[0]) // the database has other fleets, too
	for _, w := range f.ways() {
		all = append(all, &offeredWay{nodeGroup: g, way: w, name: f.name + "/" + w.name, members: members})
	}
	return all, nil
}

// rate is how many requests a second are offered.
func (o *offeredWay) rate() int { return max(1, o.Rate/o.Lines/o.parts) }

// offer sends events at the offered rate, in requests of so many as were asked for.
func (o *offeredWay) offer(ctx context.Context, turn int) error {
	events := lines(o.Lines)
	requests, err := events.posts(fmt.Sprint(o.way.name, turn), o.requests(o.rate())+1, func(i int) *member { return o.members[i%len(o.members)] })
	if err != nil {
		return err
	}
	const connections = 64
	before, err := o.readCounts(ctx)
	if err != nil {
		return err
	}
	meter := o.meter()
	r, err := openLoop(o.rate(), connections, o.limit(), func(int) (timedStep, error) {
		conns, err := o.dial()
		return func(n int, _ time.Time) error {
			return events.send(conns[o.node(n, len(conns))], requests[n])
		}, err
	})
	if err != nil {
		return err
	}
	stored := r.Done * o.Lines
	cost := meter.each(stored)
	after, err := o.readCounts(ctx)
	if err != nil {
		return err
	}
	cost.appends, cost.passes = (after[0]-before[0])/float64(stored), (after[1]-before[1])/float64(stored)
	if turn > 0 {
		o.costs = append(o.costs, cost)
		o.total = loopResult{Elapsed: o.total.Elapsed + r.Elapsed, Took: append(o.total.Took, r.Took...), Done: o.total.Done + r.Done}
	}
	return nil
}

// readCounts returns how many appends the fleet has begun, and how many requests its nodes have passed.
func (o *offeredWay) readCounts(ctx context.Context) (counts [2]float64, err error) {
	if counts[0], err = o.readMetrics(ctx, appendsMetric); err == nil {
		counts[1], err = o.readMetrics(ctx, passesMetric)
	}
	return counts, err
}

// emitCosts prints the medians of the turns.
func (o *offeredWay) emitCosts() {
	of := func(f func(nodesCost) float64) float64 { return medianOf(o.costs, f) }
	o.emitLoad(fmt.Sprintf("nodes/rate=%d/%s", o.rate()*o.Lines, o.name), o.total, o.Lines, "events/s", value{of(nodesCost.all), "cpu-µs/event"},
		value{of(func(c nodesCost) float64 { return c.program }), "program-cpu-µs/event"},
		value{of(func(c nodesCost) float64 { return c.database }), "db-cpu-µs/event"},
		value{of(func(c nodesCost) float64 { return c.appends }), "appends/event"},
		value{of(func(c nodesCost) float64 { return c.passes }), "passes/event"})
}

// emitRatios prints the medians of the ratios, each of two loads of one turn.
func (s *suite) emitRatios(costs map[string][]nodesCost) {
	ratio := func(of, to string, part func(nodesCost) float64, unit string) value {
		ratios := make([]float64, len(costs[of]))
		for i := range ratios {
			ratios[i] = part(costs[of][i]) / part(costs[to][i])
		}
		return value{medianOf(ratios, func(r float64) float64 { return r }), unit}
	}
	program := func(c nodesCost) float64 { return c.program }
	database := func(c nodesCost) float64 { return c.database }
	const alone, one, third, three, direct = "alone/turns", "nodes=1/turns", "nodes=1/third", "nodes=3/turns", "nodes=3/organization"
	s.emit("nodes/ratio", nodesTurns-1, ratio(three, one, nodesCost.all, "three/one"), ratio(three, one, program, "program-three/one"),
		ratio(three, one, database, "db-three/one"), ratio(direct, one, nodesCost.all, "direct-three/one"),
		ratio(one, alone, nodesCost.all, "one/alone"), ratio(third, one, nodesCost.all, "third/one"),
		ratio(three, third, nodesCost.all, "three/third"))
	passing := make([]float64, len(costs[three]))
	for i := range passing {
		by, without := costs[three][i], costs[direct][i]
		passing[i] = (by.program - without.program) / (by.passes - without.passes)
	}
	s.emit("nodes/passing", nodesTurns-1, value{medianOf(passing, func(p float64) float64 { return p }), "cpu-µs/request"})
}

// medianOf returns the median of a number of each.
func medianOf[T any](all []T, of func(T) float64) float64 {
	numbers := make([]float64, len(all))
	for i, x := range all {
		numbers[i] = of(x)
	}
	slices.Sort(numbers)
	return numbers[len(numbers)/2]
}
