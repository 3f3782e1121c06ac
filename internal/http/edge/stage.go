package edge

import (
	"maps"
	"net/http"
	"sync"
)

// stagedWriter is the ResponseWriter of a handler that may be left behind. Its headers are
// apart from those of the answer until the handler begins to answer.
type stagedWriter struct {
	below  http.ResponseWriter
	header http.Header // the handler's own

	mu    sync.Mutex
	begun bool
	left  bool // the request was answered without the handler
}

func newStagedWriter(w http.ResponseWriter) *stagedWriter {
	return &stagedWriter{below: w, header: maps.Clone(w.Header())}
}

// beginAnswer shows the headers, once, and reports whether the handler may answer.
func (s *stagedWriter) beginAnswer() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun && !s.left {
		s.begun = true
		s.publishHeaders()
	}
	return !s.left
}

func (s *stagedWriter) publishHeaders() {
	h := s.below.Header()
	clear(h)
	maps.Copy(h, s.header)
}

// finishHandler shows the headers of a handler that has returned.
func (s *stagedWriter) finishHandler() { s.beginAnswer() }

// abandonHandler reports whether the handler has not begun to answer. After true it cannot
// begin any more.
func (s *stagedWriter) abandonHandler() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = !s.begun
	return s.left
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

// Unwrap serves http.ResponseController.
func (s *stagedWriter) Unwrap() http.ResponseWriter { return s.below }
