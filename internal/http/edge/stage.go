package edge

import (
	"maps"
	"net/http"
	"sync"
)

// stagedWriter is the ResponseWriter of a handler that may be abandoned. Its headers are
// separate until the handler begins to respond.
type stagedWriter struct {
	below  http.ResponseWriter
	header http.Header // of the handler

	mu        sync.Mutex
	started   bool
	abandoned bool // the response is written without the handler
}

func newStagedWriter(w http.ResponseWriter) *stagedWriter {
	return &stagedWriter{below: w, header: maps.Clone(w.Header())}
}

// beginAnswer copies the headers once, and reports whether the handler may respond.
func (s *stagedWriter) beginAnswer() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.started && !s.abandoned {
		s.started = true
		s.publishHeaders()
	}
	return !s.abandoned
}

func (s *stagedWriter) publishHeaders() {
	h := s.below.Header()
	clear(h)
	maps.Copy(h, s.header)
}

// finishHandler copies the headers of a handler that has returned.
func (s *stagedWriter) finishHandler() { s.beginAnswer() }

// abandonHandler reports whether the handler has not begun to respond. If it returns true, the handler can no
// longer respond.
func (s *stagedWriter) abandonHandler() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = !s.started
	return s.abandoned
}

// Header implements http.ResponseWriter.
func (s *stagedWriter) Header() http.Header { return s.header }

// WriteHeader implements http.ResponseWriter.
func (s *stagedWriter) WriteHeader(status int) {
	if s.beginAnswer() {
		s.below.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (s *stagedWriter) Write(b []byte) (int, error) {
	if !s.beginAnswer() {
		return 0, http.ErrHandlerTimeout
	}
	return s.below.Write(b)
}

// Flush implements http.Flusher.
func (s *stagedWriter) Flush() {
	if s.beginAnswer() {
		_ = http.NewResponseController(s.below).Flush()
	}
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (s *stagedWriter) Unwrap() http.ResponseWriter { return s.below }
