package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"time"

	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/agentledger/agentledger/internal/http/header"
	"github.com/agentledger/agentledger/internal/otlp"
	"github.com/agentledger/agentledger/internal/syncs"
)

const (
	maxTries       = 5
	firstPause     = time.Second // doubled on each retry
	maxTraceAnswer = 64 << 10    // bytes read of a response
)

// traceClient sends spans (otlptrace.Client). Its methods may be called concurrently.
type traceClient struct {
	address string // of the receiver for traces
	header  http.Header
	timeout time.Duration // of one attempt
	plain   bool
	http    *http.Client
	logger  *slog.Logger
}

// Start does nothing.
func (*traceClient) Start(context.Context) error { return nil }

// Stop closes idle connections. A request in flight completes.
func (c *traceClient) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans. It retries while the receiver is busy, until ctx ends. Spans that were not accepted are logged
// rather than returned, because the SDK does not write errors to the log.
func (c *traceClient) UploadTraces(ctx context.Context, all []*spans.ResourceSpans) error {
	rejected, err := c.deliver(ctx, all)
	switch {
	case err != nil:
		c.logger.Warn("spans were not delivered", "err", err)
	case rejected != otlp.Rejection{}:
		c.logger.Warn("the receiver of traces rejected spans", "rejected", rejected.Count,
			"message", fmt.Sprintf("%.200q", rejected.Message))
	}
	return nil
}

func (c *traceClient) deliver(ctx context.Context, all []*spans.ResourceSpans) (otlp.Rejection, error) {
	body, err := proto.Marshal(&spans.TracesData{ResourceSpans: all}) // the bytes of ExportTraceServiceRequest
	if err != nil {
		return otlp.Rejection{}, fmt.Errorf("write request: %w", err)
	}
	if !c.plain {
		if body, err = otlp.Compress(body); err != nil {
			return otlp.Rejection{}, err
		}
	}
	for try := 1; ; try++ {
		a, err := c.post(ctx, body)
		switch {
		case err != nil:
			return otlp.Rejection{}, err
		case a.status/100 == 2:
			rejected, _ := otlp.ReadProtobuf(a.body) // a response that is not OTLP rejects nothing
			return rejected, nil
		case !isBusy(a.status) || try == maxTries:
			return otlp.Rejection{}, fmt.Errorf("answered %d", a.status)
		}
		if err := waitForNext(ctx, try, a.told); err != nil {
			return otlp.Rejection{}, fmt.Errorf("answered %d: %w", a.status, err)
		}
	}
}

// isBusy reports whether OTLP allows a request to be retried after a response with this status.
func isBusy(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusBadGateway ||
		status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout
}

// waitForNext waits between half of the pause and the whole pause, or as long as the receiver requested. It returns an
// error at once if ctx would end earlier.
func waitForNext(ctx context.Context, try int, told time.Duration) error {
	pause := firstPause << (try - 1)
	pause = max(told, pause/2+rand.N(pause/2))
	if end, ok := ctx.Deadline(); ok && time.Until(end) < pause {
		return fmt.Errorf("the deadline does not allow a pause of %v", pause.Round(time.Millisecond))
	}
	return syncs.Sleep(ctx, pause)
}

// answer is a response.
type answer struct {
	status int
	body   []byte        // of success
	told   time.Duration // pause that the receiver asks for
}

// post makes one attempt.
func (c *traceClient) post(ctx context.Context, body []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(body))
	if err != nil {
		return answer{}, fmt.Errorf("make request: %w", err)
	}
	for name, values := range c.header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	if !c.plain {
		r.Header.Set("Content-Encoding", "gzip")
	}
	w, err := c.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer w.Body.Close()
	a := answer{status: w.StatusCode, told: header.RetryAfter(w.Header, time.Now())}
	// A truncated response does not matter: the status counts.
	a.body, _ = io.ReadAll(io.LimitReader(w.Body, maxTraceAnswer))
	return a, nil
}
