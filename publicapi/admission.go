package publicapi

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// readerTime is for how long an answer that waits for its reader keeps its place.
const readerTime = 20 * time.Millisecond

// answer lets a read in while there is room, and to work when there is a place for
// its party. It is at work until its answer is sent, which takes most of the time,
// but a reader that is slow keeps no place.
func (s *Server) answer(w http.ResponseWriter, r request, get getter) error {
	made, p, err := s.make(&r, get)
	if err != nil {
		return err
	}
	loan := s.lobby.Lend(p, s.readWeight, readerTime)
	made.write(w, r.Request)
	_ = http.NewResponseController(w).Flush() // here, not after the place is left
	if loan.Keep() {
		s.lobby.Leave(p, s.readWeight)
	}
	return nil
}

// make returns what get does, and whose reader it is for. Without an error the
// request is still at work then.
func (s *Server) make(r *request, get getter) (made representation, p admission.Party, err error) {
	gate := s.gateOf(r)
	if err := gate.Enter(id.Service, 1); err != nil {
		return made, p, err
	}
	defer gate.Leave(id.Service, 1)
	if err = s.find(r); err != nil {
		return made, p, err
	}
	p = admission.Party{Tenant: r.tenant, Public: true}
	if err := s.lobby.Enter(r.Context(), p, s.readWeight); err != nil {
		return made, p, err
	}
	done := false
	defer func() { // after a panic too
		if !done {
			s.lobby.Leave(p, s.readWeight)
		}
	}()
	made, err = get(*r)
	done = err == nil
	return made, p, err
}

// gateOf returns what bounds reads like r.
func (s *Server) gateOf(r *request) *admission.Gate {
	if strings.HasSuffix(r.URL.Path, "/head") || strings.HasSuffix(r.URL.Path, "/checkpoint") {
		return s.newest
	}
	return s.gate
}

func registerGates(r prometheus.Registerer, gates ...*admission.Gate) {
	sum := func(count func(*admission.Gate) float64) func() float64 {
		return func() (all float64) {
			for _, g := range gates {
				all += count(g)
			}
			return all
		}
	}
	r.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_public_in_flight", Help: "Public reads that are being answered.",
		}, sum(func(g *admission.Gate) float64 { return float64(g.Inside()) })),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agentledger_public_overload_total", Help: "Public reads refused since too many were under way.",
		}, sum(func(g *admission.Gate) float64 { n := g.Refused(); return float64(n.All + n.One) })),
	)
}
