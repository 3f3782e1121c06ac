package identity

import (
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/ratelimit"
)

// Wrong platform secrets that a network may give to all nodes together: so many at once, then
// one in each interval. A caller that knows the secret needs fewer attempts, because a secret has at
// least 16 characters and is pasted.
const (
	guessBurst   = 10
	guessEvery   = 30 * time.Second
	guessTracked = 1 << 15 // networks
)

// secretAttempts bounds wrong platform secrets by network, so that strangers elsewhere never
// keep the right one out. Its methods may be called concurrently.
type secretAttempts struct {
	now func() time.Time

	mu       sync.Mutex
	networks *ratelimit.Attempts

	accepted, refused, limited prometheus.Counter
}

func newSecretAttempts(now func() time.Time, nodes func() int, r prometheus.Registerer) *secretAttempts {
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentledger_platform_calls_total",
		Help: "Platform calls by their secret: accepted, refused (a wrong one), limited " +
			"(too many wrong ones from the network).",
	}, []string{"result"})
	r.MustRegister(calls)
	return &secretAttempts{
		now: now, networks: ratelimit.New(ratelimit.Limit{Burst: guessBurst, Every: guessEvery, Tracked: guessTracked,
			Nodes: nodes}),
		accepted: calls.WithLabelValues("accepted"), refused: calls.WithLabelValues("refused"),
		limited: calls.WithLabelValues("limited"),
	}
}

// checkAttempt lets a caller of an address know whether its secret is the right one, which
// isRight tells. fault.Unauthorized for a wrong one, fault.RateLimited, without a word
// about the secret, after too many.
func (g *secretAttempts) checkAttempt(from netip.Addr, isRight bool) error {
	network := ratelimit.NetworkOf(from)
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	if wait := g.networks.Wait(network, now); wait > 0 {
		g.limited.Inc()
		return &fault.Error{Kind: fault.RateLimited, Code: "rate_limited",
			Message: "Too many wrong platform secrets, try again later", RetryAfter: wait}
	}
	if !isRight {
		g.refused.Inc()
		g.networks.Add(network, now)
		return fault.New(fault.Unauthorized, "Invalid platform secret")
	}
	g.accepted.Inc()
	return nil
}
