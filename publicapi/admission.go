package publicapi

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/limit"
)

// admit lets a read in while there is room, and to work when it is its turn.
func (s *Server) admit(r *http.Request, get func(*http.Request) (representation, error)) (representation, error) {
	if err := s.gate.Enter(id.Service, 1); err != nil {
		return representation{}, err
	}
	defer s.gate.Leave(id.Service, 1)
	p, err := s.party(r)
	if err != nil {
		return representation{}, err
	}
	if err := s.lobby.Enter(r.Context(), p, 1); err != nil {
		return representation{}, err
	}
	defer s.lobby.Leave(p, 1)
	return get(r)
}

// party returns whose readers a request is of: those of the organization that its
// path names, or of none.
func (s *Server) party(r *http.Request) (limit.Party, error) {
	t, err := id.Service, error(nil)
	switch {
	case chi.URLParam(r, "slug") != "":
		t, err = s.orgs.BySlug(r.Context(), id.Slug(param(r, "slug")))
	case chi.URLParam(r, "organization") != "":
		t, err = s.tenantByID(r)
	}
	return limit.Party{Tenant: t, Public: true}, err
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
