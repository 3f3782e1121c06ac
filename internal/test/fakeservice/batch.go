package fakeservice

import (
	"bufio"
	"maps"
	"net/http"

	"github.com/go-json-experiment/json"
)

// Limits of a batch, from the interface.
const (
	maxBatchBytes = 8 << 20
	maxBatchLines = 1000
)

// NextLines sets the faults of the next lines of batches, one each: None, Unavailable, Internal or OutcomeTaken.
func (s *Service) NextLines(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lineFaults = append(s.lineFaults, faults...)
}

func (s *Service) postBatch(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.authenticate(r)
	switch {
	case o == nil:
		writeRefusal(w, http.StatusUnauthorized, "Invalid API key", "")
		return
	case r.Header.Get("Content-Type") != "application/x-ndjson":
		writeRefusal(w, http.StatusUnsupportedMediaType, "Content-Type must be application/x-ndjson", "")
		return
	case r.Header.Get("Idempotency-Key") != "":
		writeRefusal(w, http.StatusUnprocessableEntity, "A batch takes no Idempotency-Key", "")
		return
	}
	lines := bufio.NewScanner(http.MaxBytesReader(nil, r.Body, maxBatchBytes))
	lines.Buffer(nil, maxBatchBytes)
	var texts [][]byte
	for lines.Scan() {
		texts = append(texts, append([]byte(nil), lines.Bytes()...))
	}
	if lines.Err() != nil || len(texts) > maxBatchLines {
		writeRefusal(w, http.StatusRequestEntityTooLarge, "The batch is too large", "")
		return
	}
	s.answerLines(w, o, texts)
}

func (s *Service) answerLines(w http.ResponseWriter, o *Organization, texts [][]byte) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("X-Request-Id", "req_1")
	for _, text := range texts {
		a := s.takeLine(o, text)
		members := object{"status_code": a.status}
		maps.Copy(members, a.body.(object))
		line, err := json.Marshal(members)
		if err != nil {
			panic(err)
		}
		_, _ = w.Write(append(line, '\n'))
	}
}

// takeLine processes one line and applies its fault.
func (s *Service) takeLine(o *Organization, text []byte) answer {
	var ordered Fault
	if len(s.lineFaults) > 0 {
		ordered, s.lineFaults = s.lineFaults[0], s.lineFaults[1:]
	}
	switch ordered {
	case Unavailable:
		return refusalFor(http.StatusServiceUnavailable, "Overloaded", "overloaded")
	case Internal:
		return refusalFor(http.StatusInternalServerError, "Internal error", "")
	case OutcomeTaken:
		o.acceptEvent(text)
		return refusalFor(http.StatusServiceUnavailable, "The outcome is unknown", "outcome_unknown")
	}
	return o.acceptEvent(text)
}
