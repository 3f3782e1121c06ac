package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

func TestConn(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789"), 5000)
	mux := http.NewServeMux()
	mux.HandleFunc("/short", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/chunked", func(w http.ResponseWriter, _ *http.Request) { w.Write(long) })
	server := httptest.NewServer(mux)
	defer server.Close()
	c, err := dialConn(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, tc := range []struct {
		path   string
		status int
		body   string
	}{
		{"/short", 200, "ok"}, {"/chunked", 200, string(long)}, {"/empty", 204, ""},
		{"/missing", 404, "404 page not found\n"}, {"/short", 200, "ok"},
	} {
		status, body, err := c.Do([]byte("GET " + tc.path + " HTTP/1.1\r\nHost: test\r\n\r\n"))
		if err != nil || status != tc.status || string(body) != tc.body {
			t.Errorf("%s: got %d, %d bytes, %v", tc.path, status, len(body), err)
		}
	}
	if _, err := c.Expect(200, []byte("GET /missing HTTP/1.1\r\nHost: test\r\n\r\n")); err == nil {
		t.Error("Expect: got no error for another status")
	}
}

func TestClosedLoop(t *testing.T) {
	var steps atomic.Int64
	start := func(int) (step, error) {
		return func(int) error { steps.Add(1); return nil }, nil
	}
	r, err := closedLoop(4, loopLimit{Time: time.Minute, Count: 1000}, start)
	if err != nil || r.Steps() != 1000 || steps.Load() != 1000 {
		t.Errorf("got %d counted of %d, %v", r.Steps(), steps.Load(), err)
	}
	failed := errors.New("failed")
	_, err = closedLoop(4, loopLimit{Time: time.Minute, Count: 1000}, func(worker int) (step, error) {
		return func(n int) error {
			if n == 500 {
				return failed
			}
			return nil
		}, nil
	})
	if !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
}

func TestOpenLoopTakesEachSlotOnce(t *testing.T) {
	seen := make([]atomic.Int64, 200)
	r, err := openLoop(10_000, 3, loopLimit{Time: 20 * time.Millisecond}, func(int) (step, error) {
		return func(n int) error { seen[n].Add(1); return nil }, nil
	})
	if err != nil || r.Steps() != 200 {
		t.Fatalf("got %d, %v", r.Steps(), err)
	}
	for n := range seen {
		if got := seen[n].Load(); got != 1 {
			t.Errorf("slot %d: %d times", n, got)
		}
	}
}

func TestQuantile(t *testing.T) {
	var took latencies
	if got := took.Quantile(0.5); got != 0 {
		t.Errorf("no durations: got %v, want 0", got)
	}
	for i := range 100 {
		took = append(took, time.Duration(100-i))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 51, 0.99: 100, 1: 100} {
		if got := took.Quantile(q); got != want {
			t.Errorf("%v: got %d, want %d", q, got, want)
		}
	}
}
