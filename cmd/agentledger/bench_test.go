package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
)

// POST /v1/ingest/events against the real server in a separate process: ingest key, strict JSON, signature, policy,
// durable append. 1 KiB events, signed beforehand; the load runs on the same cores.
func BenchmarkIngest(b *testing.B) {
	for _, connections := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprintf("connections=%d", connections), func(b *testing.B) { benchmarkIngest(b, connections) })
	}
}

// The same with 64 connections, with tables of the most active keys and without.
func BenchmarkIngestKeyTables(b *testing.B) {
	b.Run("with", func(b *testing.B) { benchmarkIngest(b, 64) })
	b.Run("without", func(b *testing.B) { benchmarkIngest(b, 64, "tuning.key_tables_mib=0") })
}

// The same with 64 connections, without a witness and with one that cosigns ten times a second: the cost of cosigning
// for senders.
func BenchmarkIngestWitnessed(b *testing.B) {
	b.Run("nobody", func(b *testing.B) { benchmarkIngest(b, 64) })
	b.Run("witnessed", func(b *testing.B) {
		x := witnesstest.New(b, "x.example")
		x.CosignAnything()
		file := filepath.Join(b.TempDir(), "witnesses.policy")
		if err := os.WriteFile(file, []byte(x.PolicyLine("x")+"quorum x\n"), 0o600); err != nil {
			b.Fatal(err)
		}
		benchmarkIngest(b, 64, "--witness-policy-file", file, "--callout-allow", "127.0.0.0/8", "tuning.witness_interval=100ms")
		calls, _ := x.CountCalls()
		b.ReportMetric(float64(calls)/b.Elapsed().Seconds(), "cosignatures/s")
	})
}

func benchmarkIngest(b *testing.B, connections int, flags ...string) {
	p := startProcess(b, b.TempDir(), flags...)
	requests := signedRequests(b, p, b.N)
	before := cpuTime(b, p)
	var next atomic.Int64
	took := make([]time.Duration, b.N)
	b.ResetTimer()
	var group sync.WaitGroup
	for range connections {
		group.Go(func() {
			c := dial(b, p.main)
			for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
				began := time.Now()
				if status := c.roundTrip(b, requests[i]); status != http.StatusCreated {
					b.Errorf("status %d", status)
				}
				took[i] = time.Since(began)
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(float64((cpuTime(b, p)-before).Nanoseconds())/1e3/float64(b.N), "server-cpu-µs/event")
	slices.Sort(took)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// Client.Send of many concurrent callers, each with a trace of its own, against the real server. The processor time is that of
// client and server.
func BenchmarkSend(b *testing.B) {
	for _, callers := range []int{1, 64, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			p := startProcess(b, b.TempDir())
			w, err := newWorker(p.main, p.found(b.Context(), "bench", nil), client.Retry{})
			if err != nil {
				b.Fatal(err)
			}
			events := make([][]byte, b.N)
			for i := range events {
				events[i] = signedEvent(b, w, i, fmt.Sprint("trace-", i%callers))
			}
			server, own := cpuTime(b, p), ownTime(b)
			b.ResetTimer()
			var group sync.WaitGroup
			for caller := range min(callers, b.N) {
				group.Go(func() {
					for i := caller; i < b.N; i += callers {
						if r, err := w.client.Send(b.Context(), events[i]); err != nil || r.Status != client.Created {
							b.Errorf("got %+v, %v", r, err)
						}
					}
				})
			}
			group.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64((cpuTime(b, p)-server+ownTime(b)-own).Nanoseconds())/1e3/float64(b.N), "cpu-µs/event")
		})
	}
}

// ownTime returns the processor time that this process has used.
func ownTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpuTime returns the processor time that the server has used, which is more precise than the clock on a shared
// machine. It returns 0 without /proc.
func cpuTime(b *testing.B, p *process) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // field 3 on
	var ticks int
	for _, f := range fields[11:13] { // utime, stime
		n, err := strconv.Atoi(f)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100
}

// signedRequests returns the bytes of n requests.
func signedRequests(b *testing.B, p *process, n int) [][]byte {
	b.Helper()
	org := p.found(b.Context(), "bench", nil)
	w, err := newWorker(p.main, org, client.Retry{})
	if err != nil {
		b.Fatal(err)
	}
	requests := make([][]byte, n)
	for i := range requests {
		body := signedEvent(b, w, i, "bench")
		requests[i] = fmt.Appendf(nil, "POST /v1/ingest/events HTTP/1.1\r\nHost: log.test\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			org.IngestKey.Secret, len(body), body)
	}
	return requests
}

// signedEvent returns the i-th event, of about 1 KiB.
func signedEvent(b *testing.B, w *worker, i int, trace string) []byte {
	b.Helper()
	body, err := w.signer.SignEvent(client.Event{
		EventID: id.Event(fmt.Sprint("bench-", i)), TraceID: id.Trace(trace), ActorPrincipal: "bench", ActionKind: "tool_call",
		Tool: "acme.orders.read", Decision: id.Allow, Payload: map[string]any{"text": strings.Repeat("x", 450)},
	})
	if err != nil {
		b.Fatal(err)
	}
	return body
}

// connection is a client with almost no cost.
type connection struct {
	net.Conn
	r *bufio.Reader
}

func dial(b *testing.B, url string) *connection {
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		b.Error(err)
		return &connection{}
	}
	b.Cleanup(func() { c.Close() })
	return &connection{Conn: c, r: bufio.NewReader(c)}
}

// roundTrip sends a request and discards the response.
func (c *connection) roundTrip(b *testing.B, request []byte) (status int) {
	status, err := c.exchange(request)
	if err != nil {
		b.Error(err)
	}
	return status
}

func (c *connection) exchange(request []byte) (status int, err error) {
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	length := 0
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		switch {
		case status == 0:
			fmt.Sscanf(string(line), "HTTP/1.1 %d", &status)
		case bytes.HasPrefix(line, []byte("Content-Length: ")):
			fmt.Sscanf(string(line), "Content-Length: %d", &length)
		case len(line) == 2:
			_, err := io.CopyN(io.Discard, c.r, int64(length))
			return status, err
		}
	}
}
