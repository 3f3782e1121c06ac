package readers

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/tlog"
)

// visit is what a reader gets: a service, the key that it has pinned, and a folder of its own for what it keeps.
type visit struct {
	url    string
	key    tlog.VerifierKey
	policy string // file with the log's policy, "" for a log without witnesses
	folder string
	anyAge bool // a monitor accepts a view of any age
}

// accepted begins the answer of a reader that accepts the log, followed by what it reports. Every other answer is why it
// refuses the log.
const accepted = "accepted: "

// reader is a program that reads a log.
type reader struct {
	name string
	// start returns a function that reads the log and answers. It keeps between two calls what the reader keeps.
	start func(t *testing.T) func(v visit) string
}

func stateless(read func(t *testing.T, v visit) string) func(*testing.T) func(visit) string {
	return func(t *testing.T) func(visit) string {
		return func(v visit) string { return read(t, v) }
	}
}

// readers are all readers of this repository, in the order of the document's columns.
var readers = []reader{
	{"`aps monitor`", stateless(monitorLog)},
	{"`aps verify`", stateless(verifyEvent)},
	{"Go client", goClient},
	{"TypeScript client", stateless(typescriptClient)},
	{"Python client", stateless(pythonClient)},
	{"page of a log", page("/log/" + slug)},
	{"page of an event", page("/v1/public/orgs/" + slug + "/verify/" + event)},
}

// aps runs aps and returns what it says.
func aps(t *testing.T, arguments ...string) string {
	t.Helper()
	programs, err := servicetest.Programs()
	if err != nil {
		t.Fatal(err)
	}
	var report, failed bytes.Buffer
	c := exec.CommandContext(t.Context(), filepath.Join(programs, "aps"), arguments...)
	c.Env, c.Stderr = append(os.Environ(), "APS_URL=", "APS_TOKEN="), &failed
	c.Stdout = &report
	err = c.Run()
	var ended *exec.ExitError
	switch {
	case err == nil:
		return accepted + report.String()
	case errors.As(err, &ended):
		return fmt.Sprintf("status %d: %s", ended.ExitCode(), failed.String())
	}
	t.Fatal(err)
	return ""
}

func (v visit) trustFlags() []string {
	flags := []string{"--key", v.key.String()}
	if v.policy != "" {
		flags = append(flags, "--policy", v.policy)
	}
	return flags
}

// monitorLog checks the log with a state file.
func monitorLog(t *testing.T, v visit) string {
	t.Helper()
	flags := v.trustFlags()
	if v.anyAge {
		flags = append(flags, "--max-age", "0")
	}
	prefix := v.url + "/o/" + ledgertest.Organization(ledgertest.Red).String()
	return aps(t, append([]string{"monitor", "--once", "--tries", "1", "--url", prefix, "--state", filepath.Join(v.folder, "state")},
		flags...)...)
}

// verifyEvent fetches the bundle of an event and verifies it.
func verifyEvent(t *testing.T, v visit) string {
	t.Helper()
	return aps(t, append([]string{"verify", event, "--url", v.url, "--slug", slug}, v.trustFlags()...)...)
}

// goClient follows the log with the memory of the last visit.
func goClient(t *testing.T) func(visit) string {
	var memory client.Memory
	return func(v visit) string {
		c, err := client.New(client.Config{BaseURL: v.url, Retry: client.Retry{Attempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseIdle()
		log := c.Log(slug, v.key)
		followed, err := log.Follow(t.Context(), memory)
		if err != nil {
			return err.Error()
		}
		_, report, err := log.Bundle(t.Context(), event)
		if err != nil || !report.OK {
			return fmt.Sprint(err, report.Errors)
		}
		memory = followed.Memory
		return accepted + fmt.Sprint(followed.NewKeys)
	}
}

// script runs a client's reader and returns its output.
func script(t *testing.T, v visit, command ...string) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	command = append(command, v.url, slug, v.key.String(), v.policy, event, filepath.Join(v.folder, "state"))
	c := exec.CommandContext(t.Context(), filepath.Join(root, command[0]), command[1:]...)
	if command[0] == "node" {
		c = exec.CommandContext(t.Context(), command[0], command[1:]...)
	}
	c.Dir = root
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v (it needs what scripts/node and scripts/python install)\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

func typescriptClient(t *testing.T, v visit) string {
	t.Helper()
	return script(t, v, "node", "--no-warnings", "clients/typescript/test/reader.js")
}

func pythonClient(t *testing.T, v visit) string {
	t.Helper()
	return script(t, v, "clients/python/interpreter", "-B", "clients/python/tests/reader.py")
}

// page opens a page in a browser that remembers the visit before. The reader enters the pinned key once.
func page(path string) func(*testing.T) func(visit) string {
	return func(t *testing.T) func(visit) string {
		b, entered := chromium.New(t), false
		return func(v visit) string {
			b.Open(v.url + path)
			var outcome struct{ State, Text string }
			err := b.Run(`
				const page = document.getElementById("checked"), outcome = document.getElementById("outcome");
				while (page.dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));
				if (args[0] !== "") {
					document.getElementById("key").value = args[0];
					document.querySelector("#pin button").click();
					while (outcome.dataset.state === "waiting") await new Promise((next) => setTimeout(next, 5));
				}
				const marks = outcome.dataset.state === "ok" ? document.querySelector(".checks").textContent : "";
				return {State: outcome.dataset.state, Text: outcome.textContent + marks};`, &outcome, map[bool]string{false: v.key.String()}[entered])
			if err != nil {
				t.Fatal(err)
			}
			entered = true
			if outcome.State == "ok" {
				return accepted + outcome.Text
			}
			return outcome.Text
		}
	}
}
