package console_test

import (
	"context"
	"encoding/json"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// setUp creates the organization of an empty service without JavaScript, and returns its owner and the page.
func setUp(s *servicetest.Service) (*servicetest.Person, string) {
	s.Helper()
	_, token, _ := strings.Cut(s.SetupURL, "/setup#token=")
	ann := s.Stranger()
	got := ann.Post("/setup", "do", "setup", "token", token, "name", "Acme <b>", "slug", "acme", "email", "ann@acme.example", "password", servicetest.Password)
	if got.Status != http.StatusOK || got.Header.Get("Cache-Control") != "no-store" {
		s.Fatalf("set up: got %d %v %s", got.Status, got.Header, got.Body)
	}
	return ann, got.Body
}

var programs = regexp.MustCompile(`(?s)<pre class="snippet" id="([^"]+)"[^>]*>(.*?)</pre>`)

// readPrograms returns the programs of a page as a user copies them, by id.
func readPrograms(page string) map[string]string {
	all := map[string]string{}
	for _, found := range programs.FindAllStringSubmatch(page, -1) {
		all[found[1]] = html.UnescapeString(found[2]) + "\n"
	}
	return all
}

// shell runs commands in a folder and returns their output.
func shell(t *testing.T, folder, commands string, environment ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "sh", "-euc", commands)
	command.Dir, command.Env = folder, append([]string{"HOME=" + folder, "PATH=/usr/bin:" + os.Getenv("PATH")}, environment...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

var savedFile = regexp.MustCompile(`data-file="(acme-agt_[A-Za-z0-9._-]+\.env)"`)

// keepSecrets saves the settings of the page with secrets as its browser does, and follows its commands. It returns the name of the
// file in the home folder.
func keepSecrets(t *testing.T, home, page string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(home, "Downloads"), 0o700); err != nil {
		t.Fatal(err)
	}
	all, name := readPrograms(page), savedFile.FindStringSubmatch(page)
	if name == nil {
		t.Fatalf("the page has no file: %s", page)
	}
	saved := filepath.Join(home, "Downloads", name[1])
	write(t, home, "Downloads/"+name[1], strings.TrimSuffix(all["settings"], "\n"))
	if err := os.Chmod(saved, 0o644); err != nil {
		t.Fatal(err)
	}
	shell(t, home, all["keep"])
	if info, err := os.Stat(filepath.Join(home, name[1])); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file with the secrets: %v, %v", info, err)
	}
	return name[1]
}

// Each agent has a file of its own, and the commands of the page replace no file, because it may be the only copy of a key.
func TestFilesOfAgents(t *testing.T) {
	t.Parallel()
	s := servicetest.Empty(t)
	ann, page := setUp(s)
	home := t.TempDir()
	first := keepSecrets(t, home, page)
	before := read(t, home, first)
	wantStep(t, ann, startOf(t, page), 2)
	wantStep(t, ann, "/console/start", 1) // whether anybody kept the file is unknown
	if got := ann.Get("/console/start?way=curl").Body; strings.Contains(got, "agent=") {
		t.Error("the other ways claim that the file was kept")
	}
	if got := ann.Get("/console/start").Body; !regexp.MustCompile(`<a href="/console/agents/agt_[^"]+" title="agt_[^"]+">Your agent</a> has a key since`).MatchString(got) {
		t.Error("an agent without a name has its ID as its name")
	}
	made := ann.Post("/console/start", "do", "secrets", "display_name", "Second").Body
	ann.Get("/console/start").Want(t, "the second agent", http.StatusOK, ">Second</bdi></a> has a key since")
	second := keepSecrets(t, home, made)
	if first == second || read(t, home, first) != before || read(t, home, second) == before {
		t.Errorf("the files are %s and %s", first, second)
	}
	for _, tc := range [][2]string{{page, first}, {made, second}} {
		if got := ann.Get(startOf(t, tc[0]) + "&way=curl"); !strings.Contains(got.Body, ". ~/"+tc[1]+"\n") {
			t.Errorf("the page after %s does not read it", tc[1])
		}
	}
	ann.Get("/console/start?agent=agt_none").Want(t, "no such agent", http.StatusNotFound)
	write(t, home, "Downloads/"+first, "another file")
	shell(t, home, readPrograms(page)["keep"])
	if read(t, home, first) != before {
		t.Error("the commands replaced a file")
	}
}

// startOf returns the address of the start page that a page with secrets leads to.
func startOf(t *testing.T, page string) string {
	t.Helper()
	next := regexp.MustCompile(`id="next" href="(/console/start\?agent=[^"]+)"`).FindStringSubmatch(page)
	if next == nil {
		t.Fatalf("the page leads nowhere: %s", page)
	}
	return next[1]
}

func read(t *testing.T, folder, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each program of the start page, copied as it is, sends an event as a stranger would send it, and the clients, installed from the
// service, print its proof. So does the program of the client for Go.
func TestPrograms(t *testing.T) {
	t.Parallel()
	s := servicetest.Empty(t)
	ann, page := setUp(s)
	home := t.TempDir()
	keepSecrets(t, home, page)
	secrets := readPrograms(page)["settings"]
	here := []string{"HOME=" + home, "npm_config_audit=false", "PIP_NO_INDEX=1", "PIP_NO_DEPS=1", "PIP_DISABLE_PIP_VERSION_CHECK=1",
		"PATH=" + filepath.Dir(servicetest.Program(t)) + ":/usr/bin:" + os.Getenv("PATH")}
	sent := 0
	for _, tc := range []struct {
		way    string
		run    func(t *testing.T, folder, program string, environment []string) string
		events int
		want   string // in the output
	}{
		{"curl", runShell, 1, `"status":"created"`},
		{"typescript", runShell, 1, "\nproved\n"},
		{"python", runShell, 1, "proved, as far as checked above\n"},
		{"agent", runHooks, 2, "exit 0"},
		{"mcp", runMCP, 2, "the content of the file"},
	} {
		shown := ann.Get("/console/start?way=" + tc.way).Body
		for line := range strings.Lines(secrets) {
			_, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if (strings.Contains(line, "APS_KEY=") || strings.Contains(line, "APS_TOKEN=")) && (len(value) < 20 || strings.Contains(shown, strings.Trim(value, "'"))) {
				t.Errorf("%s: the page has a secret", tc.way)
			}
		}
		if out := tc.run(t, t.TempDir(), readPrograms(shown)[tc.way], here); !strings.Contains(out, tc.want) {
			t.Errorf("%s: got %s", tc.way, out)
		}
		var stored struct{ Events []json.RawMessage }
		ann.Call(http.MethodGet, "/v1/console/events?signer=agent", nil, &stored)
		if sent += tc.events; len(stored.Events) != sent {
			t.Errorf("%s: got %d events of the agent, want %d", tc.way, len(stored.Events), sent)
		}
		wantStep(t, ann, "/console/start", 4)
	}
	followGo(t, secrets)
}

// wantStep fails unless the start page names a step as the next one.
func wantStep(t *testing.T, p *servicetest.Person, address string, want int) {
	t.Helper()
	steps := regexp.MustCompile(`<li class="(step[ a-z]*)"`).FindAllStringSubmatch(p.Get(address).Body, -1)
	if len(steps) != 5 {
		t.Fatalf("got %d steps", len(steps))
	}
	for i, step := range steps {
		number := i + 1
		wanted := "step"
		switch {
		case number == want, number == 3 && want > 3: // whether the event is proved is for the browser to find out
			wanted = "step now"
		case number < want:
			wanted = "step ok"
		}
		if step[1] != wanted {
			t.Errorf("step %d: got %q, want %q, as step %d is next", number, step[1], wanted, want)
		}
	}
}

func runShell(t *testing.T, folder, program string, environment []string) string {
	t.Helper()
	return shell(t, folder, program, environment...)
}

// runHooks runs the hooks of a call of a tool and of the end of its session, as a coding agent does.
func runHooks(t *testing.T, folder, settings string, environment []string) string {
	t.Helper()
	var read struct {
		Hooks map[string][]struct{ Hooks []struct{ Command string } }
	}
	if err := json.Unmarshal([]byte(settings), &read); err != nil || len(read.Hooks) != 4 {
		t.Fatalf("%v: got %s", err, settings)
	}
	for _, name := range []string{"PreToolUse", "PostToolUse", "SessionEnd"} {
		call := `{"session_id":"s","hook_event_name":"` + name + `","tool_name":"Bash","tool_use_id":"u","tool_input":{"command":"ls"},"tool_response":{"stdout":"x"}}`
		shell(t, folder, "printf '%s' '"+call+"' | { "+read.Hooks[name][0].Hooks[0].Command+"; }", environment...)
	}
	return "exit 0"
}

// fileServer stands for the package of the page's configuration, which is not installed here.
const fileServer = `#!/usr/bin/env python3
import json, sys
if sys.argv[1:] != ["-y", "@modelcontextprotocol/server-filesystem", "."]:
    sys.exit("unexpected arguments")
for line in sys.stdin:
    call = json.loads(line)
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "files", "version": "1"}},
        "tools/list": {"tools": [{"name": "read_file", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "the content of the file"}]},
    }
    if "id" in call:
        print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": answers[call["method"]]}), flush=True)
`

func runMCP(t *testing.T, folder, configuration string, environment []string) string {
	t.Helper()
	return callMCP(t, folder, configuration, "read_file", environment)
}

// callMCP starts the server of a client's configuration as the client does, calls a tool and returns the answers.
func callMCP(t *testing.T, folder, configuration, tool string, environment []string) string {
	t.Helper()
	var read struct {
		Servers map[string]struct {
			Command string
			Args    []string
			Env     map[string]string
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(configuration), &read); err != nil || len(read.Servers) != 1 {
		t.Fatalf("%v: got %s", err, configuration)
	}
	write(t, folder, "npx", fileServer)
	if err := os.Chmod(filepath.Join(folder, "npx"), 0o700); err != nil {
		t.Fatal(err)
	}
	server := read.Servers["files"]
	program := server.Command
	for _, argument := range server.Args {
		program += " '" + argument + "'"
	}
	for name, value := range server.Env {
		environment = append(environment, name+"="+value)
	}
	calls := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + tool + `","arguments":{"path":"a.txt"}}}
`
	write(t, folder, "calls", calls)
	// The input ends after both answers; a denial may come before the answer to initialize.
	return shell(t, folder, `PATH="$PWD:$PATH"; mkfifo answers; { cat calls; n=0; while [ $n -lt 2 ] && read -r line; do echo "$line" >&2; case $line in *'"id":'*) n=$((n+1)); esac; done < answers; } | `+
		program+" > answers", environment...)
}

// followGo follows the README of the client for Go with the settings of the page.
func followGo(t *testing.T, settings string) {
	t.Helper()
	readme, err := os.ReadFile("../../client/README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```(go|sh)\n(.*?)^```").FindAllStringSubmatch(string(readme), -1)
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	repository, notFound := filepath.Abs("../..")
	if err != nil || notFound != nil || len(blocks) != 2 || blocks[0][1] != "go" || blocks[1][1] != "sh" {
		t.Fatalf("%v, %v: got %d blocks", err, notFound, len(blocks))
	}
	cache, modules, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	folder := t.TempDir()
	write(t, folder, "main.go", blocks[0][2])
	out := shell(t, folder, settings+"\n"+blocks[1][2], "CLONE="+repository, "GOCACHE="+cache, "GOMODCACHE="+modules, "GOPROXY=off", "GOSUMDB=off",
		"CGO_ENABLED=0")
	if !strings.HasSuffix(out, " proved: true\n") {
		t.Errorf("Go: got %s", out)
	}
}

func write(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The programs of the page match the clients' documents.
func TestProgramsMatchTheDocuments(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("templates/start.html")
	if err != nil {
		t.Fatal(err)
	}
	all := readPrograms(string(page))
	for name, document := range map[string]string{"typescript": "../../clients/typescript/README.md", "python": "../../clients/python/README.md"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		_, program, _ := strings.Cut(all[name], "<<'EOF'\n")
		program, _, _ = strings.Cut(program, "EOF\n")
		if len(program) < 100 || !strings.Contains(string(text), program) {
			t.Errorf("%s lacks the program %s", document, program)
		}
	}
}

// Programs that install packages run them without the secrets, and leave none in the shell that they are pasted into.
func TestProgramsHideSecrets(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("templates/start.html")
	if err != nil {
		t.Fatal(err)
	}
	all := readPrograms(string(page))
	for _, name := range []string{"python", "typescript", "curl"} {
		program := strings.TrimSuffix(all[name], "\n")
		if !strings.HasPrefix(program, "(set -e\n") || !strings.HasSuffix(program, ")") {
			t.Errorf("%s is no subshell", name)
		}
		settings, install := strings.Index(program, "\n. ~/"), strings.LastIndex(program, " install ")
		if settings < 0 || settings < install || (install < 0) != (name == "curl") {
			t.Errorf("%s reads the secrets at %d, and installs at %d", name, settings, install)
		}
	}
}

// The first ten minutes in a browser: setup with a passkey, the keys, and the first event with its proof.
func TestFirstEventInChromium(t *testing.T) {
	t.Parallel()
	s := servicetest.Empty(t)
	b := s.Browser()
	b.AddAuthenticator()
	b.Visit(strings.TrimPrefix(s.SetupURL, s.URL))
	var address string
	b.Must(`return location.href`, &address)
	if address != s.URL+"/setup" {
		t.Errorf("the address is %s", address)
	}
	for name, text := range map[string]string{"name": "Acme", "slug": "acme", "email": "ann@acme.example"} {
		b.Fill(name, text)
	}
	b.Start("button[data-passkey]")
	b.AwaitText("is ready")
	folder := t.TempDir()
	b.Emulate("Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": folder})
	b.Start("a[download]")
	var settings, page string
	b.Must(`return document.getElementById("settings").textContent`, &settings)
	var name string
	b.Must(`return document.getElementById("settings").dataset.file`, &name)
	awaitFile(t, filepath.Join(folder, name), settings)
	b.Press("#next")
	b.Visit("/console/start?way=curl")
	b.Must(`return document.documentElement.outerHTML`, &page)
	shell(t, folder, readPrograms(page)["curl"])
	b.AwaitText("The first event is here:")
	b.Must(`while (document.getElementById("first").dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));`, nil)
	if got := b.Text("#outcome"); !strings.HasPrefix(got, "Proved, as far as the checks below state, under ") {
		t.Errorf("got %q", got)
	}
	if got := b.Text("#event"); !strings.HasPrefix(got, "first-") {
		t.Errorf("got %q", got)
	}
	var ticks string
	b.Must(`return [...document.querySelectorAll("li.step")].map((step) => step.className).join()`, &ticks)
	if want := "step ok,step ok,step ok,step,step"; ticks != want {
		t.Errorf("got the steps %q, want %q", ticks, want)
	}
	b.WantQuiet()
	b.Press("form.me button")
	b.Start("#passkey")
	b.AwaitText("Latest events")
}

// awaitFile waits until a browser has saved a file that contains a text.
func awaitFile(t *testing.T, path, text string) {
	t.Helper()
	var found []byte
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if found, _ = os.ReadFile(path); string(found) == text {
			return
		}
	}
	t.Fatalf("the browser saved %q, want %q", found, text)
}
