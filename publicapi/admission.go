package publicapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// classOf returns the admission class of a route.
func (s *Server) classOf(route *edge.Route[getter]) *admission.Class {
	c := &admission.Class{Control: s.control, Limit: s.limit, Queue: s.control.Reads, Anonymous: true}
	if strings.HasSuffix(route.Pattern, "/head") || strings.HasSuffix(route.Pattern, "/checkpoint") {
		c.Limit = s.newest
	}
	return c
}

// call is one request of the surface and its response.
type call struct {
	request
	server *Server
	get    getter
	w      http.ResponseWriter
	ofTile bool // the route serves tiles or entry bundles
	answer response
}

// Identify implements admission.Call.
func (c *call) Identify() (admission.Tenant, error) {
	err := c.server.findOrganization(&c.request)
	if err == nil {
		err = c.server.edge.CheckReader(c.Context(), c.tenant)
	}
	if c.ofTile && isElsewhere(err) && c.server.findKnown(&c.request) {
		err = nil
	}
	return admission.Tenant{ID: c.tenant, Public: true}, err
}

// isElsewhere reports whether another node serves the organization.
func isElsewhere(err error) bool {
	var e *admission.Elsewhere
	return errors.As(err, &e)
}

// Handle implements admission.Call.
func (c *call) Handle() (err error) {
	c.answer, err = c.get(&c.request)
	return err
}

// Send implements admission.Sender. It flushes, because sending takes most of the time of a
// read, and the read holds its slot until then.
func (c *call) Send() error {
	c.answer.writeTo(c.w, c.Request)
	_ = http.NewResponseController(c.w).Flush()
	return nil
}

func registerLimits(r prometheus.Registerer, limits ...*admission.Limit) {
	sum := func(count func(*admission.Limit) float64) func() float64 {
		return func() (all float64) {
			for _, l := range limits {
				all += count(l)
			}
			return all
		}
	}
	r.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_public_in_flight", Help: "Public reads in flight.",
		}, sum(func(l *admission.Limit) float64 { return float64(l.WeightInUse()) })),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agentledger_public_overload_total", Help: "Public reads rejected because too many were in flight.",
		}, sum(func(l *admission.Limit) float64 { n := l.Refused(); return float64(n.All + n.One) })),
	)
}
