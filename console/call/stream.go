package call

import (
	"context"
	"mime"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/listener"
)

// Times of a streamed answer.
const (
	streamTime = 30 * time.Minute // of the whole answer
	writeTime  = 30 * time.Second // of one write to a slow reader
)

// Stream is an answer with status 200 that is sent while it is made.
type Stream struct {
	Media    string // Content-Type
	FileName string // by which browsers keep it; "" for none

	// Write writes the answer. An error before the first byte is answered as every error is. After it
	// the connection ends, so that no reader takes a part for the whole. ctx ends with the client, and
	// 30 minutes after the begin.
	Write func(ctx context.Context, w *StreamWriter) error
}

// StreamWriter writes a streamed answer. One goroutine uses it at a time.
type StreamWriter struct {
	stream     *Stream
	w          http.ResponseWriter
	controller *http.ResponseController
	begun      bool
	tenant     admission.Tenant
	processors *admission.FairQueue
}

// stream sends a streamed answer.
func (e *exchange) stream() error {
	tenant := e.Who.Tenant
	if err := e.surface.streams.Acquire(tenant, 1); err != nil {
		return err
	}
	defer e.surface.streams.Release(tenant, 1)
	ctx := e.Context()
	if c := listener.ContextOf(ctx); c != nil {
		c.Extend(streamTime)
	}
	w := &StreamWriter{stream: e.answer.Stream, w: e.w, controller: http.NewResponseController(e.w),
		tenant: admission.TenantOf(tenant), processors: e.surface.Control.Processors}
	if err := w.stream.Write(ctx, w); err != nil {
		return err
	}
	w.begin() // of an answer without a byte
	return nil
}

// TakeTurn waits for a processor. Call give after at most about 20 ms of work, and before Write,
// because Write may wait for the reader.
func (w *StreamWriter) TakeTurn(ctx context.Context) (give func(), err error) {
	if err := w.processors.AcquireQuietly(ctx, w.tenant, 1); err != nil {
		return nil, err
	}
	return func() { w.processors.Release(w.tenant, 1) }, nil
}

// Write implements io.Writer. It waits for a slow reader for at most 30 seconds.
func (w *StreamWriter) Write(p []byte) (int, error) {
	w.begin()
	_ = w.controller.SetWriteDeadline(time.Now().Add(writeTime)) // a writer of a test has none
	return w.w.Write(p)
}

// begin sends the headers once.
func (w *StreamWriter) begin() {
	if w.begun {
		return
	}
	w.begun = true
	h := w.w.Header()
	h.Set("Content-Type", w.stream.Media)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if w.stream.FileName != "" {
		name := map[string]string{"filename": w.stream.FileName}
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", name))
	}
	w.w.WriteHeader(http.StatusOK)
}
