package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// Open approvals and long polls of BenchmarkLongPolls.
const (
	pollOrganizations = 20 // an ingest key has at most 500 open
	pollApprovals     = 10_000
	pollWaiters       = 5_000
)

// 10,000 approvals are open and 5,000 agents wait for them: the server's memory, and the cost of an event.
func BenchmarkLongPolls(b *testing.B) {
	p := startProcess(b, b.TempDir(), "tuning.max_connections=0", "--log-level", "error")
	quiet := resident{p, p.found(b.Context(), "quiet", nil)}
	requests := quiet.requests(b, 2*windowRequests, 450)
	c := dial(b, p.main)
	window := func(requests [][]byte) (took []time.Duration) {
		for _, r := range requests {
			began := time.Now()
			if got := c.roundTrip(b, r); got != 201 {
				b.Fatalf("status %d", got)
			}
			took = append(took, time.Since(began))
			time.Sleep(pace)
		}
		return took
	}
	alone, before := window(requests[:windowRequests]), p.residentKiB(b)
	polls := askMany(b, p)
	open := p.residentKiB(b)
	waiting := make([]*connection, pollWaiters)
	for i := range waiting {
		waiting[i] = dial(b, p.main)
		if _, err := waiting[i].Write(polls[i]); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(time.Second) // until all of them wait
	b.ResetTimer()
	beside := window(requests[windowRequests:])
	b.StopTimer()
	held := p.residentKiB(b)
	report(b, alone, beside)
	b.ReportMetric(float64(open-before)*1024/pollApprovals, "B/approval")
	b.ReportMetric(float64(held-open)*1024/pollWaiters, "B/poll")
}

// askMany opens the approvals and returns requests that wait for them.
func askMany(b *testing.B, p *process) (polls [][]byte) {
	b.Helper()
	var group sync.WaitGroup
	var mu sync.Mutex
	for n := range pollOrganizations {
		org := p.found(b.Context(), fmt.Sprint("org-", n), nil)
		group.Go(func() {
			own := askOf(b, p, org, pollApprovals/pollOrganizations)
			mu.Lock()
			defer mu.Unlock()
			polls = append(polls, own...)
		})
	}
	group.Wait()
	return polls
}

func askOf(b *testing.B, p *process, org foundedOrganization, n int) (polls [][]byte) {
	person, err := newOperator(p.main, p.identity)
	if err == nil {
		err = person.signIn(b.Context(), "ops@"+string(org.Slug)+".example", testPassword)
	}
	if err == nil {
		err = person.callConsole(b.Context(), "POST", "/policies", rawJSON(strings.Replace(refundPolicy, `"ttl_seconds":600`, `"ttl_seconds":3600`, 1)), nil)
	}
	if err == nil {
		err = person.callConsole(b.Context(), "POST", "/policies/refunds/activate", struct{}{}, nil)
	}
	if err != nil {
		b.Error(err)
		return nil
	}
	c, err := client.New(client.Config{BaseURL: p.main, Token: org.IngestKey.Secret})
	if err != nil {
		b.Error(err)
		return nil
	}
	for i := range n {
		a, err := c.AskApproval(b.Context(), client.ApprovalQuestion{
			Organization: org.OrganizationID, Agent: org.Agent.AgentID, Tool: "acme.refund", Trace: id.Trace(fmt.Sprint("trc-", i)),
		})
		if err != nil {
			b.Error(err)
			return polls
		}
		polls = append(polls, fmt.Appendf(nil, "GET /v1/ingest/approvals/%s?wait=30 HTTP/1.1\r\nHost: log.test\r\nAuthorization: Bearer %s\r\n\r\n", a.ID, org.IngestKey.Secret))
	}
	return polls
}

// residentKiB returns the server's memory.
func (p *process) residentKiB(b *testing.B) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := bytes.Cut(text, []byte("VmRSS:"))
	kib, err := strconv.Atoi(strings.Fields(string(after))[0])
	if err != nil {
		b.Fatal(err)
	}
	return kib
}
