package edge_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/telemetry"
)

// The span of a request has the kind and attributes of OpenTelemetry's HTTP server conventions, and no value of the
// client.
func TestServerSpans(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	e := &edge.Edge{Tracer: telemetry.NewTracer(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)).Tracer("test"))}
	var table edge.Table[edge.Handler]
	table.Add("GET", "/things/{name}", edge.Permission{}, edge.Body{}, func(w http.ResponseWriter, r *http.Request) error {
		if strings.HasSuffix(r.URL.Path, "broken") {
			return errors.New("a cause")
		}
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	r := e.Router()
	edge.Mount(r, edge.PlainSurface(e), table)
	for _, tt := range []struct {
		method, path, name string
		want               map[string]string
	}{
		{"GET", "/things/secret", "GET /things/{name}", map[string]string{"http.request.method": "GET", "http.route": "/things/{name}",
			"url.path": "/things/{name}", "url.scheme": "http", "network.protocol.version": "1.1", "http.response.status_code": "204"}},
		{"GET", "/things/broken", "GET /things/{name}", map[string]string{"http.request.method": "GET", "http.route": "/things/{name}",
			"url.path": "/things/{name}", "url.scheme": "http", "network.protocol.version": "1.1", "http.response.status_code": "500", "error.type": "500"}},
		{"SECRET", "/things/secret", "HTTP", map[string]string{"http.request.method": "_OTHER"}},
		{"GET", "/secret", "GET", map[string]string{"http.request.method": "GET", "http.response.status_code": "404"}},
	} {
		r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(tt.method, tt.path, nil))
		ended := recorder.Ended()
		span := ended[len(ended)-1]
		if span.SpanKind() != oteltrace.SpanKindServer || span.Name() != tt.name {
			t.Errorf("%s %s: got %q of kind %v", tt.method, tt.path, span.Name(), span.SpanKind())
		}
		got := make(map[string]attribute.Value)
		for _, a := range span.Attributes() {
			got[string(a.Key)] = a.Value
			if strings.Contains(strings.ToLower(a.Value.String()), "secret") {
				t.Errorf("%s has a value of the client: %s", a.Key, a.Value.String())
			}
		}
		for name, want := range tt.want {
			if got[name].String() != want {
				t.Errorf("%s %s: got %s %q, want %q", tt.method, tt.path, name, got[name].String(), want)
			}
		}
		if _, routed := got["http.route"]; routed != (tt.want["http.route"] != "") {
			t.Errorf("%s %s: got http.route %v", tt.method, tt.path, got["http.route"])
		}
		if _, failed := got["error.type"]; failed != (tt.want["error.type"] != "") {
			t.Errorf("%s %s: got error.type %v", tt.method, tt.path, failed)
		}
		if got["request_id"].String() == "" {
			t.Errorf("%s %s: no request_id", tt.method, tt.path)
		}
	}
}
