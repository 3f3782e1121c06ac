package publicapi

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/limit"
)

// admit lets a read in while there is room.
func (s *Server) admit(r *http.Request, get func(*http.Request) (representation, error)) (representation, error) {
	if err := s.gate.Enter(id.Service, 1); err != nil {
		return representation{}, err
	}
	defer s.gate.Leave(id.Service, 1)
	return get(r)
}

func registerGate(r prometheus.Registerer, g *limit.Gate) {
	r.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_public_in_flight", Help: "Public reads that are being answered.",
		}, func() float64 { return float64(g.Inside()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agentledger_public_overload_total", Help: "Public reads refused since too many were under way.",
		}, func() float64 { n := g.Refused(); return float64(n.All + n.One) }),
	)
}
