package fakeservice

import (
	"io"
	"net/http"
	"net/http/httptest"
)

// Fault is what goes wrong with one request.
type Fault uint8

const (
	None         Fault = iota // the request is served
	Unavailable               // 503 overloaded, nothing was done
	Later                     // 503 with Retry-After: 1
	BadGateway                // 502 with a page that is not JSON
	Cut                       // the connection is cut, nothing was done
	Lost                      // the request is served and the connection cut before the answer
	Internal                  // 500
	Redirected                // 307 to somewhere else
	NotJSON                   // 200 with a page
	OutcomeTaken              // the request is served and answered by 503 outcome_unknown
)

// Next sets the faults of the next requests, one each.
func (s *Service) Next(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// nextFault records each request and applies its fault.
func (s *Service) nextFault(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ordered := s.recordRequest(r)
		switch ordered {
		case None, Lost, OutcomeTaken:
		default: // an answer before the body was read may be lost with the connection
			_, _ = io.Copy(io.Discard, r.Body)
		}
		switch ordered {
		case None:
			next.ServeHTTP(w, r)
		case Unavailable:
			writeRefusal(w, http.StatusServiceUnavailable, "Overloaded", "overloaded")
		case Later:
			w.Header().Set("Retry-After", "1")
			writeRefusal(w, http.StatusServiceUnavailable, "Overloaded", "overloaded")
		case BadGateway:
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte("<html>no</html>"))
		case Cut:
			panic(http.ErrAbortHandler)
		case Lost:
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case Internal:
			writeRefusal(w, http.StatusInternalServerError, "Internal error", "")
		case Redirected:
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		case NotJSON:
			_, _ = w.Write([]byte("<html>hello</html>"))
		case OutcomeTaken:
			next.ServeHTTP(httptest.NewRecorder(), r)
			writeRefusal(w, http.StatusServiceUnavailable, "The outcome is unknown", "outcome_unknown")
		}
	})
}

func (s *Service) recordRequest(r *http.Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests,
		Request{r.Method, r.URL.Path, r.Header.Get("Idempotency-Key"), r.Header.Get("Service-Version")})
	if len(s.faults) == 0 {
		return None
	}
	fault := s.faults[0]
	s.faults = s.faults[1:]
	return fault
}
