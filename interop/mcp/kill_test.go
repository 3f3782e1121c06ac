package mcp

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/interop"
)

var (
	killCalls = flag.Int("kill-calls", 60, "calls of TestCallsThroughKills")
	killSeed  = flag.Uint64("kill-seed", 1, "seed of TestCallsThroughKills")
)

// worksVariable makes this test's program an MCP server whose calls are lines of the file works in the folder that it
// names. If listenVariable is set, it serves HTTP at that address.
const (
	worksVariable  = "WORKS_DIR"
	listenVariable = "WORKS_LISTEN"
)

// rpc is a message of JSON-RPC.
type rpc struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  *callParams     `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

type callParams struct {
	Name      string         `json:"name,omitempty"`
	Arguments map[string]int `json:"arguments"`
	State     string         `json:"requestState,omitempty"`
	Responses map[string]any `json:"inputResponses,omitempty"`
	Meta      map[string]any `json:"_meta"`
}

// serveWorks is a server of revision 2026-07-28. The tools do and pay write their number into the file before they
// answer, and ask does so in the second request of its call.
func serveWorks(dir string) error {
	works, err := os.OpenFile(filepath.Join(dir, "works"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	answer := func(text []byte) []byte {
		var m rpc
		if json.Unmarshal(text, &m) != nil || m.ID == nil {
			return nil
		}
		result := `{"resultType":"complete"}`
		if m.Method == "tools/call" {
			n := m.Params.Arguments["n"]
			result = fmt.Sprintf(`{"resultType":"complete","content":[{"type":"text","text":"did %d"}]}`, n)
			if m.Params.Name == "ask" && m.Params.Responses == nil {
				result = fmt.Sprintf(`{"resultType":"input_required","requestState":"s%d","inputRequests":{"q":{"method":"elicitation/create",`+
					`"params":{"mode":"form","message":"Go on?","requestedSchema":{"type":"object","properties":{}}}}}}`, n)
			} else if _, err := fmt.Fprintln(works, n); err != nil {
				return nil
			}
		}
		line, _ := json.Marshal(rpc{Version: "2.0", ID: m.ID, Result: json.RawMessage(result)})
		return line
	}
	if address := os.Getenv(listenVariable); address != "" {
		return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(answer(body))
		}))
	}
	// The test kills the server that was started last.
	if err := os.WriteFile(filepath.Join(dir, "pid"), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if line := answer(lines.Bytes()); line != nil {
			fmt.Printf("%s\n", line)
		}
	}
	return nil
}

// wire is a connection with a gateway.
type wire interface {
	// exchange sends a request and returns the response. An error means that the answer was lost.
	exchange(rpc) (rpc, error)
}

var errLost = errors.New("the connection has ended")

// lineWire is a connection by standard input and output.
type lineWire struct {
	out   io.Writer
	ended chan struct{}

	mu   sync.Mutex
	open map[string]chan rpc
}

func newLineWire(in io.Reader, out io.Writer) *lineWire {
	w := &lineWire{out: out, ended: make(chan struct{}), open: map[string]chan rpc{}}
	go func() {
		defer close(w.ended)
		for lines := bufio.NewScanner(in); lines.Scan(); {
			var m rpc
			if json.Unmarshal(lines.Bytes(), &m) != nil {
				continue
			}
			w.mu.Lock()
			if to := w.open[string(m.ID)]; to != nil {
				to <- m
				delete(w.open, string(m.ID))
			}
			w.mu.Unlock()
		}
	}()
	return w
}

func (w *lineWire) exchange(m rpc) (rpc, error) {
	answer := make(chan rpc, 1)
	line, _ := json.Marshal(m)
	w.mu.Lock()
	w.open[string(m.ID)] = answer
	_, err := w.out.Write(append(line, '\n'))
	w.mu.Unlock()
	if err != nil {
		return rpc{}, errLost
	}
	select {
	case m := <-answer:
		return m, nil
	case <-w.ended:
		return rpc{}, errLost
	}
}

// postWire is a connection by streamable HTTP.
type postWire struct{ address string }

func (w postWire) exchange(m rpc) (rpc, error) {
	body, _ := json.Marshal(m)
	r, err := http.NewRequest(http.MethodPost, w.address, bytes.NewReader(body))
	if err != nil {
		return rpc{}, err
	}
	for name, value := range map[string]string{"Authorization": "Bearer a token of ana", "Content-Type": "application/json",
		"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": m.Method, "Mcp-Name": m.Params.Name} {
		r.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return rpc{}, errLost
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	var got rpc
	if err != nil || json.Unmarshal(text, &got) != nil {
		return rpc{}, errLost
	}
	return got, nil
}

// killed is a gateway with a server, both of which are killed and started again, and the calls of its clients.
type killed struct {
	*interop.Service
	dir     string
	byHTTP  bool
	random  *rand.Rand
	gateway *exec.Cmd
	server  *exec.Cmd // nil for one that the gateway starts
	address string    // of the server

	mu      sync.Mutex
	changed *sync.Cond
	wire    wire           // nil while no gateway runs
	ends    map[int]string // of each call for its client
	kills   map[string]int
	last    atomic.Int64
}

func newKilled(t *testing.T, s *interop.Service, byHTTP bool) *killed {
	k := &killed{Service: s, dir: t.TempDir(), byHTTP: byHTTP, random: rand.New(rand.NewPCG(*killSeed, 0)), ends: map[int]string{}, kills: map[string]int{}}
	k.changed = sync.NewCond(&k.mu)
	program, err := os.Executable()
	must(t, err)
	server := map[string]any{"command": []string{program}, "env": map[string]string{worksVariable: k.dir}}
	settings := map[string]any{"wait": "1s", "servers": map[string]any{"works": server}}
	if byHTTP {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		k.address = free.Addr().String()
		must(t, free.Close())
		settings["servers"] = map[string]any{"works": map[string]any{"url": "http://" + k.address + "/mcp"}}
		settings["callers"] = map[string]any{"ana": map[string]any{"token_env": "TOKEN_OF_ANA"}}
	}
	text, err := json.Marshal(settings)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(k.dir, "gateway.json"), text, 0o600))
	return k
}

// start starts the gateway, and the server if it runs separately.
func (k *killed) start(t *testing.T) {
	t.Helper()
	if k.byHTTP && k.server == nil {
		program, err := os.Executable()
		must(t, err)
		k.server = exec.Command(program)
		k.server.Env = append(os.Environ(), worksVariable+"="+k.dir, listenVariable+"="+k.address)
		must(t, k.server.Start())
	}
	if k.gateway != nil {
		return
	}
	arguments := []string{"mcp", "--config", filepath.Join(k.dir, "gateway.json"), "--state", filepath.Join(k.dir, "state")}
	if k.byHTTP {
		arguments = append(arguments, "--listen", "127.0.0.1:0")
	}
	command := exec.Command(filepath.Join(k.Programs, "aps"), arguments...)
	command.Env = append(k.Environment(), "TOKEN_OF_ANA=a token of ana")
	diagnostics, err := command.StderrPipe()
	must(t, err)
	out, err := command.StdinPipe()
	must(t, err)
	in, err := command.StdoutPipe()
	must(t, err)
	_ = os.Remove(filepath.Join(k.dir, "pid"))
	must(t, command.Start())
	k.gateway = command
	lines := bufio.NewReader(diagnostics)
	var opened wire
	if k.byHTTP {
		line, err := lines.ReadString('\n')
		must(t, err)
		opened = postWire{strings.Fields(line)[3]}
	} else {
		opened = newLineWire(in, out)
	}
	go io.Copy(io.Discard, lines)
	k.setWire(opened)
}

func (k *killed) setWire(w wire) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.wire = w
	k.changed.Broadcast()
}

// kill kills one of the three programs, and waits for the end of what ends by it.
func (k *killed) kill(t *testing.T) {
	t.Helper()
	victim := [...]string{"gateway", "server", "service"}[k.random.IntN(3)]
	k.kills[victim]++
	switch {
	case victim == "service":
		k.Kill()
		time.Sleep(time.Duration(k.random.IntN(200)) * time.Millisecond)
		k.Serve(t)
		return
	case victim == "server" && k.byHTTP:
		must(t, k.server.Process.Kill())
		_ = k.server.Wait()
		k.server = nil
		return
	case victim == "server":
		for pid := 0; pid == 0; {
			text, _ := os.ReadFile(filepath.Join(k.dir, "pid")) // missing before it has begun
			pid, _ = strconv.Atoi(string(text))
			time.Sleep(time.Millisecond)
			if pid > 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	default:
		must(t, k.gateway.Process.Kill())
	}
	k.awaitEnd()
}

// awaitEnd waits for the end of the gateway.
func (k *killed) awaitEnd() {
	k.setWire(nil)
	_ = k.gateway.Wait()
	k.gateway = nil
}

// call makes a call until it has an end for its client. A call that waits for people is made again.
func (k *killed) call(n int) string {
	tool := [...]string{"do", "ask", "pay"}[n%3]
	for attempt := 0; ; attempt++ {
		k.mu.Lock()
		for k.wire == nil {
			k.changed.Wait()
		}
		w := k.wire
		k.mu.Unlock()
		end := k.callOnce(w, tool, n, attempt)
		if tool != "pay" || end != "lost" && end != "waiting" && end != "not_decided" || attempt == 50 {
			return end
		}
		if end != "waiting" {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// callOnce makes one call, with its round trips.
func (k *killed) callOnce(w wire, tool string, n, attempt int) string {
	params := &callParams{Name: tool, Arguments: map[string]int{"n": n}, Meta: map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{}},
	}}
	for leg := 0; ; leg++ {
		id := json.RawMessage(fmt.Sprintf(`"%d/%d/%d"`, n, attempt, leg))
		m, err := w.exchange(rpc{Version: "2.0", ID: id, Method: "tools/call", Params: params})
		if err != nil {
			return "lost"
		}
		var result struct {
			Type    string `json:"resultType"`
			State   string `json:"requestState"`
			IsError bool   `json:"isError"`
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
			Meta map[string]struct {
				Status string `json:"status"`
			} `json:"_meta"`
		}
		_ = json.Unmarshal(m.Result, &result) // an error of JSON-RPC has none
		switch {
		case m.Error != nil:
			return "error " + string(m.Error)
		case result.Type == "input_required":
			params = &callParams{Name: tool, Arguments: params.Arguments, Meta: params.Meta, State: result.State,
				Responses: map[string]any{"q": map[string]any{"action": "accept", "content": map[string]any{}}}}
		case !result.IsError && result.Content[0].Text == fmt.Sprint("did ", n):
			return "ok"
		case result.Meta["agentledger/call"].Status != "":
			return result.Meta["agentledger/call"].Status
		default:
			return "tool error " + string(m.Result)
		}
	}
}

// run makes calls up to a number while the programs are killed, and then without kills until each call has an end.
func (k *killed) run(t *testing.T, d *deployment, calls int) {
	k.start(t)
	var calling sync.WaitGroup
	over := make(chan struct{})
	for range 4 {
		calling.Go(func() {
			for n := int(k.last.Add(1)); n <= calls; n = int(k.last.Add(1)) {
				end := k.call(n)
				k.mu.Lock()
				k.ends[n] = end
				k.mu.Unlock()
			}
		})
	}
	go func() {
		calling.Wait()
		close(over)
	}()
	for running := true; running; {
		select {
		case <-over:
			running = false
		case <-time.After(time.Duration(20+k.random.IntN(180)) * time.Millisecond):
			if int(k.last.Load()) <= calls {
				k.kill(t)
				k.start(t)
			}
		}
	}
	k.start(t)
	for range 60 { // the gateway asks again about an intent that could still arrive after it was killed
		if !missesResults(readLedger(t, d)) {
			break
		}
		time.Sleep(time.Second)
	}
	must(t, k.gateway.Process.Signal(syscall.SIGTERM))
	k.awaitEnd()
	if k.server != nil {
		_ = k.server.Process.Kill()
		_ = k.server.Wait()
	}
}

// approveAll votes for each open approval, and against every eighth one, until stop is closed.
func approveAll(t *testing.T, d *deployment, stop <-chan struct{}) {
	for t.Context().Err() == nil {
		command := exec.Command(filepath.Join(d.Programs, "aps"), "mcp", "approvals")
		command.Env = d.person()
		desk, err := mcp.NewClient(&mcp.Implementation{Name: "approver", Version: "1"}, nil).
			Connect(t.Context(), &mcp.CommandTransport{Command: command}, nil)
		if err != nil { // the service was killed
			continue
		}
		for failed := false; !failed; {
			select {
			case <-stop:
				desk.Close()
				return
			case <-time.After(100 * time.Millisecond):
			}
			text, r := call(t, desk, "list_approvals", map[string]any{})
			var list struct {
				Approvals []struct {
					ID     string `json:"approval_id"`
					Digest string `json:"action_digest"`
				} `json:"approvals"`
			}
			failed = r.IsError || json.Unmarshal([]byte(text), &list) != nil
			for _, a := range list.Approvals {
				vote := map[string]any{"approval_id": a.ID, "vote": "approve", "action_digest": a.Digest}
				if strings.ContainsAny(a.Digest[:1], "01") {
					vote["vote"] = "deny"
				}
				_, r := call(t, desk, "vote_on_approval", vote)
				failed = failed || r.IsError
			}
		}
		desk.Close()
	}
}

// act is what the ledger has of one call.
type act struct {
	tool     string
	decision string // "allow", "allow_with_obligation" or "deny"
	results  []string
}

// readLedger returns the acts of each number.
func readLedger(t *testing.T, d *deployment) map[int][]*act {
	t.Helper()
	pack := filepath.Join(d.dir, "pack.zip")
	evidence := exec.Command(filepath.Join(d.Programs, "aps"), "evidence", "--envelopes", "--out", pack)
	evidence.Env = d.person()
	if output, err := evidence.CombinedOutput(); err != nil {
		t.Fatalf("evidence: %v\n%s", err, output)
	}
	files, err := zip.OpenReader(pack)
	must(t, err)
	defer files.Close()
	type record struct {
		EventID string `json:"event_id"`
		Policy  struct {
			Decision string `json:"effective"`
		} `json:"policy"`
	}
	type envelope struct {
		EventID string `json:"event_id"`
		Parent  string `json:"parent_event_id"`
		Tool    string `json:"tool_name"`
		Payload struct {
			Phase  string `json:"phase"`
			Status string `json:"status"`
			N      int    `json:"n"`
		} `json:"payload"`
	}
	decisions := map[string]string{}
	for _, r := range readLines[record](t, files, "records.ndjson") {
		decisions[r.EventID] = r.Policy.Decision
	}
	all, byIntent := map[int][]*act{}, map[string]*act{}
	events := readLines[envelope](t, files, "envelopes.ndjson")
	for _, e := range events {
		if e.Payload.Phase == "intent" {
			a := &act{tool: e.Tool, decision: decisions[e.EventID]}
			byIntent[e.EventID] = a
			all[e.Payload.N] = append(all[e.Payload.N], a)
		}
	}
	for _, e := range events {
		if e.Payload.Phase != "result" {
			continue
		}
		if a := byIntent[e.Parent]; a != nil {
			a.results = append(a.results, e.Payload.Status)
		} else {
			t.Errorf("a result without its intent: %+v", e)
		}
	}
	return all
}

// missesResults reports whether a permitted intent has no result.
func missesResults(all map[int][]*act) bool {
	for _, acts := range all {
		for _, a := range acts {
			if a.decision == "allow" && len(a.results) == 0 {
				return true
			}
		}
	}
	return false
}

func readLines[T any](t *testing.T, files *zip.ReadCloser, name string) (all []T) {
	t.Helper()
	file, err := files.Open(name)
	must(t, err)
	defer file.Close()
	for in := json.NewDecoder(file); in.More(); {
		var one T
		must(t, in.Decode(&one))
		all = append(all, one)
	}
	return all
}

// Gateway, server and service are killed at any moment, over both transports, during calls with round trips and with
// approvals. No act runs twice, each one that ran is in the ledger, and none has a result that it did not have.
func TestCallsThroughKills(t *testing.T) {
	for name, byHTTP := range map[string]bool{"standard input": false, "HTTP": true} {
		t.Run(name, func(t *testing.T) {
			d := deployPolicy(t, `{"policy_id": "works", "name": "Works", "default": "allow", "rules": [
				{"rule_id": "people", "tool": "mcp.works.pay", "decision": "allow_with_obligation", "reason": "A person decides"}]}`)
			stop := make(chan struct{})
			var approving sync.WaitGroup
			approving.Go(func() { approveAll(t, d, stop) })
			k := newKilled(t, d.Service, byHTTP)
			k.run(t, d, *killCalls/2)
			close(stop)
			approving.Wait()
			k.check(t, d)
		})
	}
}

// check compares what ran with the ledger and with what the clients were told. Each permitted intent has exactly one
// result. An intent that needs people has none if it was not granted, because its client was told to call again.
func (k *killed) check(t *testing.T, d *deployment) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(k.dir, "works"))
	must(t, err)
	ran := map[int]int{}
	for line := range strings.Lines(string(text)) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		must(t, err)
		ran[n]++
	}
	all := readLedger(t, d)
	ends, statuses := map[string]int{}, map[string]int{}
	for n := 1; n <= len(k.ends); n++ {
		end := k.ends[n]
		ends[end]++
		count := map[string]int{}
		byPeople := false
		for _, a := range all[n] {
			byPeople = a.tool == "mcp.works.pay"
			if a.decision == "" || len(a.results) > 1 || len(a.results) == 0 && (!byPeople || a.decision == "allow") {
				t.Errorf("call %d (%s): an intent with %s has the results %v; it ran %d times, and the client was told %q",
					n, a.tool, a.decision, a.results, ran[n], end)
			}
			if len(a.results) == 0 {
				count["not granted"]++
			}
			for _, status := range a.results {
				count[status]++
			}
		}
		for status, times := range count {
			statuses[status] += times
		}
		if ran[n] < count["ok"] || ran[n] > count["ok"]+count["unknown"] {
			t.Errorf("call %d: it ran %d times, and the ledger has %v", n, ran[n], count)
		}
		if len(all[n]) > 1 && !byPeople {
			t.Errorf("call %d: %d intents", n, len(all[n]))
		}
		switch end {
		case "ok":
			if count["ok"] == 0 {
				t.Errorf("call %d: the client got its result, and the ledger has %v", n, count)
			}
		case "denied", "not_decided", "failed":
			if ran[n] > count["ok"]+count["unknown"] || ran[n] > 0 && !byPeople {
				t.Errorf("call %d: the client was told %s, and it ran", n, end)
			}
		case "lost", "unknown":
		default:
			t.Errorf("call %d: the client was told %q", n, end)
		}
	}
	if statuses["ok"] == 0 {
		t.Error("no call ran to its end")
	}
	t.Logf("%d calls, %d of them ran; kills %v; for clients %v; in the ledger %v", len(k.ends), len(ran), k.kills, ends, statuses)
}
