package admission_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// step is a call that records its steps.
type step struct {
	tenant admission.Tenant
	err    error // of Identify
	handle func() error
	steps  []string
}

func (s *step) Identify() (admission.Tenant, error) {
	s.steps = append(s.steps, "identify")
	return s.tenant, s.err
}

func (s *step) Handle() error {
	s.steps = append(s.steps, "handle")
	if s.handle == nil {
		return nil
	}
	return s.handle()
}

func (s *step) Send() error {
	s.steps = append(s.steps, "send")
	return nil
}

// The steps of a request are in order, and a full limit rejects it.
func TestServe(t *testing.T) {
	for _, anonymous := range []bool{false, true} {
		limit := admission.NewLimit(1, 1)
		class := &admission.Class{Control: admission.New(1), Limit: limit, MaxBody: 100, Anonymous: anonymous}
		serve := func(s *step) error {
			return class.Serve(httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body")), s)
		}
		ok := &step{tenant: of(red), handle: func() error {
			if limit.WeightInUse() != 1 {
				t.Error("handled without the limit")
			}
			return nil
		}}
		if err := serve(ok); err != nil || strings.Join(ok.steps, " ") != "identify handle send" {
			t.Errorf("anonymous %v: got %v, %v", anonymous, ok.steps, err)
		}
		unknown := &step{err: errors.New("unknown")}
		if err := serve(unknown); !errors.Is(err, unknown.err) || len(unknown.steps) != 1 {
			t.Errorf("anonymous %v: got %v, %v", anonymous, unknown.steps, err)
		}
		failed := errors.New("failed")
		if err := serve(&step{tenant: of(red), handle: func() error { return failed }}); !errors.Is(err, failed) {
			t.Errorf("anonymous %v: got %v", anonymous, err)
		}
		held := of(red).ID
		if anonymous {
			held = 0
		}
		if err := limit.Acquire(held, 1); err != nil {
			t.Fatalf("anonymous %v: the limit was not released: %v", anonymous, err)
		}
		if err := serve(&step{tenant: of(red)}); !fault.Is(err, fault.Overloaded) {
			t.Errorf("anonymous %v: got %v, want overloaded", anonymous, err)
		}
	}
}

// A small body is read before the slot is acquired, and a large one in the slot.
func TestServeReadsBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, length := range []int{10, 100 << 10} {
			control := admission.New(1)
			class := &admission.Class{Control: control, Limit: admission.NewLimit(10, 10), MaxBody: 1 << 20}
			if err := control.Slots.Acquire(t.Context(), of(blue), 1); err != nil {
				t.Fatal(err)
			}
			if err := control.Slots.Acquire(t.Context(), of(red), 100); err != nil { // the whole share
				t.Fatal(err)
			}
			body := &countedReader{Reader: strings.NewReader(strings.Repeat("x", length))}
			r := httptest.NewRequest(http.MethodPost, "/", body)
			r.ContentLength = int64(length)
			done := false
			go func() {
				_ = class.Serve(r, &step{tenant: of(red), handle: func() error {
					_, err := io.ReadAll(r.Body)
					done = true
					return err
				}})
			}()
			synctest.Wait()
			if light := length < 64<<10; done || (body.n > 0) != light {
				t.Errorf("%d bytes: done %v, %d bytes read before the slot", length, done, body.n)
			}
			control.Slots.Release(of(red), 100)
			synctest.Wait()
			if !done || body.n != length {
				t.Errorf("%d bytes: done %v, %d bytes read with the slot", length, done, body.n)
			}
			time.Sleep(time.Second) // stalls are looked for no more
		}
	})
}

// While a tenant stores events as fast as possible, its reads and decisions get slots at once, and neither kind waits
// for the other. Another tenant's requests do not wait either.
func TestReadsAndDecisionsWaitForNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		control := admission.New(2)
		noteContention(t, control)
		var answered atomic.Int64
		serve := func(tenant id.Tenant, queue *admission.FairQueue, handle func() error) {
			class := &admission.Class{Control: control, Limit: admission.NewLimit(100, 100), Queue: queue}
			go func() {
				if err := class.Serve(httptest.NewRequest(http.MethodPost, "/", nil), &step{tenant: of(tenant), handle: handle}); err != nil {
					t.Error(err)
				}
				answered.Add(1)
			}()
			synctest.Wait()
		}
		end := make(chan struct{})
		waits := func() error { <-end; return nil }
		for range 20 { // more than a share
			serve(red, nil, waits)
		}
		for i, c := range []struct {
			tenant id.Tenant
			queue  *admission.FairQueue
			handle func() error
			want   int64 // answered
		}{
			{red, control.Reads, nil, 1}, {red, control.Decisions, nil, 2},
			{red, control.Reads, waits, 2}, {red, control.Reads, nil, 2}, // behind a slow read
			{red, control.Decisions, nil, 3},
			{blue, nil, nil, 4}, {blue, control.Reads, nil, 5}, {blue, control.Decisions, nil, 6},
		} {
			if serve(c.tenant, c.queue, c.handle); answered.Load() != c.want {
				t.Errorf("request %d: got %d answers, want %d", i, answered.Load(), c.want)
			}
		}
		close(end)
		synctest.Wait()
		if got := answered.Load(); got != 28 {
			t.Errorf("got %d answers, want 28", got)
		}
		time.Sleep(time.Second) // stalls are looked for no more
	})
}

// noteContention records requests of two tenants.
func noteContention(t *testing.T, control *admission.Control) {
	t.Helper()
	for _, tenant := range []id.Tenant{gold, blue} {
		if err := control.Slots.Acquire(t.Context(), of(tenant), 1); err != nil {
			t.Fatal(err)
		}
		control.Slots.Release(of(tenant), 1)
	}
	if !control.Contended() {
		t.Fatal("no contention")
	}
}

type countedReader struct {
	io.Reader
	n int
}

func (r *countedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n += n
	return n, err
}
