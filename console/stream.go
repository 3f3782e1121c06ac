package console

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"net/netip"
	"slices"
	"time"

	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/listener"
)

// Limits of a streamed answer.
const (
	streamTime = 30 * time.Minute // duration of the whole answer
	minRate    = 64 << 10         // bytes per second that the reader must accept
	patience   = 15 * time.Second // how far the reader may fall behind that rate
	pieceBytes = 32 << 10         // size of one write
)

var errSlowReader = errors.New("stream: the client reads less than 64 KiB per second")

// stream is an answer with status 200 that is sent while it is generated.
type stream struct {
	Media    string // Content-Type
	FileName string // under which browsers save it; "" for none

	// Write writes the answer. An error before the first byte is answered like any other error. After the first byte,
	// an error closes the connection, so that no reader mistakes a part for the whole. ctx is canceled when the client
	// disconnects, and 30 minutes after the start.
	Write func(ctx context.Context, w *streamWriter) error
}

// streamWriter writes a streamed answer. Only one goroutine may use it at a time.
type streamWriter struct {
	stream     *stream
	w          http.ResponseWriter
	controller *http.ResponseController
	started    bool
	from       netip.Addr
	patience   time.Duration // remaining time that writes may wait; each accepted byte adds to it
	tenant     admission.Tenant
	processors *admission.FairQueue
	failed     bool // a write failed
}

// stream sends a streamed answer in one of the slots.
func (e *exchange) stream(slots *admission.Downloads, tenant admission.Tenant) error {
	from := e.surface.Address(e.request.Request)
	release, err := slots.Acquire(tenant.ID, from)
	if err != nil {
		return err
	}
	ctx := e.Context()
	if c := listener.ContextOf(ctx); c != nil {
		c.Extend(streamTime)
	}
	w := &streamWriter{stream: e.answer.Stream, w: e.w, controller: http.NewResponseController(e.w), from: from,
		tenant: tenant, processors: e.surface.Control.Processors, patience: patience}
	defer func() { release(w.TooSlow()) }()
	if err = w.stream.Write(ctx, w); err != nil {
		return err
	}
	w.begin() // if the answer has no bytes
	return nil
}

// TakeTurn waits for a processor. The caller must call give after at most about 20 ms of work, and before Write,
// because Write may wait for the reader.
func (w *streamWriter) TakeTurn(ctx context.Context) (give func(), err error) {
	return takeTurn(ctx, w.processors, w.tenant)
}

// takeTurn waits for a processor. The caller must call give after at most about 20 ms of work.
func takeTurn(ctx context.Context, processors *admission.FairQueue, t admission.Tenant) (give func(), err error) {
	if err := processors.AcquireQuietly(ctx, t, 1); err != nil {
		return nil, err
	}
	return func() { processors.Release(t, 1) }, nil
}

// Write implements io.Writer. It fails if the reader has fallen 15 seconds behind the minimum rate. Time outside of
// Write does not count.
func (w *streamWriter) Write(p []byte) (done int, err error) {
	w.begin()
	for piece := range slices.Chunk(p, pieceBytes) {
		began := time.Now()
		_ = w.controller.SetWriteDeadline(began.Add(w.patience)) // a test's writer does not support deadlines
		n, err := w.w.Write(piece)
		done += n
		w.patience += time.Duration(n)*time.Second/minRate - time.Since(began)
		w.patience = min(w.patience, patience)
		if err == nil && w.patience <= 0 {
			err = errSlowReader
		}
		if err != nil {
			w.failed = true
			return done, err
		}
	}
	return done, nil
}

// From returns the network address of the reader.
func (w *streamWriter) From() netip.Addr { return w.from }

// TooSlow reports whether a write failed after the reader had fallen behind. A reader that disconnects shortly before
// it would be cut off also counts as too slow, because it could immediately start again.
func (w *streamWriter) TooSlow() bool { return w.failed && w.patience < patience*2/3 }

// begin sends the headers once.
func (w *streamWriter) begin() {
	if w.started {
		return
	}
	w.started = true
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
