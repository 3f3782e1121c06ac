package mcp

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/interop"
)

// clientConfig is the configuration file of a client such as Claude Desktop (claude_desktop_config.json).
type clientConfig struct {
	Servers map[string]struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
	} `json:"mcpServers"`
}

// documentedConfig returns the snippet of docs/guides/mcp.md. Only the values that it leaves open, the address and the folders are
// those of this test. dir is the folder that the server may read.
func documentedConfig(t *testing.T, s *interop.Service, dir string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "mcp.md"))
	must(t, err)
	snippet := regexp.MustCompile("(?s)```json\n(\\{\"mcpServers\".*?)```").FindSubmatch(page)
	if snippet == nil {
		t.Fatal("docs/guides/mcp.md has no configuration of a client")
	}
	text := string(snippet[1])
	must(t, os.MkdirAll(dir, 0o700))
	for _, r := range [][2]string{
		{"https://ledger.example", "http://" + s.Address}, {`"APS_ORG": "…"`, `"APS_ORG": "` + s.Organization.String() + `"`},
		{"agt_…", string(s.Agent.AgentID)}, {"key_…", string(s.Agent.KeyID)}, {"/etc/agent/key", filepath.Join(s.Programs, "key")},
		{`"APS_TOKEN": "…"`, `"APS_TOKEN": "` + s.IngestKey.Secret + `"`}, {"/srv/files", dir},
	} {
		if strings.Count(text, r[0]) != 1 {
			t.Fatalf("%q is %d times in the snippet", r[0], strings.Count(text, r[0]))
		}
		text = strings.Replace(text, r[0], r[1], 1)
	}
	return text
}

// searchPath returns the environment of a client that finds aps, and Node.js with what npx starts.
func searchPath(s *interop.Service, node string) []string {
	return append(os.Environ(), "PATH="+s.Programs+":"+filepath.Dir(node)+":"+os.Getenv("PATH"), "npm_config_offline=true")
}

// A desktop client starts the snippet of the documents as its configuration file has it, and calls a tool.
func TestDocumentedConfig(t *testing.T) {
	s := interop.Start(t)
	dir := filepath.Join(t.TempDir(), "files")
	var config clientConfig
	must(t, json.Unmarshal([]byte(documentedConfig(t, s, dir)), &config))
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one"), 0o600))
	for name, server := range config.Servers {
		environment := append(searchPath(s, "/usr/bin/node"), "APS_MCP_STATE="+t.TempDir())
		for variable, value := range server.Env {
			environment = append(environment, variable+"="+value)
		}
		command := exec.Command(server.Command, server.Args...)
		command.Path = filepath.Join(s.Programs, server.Command)
		command.Err = nil // it is not in the search path of this test
		command.Env, command.Stderr = environment, os.Stderr
		session, err := mcp.NewClient(&mcp.Implementation{Name: "desktop", Version: "1"}, nil).
			Connect(t.Context(), &mcp.CommandTransport{Command: command}, nil)
		must(t, err)
		before := s.Size(t)
		if text, r := call(t, session, "read_text_file", map[string]any{"path": filepath.Join(dir, "a.txt")}); r.IsError || text != "one" {
			t.Errorf("%s: got %q", name, text)
		}
		session.Close()
		if recorded := s.Size(t) - before; recorded != 2 {
			t.Errorf("%s: %d events of one call", name, recorded)
		}
	}
}

// The MCP inspector starts the snippet of the documents, lists the tools and calls one.
func TestInspector(t *testing.T) {
	s := interop.Start(t)
	dir := filepath.Join(t.TempDir(), "files")
	config := filepath.Join(t.TempDir(), "config.json")
	must(t, os.WriteFile(config, []byte(documentedConfig(t, s, dir)), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one"), 0o600))
	inspect := func(arguments ...string) string {
		node := node24(t)
		command := exec.Command(node, append([]string{"node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", "--cli",
			"--config", config, "--server", "files"}, arguments...)...)
		command.Env = append(searchPath(s, node), "APS_MCP_STATE="+t.TempDir(), "HOME="+t.TempDir())
		var diagnostics strings.Builder
		command.Stderr = &diagnostics
		output, err := command.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s\n%s", arguments, err, output, diagnostics.String())
		}
		return string(output)
	}
	if got := inspect("--method", "tools/list"); !strings.Contains(got, "read_text_file") {
		t.Errorf("tools: got %.500s", got)
	}
	before := s.Size(t)
	got := inspect("--method", "tools/call", "--tool-name", "read_text_file", "--tool-arg", "path="+filepath.Join(dir, "a.txt"))
	if !strings.Contains(got, `"one"`) {
		t.Errorf("call: got %.500s", got)
	}
	if recorded := s.Size(t) - before; recorded != 2 {
		t.Errorf("%d events of one call", recorded)
	}
}
