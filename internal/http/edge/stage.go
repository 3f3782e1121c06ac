package edge

import (
	"maps"
	"net/http"
	"sync"
)

// stage is the ResponseWriter of a handler that may be left behind. Until the handler
// begins to answer, nothing that it does is seen: its headers lie apart.
type stage struct {
	below  http.ResponseWriter
	header http.Header // the handler's own

	mu    sync.Mutex
	begun bool
	left  bool // somebody else has answered
}

func newStage(w http.ResponseWriter) *stage {
	return &stage{below: w, header: maps.Clone(w.Header())}
}

// begin shows the headers, once, and reports whether the handler may answer.
func (s *stage) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun && !s.left {
		s.begun = true
		s.show()
	}
	return !s.left
}

func (s *stage) show() {
	h := s.below.Header()
	clear(h)
	maps.Copy(h, s.header)
}

// end shows the headers of a handler that has returned.
func (s *stage) end() { s.begin() }

// leave reports whether the handler has not begun to answer. It can't any more then.
func (s *stage) leave() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = !s.begun
	return s.left
}

// Header implements http.ResponseWriter.
func (s *stage) Header() http.Header { return s.header }

// WriteHeader implements http.ResponseWriter.
func (s *stage) WriteHeader(status int) {
	if s.begin() {
		s.below.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (s *stage) Write(b []byte) (int, error) {
	if !s.begin() {
		return 0, http.ErrHandlerTimeout
	}
	return s.below.Write(b)
}

// Flush implements http.Flusher.
func (s *stage) Flush() {
	if s.begin() {
		_ = http.NewResponseController(s.below).Flush()
	}
}

// Unwrap serves http.ResponseController.
func (s *stage) Unwrap() http.ResponseWriter { return s.below }
