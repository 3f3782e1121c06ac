package edge_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/edge"
)

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	e := &edge.Edge{Metrics: edge.NewMetrics(registry)}
	m := e.Router()
	var table edge.Table[edge.Handler]
	for _, route := range []string{"/v1/things/{thing}", "/v1/others/{thing}"} {
		table.Add("GET", route, edge.Permission{}, edge.Body{}, func(w http.ResponseWriter, r *http.Request) error {
			switch r.URL.Query().Get("as") {
			case "limited":
				return fault.New(fault.PlanLimit, "No")
			case "failed":
				return errors.New("oops")
			case "panic":
				panic("oops")
			}
			return edge.WriteJSON(w, 200, struct{}{})
		}).Takes("as")
	}
	edge.Mount(m, edge.PlainSurface(e), table)
	for _, path := range []string{
		"/v1/things/a", "/v1/things/b", "/v1/others/c", "/v1/things/a?as=limited", "/v1/things/a?as=failed",
		"/v1/things/a?as=panic", "/unknown/d", "/v1/unknown/e",
	} {
		get(m, "GET", path)
	}
	get(m, "BREW", "/v1/things/a")
	e.Metrics.CountRefusal(fault.New(fault.Invalid, "a line of a batch"))

	text := get(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), "GET", "/").Body.String()
	for _, want := range []string{
		`agentledger_http_requests_in_flight 0`,
		`agentledger_refusals_total{code="",status="404"} 2`,
		`agentledger_refusals_total{code="",status="422"} 1`,
		`agentledger_refusals_total{code="",status="500"} 2`,
		`agentledger_refusals_total{code="plan_limit",status="429"} 1`,
		`agentledger_http_request_seconds_count{class="2xx",route="/v1/things/{thing}"} 2`,
		`agentledger_http_request_seconds_count{class="4xx",route="/v1/things/{thing}"} 1`,
		`agentledger_http_request_seconds_count{class="5xx",route="/v1/things/{thing}"} 2`,
		`agentledger_http_request_seconds_count{class="2xx",route="/v1/others/{thing}"} 1`,
		`agentledger_http_request_seconds_count{class="4xx",route="none"} 3`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
