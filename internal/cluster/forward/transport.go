package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"
)

// Times of connections between nodes.
const (
	slotTime   = 3 * time.Second
	unusedTime = 20 * time.Second // less than that of a listener
)

// Sizes of the way to a node.
const (
	maxUnused = 256 // connections
	maxDials  = 16  // connections that are opened at a time
)

// Transport is the way to the internal listeners of other nodes. It speaks HTTP/1.1 on connections that it keeps, each
// for one request at a time. It stands in place of http.Transport for two reasons: a request takes less than
// three quarters of the processor time, because the goroutine of the request itself writes and reads. And nothing is
// sent twice, which http.Transport does by rules of its own. Its methods may be called concurrently.
type Transport struct {
	dialer *dialer

	mu    sync.Mutex
	nodes map[string]*pool // by address; one for each that was ever asked
}

// NewTransport returns a transport. config is from cluster.Identity.Client.
func NewTransport(config *tls.Config) *Transport {
	return &Transport{dialer: newDialer(config), nodes: make(map[string]*pool)}
}

// pool is the connections to one node.
type pool struct {
	address string
	dials   chan struct{}    // one for each connection that is being opened
	waiting chan *connection // takes a connection to a request that waits for one

	mu     sync.Mutex
	unused []*connection // the one that was used last is the last
	sweep  *time.Timer   // nil while unused is empty
}

func (t *Transport) poolOf(address string) *pool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.nodes[address]
	if p == nil {
		p = &pool{address: address, dials: make(chan struct{}, maxDials), waiting: make(chan *connection)}
		t.nodes[address] = p
	}
	return p
}

// connect returns a connection to a node. The caller releases or aborts it.
func (t *Transport) connect(ctx context.Context, address string) (*connection, error) {
	p := t.poolOf(address)
	for c := p.takeUnused(); c != nil; c = p.takeUnused() {
		if c.isAlive() {
			return c, nil
		}
		c.abort()
	}
	return p.open(ctx, t.dialer)
}

var errManyDials = errors.New("too many connections to the node are being opened")

// open opens a connection, or takes one that another request is done with meanwhile. Few are opened at a time: after
// a burst of requests so many handshakes would begin that each takes too long.
func (p *pool) open(ctx context.Context, d *dialer) (*connection, error) {
	select {
	case p.dials <- struct{}{}:
	default:
		if c, err := p.awaitTurn(ctx); c != nil || err != nil {
			return c, err
		}
	}
	defer func() { <-p.dials }()
	c, err := d.dial(ctx, p.address)
	if err != nil {
		return nil, err
	}
	return newConnection(c, p), nil
}

// awaitTurn returns a connection, or nothing when it is the caller's turn to open one.
func (p *pool) awaitTurn(ctx context.Context) (*connection, error) {
	timer := time.NewTimer(slotTime)
	defer timer.Stop()
	select {
	case c := <-p.waiting:
		return c, nil
	case p.dials <- struct{}{}:
		return nil, nil
	case <-timer.C:
		return nil, errManyDials
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pool) takeUnused() *connection {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.unused) == 0 {
		return nil
	}
	last := len(p.unused) - 1
	c := p.unused[last]
	p.unused[last] = nil
	p.unused = p.unused[:last]
	return c
}

// release keeps a connection on which the answer was read to its end.
func (p *pool) release(c *connection) {
	select {
	case p.waiting <- c:
		return
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.unused) == maxUnused {
		c.abort()
		return
	}
	c.used = time.Now()
	p.unused = append(p.unused, c)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(unusedTime, func() { p.dropUnused(unusedTime) })
	}
}

// dropUnused ends the connections that were not used for a time, and looks again later.
func (p *pool) dropUnused(age time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := 0
	for old < len(p.unused) && time.Since(p.unused[old].used) >= age {
		p.unused[old].abort()
		old++
	}
	p.unused = append(p.unused[:0:0], p.unused[old:]...)
	switch {
	case p.sweep == nil:
	case len(p.unused) > 0:
		p.sweep.Reset(unusedTime / 4)
	default:
		p.sweep = nil
	}
}

// CloseUnused ends the connections that no request uses.
func (t *Transport) CloseUnused() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range t.nodes {
		p.dropUnused(0)
	}
}
