package streamexport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/http/header"
	"github.com/agentledger/agentledger/storage"
)

// maxRetryAfter bounds how long a receiver may postpone the next request by Retry-After.
const maxRetryAfter = 24 * time.Hour

// pausedLook is the time until the next look at a paused export.
const pausedLook = 10 * time.Minute

// sendBatch sends the events after a position (follow.Work).
func (x *Exporter) sendBatch(ctx context.Context, b follow.Batch) (follow.Result, error) {
	stored, err := x.exports.Get(ctx, b.Tenant, "")
	if err != nil || !stored.Exists() {
		x.metrics.forget(b.Tenant)
		return follow.Result{End: true}, err
	}
	status, err := x.statuses.Get(ctx, b.Tenant, "")
	if err != nil {
		return follow.Result{}, err
	}
	before := status.Value
	s, err := x.openSending(b, &stored.Value, &status.Value)
	if err != nil {
		return follow.Result{}, err
	}
	if err := s.sendTest(ctx); err != nil {
		return follow.Result{}, err
	}
	result := follow.Result{Next: b.Position.Cursor, Pause: pausedLook}
	if stored.Value.Active {
		if result, err = s.sendEvents(ctx); err != nil {
			return follow.Result{}, err
		}
		x.metrics.note(&b, result)
	} else {
		x.metrics.forget(b.Tenant) // a pause is not a lag
	}
	if status.Value == before {
		return result, nil
	}
	put, err := x.statuses.Put(status)
	if err == nil {
		put.If = storage.AnyVersion // the follower is the only writer, and a deletion ends the follower
		result.Changes = append(result.Changes, put)
	}
	return result, err
}

// sending is the requests for one batch.
type sending struct {
	*Exporter
	batch  follow.Batch
	to     *exportRecord
	status *statusRecord
	url    string
	header http.Header
	codec  codec
}

// openSending unseals the address and the headers of an export.
func (x *Exporter) openSending(b follow.Batch, r *exportRecord, status *statusRecord) (*sending, error) {
	sealed := sealContext(b.State.Identity().Organization)
	address, err := x.Keyring.Open(sealed, r.URL)
	if err != nil {
		return nil, fmt.Errorf("open address: %w", err)
	}
	text, err := x.Keyring.Open(sealed, r.Headers)
	if err != nil {
		return nil, fmt.Errorf("open headers: %w", err)
	}
	s := &sending{
		Exporter: x, batch: b, to: r, status: status, url: string(address), header: http.Header{},
		codec: codec{format: r.Format, encoding: r.Encoding, payloads: r.Payloads, now: x.Clock()},
	}
	var own map[string]string
	if err := json.Unmarshal(text, &own); err != nil {
		return nil, fmt.Errorf("read headers: %w", err)
	}
	for name, value := range own {
		s.header.Set(name, value)
	}
	s.header.Set("Content-Type", r.Encoding.contentType())
	s.header.Set("Content-Encoding", "gzip")
	return s, nil
}

// sendTest sends the requested test delivery, if there is one.
func (s *sending) sendTest(ctx context.Context) error {
	test, err := s.tests.Get(ctx, s.batch.Tenant, "")
	if err != nil || test.Value.AskedAt == 0 || test.Value.AskedAt <= s.status.Test.At {
		return err
	}
	body, err := s.codec.encodeTest(s.batch.State.Identity())
	if err != nil {
		return err
	}
	try, _, err := s.post(ctx, body)
	if err != nil {
		return err
	}
	s.status.Test = try.Try
	s.status.Test.At = max(try.At, test.Value.AskedAt)
	return nil
}

// sendEvents sends the events of the batch, or only the first ones if the receiver does not accept a larger request.
func (s *sending) sendEvents(ctx context.Context) (follow.Result, error) {
	b := &s.batch
	if len(b.Events) == 0 {
		return follow.Result{Next: b.After}, nil
	}
	for events := b.Events; ; events = events[:(len(events)+1)/2] {
		next := b.After
		next.Next = events[len(events)-1].Index + 1
		body, n, err := s.codec.encodeEvents(b.State.Identity(), events)
		if err != nil {
			return follow.Result{}, err
		}
		if n == 0 {
			return follow.Result{Next: next}, nil
		}
		try, requested, err := s.post(ctx, body)
		if err != nil {
			return follow.Result{}, err
		}
		if try.Status == http.StatusRequestEntityTooLarge && len(events) > 1 {
			continue
		}
		s.status.Last = try.Try
		if try.Failure != "" {
			s.metrics.requests.WithLabelValues("failed").Inc()
			return follow.Result{Next: b.Position.Cursor, Failed: true, Pause: requested}, nil
		}
		s.noteTaken(n, try)
		return follow.Result{Next: next}, nil
	}
}

// noteTaken counts log records or spans that the receiver accepted or rejected permanently.
func (s *sending) noteTaken(n int, try tried) {
	rejected := min(max(try.rejected, 0), int64(n))
	s.status.SuccessAt = try.At
	s.status.Rejected += uint64(rejected)
	s.status.Sent += uint64(int64(n) - rejected)
	s.metrics.requests.WithLabelValues("delivered").Inc()
	s.metrics.events.WithLabelValues("rejected").Add(float64(rejected))
	s.metrics.events.WithLabelValues("sent").Add(float64(int64(n) - rejected))
}

// tried is the result of one request.
type tried struct {
	Try
	rejected int64 // log records or spans of an accepted request
}

// noAnswer is the message for every receiver that did not respond, for any reason: the author of an address must not
// learn which names and addresses exist in the operator's network.
const noAnswer = "no answer"

// post sends one request. If its context has ended, it returns the context's error, and this does not count as an
// attempt.
func (s *sending) post(ctx context.Context, body []byte) (t tried, requested time.Duration, err error) {
	t.At = s.currentTime()
	answer, err := s.Caller.Post(ctx, s.url, s.header, body)
	if ctx.Err() != nil {
		return t, 0, ctx.Err()
	}
	taken := answer.Status/100 == 2
	switch {
	case err != nil && !(taken && errors.Is(err, egress.ErrTooLarge)):
		t.Failure = noAnswer
		return t, 0, nil
	case !taken:
		t.Failure = fmt.Sprintf("answered %d", answer.Status)
		requested = min(header.RetryAfter(answer.Header, s.Clock()), maxRetryAfter)
	default:
		t.rejected = s.codec.rejectedRecords(answer.Body)
	}
	t.Status = answer.Status
	return t, requested, nil
}

// lagAfter returns how far an export is behind after a batch.
func lagAfter(b *follow.Batch, r follow.Result) follow.Lag {
	lag := follow.Lag{}
	if size := b.State.Size(); b.State.Identity().Origin == r.Next.Origin && size > r.Next.Next {
		lag.Events = size - r.Next.Next
	}
	for i := range b.Events {
		if b.Events[i].Index >= r.Next.Next || r.Failed {
			lag.Received = b.Events[i].ReceivedAt
			lag.Events = max(lag.Events, id.Index(len(b.Events)-i))
			return lag
		}
	}
	if b.More && len(b.Events) > 0 { // the next one was received at that time or later
		lag.Received, lag.Events = b.Events[len(b.Events)-1].ReceivedAt, max(lag.Events, 1)
	}
	return lag
}
