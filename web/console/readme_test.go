package console_test

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

var codeBlocks = regexp.MustCompile("(?ms)^```(sh|console)\n(.*?)^```")

// The README's quick start works as written, from an empty folder. A block of sh contains commands; a block of console
// contains a command after each $, and lines of its output, in which … matches any text.
func TestReadmeQuickStart(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if words := len(regexp.MustCompile(`\S*[A-Za-z]\S*`).FindAll(readme, -1)); words > 900 {
		t.Errorf("the README has %d words, want 900 at most", words)
	}
	_, section, _ := strings.Cut(string(readme), "\n## Quick start\n")
	section, _, found := strings.Cut(section, "\n## ")
	blocks := codeBlocks.FindAllStringSubmatch(section, -1)
	if !found || len(blocks) != 5 {
		t.Fatalf("the quick start has %d blocks of commands", len(blocks))
	}

	folder := t.TempDir()
	s := startAsReadme(t, folder, blocks[0][2])
	_, page := setUp(s)
	settings, path := readPrograms(page)["settings"], "PATH="+filepath.Dir(servicetest.Program(t))+":"+os.Getenv("PATH")
	if !strings.Contains(settings, "APS_LOG_KEY=") {
		t.Fatalf("the settings of the page are %s", settings)
	}
	for _, block := range blocks[1:] {
		text := strings.ReplaceAll(block[2], "http://localhost:8080", s.URL)
		text = strings.ReplaceAll(text, "you@acme.example", "ann@acme.example")
		if block[1] == "sh" {
			shell(t, folder, settings+text, path, "APS_PASSWORD="+servicetest.Password)
			continue
		}
		for _, example := range strings.Split("\n"+text, "\n$ ")[1:] {
			command, want, _ := strings.Cut(example, "\n")
			got := shell(t, folder, settings+command+" || true", path) // a denial also has a status
			for _, line := range strings.Split(strings.TrimSpace(want), "\n") {
				pattern := strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
				if !regexp.MustCompile("(?m)^"+pattern+"$").MatchString(got) && line != "" {
					t.Errorf("%s: no line %q in\n%s", command, line, got)
				}
			}
		}
	}
}

// startAsReadme runs the command that starts a service, on another port.
func startAsReadme(t *testing.T, folder, command string) *servicetest.Service {
	t.Helper()
	if command != "agentledger serve\n" {
		t.Fatalf("the first command is %q", command)
	}
	address := servicetest.FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	main := "http://localhost:" + port
	c := exec.Command(servicetest.Program(t), "serve", "--listen", address, "--id-listen", "127.0.0.1:0", "--metrics-listen", "")
	c.Dir, c.Env = folder, []string{"HOME=" + folder, "PATH=" + os.Getenv("PATH")}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	s := servicetest.At(t, main, "")
	s.SetupURL = servicetest.SetupURL(servicetest.AwaitServing(t, "agentledger serve", out))
	if u, err := url.Parse(s.SetupURL); err != nil || u.Port() != port {
		t.Fatalf("the service prints the address %q", s.SetupURL)
	}
	if _, err := os.Stat(filepath.Join(folder, ".local", "share", "agentledger")); err != nil {
		t.Error(err)
	}
	if answer, err := http.Get(main + "/setup"); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("the setup page: %v", err)
	} else {
		answer.Body.Close()
	}
	return s
}
