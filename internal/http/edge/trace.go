package edge

import (
	"net/http"
	"strconv"
)

// startSpan begins the span of a request, with the attributes of OpenTelemetry's semantic conventions for HTTP. It is a
// root span, because trace headers of clients are not trusted. It has the route instead of the path, which contains values
// of the client.
func (e *Edge) startSpan(a *answer, r *http.Request) *http.Request {
	method, name := knownMethod(r), knownMethod(r)
	if method == otherMethod {
		method, name = "_OTHER", "HTTP"
	}
	route := a.meter.route
	if route == noRoute {
		route = ""
	}
	if route != "" {
		name += " " + route
	}
	ctx, s := e.Tracer.StartServerSpan(r.Context(), name)
	a.span = s
	s.SetText("http.request.method", method)
	if route != "" {
		s.SetText("http.route", route)
		s.SetText("url.path", route)
	}
	s.SetText("url.scheme", schemeOf(r))
	s.SetText("network.protocol.version", strconv.Itoa(r.ProtoMajor)+"."+strconv.Itoa(r.ProtoMinor))
	s.SetText("request_id", a.id[0])
	return r.WithContext(ctx)
}

func schemeOf(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

func (a *answer) endSpan() {
	status := max(a.status, http.StatusOK)
	a.span.SetInt("http.response.status_code", status)
	if status >= http.StatusInternalServerError {
		a.span.SetText("error.type", strconv.Itoa(status))
	}
	if a.failure != nil && statusOfKind(a.failure.Kind) >= http.StatusInternalServerError {
		a.span.MarkFailed(a.failure.Message)
	}
	a.span.End()
}
