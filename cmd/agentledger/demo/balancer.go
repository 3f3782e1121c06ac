package demo

import (
	"net/http"
	"sync"
	"sync/atomic"
)

// balancer sends each request to the next node, as a plain load balancer does. It knows nothing of organizations, and
// asks no node whether it is well: the client of a request that fails sends it again, which then goes to another node.
type balancer struct {
	nodes     []*node
	next      atomic.Uint64
	transport http.Transport

	mu    sync.Mutex
	taken map[*node]int // answers below 500, by the node that was asked
}

// RoundTrip implements http.RoundTripper.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	n := b.nodes[b.next.Add(1)%uint64(len(b.nodes))]
	r = r.Clone(r.Context())
	r.URL.Host = addressOf(n.main)
	answer, err := b.transport.RoundTrip(r)
	if err == nil && answer.StatusCode < http.StatusInternalServerError {
		b.mu.Lock()
		b.taken[n]++
		b.mu.Unlock()
	}
	return answer, err
}

// asked returns how many nodes have answered requests.
func (b *balancer) asked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.taken)
}
