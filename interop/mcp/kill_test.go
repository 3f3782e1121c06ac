package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/interop"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ledger records the events that a service has accepted.
type ledger struct {
	mu      sync.Mutex
	intents map[string]int      // n by call_id
	results map[string][]string // status by call_id
	known   map[string]bool     // event ids
}

// watchLedger returns the address of a proxy in front of the service, which records accepted events.
func watchLedger(t *testing.T, s *interop.Service) (*ledger, string) {
	l := &ledger{intents: map[string]int{}, results: map[string][]string{}, known: map[string]bool{}}
	target, err := url.Parse("http://" + s.Address)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.StatusCode/100 != 2 {
			return nil
		}
		return l.noteAccepted(r)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), bodyKey{}, body)))
	}))
	t.Cleanup(server.Close)
	return l, server.URL
}

type bodyKey struct{}

// noteAccepted records the accepted events of a request, one by one for a batch.
func (l *ledger) noteAccepted(r *http.Response) error {
	sent := r.Request.Context().Value(bodyKey{}).([]byte)
	if !strings.HasSuffix(r.Request.URL.Path, "/batch") {
		l.note(sent)
		return nil
	}
	answer, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(answer))
	answers := strings.Split(string(answer), "\n")
	for i, line := range bytes.Split(sent, []byte{'\n'}) {
		var told struct {
			Status int `json:"status_code"`
		}
		if json.Unmarshal([]byte(answers[i]), &told) == nil && told.Status/100 == 2 {
			l.note(line)
		}
	}
	return nil
}

func (l *ledger) note(body []byte) {
	var e struct {
		EventID string `json:"event_id"`
		Payload struct {
			Phase  string `json:"phase"`
			CallID string `json:"call_id"`
			Status string `json:"status"`
			N      int    `json:"n"`
		} `json:"payload"`
	}
	if json.Unmarshal(body, &e) != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[e.EventID] {
		return
	}
	l.known[e.EventID] = true
	switch e.Payload.Phase {
	case "intent":
		l.intents[e.Payload.CallID] = e.Payload.N
	case "result":
		l.results[e.Payload.CallID] = append(l.results[e.Payload.CallID], e.Payload.Status)
	}
}

// killed is a gateway that is killed and restarted.
type killed struct {
	line        []string
	environment []string
	last        atomic.Int64 // number of the newest call
}

// callUntil starts the gateway and makes calls, eight at once, until it is killed after a time.
func (k *killed) callUntil(t *testing.T, life time.Duration) {
	command := exec.Command(k.line[0], k.line[1:]...)
	command.Env = k.environment
	client := mcp.NewClient(&mcp.Implementation{Name: "caller", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		t.Logf("connect: %v", err)
		return
	}
	var calling sync.WaitGroup
	var over atomic.Bool
	for range 8 {
		calling.Go(func() {
			for !over.Load() {
				_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "count",
					Arguments: map[string]any{"n": k.last.Add(1)}})
				if err != nil {
					return
				}
			}
		})
	}
	time.Sleep(life)
	over.Store(true)
	command.Process.Kill()
	calling.Wait()
	session.Close()
}

// Gateway and service are killed at any moment: no call reaches the server twice, and each call that reached it
// has its intent and one result in the ledger.
func TestCallsThroughKills(t *testing.T) {
	s := interop.Start(t)
	ledger, address := watchLedger(t, s)
	dir := t.TempDir()
	counter, err := filepath.Abs("counter.mjs")
	must(t, err)
	counted := filepath.Join(dir, "counted")
	k := &killed{line: gateway(s, filepath.Join(dir, "state"), "node", counter, counted),
		environment: append(s.Environment(), "APS_URL="+address)}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 8 {
		if round%3 == 2 {
			s.Kill()
			time.AfterFunc(300*time.Millisecond, func() { s.Serve(t) })
		}
		k.callUntil(t, time.Duration(500+random.IntN(700))*time.Millisecond)
		waitForService(t, s)
	}
	last := exec.Command(k.line[0], k.line[1:]...) // ends at once, because its input is empty, and sends the results
	last.Env = k.environment
	output, err := last.CombinedOutput()
	if err != nil {
		t.Fatalf("last run: %v\n%s", err, output)
	}
	checkCounted(t, ledger, counted)
}

func waitForService(t *testing.T, s *interop.Service) {
	t.Helper()
	for range 100 {
		r, err := http.Get("http://" + s.Address + "/v1/public/orgs/acme/transparency/head")
		if err == nil {
			r.Body.Close()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the service does not answer")
}

func checkCounted(t *testing.T, l *ledger, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	ran := map[string]int{}
	for line := range strings.Lines(string(text)) {
		ran[strings.TrimSpace(line)]++
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	statuses := map[string]int{}
	recorded := map[string]bool{}
	for call, n := range l.intents {
		name := jsonNumber(n)
		recorded[name] = true
		results := l.results[call]
		if ran[name] > 0 && len(results) != 1 {
			t.Errorf("call %s ran and has the results %v", name, results)
		}
		for _, status := range results {
			statuses[status]++
			if status == "ok" && ran[name] != 1 {
				t.Errorf("call %s is recorded as made, and ran %d times", name, ran[name])
			}
		}
	}
	for name, times := range ran {
		if times != 1 || !recorded[name] {
			t.Errorf("call %s ran %d times, recorded: %v", name, times, recorded[name])
		}
	}
	if len(ran) < 20 || statuses["ok"] == 0 {
		t.Errorf("only %d calls ran, with the results %v", len(ran), statuses)
	}
	t.Logf("%d calls ran, results: %v", len(ran), statuses)
}

func jsonNumber(n int) string {
	text, _ := json.Marshal(n)
	return string(text)
}
