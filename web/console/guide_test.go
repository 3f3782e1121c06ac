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

// Each program of the page, copied as it is, sends an event, and the clients, installed from the service, print its
// proof. So does the program of the client for Go.
func TestPrograms(t *testing.T) {
	t.Parallel()
	s := servicetest.Empty(t)
	ann, page := setUp(s)
	all, folder := readPrograms(page), t.TempDir()
	if out := shell(t, folder, all["settings"]+all["curl"]); !strings.Contains(out, `"status":"created"`) {
		t.Errorf("curl: got %s", out)
	}
	if info, err := os.Stat(filepath.Join(folder, "agent.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the agent's key: %v, %v", info, err)
	}

	write(t, folder, "first.mjs", all["typescript"])
	if out := shell(t, folder, all["settings"]+all["typescript-install"], "npm_config_audit=false"); !strings.HasSuffix(out, "\nproved\n") {
		t.Errorf("TypeScript: got %s", out)
	}

	write(t, folder, "first.py", all["python"])
	out := shell(t, folder, all["settings"]+all["python-install"], "PIP_NO_INDEX=1", "PIP_NO_DEPS=1", "PIP_DISABLE_PIP_VERSION_CHECK=1")
	if !strings.HasSuffix(out, "proved, as far as checked above\n") {
		t.Errorf("Python: got %s", out)
	}
	followGo(t, all["settings"])
	var stored struct{ Events []json.RawMessage }
	ann.Call(http.MethodGet, "/v1/console/events?signer=agent", nil, &stored)
	if len(stored.Events) != 4 {
		t.Errorf("got %d events of the agent", len(stored.Events))
	}
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
	out := shell(t, folder, settings+blocks[1][2], "CLONE="+repository, "GOCACHE="+cache, "GOMODCACHE="+modules, "GOPROXY=off", "GOSUMDB=off",
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
	page, err := os.ReadFile("../page/templates/guide.html")
	if err != nil {
		t.Fatal(err)
	}
	all := readPrograms(string(page))
	for name, document := range map[string]string{"typescript": "../../clients/typescript/README.md", "python": "../../clients/python/README.md"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		if program := all[name]; len(program) < 100 || !strings.Contains(string(text), program) {
			t.Errorf("%s lacks the program %s", document, program)
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
	b.AwaitText("is founded")
	folder := t.TempDir()
	b.Emulate("Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": folder})
	b.Start("a[download]")
	awaitFile(t, filepath.Join(folder, "agent.key"), b.Text("#private-key")+"\n")
	var page string
	b.Must(`return document.documentElement.outerHTML`, &page)
	shell(t, t.TempDir(), readPrograms(page)["settings"]+readPrograms(page)["curl"])
	b.AwaitText("The first event is here.")
	b.Must(`while (document.getElementById("first").dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));`, nil)
	if got := b.Text("#outcome"); !strings.HasPrefix(got, "Proved, as far as the checks below state, under ") {
		t.Errorf("got %q", got)
	}
	if got := b.Text("#event"); !strings.HasPrefix(got, "first-") {
		t.Errorf("got %q", got)
	}
	b.WantQuiet()
	b.Press("header button")
	b.Start("#passkey")
	b.AwaitText("You are owner")
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
