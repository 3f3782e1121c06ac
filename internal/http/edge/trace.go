package edge

import "net/http"

// startSpan begins the span of a request. It is a root span, because the trace headers of
// clients are not trusted.
func (e *Edge) startSpan(a *answer, r *http.Request) *http.Request {
	ctx, s := e.Tracer.StartSpan(r.Context(), knownMethod(r)+" "+a.meter.route)
	a.span = s
	s.SetText("request_id", a.id[0])
	return r.WithContext(ctx)
}

func (a *answer) endSpan() {
	a.span.SetInt("http.response.status_code", max(a.status, http.StatusOK))
	if a.failure != nil && statusOfKind(a.failure.Kind) >= http.StatusInternalServerError {
		a.span.MarkFailed(a.failure.Message)
	}
	a.span.End()
}
