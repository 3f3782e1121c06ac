package console_test

import (
	"fmt"
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

var (
	pageLinks  = regexp.MustCompile(`<http://localhost:8080(/[^>]*)>`)
	codeBlocks = regexp.MustCompile("(?ms)^```(sh|console|json)\n(.*?)^```")
	words      = regexp.MustCompile(`\S*[A-Za-z]\S*`)

	// install is the block that builds the programs. Tests build them once for all packages, of the same folders.
	install = regexp.MustCompile(`^(?:git clone https://github\.com/agentledger/agentledger && cd agentledger
)?go build -o bin/ (?:\./cmd/agentledger )?\./cmd/aps
export PATH=\$PWD/bin:\$PATH(?: CLONE=\$PWD)?\n`)
)

// try is the first block of the README. Its commands set everything up by themselves; CI runs the first one, and this test is a part of
// the second one.
const try = `git clone https://github.com/agentledger/agentledger && cd agentledger
go run ./cmd/agentledger demo     # an agent's day, checked from outside; then a server to explore
make test                         # every test; installs what it needs on Debian
`

// awaitServer is appended to the command that starts a server in the background.
const awaitServer = ` > serve.log 2>&1 & server=$!
trap 'kill $server; wait' EXIT
until grep -q ^serving serve.log; do kill -0 $server; sleep 0.05; done
`

// The commands of the README and of the quick starts work as written, in the order of each page, from an empty folder. A block of sh
// contains commands; a block of console contains a command after each $, and lines of its output, in which … matches any text. A block
// of json is the configuration of an MCP client. All pages but the operator's share the server that the README starts.
func TestQuickStarts(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	s := startAsReadme(t, home)
	ann, page := setUp(s)
	settings := keepSecrets(t, home, page)
	_, logKey, _ := strings.Cut(readPrograms(page)["settings"], "APS_LOG_KEY='")
	logKey, _, _ = strings.Cut(logKey, "'")
	clone, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, modules, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	environment := []string{"HOME=" + home, "PATH=" + filepath.Dir(servicetest.Program(t)) + ":/usr/bin:" + os.Getenv("PATH"),
		"CLONE=" + clone, "APS_PASSWORD=" + servicetest.Password, "EVENT_URL=" + s.URL + "/v1/public/orgs/acme/verify/refund-1", "LOG_KEY=" + logKey,
		"npm_config_audit=false", "PIP_NO_INDEX=1", "PIP_NO_DEPS=1", "PIP_DISABLE_PIP_VERSION_CHECK=1",
		"GOCACHE=" + cache, "GOMODCACHE=" + modules, "GOPROXY=off", "GOSUMDB=off", "CGO_ENABLED=0"}
	main, identity, metrics := servicetest.FreeAddress(t), servicetest.FreeAddress(t), servicetest.FreeAddress(t)
	_, port, _ := net.SplitHostPort(main)
	own := strings.NewReplacer("localhost:8080", "localhost:"+port, "127.0.0.1:8080", main, "127.0.0.1:8091", identity, "127.0.0.1:9464", metrics,
		" serve &\n", " serve"+awaitServer)
	shared := strings.NewReplacer("http://localhost:8080", s.URL, "you@acme.example", "ann@acme.example", "agentledger serve &\n", "", "acme-agt_….env", settings)

	for _, tc := range []struct {
		name     string
		words    int // at most
		blocks   int // of commands
		replacer *strings.Replacer
	}{
		{"README.md", 900, 8, shared},
		{"docs/quickstart/python.md", 500, 5, shared},
		{"docs/quickstart/typescript.md", 500, 4, shared},
		{"docs/quickstart/go.md", 500, 4, shared},
		{"docs/quickstart/mcp.md", 500, 5, shared},
		{"docs/quickstart/auditor.md", 500, 4, shared},
		{"docs/quickstart/operator.md", 900, 7, own},
	} {
		t.Run(filepath.Base(tc.name), func(t *testing.T) {
			text := read(t, "../..", tc.name)
			if n := len(words.FindAllString(text, -1)); n > tc.words {
				t.Errorf("the page has %d words, want %d at most", n, tc.words)
			}
			first, _, _ := strings.Cut(text, "\n```")
			if n := len(words.FindAllString(first, -1)); n > 100 {
				t.Errorf("the first command comes after %d words, want 100 at most", n)
			}
			blocks := codeBlocks.FindAllStringSubmatch(text, -1)
			if len(blocks) != tc.blocks {
				t.Fatalf("the page has %d blocks of commands, want %d", len(blocks), tc.blocks)
			}
			follow(t, blocks, tc.replacer, environment)
			for _, link := range pageLinks.FindAllStringSubmatch(text, -1) {
				answer, err := http.Get(s.URL + link[1]) // a page for members leads to the sign-in
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				if answer.StatusCode != http.StatusOK {
					t.Errorf("%s: got status %d, want 200", link[1], answer.StatusCode)
				}
			}
		})
	}
	var acts struct{ Acts []struct{ Outcome string } }
	ann.Call(http.MethodGet, "/v1/console/acts", nil, &acts)
	outcomes := map[string]int{}
	for _, act := range acts.Acts {
		outcomes[act.Outcome]++
	}
	if outcomes["done"] != 5 || outcomes["denied"] != 4 {
		t.Errorf("the pages made the acts %v, want 5 done and 4 denied", outcomes)
	}
}

// follow runs the blocks of a page in an empty folder.
func follow(t *testing.T, blocks [][]string, replacer *strings.Replacer, environment []string) {
	t.Helper()
	folder := t.TempDir()
	var script strings.Builder
	run := func() {
		shell(t, folder, script.String(), environment...)
		script.Reset()
	}
	var shown [][2]string // commands and lines of their output
	for _, block := range blocks {
		text := block[2]
		if text == try {
			continue
		}
		if found := install.FindString(text); found != "" {
			text = text[len(found):]
		}
		text = replacer.Replace(text)
		switch block[1] {
		case "sh":
			script.WriteString(text)
		case "json":
			run()
			for _, tool := range []string{"read_file", "write_file"} {
				callMCP(t, t.TempDir(), text, tool, environment)
			}
			script.WriteString(". ~/acme-agt_*.env\n") // the reader continues in the same shell
		case "console":
			for _, example := range strings.Split("\n"+text, "\n$ ")[1:] {
				command, want, _ := strings.Cut(example, "\n")
				fmt.Fprintf(&script, "{ %s; } > %q 2>&1 || true\n", command, filepath.Join(folder, fmt.Sprint("out", len(shown)))) // a denial also has a status
				shown = append(shown, [2]string{command, want})
			}
		}
	}
	run()
	for i, example := range shown {
		got := read(t, folder, fmt.Sprint("out", i))
		for _, line := range strings.Split(strings.TrimSpace(example[1]), "\n") {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
			if !regexp.MustCompile("(?m)^"+pattern+"$").MatchString(got) && line != "" {
				t.Errorf("%s: no line %q in\n%s", example[0], line, got)
			}
		}
	}
}

// startAsReadme starts a service by the command of the README, on another port.
func startAsReadme(t *testing.T, home string) *servicetest.Service {
	t.Helper()
	for _, block := range []string{try, "agentledger serve &\n"} {
		if !strings.Contains(read(t, "../..", "README.md"), "```sh\n"+block+"```") {
			t.Fatalf("the README lacks the block\n%s", block)
		}
	}
	address := servicetest.FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	main := "http://localhost:" + port
	c := exec.Command(servicetest.Program(t), "serve", "--listen", address, "--id-listen", "127.0.0.1:0", "--metrics-listen", "")
	c.Dir, c.Env = home, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
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
	if _, err := os.Stat(filepath.Join(home, ".local", "share", "agentledger")); err != nil {
		t.Error(err)
	}
	if answer, err := http.Get(main + "/setup"); err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("the setup page: %v", err)
	} else {
		answer.Body.Close()
	}
	return s
}
