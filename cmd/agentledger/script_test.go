package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/agentledger/agentledger/internal/operate/status"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// The scripts in testdata run the real programs as an operator does. Beside what
// testscript has, they know
//
//	start [FLAGS]                 start a server: agentledger serve FLAGS; sets MAIN, IDENTITY, METRICS.
//	                              tuning.KEY=VALUE among the flags goes into a configuration file
//	terminate                     end it by SIGTERM; it must end with status 0
//	crash                         end it by SIGKILL
//	ask [FLAGS] METHOD URL        make an HTTP request, see askFlags; prints status, some headers and body
//	eventually [-as TOKEN] URL PATTERN   ask until the answer's body matches
//	member NAME FILE MEMBER       set a variable to a text of a JSON file, such as event.event_id
//	static FOLDER                 serve a folder as files; sets STATIC
//	postgres                      start a PostgreSQL server; sets STORAGE
//	agent FILE                    be an organization's agent; FILE holds what init --json printed
//	damage GLOB                   flip a bit in the middle of the file of that name
//	exits STATUS PROGRAM [ARGS]   run a program that must end with this status
//
// and the folders of the client for Python as PYTHON, of the example policies as POLICIES.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:      "testdata",
		Deadline: time.Now().Add(10 * time.Minute), // ends a program that should not serve
		Condition: func(name string) (bool, error) {
			if name != "crowded" { // in which case status reports a finding
				return false, fmt.Errorf("there is no condition %q", name)
			}
			var volume unix.Statfs_t
			err := unix.Statfs(os.TempDir(), &volume)
			return float64(volume.Bavail) < status.LowShare*float64(volume.Blocks), err
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", programs+string(filepath.ListSeparator)+env.Getenv("PATH"))
			for _, variable := range listeners() {
				env.Setenv(variable, "127.0.0.1:0")
			}
			env.Values[runningKey{}] = new(running)
			for variable, folder := range map[string]string{"PYTHON": "../../clients/python", "POLICIES": "../../docs/policies"} {
				path, err := filepath.Abs(folder)
				if err != nil {
					return err
				}
				env.Setenv(variable, path)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"start": scriptStart, "terminate": scriptTerminate, "crash": scriptCrash,
			"ask": scriptAsk, "static": scriptStatic, "eventually": scriptEventually, "member": scriptMember, "postgres": scriptPostgres, "agent": scriptAgent, "damage": scriptDamage, "exits": scriptExits,
		},
		RequireUniqueNames: true,
	})
}

func listeners() []string {
	return []string{"AGENTLEDGER_LISTEN", "AGENTLEDGER_ID_LISTEN", "AGENTLEDGER_METRICS_LISTEN"}
}

// running is a script's server; process is nil if none runs.
type running struct{ process *process }

type runningKey struct{}

func runningOf(ts *testscript.TestScript) *running { return ts.Value(runningKey{}).(*running) }

func scriptStart(ts *testscript.TestScript, neg bool, args []string) {
	r := runningOf(ts)
	if neg || r.process != nil {
		ts.Fatalf("start: not with !, and one server at a time")
	}
	cmd := exec.Command(filepath.Join(programs, "agentledger"), append([]string{"serve"}, withTuning(ts.MkAbs("."), func(v ...any) { ts.Fatalf("%v", v) }, args)...)...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), os.Environ()
	for _, variable := range listeners() {
		cmd.Env = append(cmd.Env, variable+"="+ts.Getenv(variable))
	}
	p, err := launch(cmd)
	ts.Check(err)
	ts.Defer(p.kill)
	r.process = p
	ts.Setenv("MAIN", p.main)
	ts.Setenv("IDENTITY", p.identity)
	ts.Setenv("METRICS", p.metrics)
}

// end stops the server and shows its log as standard error.
func end(ts *testscript.TestScript, s os.Signal) error {
	r := runningOf(ts)
	if r.process == nil {
		ts.Fatalf("no server is running")
	}
	r.process.signal(s)
	err := r.process.wait()
	fmt.Fprint(ts.Stderr(), r.process.logs)
	r.process = nil
	return err
}

func scriptTerminate(ts *testscript.TestScript, _ bool, _ []string) {
	ts.Check(end(ts, syscall.SIGTERM))
}

func scriptCrash(ts *testscript.TestScript, _ bool, _ []string) {
	if end(ts, syscall.SIGKILL) == nil {
		ts.Fatalf("the server ended before it was killed")
	}
}

// askFlags are the flags of ask.
type askFlags struct {
	token  string // -as TOKEN: an ingest key
	header string // -h "Name: value": one more header
	file   string // -d FILE: the body
	save   string // -o FILE: a file for the response's body
}

func scriptAsk(ts *testscript.TestScript, neg bool, args []string) {
	var f askFlags
	flags := flag.NewFlagSet("ask", flag.ContinueOnError)
	flags.StringVar(&f.token, "as", "", "")
	flags.StringVar(&f.header, "h", "", "")
	flags.StringVar(&f.file, "d", os.DevNull, "")
	flags.StringVar(&f.save, "o", os.DevNull, "")
	ts.Check(flags.Parse(args))
	if flags.NArg() != 2 {
		ts.Fatalf("usage: ask [FLAGS] METHOD URL")
	}
	response, err := f.do(ts, flags.Arg(0), flags.Arg(1))
	if neg != (err != nil) {
		ts.Fatalf("got %v\n%s", err, serverLog(ts))
	}
	if err != nil {
		return
	}
	defer response.Body.Close()
	fmt.Fprintln(ts.Stdout(), response.StatusCode)
	for _, name := range []string{"Content-Type", "Cache-Control", "Retry-After"} {
		if value := response.Header.Get(name); value != "" {
			fmt.Fprintf(ts.Stdout(), "%s: %s\n", name, value)
		}
	}
	fmt.Fprintln(ts.Stdout())
	got, err := io.ReadAll(response.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n", got)
	ts.Check(os.WriteFile(ts.MkAbs(f.save), got, 0o600))
}

func (f askFlags) do(ts *testscript.TestScript, method, url string) (*http.Response, error) {
	body, err := os.Open(ts.MkAbs(f.file))
	ts.Check(err)
	defer body.Close()
	r, err := http.NewRequest(method, url, body)
	ts.Check(err)
	r.Close = true // a server that ends waits for no client
	if f.token != "" {
		r.Header.Set("Authorization", "Bearer "+f.token)
	}
	if name, value, ok := strings.Cut(f.header, ": "); ok {
		r.Header.Set(name, value)
	}
	return http.DefaultClient.Do(r)
}

// serverLog is the output of a script's server.
func serverLog(ts *testscript.TestScript) string {
	p := runningOf(ts).process
	if p == nil {
		return "there is no server"
	}
	return "the server's log:\n" + p.logs.String()
}

func scriptStatic(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: static FOLDER")
	}
	server := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[0]))))
	ts.Defer(server.Close)
	ts.Setenv("STATIC", server.URL)
}

func scriptEventually(ts *testscript.TestScript, _ bool, args []string) {
	f := askFlags{file: os.DevNull}
	if len(args) == 4 && args[0] == "-as" {
		f.token, args = args[1], args[2:]
	}
	if len(args) != 2 {
		ts.Fatalf("usage: eventually [-as TOKEN] URL PATTERN")
	}
	pattern := regexp.MustCompile(args[1])
	var got []byte
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		response, err := f.do(ts, http.MethodGet, args[0])
		if err != nil {
			ts.Fatalf("%v\n%s", err, serverLog(ts))
		}
		got, err = io.ReadAll(response.Body)
		ts.Check(errors.Join(err, response.Body.Close()))
		if pattern.Match(got) {
			return
		}
	}
	ts.Fatalf("%s never matches %s; last response:\n%s", args[0], args[1], got)
}

func scriptMember(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: member NAME FILE MEMBER")
	}
	var value any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &value))
	for name := range strings.SplitSeq(args[2], ".") {
		members, _ := value.(map[string]any)
		value = members[name]
	}
	text, ok := value.(string)
	if !ok {
		ts.Fatalf("%s has no text %s", args[1], args[2])
	}
	ts.Setenv(args[0], text)
}

func scriptPostgres(ts *testscript.TestScript, _ bool, _ []string) {
	s, err := pgtest.Start()
	ts.Check(err)
	ts.Defer(func() { ts.Check(s.Stop()) })
	ts.Setenv("STORAGE", s.URL())
}

// scriptAgent sets what aps needs, and ORG, SLUG and VKEY.
func scriptAgent(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: agent FILE")
	}
	var f foundedOrganization
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &f))
	key := ts.MkAbs(string(f.Slug) + ".key")
	ts.Check(os.WriteFile(key, []byte(f.Agent.PrivateB64), 0o600))
	for name, value := range map[string]string{
		"APS_URL": ts.Getenv("MAIN"), "APS_TOKEN": f.IngestKey.Secret, "APS_ORG": f.OrganizationID.String(),
		"APS_AGENT": string(f.Agent.AgentID), "APS_KEY_ID": string(f.Agent.KeyID), "APS_KEY_FILE": key,
		"ORG": f.OrganizationID.String(), "SLUG": string(f.Slug), "VKEY": f.LogKey,
	} {
		ts.Setenv(name, value)
	}
}

func scriptDamage(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: damage GLOB")
	}
	files, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(files) == 0 {
		ts.Fatalf("no file matches %s", args[0])
	}
	file := slices.Max(files) // the latest, by number
	b, err := os.ReadFile(file)
	ts.Check(err)
	b[len(b)/2] ^= 1
	ts.Check(os.WriteFile(file, b, 0o600))
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM [ARGS]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("got status %d, want %d", got, want)
	}
}
