package mcp

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/interop"
)

// times are the durations of one kind of operation.
type times struct {
	mu  sync.Mutex
	all []time.Duration
}

func (t *times) measure(b *testing.B, work func() error) {
	begun := time.Now()
	err := work()
	took := time.Since(begun)
	if err != nil {
		b.Error(err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, took)
}

// report reports the first decile, the median and the 99th percentile in milliseconds.
func (t *times) report(b *testing.B, name string) {
	slices.Sort(t.all)
	for _, percent := range []int{10, 50, 99} {
		at := t.all[len(t.all)*percent/100]
		b.ReportMetric(float64(at.Microseconds())/1000, fmt.Sprintf("%s-p%d-ms", name, percent))
	}
}

// callEcho returns a call of a tool that does nothing, through a command line.
func callEcho(b *testing.B, s *interop.Service, line []string) func() error {
	call, _ := startEcho(b, s, line)
	return call
}

// startEcho is callEcho, and returns the processor time of the started program and its descendants too.
func startEcho(b *testing.B, s *interop.Service, line []string) (call func() error, used func() time.Duration) {
	command := exec.Command(line[0], line[1:]...)
	command.Env = s.Environment()
	command.Stderr = os.Stderr
	c := mcp.NewClient(&mcp.Implementation{Name: "caller", Version: "1"}, nil)
	session, err := c.Connect(context.Background(), &mcp.CommandTransport{Command: command}, nil)
	must(b, err)
	b.Cleanup(func() { session.Close() })
	return func() error {
		r, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "m"}})
		if err == nil && r.IsError {
			return fmt.Errorf("refused: %v", r.Content)
		}
		return err
	}, func() time.Duration { return processorTime(command.Process.Pid) }
}

// processorTime returns the processor time of a process and its descendants, or 0 where there is no /proc.
func processorTime(pid int) (used time.Duration) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the state, which is field 3
		number, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent, _ := strconv.Atoi(fields[1])
		switch {
		case number == pid:
			user, _ := strconv.Atoi(fields[11])
			system, _ := strconv.Atoi(fields[12])
			used += time.Duration(user+system) * time.Second / 100
		case parent == pid:
			used += processorTime(number)
		}
	}
	return used
}

// sendEvent returns the work of sending one signed event.
func sendEvent(b *testing.B, s *interop.Service) func() error {
	c, err := client.New(client.Config{BaseURL: "http://" + s.Address, Token: s.IngestKey.Secret})
	must(b, err)
	who := client.Identity{Organization: s.Organization, Agent: s.Agent.AgentID, Key: s.Agent.KeyID}
	signer, err := client.ParseSigner(who, s.Agent.Private)
	must(b, err)
	return func() error {
		signed, err := signer.SignEvent(client.Event{ActionKind: "message", TraceID: "bench"})
		if err == nil {
			_, err = c.Send(context.Background(), signed)
		}
		return err
	}
}

// appendSynced returns the work of one durable append of 1 KiB to a file.
func appendSynced(b *testing.B) func() error {
	f, err := os.CreateTemp(b.TempDir(), "floor")
	must(b, err)
	b.Cleanup(func() { f.Close() })
	text := make([]byte, 1<<10)
	return func() error {
		if _, err := f.Write(text); err != nil {
			return err
		}
		return f.Sync()
	}
}

// before is a program that is measured in turn with the one of this tree.
var before = flag.String("before", "", "program aps of another commit")

// contenders returns the command lines of a server without and with the gateway, and with that of the other program.
func contenders(b *testing.B, s *interop.Service, server string) map[string][]string {
	lines := map[string][]string{"direct": {server}, "gateway": gateway(s, b.TempDir(), server)}
	if *before != "" {
		lines["before"] = append([]string{*before}, gateway(s, b.TempDir(), server)[1:]...)
	}
	return lines
}

// BenchmarkCall measures in turn: a durable append to a file, one event, and one call of a tool that does nothing,
// without and with the gateway.
func BenchmarkCall(b *testing.B) {
	s := interop.Start(b)
	server := serverPath("mcp-server-everything")
	names := []string{"sync", "event"}
	works := []func() error{appendSynced(b), sendEvent(b, s)}
	lines := contenders(b, s, server)
	used, begun := map[string]func() time.Duration{}, map[string]time.Duration{}
	for name, line := range lines {
		work, processors := startEcho(b, s, line)
		names, works = append(names, name), append(works, work)
		must(b, work())
		used[name], begun[name] = processors, processors()
	}
	all := make([]times, len(works))
	for b.Loop() {
		for _, i := range rand.Perm(len(works)) { // what a work does after its end costs the next one
			all[i].measure(b, works[i])
		}
	}
	medians := map[string]time.Duration{}
	for i, name := range names {
		all[i].report(b, name)
		medians[name] = all[i].all[len(all[i].all)/2]
	}
	for name := range lines {
		b.ReportMetric(float64((used[name]()-begun[name]).Microseconds())/1000/float64(b.N), name+"-cpu-ms")
	}
	b.ReportMetric(float64(medians["gateway"])/float64(medians["direct"]), "gateway/direct")
}

// BenchmarkCallsAtOnce measures callers that make one call after the other, without and with the gateway.
func BenchmarkCallsAtOnce(b *testing.B) {
	s := interop.Start(b)
	server := serverPath("mcp-server-everything")
	for _, callers := range []int{1, 8, 64} {
		for name, line := range contenders(b, s, server) {
			b.Run(fmt.Sprintf("%s/%d", name, callers), func(b *testing.B) {
				work := callEcho(b, s, line)
				var took times
				var left atomic.Int64
				left.Store(int64(b.N))
				b.ResetTimer()
				var group sync.WaitGroup
				for range callers {
					group.Go(func() {
						for left.Add(-1) >= 0 {
							took.measure(b, work)
						}
					})
				}
				group.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
				took.report(b, name)
			})
		}
	}
}
