package readers

import (
	"bytes"
	"encoding/json"
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

// visit is what a reader gets: a service, the key that it has pinned, and a directory in which it may store its state.
type visit struct {
	url    string
	key    tlog.VerifierKey
	policy string // file with the log's policy, "" for a log without witnesses
	folder string
	again  bool // the reader has visited this service before
	anyAge bool // a monitor accepts a view of any age
}

// accepted begins the answer of a reader that accepts the log, followed by its report. Every other answer is the reason
// for refusing the log.
const accepted = "accepted: "

// reader is a program that reads a log.
type reader struct {
	name string
	// open starts the program, which ends with the test, and returns a function that visits a service with it and
	// returns the answer. Between two visits of a service the reader remembers what it learned.
	open func(t *testing.T) func(t *testing.T, v visit) string
}

// run returns the reader for a program that is started for each visit.
func run(read func(t *testing.T, v visit) string) func(*testing.T) func(*testing.T, visit) string {
	return func(*testing.T) func(*testing.T, visit) string { return read }
}

// readers are all readers of this repository, in the order of the document's columns.
var readers = []reader{
	{"`aps monitor`", run(monitorLog)},
	{"`aps verify`", run(verifyEvent)},
	{"Go client", goClient},
	{"TypeScript client", script("node", "--no-warnings", "clients/typescript/test/reader.js")},
	{"Python client", script("clients/python/interpreter", "-B", "clients/python/tests/reader.py")},
	{"page of a log", page("/log/" + slug)},
	{"page of an event", page("/v1/public/orgs/" + slug + "/verify/" + event)},
}

// aps runs aps and returns its output.
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
func goClient(*testing.T) func(*testing.T, visit) string {
	var memory client.Memory
	return func(t *testing.T, v visit) string {
		t.Helper()
		if !v.again {
			memory = client.Memory{}
		}
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

// script returns the reader for a client's program, which makes one visit after the other. It stores what it learned
// in a file in the visit's directory.
func script(command ...string) func(*testing.T) func(*testing.T, visit) string {
	return func(t *testing.T) func(*testing.T, visit) string {
		t.Helper()
		root, err := filepath.Abs("../../..")
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(command[0], command[1:]...)
		if strings.Contains(command[0], "/") {
			c.Path = filepath.Join(root, command[0])
		}
		c.Dir, c.Stderr = root, os.Stderr
		to, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		from, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatalf("%v: %v (it needs what scripts/node and scripts/python install)", command, err)
		}
		t.Cleanup(func() {
			_ = to.Close()
			if err := c.Wait(); err != nil {
				t.Errorf("%v: %v", command, err)
			}
		})
		questions, answers := json.NewEncoder(to), json.NewDecoder(from)
		return func(t *testing.T, v visit) (answer string) {
			t.Helper()
			err := questions.Encode([]string{v.url, slug, v.key.String(), v.policy, event, filepath.Join(v.folder, "state")})
			if err == nil {
				err = answers.Decode(&answer)
			}
			if err != nil {
				t.Fatalf("%v: %v", command, err)
			}
			return strings.TrimSpace(answer)
		}
	}
}

// page opens a page in a browser that remembers the previous visit. The reader enters the pinned key at the first
// visit of a service.
func page(path string) func(*testing.T) func(*testing.T, visit) string {
	return func(t *testing.T) func(*testing.T, visit) string {
		t.Helper()
		b := chromium.New(t)
		return func(t *testing.T, v visit) string {
			t.Helper()
			b.Open(v.url + path)
			var outcome struct{ State, Text string }
			err := b.Run(`
				const page = document.getElementById("checked"), outcome = document.getElementById("outcome");
				while (page.dataset.done !== "yes") await new Promise((next) => setTimeout(next, 5));
				if (args[0] !== "") {
					document.getElementById("key").value = args[0];
					document.querySelector("#pin button:not([type])").click();
					while (outcome.dataset.state === "waiting") await new Promise((next) => setTimeout(next, 5));
				}
				const marks = outcome.dataset.state === "ok" ? document.querySelector(".checks").textContent : "";
				return {State: outcome.dataset.state, Text: outcome.textContent + marks};`, &outcome, map[bool]string{false: v.key.String()}[v.again])
			if err != nil {
				t.Fatal(err)
			}
			if outcome.State == "ok" {
				return accepted + outcome.Text
			}
			return outcome.Text
		}
	}
}
