package identity

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
)

// loginCounters count sign-in attempts by result.
type loginCounters struct {
	accepted, refused, limited, failed prometheus.Counter
}

func newLoginCounters(r prometheus.Registerer) loginCounters {
	logins := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentledger_logins_total",
		Help: "Sign-in attempts: accepted, refused (wrong address or password), limited " +
			"(too many), failed (for a reason other than the credentials).",
	}, []string{"result"})
	r.MustRegister(logins)
	return loginCounters{
		accepted: logins.WithLabelValues("accepted"), refused: logins.WithLabelValues("refused"),
		limited: logins.WithLabelValues("limited"), failed: logins.WithLabelValues("failed"),
	}
}

// countAttempt counts an attempt by its result err.
func (c loginCounters) countAttempt(err error) {
	switch {
	case err == nil:
		c.accepted.Inc()
	case fault.Is(err, fault.Unauthorized):
		c.refused.Inc()
	case fault.Is(err, fault.RateLimited):
		c.limited.Inc()
	default:
		c.failed.Inc()
	}
}
