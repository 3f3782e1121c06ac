package identity

import (
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/ratelimit"
)

// Limits on wrong platform secrets from one network, for all nodes together: a burst, then one per interval. A caller
// that knows the secret needs few attempts: a secret has at least 16 characters, so it is pasted.
const (
	guessBurst   = 10
	guessEvery   = 30 * time.Second
	guessTracked = 1 << 15 // networks
)

// secretAttempts limits wrong platform secrets by network, so that guessing from elsewhere never keeps out the holder
// of the right one. Its methods may be called concurrently.
type secretAttempts struct {
	now func() time.Time

	mu       sync.Mutex
	networks *ratelimit.Attempts

	accepted, refused, limited prometheus.Counter
}

func newSecretAttempts(now func() time.Time, nodes func() int, r prometheus.Registerer) *secretAttempts {
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentledger_platform_calls_total",
		Help: "Platform calls by their secret: accepted, refused (wrong secret), limited " +
			"(too many wrong secrets from the network).",
	}, []string{"result"})
	r.MustRegister(calls)
	return &secretAttempts{
		now: now, networks: ratelimit.New(ratelimit.Limit{Burst: guessBurst, Every: guessEvery, Tracked: guessTracked,
			Nodes: nodes}),
		accepted: calls.WithLabelValues("accepted"), refused: calls.WithLabelValues("refused"),
		limited: calls.WithLabelValues("limited"),
	}
}

// checkAttempt counts an attempt from an address and returns nil if its secret is correct. It returns
// fault.Unauthorized for a wrong secret and, after too many wrong ones, fault.RateLimited for every secret.
func (g *secretAttempts) checkAttempt(from netip.Addr, correct bool) error {
	network := ratelimit.NetworkOf(from)
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if wait := g.networks.Wait(network, now); wait > 0 {
		g.limited.Inc()
		return &fault.Error{Kind: fault.RateLimited, Code: "rate_limited",
			Message: "Too many wrong platform secrets, try again later", RetryAfter: wait}
	}
	if !correct {
		g.refused.Inc()
		g.networks.Add(network, now)
		return fault.New(fault.Unauthorized, "Invalid platform secret")
	}
	g.accepted.Inc()
	return nil
}
