package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/runs"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/workflow"
)

// importPolicy allows small files.
const importPolicy = `{"policy_id":"import","name":"Import","rules":[
	{"rule_id":"large","tool":"acme.files.import","when":"payload.bytes > 1000.0","decision":"deny","reason":"Large files are for people"}]}`

const (
	importFiles = 40
	largeFile   = 17 // the rejected file
)

// importer is the example, working for an organization.
type importer struct {
	*testing.T
	url, dir string
	org      foundedOrganization
	out      bytes.Buffer // of all its starts
}

// start starts the example and returns it with a channel that reports its end.
func (i *importer) start() (*exec.Cmd, chan error) {
	i.Helper()
	cmd := exec.Command(filepath.Join(programs, "importer"), "-run", "night", "-from", "in", "-to", "out")
	cmd.Dir = i.dir
	cmd.Env = append(os.Environ(), "APS_URL="+i.url, "APS_TOKEN="+i.org.IngestKey.Secret)
	cmd.Stdout, cmd.Stderr = &i.out, &i.out
	if err := cmd.Start(); err != nil {
		i.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return cmd, ended
}

// fill creates the files to import.
func (i *importer) fill() {
	for _, folder := range []string{"in", "out"} {
		if err := os.Mkdir(filepath.Join(i.dir, folder), 0o700); err != nil {
			i.Fatal(err)
		}
	}
	for n := range importFiles {
		size := 100 + n
		if n == largeFile {
			size = 2000
		}
		if err := os.WriteFile(filepath.Join(i.dir, "in", fmt.Sprintf("file-%02d", n)), bytes.Repeat([]byte{byte(n)}, size), 0o600); err != nil {
			i.Fatal(err)
		}
	}
}

// The job and the service are killed at random moments, and the service also under a running job. In the end there is
// one run with one success for each file, and a file whose arrival was reported was not copied again.
func TestImporterThroughKills(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	data := t.TempDir()
	p := startProcess(t, data, "--listen", address) // the same in each start
	red, blue := p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)
	person := newRefunder(t, p, red).person
	if err := person.callConsole(t.Context(), "POST", "/policies", rawJSON(importPolicy), nil); err != nil {
		t.Fatal(err)
	}
	if err := person.callConsole(t.Context(), "POST", "/policies/import/activate", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
	job := &importer{T: t, url: "http://" + address, dir: t.TempDir(), org: red}
	job.fill()
	random := rand.New(rand.NewPCG(7, 8))
	cmd, ended := job.start()
	for kills := 0; ; kills++ {
		patience := time.Duration(20+random.IntN(80)) * time.Millisecond
		if kills >= 8 {
			patience = time.Minute
		}
		select {
		case err = <-ended:
		case <-time.After(patience):
			if kills%2 == 0 {
				p.kill()
				p = startProcess(t, data, "--listen", address)
				continue
			}
			cmd.Process.Kill()
			<-ended
			cmd, ended = job.start()
			continue
		}
		t.Logf("%d kills", kills)
		break
	}
	if err != nil {
		t.Fatalf("the importer: %v\n%s", err, &job.out)
	}
	if !strings.Contains(job.out.String(), "file-17: Large files are for people") {
		t.Errorf("printed\n%s", &job.out)
	}
	job.check()

	// Once more: it does nothing.
	before := job.out.Len()
	if _, ended := job.start(); <-ended != nil {
		t.Errorf("again: %s", job.out.String()[before:])
	} else if got := job.out.String()[before:]; got != "failed: the run night has ended before\n" {
		t.Errorf("again, it printed\n%s", got)
	}
	other := &importer{T: t, url: job.url, dir: t.TempDir(), org: blue}
	other.fill()
	if _, ended := other.start(); <-ended != nil || !strings.Contains(other.out.String(), fmt.Sprintf("succeeded: %d steps", 2*importFiles)) {
		t.Errorf("the other organization, which has no policy: %s", &other.out)
	}
	p.terminate()
	if out, exit := command(t, "agentledger", "fsck", "--data", data); exit != 0 || !strings.Contains(out, " 0 faults") {
		t.Errorf("fsck: status %d, %s", exit, out)
	}
}

// check compares the arrived files with the run in the ledger.
func (i *importer) check() {
	i.Helper()
	for n := range importFiles {
		name := fmt.Sprintf("file-%02d", n)
		in, err := os.ReadFile(filepath.Join(i.dir, "in", name))
		if err != nil {
			i.Fatal(err)
		}
		out, err := os.ReadFile(filepath.Join(i.dir, "out", name))
		if arrived := err == nil && bytes.Equal(in, out); arrived != (n != largeFile) {
			i.Errorf("%s: arrived %v, %v", name, arrived, err)
		}
	}
	c, err := client.New(client.Config{BaseURL: i.url, Token: i.org.IngestKey.Secret})
	if err != nil {
		i.Fatal(err)
	}
	run, err := runs.Start(i.Context(), c, runs.Options{Workflow: runs.Workflow{Name: "import"}, External: "night"})
	if err != nil || !run.Resumed || run.Status != runs.Failed {
		i.Fatalf("the run: got %+v, %v", run, err)
	}
	var hashes []id.Hash
	success := map[string]int{}
	for e, err := range run.Events(i.Context()) {
		if err != nil {
			i.Fatal(err)
		}
		if e.Key != "" || len(hashes) == 0 {
			hashes = append(hashes, e.EventHash)
		}
		if file, ok := strings.CutSuffix(e.Key, ".result"); ok && e.Status == "succeeded" {
			success[file]++
		} else if success[e.Key] > 0 {
			i.Errorf("%s was started again after its success", e.Key)
		}
	}
	for n := range importFiles {
		want := 1
		if n == largeFile {
			want = 0
		}
		if name := fmt.Sprintf("file-%02d", n); success[name] != want {
			i.Errorf("%s: %d successes, want %d", name, success[name], want)
		}
	}
	result, err := run.Result(i.Context())
	if err != nil || result.Root == nil || *result.Root != workflow.StepsRoot(hashes) || *result.Gap != 0 {
		i.Errorf("result: got %+v, %v", result, err)
	}
}
