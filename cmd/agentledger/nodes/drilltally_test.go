package nodes_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/agentledger/agentledger/internal/cluster/forward"
)

const (
	noFault = "no fault"
	stopped = "a node is stopped, and started"
)

// tally counts what was seen under one kind of fault.
type tally struct {
	rounds       int
	acknowledged int
	longest      time.Duration   // from the first attempt of an event until it was acknowledged
	mostFailed   int             // attempts of one event
	struck       []time.Duration // the longest time without an acknowledged event, of each organization of the node in each round
	others       []time.Duration // the same of the other organizations
}

// slowEvent is the duration from which an event's failed attempts are logged.
const slowEvent = 4 * time.Second

// noteEvent records an acknowledged event, after the errors of earlier attempts.
func (d *drill) noteEvent(o *organization, began time.Time, failed []error) {
	took := time.Since(began)
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.tallies[d.now]
	s.acknowledged++
	if len(failed) > s.mostFailed && !began.Before(o.roundBegan) {
		if s.mostFailed = len(failed); d.now == stopped {
			d.t.Logf("%s: an event failed %d times: %v", o.Slug, len(failed), errors.Join(failed...))
		}
	}
	if took > s.longest {
		if s.longest = took; took > slowEvent {
			d.t.Logf("%s: an event was acknowledged after %v; failures before: %v", o.Slug, took, errors.Join(failed...))
		}
	}
	now := time.Now()
	o.gap = max(o.gap, now.Sub(o.lastEvent))
	o.lastEvent = now
}

func (d *drill) beginRound(kind string, n *node) {
	owner := map[*organization]string{}
	for _, o := range d.organizations {
		owner[o] = answererOf(n, "/v1/public/orgs/"+o.Slug+"/transparency/head")
	}
	self := answererOf(n, "/livez")
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.now = kind; d.tallies[kind] == nil {
		d.tallies[kind] = &tally{}
	}
	d.tallies[kind].rounds++
	for _, o := range d.organizations {
		o.gap, o.roundBegan, o.struck = 0, time.Now(), owner[o] == self && self != ""
	}
	d.t.Logf("%v: %s: node %d", time.Since(d.began).Round(time.Millisecond), kind, n.number)
}

// answererOf returns the id of the node that answers a request sent to another node, or "" if none does.
func answererOf(n *node, path string) string {
	answer, err := http.Get(n.main + path)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.Header.Get(forward.NodeHeader)
}

func (d *drill) endRound() {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.tallies[d.now]
	for _, o := range d.organizations {
		switch {
		case o.capped: // its events are rejected most of the time
		case o.struck:
			s.struck = append(s.struck, o.gap)
		default:
			s.others = append(s.others, o.gap)
		}
	}
	d.now = noFault
}

// report logs the tallies.
func (d *drill) report() {
	for _, kind := range slices.Sorted(maps.Keys(d.tallies)) {
		s := d.tallies[kind]
		d.t.Logf("%s: %d rounds, %d events acknowledged; longest until an event was acknowledged %v, after %d failed tries at "+
			"most; longest time without events of an organization: of the node %s, of the others %s", kind, s.rounds, s.acknowledged,
			s.longest.Round(time.Millisecond), s.mostFailed, describe(s.struck), describe(s.others))
	}
}

// describe returns the median and the maximum of some durations.
func describe(times []time.Duration) string {
	if len(times) == 0 {
		return "none"
	}
	slices.Sort(times)
	return fmt.Sprintf("%v, median %v (%d)", times[len(times)-1].Round(time.Millisecond),
		times[len(times)/2].Round(time.Millisecond), len(times))
}
