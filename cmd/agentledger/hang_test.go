package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// Times of the server in these tests, and how long a test waits for an event.
const (
	hangTimeout = 3 * time.Second
	hangDrain   = 2 * time.Second
	hangPatient = 2 * time.Minute
)

// hangServer is a server on a store that can hang, and two organizations that send to it.
type hangServer struct {
	*process
	t       *testing.T
	senders []*hangSender
}

// hangSender is an organization with what it has sent and the answers.
type hangSender struct {
	foundedOrganization
	worker *worker
	server *hangServer

	mu    sync.Mutex
	sent  int
	acked map[id.Event][]byte // envelopes
	again map[id.Event][]byte // answered with 503
	codes map[string]int
}

func newHangServer(t *testing.T, flags ...string) *hangServer {
	flags = append(flags, "tuning.request_timeout="+hangTimeout.String(), "tuning.drain="+hangDrain.String(), "--metrics-listen", "127.0.0.1:0")
	s := &hangServer{process: startProcess(t, t.TempDir(), flags...), t: t}
	for _, slug := range []string{"red", "blue"} {
		org := s.found(t.Context(), slug, nil)
		w, err := newWorker(s.main, org, client.Retry{})
		if err != nil {
			t.Fatal(err)
		}
		s.senders = append(s.senders, newHangSender(s, org, w))
	}
	return s
}

func newHangSender(s *hangServer, org foundedOrganization, w *worker) *hangSender {
	return &hangSender{
		foundedOrganization: org, worker: w, server: s,
		acked: map[id.Event][]byte{}, again: map[id.Event][]byte{}, codes: map[string]int{},
	}
}

// ask sends a request and returns its status and body.
func (s *hangServer) ask(method, url, token string, body []byte) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(string(body)))
	if err != nil {
		s.t.Error(err)
		return 0, ""
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Error(err)
		return 0, ""
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Error(err)
	}
	return answer.StatusCode, string(text)
}

// event sends a new event, or one that was answered with 503, and records the answer.
func (o *hangSender) event(name id.Event, envelope []byte) (status int) {
	if envelope == nil {
		var err error
		o.mu.Lock()
		o.sent++
		name = id.Event(fmt.Sprintf("evt-%d", o.sent))
		o.mu.Unlock()
		if envelope, err = o.worker.signer.SignEvent(client.Event{EventID: name, TraceID: "t", ActionKind: "test"}); err != nil {
			o.server.t.Error(err)
		}
	}
	status, body := o.server.ask("POST", o.server.main+"/v1/ingest/events", o.IngestKey.Secret, envelope)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case status == http.StatusCreated, status == http.StatusOK:
		o.acked[name] = envelope
		delete(o.again, name)
	case status == http.StatusServiceUnavailable:
		o.again[name] = envelope
		o.codes[regexp.MustCompile(`"code":"([a-z_]+)"`).FindString(body)]++
	default:
		o.server.t.Errorf("%s: %s: got %d %s", o.Slug, name, status, body)
	}
	return status
}

// inMemory makes all requests that need no store, and wants answers.
func (o *hangSender) inMemory() {
	s := o.server
	s.t.Helper()
	question := fmt.Sprintf(`{"organization_id":%q,"agent_id":%q,"tool_name":"acme.pay"}`, o.OrganizationID, o.Agent.AgentID)
	public := s.main + "/v1/public/orgs/" + string(o.Slug) + "/transparency/"
	for _, r := range []struct{ method, url, body string }{
		{"GET", public + "head", ""},
		{"GET", public + "checkpoint", ""},
		{"GET", public + "inclusion?log_index=0", ""},
		{"POST", s.main + "/v1/ingest/policy/evaluate", question},
	} {
		if status, body := s.ask(r.method, r.url, o.IngestKey.Secret, []byte(r.body)); status != http.StatusOK {
			s.t.Errorf("%s: %s %s: got %d %s", o.Slug, r.method, r.url, status, body)
		}
	}
}

// eventually waits until a condition is true.
func (s *hangServer) eventually(what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(hangPatient); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%s: not in %v", what, hangPatient)
		}
	}
}

func (s *hangServer) ready() bool {
	status, _ := s.ask("GET", s.main+"/readyz", "", nil)
	return status == http.StatusOK
}

// metric returns the sum of a metric's series.
func (s *hangServer) metric(name string) (sum float64) {
	s.t.Helper()
	_, text := s.ask("GET", s.metrics+"/metrics", "", nil)
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			s.t.Error(err)
		}
		sum += n
	}
	return sum
}

// files returns how many files and sockets the server has open.
func (s *hangServer) files() int {
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		s.t.Error(err)
	}
	return len(all)
}

// load sends events of both organizations until stop is closed, and returns a function that waits for the senders.
func (s *hangServer) load(senders int, stop <-chan struct{}) (wait func()) {
	var group sync.WaitGroup
	for _, o := range s.senders {
		for range senders {
			group.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						o.event("", nil)
					}
				}
			})
		}
	}
	return group.Wait
}

func (o *hangSender) refused() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.again)
}

// PostgreSQL hangs while two organizations send. Events are rejected in time, requests for data in memory are answered,
// nothing piles up, and /readyz reports it. When PostgreSQL continues, the service recovers automatically: each
// acknowledged event is stored, and the rejected ones are stored once when they are sent again. A stop during the hang
// ends in time.
func TestDatabaseHangs(t *testing.T) {
	database, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = database.GoOn()
		_ = database.Stop()
	})
	s := newHangServer(t, "--storage", database.URL())
	for _, o := range s.senders {
		for range 20 {
			if status := o.event("", nil); status != http.StatusCreated {
				t.Fatal(status)
			}
		}
		o.inMemory()
	}
	s.eventually("ready", s.ready)

	const senders = 12
	stop := make(chan struct{})
	wait := s.load(senders, stop)
	if err := database.Hang(); err != nil {
		t.Fatal(err)
	}
	s.eventually("/readyz says that the store hangs", func() bool { return !s.ready() })
	round := func(n int) {
		s.eventually("requests are refused", func() bool {
			for _, o := range s.senders {
				o.inMemory()
			}
			return s.senders[0].refused() >= n*senders && s.senders[1].refused() >= n*senders
		})
	}
	round(2)
	goroutines, files := s.metric("go_goroutines"), s.files()
	round(6)
	if now := s.metric("go_goroutines"); now > goroutines+4*senders {
		t.Errorf("goroutines pile up: %v, and then %v", goroutines, now)
	}
	if now := s.files(); now > files+4*senders {
		t.Errorf("files pile up: %d, and then %d", files, now)
	}
	if s.ready() {
		t.Error("/readyz reports that the service is ready")
	}
	if s.metric("agentledger_stale_answers_total") == 0 {
		t.Error("answers from stale values are not counted")
	}
	close(stop)
	wait()

	if err := database.GoOn(); err != nil {
		t.Fatal(err)
	}
	s.eventually("ready again", s.ready)
	for _, o := range s.senders {
		s.wantRecovered(o)
	}

	if err := database.Hang(); err != nil {
		t.Fatal(err)
	}
	stop = make(chan struct{})
	wait = s.load(1, stop)
	s.eventually("/readyz says that the store hangs", func() bool { return !s.ready() })
	close(stop)
	wait()
	s.ends(syscall.SIGTERM, hangDrain+closeTime)
	if err := database.GoOn(); err != nil {
		t.Fatal(err)
	}
}

// wantRecovered checks that events are accepted, including the rejected ones when they are sent again, and that all
// acknowledged ones are stored.
func (s *hangServer) wantRecovered(o *hangSender) {
	s.t.Helper()
	for code := range o.codes {
		if code != `"code":"unavailable"` && code != `"code":"outcome_unknown"` && code != `"code":"overloaded"` {
			s.t.Errorf("%s: refused with %s", o.Slug, code)
		}
	}
	s.eventually("events are taken again", func() bool { return o.event("", nil) == http.StatusCreated })
	for name, envelope := range o.again {
		s.eventually("an event that comes again is taken", func() bool { return o.event(name, envelope) < 300 })
	}
	for name, envelope := range o.acked {
		if status := o.event(name, envelope); status != http.StatusOK {
			s.t.Errorf("%s: an acknowledged event is missing: %d", name, status)
		}
	}
	s.t.Logf("%s: %d events, codes %v", o.Slug, o.sent, o.codes)
}

// ends checks that the process exits after a signal, with status 2 and a message about what did not end.
func (s *hangServer) ends(signal syscall.Signal, bound time.Duration) {
	s.t.Helper()
	began := time.Now()
	s.signal(signal)
	select {
	case err := <-s.exited:
		s.exited <- err
	case <-time.After(hangPatient):
		s.t.Fatalf("the process has not ended %v after the signal", hangPatient)
	}
	s.t.Logf("ended %v after the signal, which may take %v", time.Since(began).Round(time.Millisecond), bound)
	if status := s.cmd.ProcessState.ExitCode(); status != exitError || !regexp.MustCompile(`did not end in time|close (ledgers|store):`).MatchString(s.logs.String()) {
		s.t.Errorf("got status %d:\n%s", status, s.logs)
	}
}
