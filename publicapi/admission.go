package publicapi

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/limit"
)

// readerTime is for how long an answer that waits for its reader keeps its place.
const readerTime = 20 * time.Millisecond

// answer lets a read in while there is room, and to work when there is a place for
// its party. It is at work until its answer is sent, which takes most of the time,
// but a reader that is slow keeps no place.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, get func(*http.Request) (representation, error)) error {
	made, p, err := s.make(r, get)
	if err != nil {
		return err
	}
	loan := s.lobby.Lend(p, s.readWeight, readerTime)
	made.write(w, r)
	_ = http.NewResponseController(w).Flush() // here, not after the place is left
	if loan.Keep() {
		s.lobby.Leave(p, s.readWeight)
	}
	return nil
}

// make returns what get does, and whose reader it is for. Without an error the
// request is still at work then.
func (s *Server) make(r *http.Request, get func(*http.Request) (representation, error)) (made representation, p limit.Party, err error) {
	if err := s.gate.Enter(id.Service, 1); err != nil {
		return made, p, err
	}
	defer s.gate.Leave(id.Service, 1)
	if p, err = s.party(r); err != nil {
		return made, p, err
	}
	if err := s.lobby.Enter(r.Context(), p, s.readWeight); err != nil {
		return made, p, err
	}
	done := false
	defer func() { // after a panic too
		if !done {
			s.lobby.Leave(p, s.readWeight)
		}
	}()
	made, err = get(r)
	done = err == nil
	return made, p, err
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
