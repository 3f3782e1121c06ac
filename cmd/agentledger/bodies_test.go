package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// operation is a method and a path of the document.
type operation struct {
	method, path string
	identity     bool // of the identity listener
}

// operations returns all operations of openapi.json, those of both listeners twice.
func operations(t *testing.T) (all []operation) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal([]byte(edge.OpenAPI()), &document); err != nil {
		t.Fatal(err)
	}
	for path, item := range document.Paths {
		for member := range item {
			method := strings.ToUpper(member)
			switch method {
			case "GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE":
			default:
				continue
			}
			both := path == "/livez" || path == "/readyz" || path == "/health"
			if identity := strings.HasPrefix(path, "/v1/id/"); identity || both {
				all = append(all, operation{method, path, true})
				if identity {
					continue
				}
			}
			all = append(all, operation{method, path, false})
		}
	}
	return all
}

// stalled is a way to announce a body and not to send it.
type stalled struct {
	name   string
	header string
	drip   string // sent repeatedly
}

// rawCaller has the values for requests of an organization.
type rawCaller struct {
	main, identity string // host and port
	headers        string
	fill           func(path string) string
}

// newRawCaller returns a caller that may do everything.
func newRawCaller(t *testing.T, r *refunder, approval string) *rawCaller {
	t.Helper()
	u, err := url.Parse(r.main)
	if err != nil {
		t.Fatal(err)
	}
	var cookies []string
	for _, c := range r.person.http.Jar.Cookies(u) {
		cookies = append(cookies, c.String())
	}
	headers := fmt.Sprintf("Host: log.test\r\nAuthorization: Bearer %s\r\nX-Platform-Secret: %s\r\nCookie: %s\r\nContent-Type: application/json\r\n",
		r.org.IngestKey.Secret, testSecret, strings.Join(cookies, "; "))
	parameter := regexp.MustCompile(`\{[a-zA-Z]+\}`)
	known := strings.NewReplacer("{slug}", string(r.org.Slug), "{organizationId}", r.org.OrganizationID.String(), "{agentId}", string(r.org.Agent.AgentID))
	fill := func(path string) string {
		if path == "/v1/ingest/approvals/{approvalId}" {
			return "/v1/ingest/approvals/" + approval + "?wait=30"
		}
		return parameter.ReplaceAllString(known.Replace(path), "0")
	}
	return &rawCaller{main: r.host, identity: r.identityHost, headers: headers, fill: fill}
}

// send sends a request in the way of s and returns the status of the response, or 0 if the connection ends without one.
func (c *rawCaller) send(o operation, s stalled) (status int, err error) {
	host := c.main
	if o.identity {
		host = c.identity
	}
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\n%s%s\r\n\r\n", o.method, c.fill(o.path), c.headers, s.header); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for s.drip != "" {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ended:
				return
			}
			if _, err := io.WriteString(conn, s.drip); err != nil {
				return
			}
		}
	}()
	_ = conn.SetReadDeadline(time.Now().Add(2 * time.Minute))
	reader := bufio.NewReader(conn)
	line, err := reader.ReadString('\n')
	if err == nil {
		fmt.Sscanf(line, "HTTP/1.1 %d", &status)
		_, err = io.Copy(io.Discard, reader)
	}
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		return status, fmt.Errorf("the connection is still open: %w", err)
	}
	return status, nil // the other end has closed it in some way
}

// No route of either listener keeps a connection open for a body that was announced and never arrives, or arrives byte
// by byte: GET, HEAD and OPTIONS reject it at once, the others end with body_timeout. Requests of another organization
// continue.
func TestStalledBodies(t *testing.T) {
	p := startProcess(t, t.TempDir(), "tuning.body_timeout=1s", "tuning.max_refusals=0")
	red, blue := newRefunder(t, p, p.found(t.Context(), "red", nil)), newRefunder(t, p, p.found(t.Context(), "blue", nil))
	red.requireApproval(t)
	blue.requireApproval(t)
	asked, err := red.client.AskApproval(t.Context(), red.question())
	if err != nil {
		t.Fatal(err)
	}
	caller := newRawCaller(t, red, asked.ID)
	var group sync.WaitGroup
	all := func(run func(operation) bool) {
		for _, s := range []stalled{
			{"nothing comes", "Content-Length: 10", ""},
			{"byte by byte", "Content-Length: 4000", " "},
			{"chunk by chunk", "Transfer-Encoding: chunked", "1\r\n \r\n"},
		} {
			for _, o := range operations(t) {
				if !run(o) {
					continue
				}
				group.Go(func() { caller.stall(t, o, s) })
			}
		}
	}
	logout := func(o operation) bool { return o.path == "/v1/id/auth/logout" } // ends the other sessions
	all(func(o operation) bool { return !logout(o) })
	if _, err := blue.client.AskApproval(t.Context(), blue.question()); err != nil {
		t.Errorf("the other organization: %v", err)
	}
	group.Wait()
	all(logout)
	group.Wait()
}

// stall sends a request and checks how its connection ends.
func (c *rawCaller) stall(t *testing.T, o operation, s stalled) {
	status, err := c.send(o, s)
	if err != nil {
		t.Errorf("%s %s, %s: %v", o.method, o.path, s.name, err)
	}
	bodyless := o.method == "GET" || o.method == "HEAD" || o.method == "OPTIONS"
	if bodyless != (status == http.StatusRequestEntityTooLarge) {
		t.Errorf("%s %s, %s: got %d", o.method, o.path, s.name, status)
	}
}

// Polls of one organization get a share of the connections: another organization's poll also waits and gets its answer.
// A poll beyond the limit is told when to retry, or is answered without waiting.
func TestPollsHaveShares(t *testing.T) {
	p := startProcess(t, t.TempDir(), "tuning.max_connections=16", "tuning.max_refusals=0") // 12 polls, 2 of one organization
	red, blue := newRefunder(t, p, p.found(t.Context(), "red", nil)), newRefunder(t, p, p.found(t.Context(), "blue", nil))
	red.requireApproval(t)
	blue.requireApproval(t)
	reds, err := red.client.AskApproval(t.Context(), red.question())
	if err != nil {
		t.Fatal(err)
	}
	blues, err := blue.client.AskApproval(t.Context(), blue.question())
	if err != nil {
		t.Fatal(err)
	}
	caller := newRawCaller(t, red, reds.ID)
	poll := operation{"GET", "/v1/ingest/approvals/{approvalId}", false}
	refused := make(chan int, 16)
	for range 8 {
		go func() {
			status, _ := caller.send(poll, stalled{header: "Connection: close"})
			refused <- status
		}()
	}
	for range 6 { // two of them wait
		select {
		case status := <-refused:
			if status != http.StatusServiceUnavailable {
				t.Errorf("a poll beyond the limit: got %d, want 503", status)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("too many polls of one organization wait")
		}
	}
	if a, err := red.client.GetApproval(t.Context(), reds.ID); err != nil || a.Status != "pending" {
		t.Errorf("without waiting: got %s, %v", a.Status, err)
	}
	type outcome struct {
		status string
		err    error
	}
	waits := make(chan outcome, 1)
	go func() {
		a, err := blue.client.AwaitApproval(t.Context(), blues.ID)
		waits <- outcome{string(a.Status), err}
	}()
	if err := blue.vote(t, blues, "approve"); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-waits:
		if got.err != nil || got.status != "approved" {
			t.Errorf("the other organization's poll: got %+v", got)
		}
	case <-time.After(2 * time.Minute):
		t.Error("the other organization's poll has no answer")
	}
}
