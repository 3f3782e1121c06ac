// Package clientdrill checks that the clients for Go, TypeScript and Python lose and repeat no event while a proxy
// answers wrongly and while their processes are killed: the events that a program offered are stored, refused for good,
// or still queued, each of them once.
package clientdrill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/servicetest"
)

var (
	events = flag.Int("events", 600, "events of each client in TestWrongAnswers")
	kills  = flag.Int("kills", 2, "kills of each client in TestKilled")
	seed   = flag.Uint64("seed", 1, "seed of the proxies")
)

// callers is how many callers of a client send at a time.
const callers = 32

func TestMain(m *testing.M) {
	if folder := os.Getenv(actorVariable); folder != "" {
		if err := act(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	os.Exit(servicetest.Main(m))
}

// counts are what became of the events that a client offered.
type counts struct {
	Offered int `json:"offered"`
	Stored  int `json:"stored"`
	Refused int `json:"refused"` // for good
	Queued  int `json:"queued"`
}

// drill is a client under test, with an organization and a proxy of its own.
type drill struct {
	*testing.T
	name    string
	service *servicetest.Service
	org     *servicetest.Organization
	proxy   *proxy
	folder  string
}

// eventName is the ID of the event of a number. The organization has the events that are refused: others with their ID.
func (d *drill) eventName(n int) string {
	if isRefused(n) {
		return fmt.Sprintf("evt-%s-taken-%d", d.name, n)
	}
	return fmt.Sprintf("evt-%s-%d", d.name, n)
}

// newest is above the numbers of all events in TestKilled.
const newest = 5_000

func newDrill(t *testing.T, s *servicetest.Service, name, slug string) *drill {
	t.Helper()
	d := &drill{T: t, name: name, service: s, org: s.Found(name, name+"-"+slug, name+"@"+slug+".example"), proxy: newProxy(t, s.URL, *seed), folder: t.TempDir()}
	for n := range max(*events, newest) {
		if isRefused(n) {
			d.org.Send(d.eventName(n), nil)
		}
	}
	if err := os.WriteFile(filepath.Join(d.folder, "key"), []byte(d.org.Agent.Private), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

// environment returns the settings of the client.
func (d *drill) environment() []string {
	return append(os.Environ(), "APS_URL="+d.proxy.URL, "APS_TOKEN="+d.org.IngestKey.Secret, "APS_ORG="+d.org.ID, "APS_AGENT="+d.org.Agent.AgentID,
		"APS_KEY_ID="+d.org.Agent.KeyID, "APS_KEY_FILE="+filepath.Join(d.folder, "key"))
}

const tree = "../../.."

// programs are the commands of the clients' drill programs.
var programs = map[string][]string{
	"typescript": {"node", "--no-warnings", tree + "/clients/typescript/test/drill.js"},
	"python":     {tree + "/clients/python/interpreter", "-B", "-W", "ignore", tree + "/clients/python/tests/drill.py"},
}

// command returns the command of a drill program, with more arguments.
func (d *drill) command(arguments ...any) *exec.Cmd {
	words := programs[d.name]
	for _, a := range arguments {
		words = append(words[:len(words):len(words)], fmt.Sprint(a))
	}
	c := exec.CommandContext(d.Context(), words[0], words[1:]...)
	c.Env = d.environment()
	return c
}

// output runs a command to its end and decodes what it prints.
func (d *drill) output(c *exec.Cmd) (n counts) {
	d.Helper()
	var printed, failed bytes.Buffer
	c.Stdout, c.Stderr = &printed, &failed
	if err := c.Run(); err != nil {
		d.Fatalf("%s: %v\n%s", d.name, err, failed.Bytes())
	}
	if err := json.Unmarshal(printed.Bytes(), &n); err != nil {
		d.Fatalf("%s: %v\n%s%s", d.name, err, printed.Bytes(), failed.Bytes())
	}
	return n
}

// stored returns how often each event is in the organization's ledger, by a member of lists of events, without those of newDrill.
func (d *drill) stored(member string) map[string]int {
	d.Helper()
	owner := d.service.SignIn(d.org.Owner)
	found := map[string]int{}
	for after := ""; ; {
		var page struct {
			Events []map[string]any `json:"events"`
			Next   string           `json:"next"`
		}
		owner.Call("GET", "/v1/console/events?limit=100"+after, nil, &page)
		for _, e := range page.Events {
			if !strings.Contains(fmt.Sprint(e["event_id"]), "-taken-") {
				found[fmt.Sprint(e[member])]++
			}
		}
		if page.Next == "" {
			return found
		}
		after = "&after=" + url.QueryEscape(page.Next)
	}
}

// isRefused reports whether the service refuses the event of a number for good.
func isRefused(n int) bool { return n%50 == 49 }

// Each client sends events while about half of the answers are wrong.
func TestWrongAnswers(t *testing.T) {
	s := servicetest.Empty(t)
	for name, send := range map[string]func(*drill) counts{
		"go":         sendInGo,
		"typescript": func(d *drill) counts { return d.output(d.command("send", d.folder, *events, callers)) },
		"python":     func(d *drill) counts { return d.output(d.command("send", d.folder, *events, callers)) },
	} {
		d := newDrill(t, s, name, "client")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d.T = t
			began := time.Now()
			n := send(d)
			d.proxy.report(t, name, *events >= 5_000)
			found := d.stored("event_id")
			t.Logf("%s: %d offered = %d stored + %d refused for good + %d queued; %d in the ledger; %s", name, n.Offered, n.Stored, n.Refused,
				n.Queued, len(found), time.Since(began).Round(time.Second))
			if n.Offered != *events || n.Stored != len(found) || n.Stored+n.Refused != n.Offered || n.Queued != 0 {
				t.Error("the counts do not add up")
			}
			d.checkOnce(found, *events)
		})
	}
}

// checkOnce checks that each event below n is stored once, unless it is refused, and nothing else.
func (d *drill) checkOnce(found map[string]int, n int) {
	d.Helper()
	want := 0
	for i := range n {
		name := d.eventName(i)
		switch {
		case isRefused(i):
		case found[name] != 1:
			d.Errorf("%s is stored %d times", name, found[name])
		default:
			want++
		}
	}
	if len(found) != want {
		d.Errorf("%d events are stored, want %d", len(found), want)
	}
}

// sendInGo sends the events with the client for Go. Its callers send an event again until it is stored or refused.
func sendInGo(d *drill) counts {
	c, err := client.New(client.Config{BaseURL: d.proxy.URL, Token: d.org.IngestKey.Secret, Timeout: 1500 * time.Millisecond,
		Retry: client.Retry{Base: time.Millisecond, Max: 20 * time.Millisecond}})
	if err != nil {
		d.Fatal(err)
	}
	defer c.CloseIdle()
	org, err := id.ParseOrganization(d.org.ID)
	if err != nil {
		d.Fatal(err)
	}
	signer, err := client.ParseSigner(client.Identity{Organization: org, Agent: id.Agent(d.org.Agent.AgentID), Key: id.Key(d.org.Agent.KeyID)}, d.org.Agent.Private)
	if err != nil {
		d.Fatal(err)
	}
	var next, stored, refused atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for n := int(next.Add(1) - 1); n < *events; n = int(next.Add(1) - 1) {
				envelope, err := signer.SignEvent(client.Event{EventID: id.Event(d.eventName(n)), TraceID: id.Trace(fmt.Sprint("trc-", n%97)), ActionKind: "note",
					Payload: map[string]int{"n": n}})
				if err != nil {
					d.Error(err)
					return
				}
				for {
					_, err := c.Send(d.Context(), envelope)
					if err == nil {
						stored.Add(1)
					} else if client.IsRefused(err) {
						refused.Add(1)
					} else if d.Context().Err() == nil {
						continue
					}
					break
				}
			}
		})
	}
	wg.Wait()
	return counts{Offered: *events, Stored: int(stored.Load()), Refused: int(refused.Load())}
}

// notDelivered is the line with which a process that ends states how many queued events it has left.
var notDelivered = regexp.MustCompile(`(?m)^agentledger: (\d+) queued events? (?:was|were) not delivered before the process ended`)

// Each program queues events in memory and ends while the proxy answers wrongly. Each event is stored, or counted on standard
// error; one whose answer was lost is both. Children of a process that sends send too.
func TestEnded(t *testing.T) {
	s := servicetest.Empty(t)
	const offered = 49 // none is refused
	for _, c := range []struct{ name, mode string }{{"typescript", "end"}, {"python", "end"}, {"python", "fork"}} {
		d := newDrill(t, s, c.name, c.mode)
		t.Run(c.name+" "+c.mode, func(t *testing.T) {
			t.Parallel()
			d.T = t
			var failed bytes.Buffer
			command := d.command(c.mode, d.folder, offered, callers)
			command.Stderr = &failed
			if _, err := command.Output(); err != nil {
				t.Fatalf("%v\n%s", err, failed.Bytes())
			}
			left := 0
			if line := notDelivered.FindSubmatch(failed.Bytes()); line != nil {
				left, _ = strconv.Atoi(string(line[1]))
			}
			found := d.stored("event_id")
			t.Logf("%s: %d offered, %d in the ledger, %d counted as not delivered", c.name, offered, len(found), left)
			if len(found)+left < offered || c.mode == "fork" && left > 0 {
				t.Error("the counts do not add up")
			}
			for i := range offered {
				if n := found[d.eventName(i)]; n > 1 || n == 0 && left == 0 {
					t.Errorf("%s is stored %d times", d.eventName(i), n)
				}
			}
		})
	}
}

// readNumbers returns the numbers in a file of lines, the last of which may be incomplete.
func readNumbers(t *testing.T, path string) map[int]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	numbers := map[int]bool{}
	for line := range strings.Lines(string(text)) {
		if n, err := strconv.Atoi(strings.TrimSuffix(line, "\n")); err == nil && strings.HasSuffix(line, "\n") {
			numbers[n] = true
		}
	}
	return numbers
}

// killAt starts a command and kills it once a file has more than the given number of lines, unless it ends before.
func (d *drill) killAt(c *exec.Cmd, path string, lines int) {
	d.Helper()
	var failed bytes.Buffer
	c.Stderr = &failed
	if err := c.Start(); err != nil {
		d.Fatal(err)
	}
	ended, cancel := context.WithCancel(d.Context())
	go func() {
		defer cancel()
		_ = c.Wait()
	}()
	for ended.Err() == nil && len(readNumbers(d.T, path)) <= lines {
		time.Sleep(time.Millisecond)
	}
	_ = c.Process.Kill()
	<-ended.Done()
	if c.ProcessState.Exited() {
		d.Fatalf("%s ended before it was killed: %s\n%s", d.name, c.ProcessState, failed.Bytes())
	}
}

// Each client queues events on disk while the proxy answers wrongly, and its process is killed. The next one sends the rest.
func TestKilled(t *testing.T) {
	s := servicetest.Empty(t)
	for _, name := range []string{"typescript", "python"} {
		d := newDrill(t, s, name, "client")
		d.proxy.oneIn = 5 // because the pauses of Python's queue grow to 30 seconds
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d.T = t
			offered := filepath.Join(d.folder, "offered")
			for range *kills {
				have := len(readNumbers(t, offered))
				d.killAt(d.command("queue", d.folder, have+10_000, callers), offered, have+60+d.proxy.intN(100))
			}
			n := d.output(d.command("queue", d.folder, 0, callers))
			d.checkQueued(n, offered)
		})
	}
	d := newDrill(t, s, "go", "client")
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		d.T = t
		testKilledActor(d)
	})
}

// checkQueued checks what became of the events whose queue acknowledged them. A kill may come between an event's place in
// the queue and the note of it, so up to one event of each caller may be stored in addition.
func (d *drill) checkQueued(n counts, offered string) {
	d.Helper()
	found := d.stored("event_id")
	acknowledged := readNumbers(d.T, offered)
	stored, refused := 0, 0
	for i := range acknowledged {
		name := d.eventName(i)
		switch {
		case isRefused(i):
			refused++
		case found[name] != 1:
			d.Errorf("%s is stored %d times", name, found[name])
		default:
			stored++
		}
	}
	more := len(found) - stored
	d.Logf("%s, killed %d times: %d offered = %d stored + %d refused for good + %d queued; %d in the file of refused events; %d more stored "+
		"whose call the kill cut off", d.name, *kills, len(acknowledged), stored, refused, n.Queued, n.Refused, more)
	if n.Queued != 0 || n.Refused < refused || n.Refused > refused+*kills*callers || more > *kills*callers {
		d.Error("the counts do not add up")
	}
	if stored == 0 {
		d.Error("too little was offered before the kills")
	}
}
