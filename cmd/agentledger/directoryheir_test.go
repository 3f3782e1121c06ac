package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// listedService is a real service with a directory that a witness cosigns, and the real monitor of all its logs.
type listedService struct {
	*testing.T
	dir    string
	args   []string
	server *process
	x      *witnesstest.Witness

	red, blue, all foundedOrganization // all is the directory's organization
}

func (s *listedService) start() {
	s.Helper()
	s.server = startProcess(s.T, s.dir, s.args...)
}

// directory is the document of /v1/public/directory.
type namedDirectory struct {
	Origin id.Origin `json:"origin"`
	LogKey string    `json:"log_key"`
}

func (s *listedService) directory() (d namedDirectory) {
	s.Helper()
	if err := json.Unmarshal([]byte(getText(s.T, s.server.main+"/v1/public/directory")), &d); err != nil {
		s.Fatal(err)
	}
	return d
}

// send sends one event of an organization.
func (s *listedService) send(org foundedOrganization) id.Event {
	s.Helper()
	w, err := newWorker(s.server.main, org, client.Retry{Attempts: 1})
	if err != nil {
		s.Fatal(err)
	}
	return sendOne(s.T, w)
}

// proof returns the address of an event's bundle with the second proof.
func (s *listedService) proof(org foundedOrganization, event id.Event) string {
	return s.server.main + "/v1/public/orgs/" + string(org.Slug) + "/verify/" + string(event) + "?directory=1"
}

// proven waits until an event has a second proof by a cosigned directory, and returns the file of the bundle and of the
// directory's policy.
func (s *listedService) proven(org foundedOrganization, event id.Event) (bundle, policy string) {
	s.Helper()
	dir := s.TempDir()
	bundle, policy = filepath.Join(dir, "bundle.json"), filepath.Join(dir, "directory.policy")
	s.keep(policy, getText(s.T, s.server.main+"/v1/public/orgs/all-logs/transparency/policy"))
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		s.keep(bundle, getText(s.T, s.proof(org, event)))
		out, exit := command(s.T, "aps", "verify", bundle, "--key", org.LogKey, "--directory-policy", policy)
		if exit == 0 && strings.Contains(out, "ok    quorum      the directory, ") {
			return bundle, policy
		}
		if exit == 1 || time.Now().After(end) {
			s.Fatalf("%s: status %d\n%s\n%s", event, exit, out, s.server.logs)
		}
	}
}

func (s *listedService) keep(file, text string) {
	s.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// monitors runs the monitor of all logs once.
func (s *listedService) monitors(want int, folder string, keys ...string) string {
	s.Helper()
	args := []string{"monitor", "--all", "--once", "--tries", "1", "--url", s.server.main, "--state", folder}
	for _, k := range keys {
		args = append(args, "--key", k)
	}
	out, exit := command(s.T, "aps", args...)
	if exit != want {
		s.Fatalf("the monitor: status %d, want %d\n%s\n%s", exit, want, out, s.server.logs)
	}
	return out
}

func (s *listedService) has(what, text string, want ...string) {
	s.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			s.Errorf("%s: no %q in\n%s", what, w, text)
		}
	}
}

// copyTree copies a folder as an operator does.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-r", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// The directory's own log is frozen and succeeded. The other logs accept events throughout; earlier proofs remain valid
// under the old key, new second proofs are under the new key and cosigned again, and a monitor of all logs continues
// from its state.
func TestDirectorySuccession(t *testing.T) {
	t.Parallel()
	x := witnesstest.New(t, "x.example")
	s := &listedService{T: t, dir: t.TempDir(), x: x}
	policy := filepath.Join(t.TempDir(), "witnesses.policy")
	s.keep(policy, x.PolicyLine("x")+"quorum x\n")
	witnessed := []string{"--witness-policy-file", policy, "tuning.witness_interval=100ms", "--callout-allow", "127.0.0.0/8"}
	s.args = witnessed
	s.start()
	s.red, s.blue, s.all = s.server.found(t.Context(), "red", nil), s.server.found(t.Context(), "blue", nil), s.server.found(t.Context(), "all-logs", nil)
	s.server.terminate()
	s.announce(s.all.LogKey)
	s.args = append(witnessed, "--directory", "all-logs", "tuning.directory_interval=20ms")
	s.start()
	first := s.send(s.red)
	s.proven(s.blue, s.send(s.blue))
	bundle, oldPolicy := s.proven(s.red, first)
	folder := filepath.Join(t.TempDir(), "all")
	s.has("before", s.monitors(0, folder, s.all.LogKey), "consistent: "+string(s.all.Origin), "consistent: "+string(s.red.Origin), "consistent: "+string(s.blue.Origin))

	s.freezeDirectory(folder)
	second := s.send(s.red) // this affects nobody
	var plain verify.Bundle
	if err := json.Unmarshal([]byte(getText(t, s.proof(s.red, second))), &plain); err != nil || plain.Directory != nil {
		t.Errorf("a second proof by a frozen directory: %v", err)
	}
	if d := s.directory(); d.Origin != s.all.Origin {
		t.Errorf("got %+v", d)
	}
	s.server.terminate()

	out, exit := command(t, "agentledger", "succeed", "--data", s.dir, "--organization", "all-logs", "--reason", "an old backup")
	if exit != 0 {
		t.Fatalf("status %d\n%s", exit, out)
	}
	_, told, _ := strings.Cut(out, "\nkey: ")
	told, _, _ = strings.Cut(told, "\n")
	s.announce(strings.TrimSpace(told)) // before the witness is asked
	s.start()
	successor := s.directory()
	if successor.Origin != s.all.Origin.Next() || successor.LogKey != strings.TrimSpace(told) {
		t.Fatalf("got %+v, and %s", successor, out)
	}
	after, newPolicy := s.proven(s.red, second)
	s.proven(s.red, first) // an earlier event, under the new directory
	third := s.send(s.blue)
	s.proven(s.blue, third)
	s.held(bundle, oldPolicy, s.all.LogKey, 0)
	s.held(bundle, newPolicy, successor.LogKey, 2)
	s.held(after, newPolicy, successor.LogKey, 0)
	s.held(after, oldPolicy, s.all.LogKey, 2)

	s.has("the old key alone", s.monitors(2, folder, s.all.LogKey), "the directory of the service is "+string(successor.Origin))
	s.has("the new key alone", s.monitors(2, folder, successor.LogKey), "give its key too")
	s.has("keys of two directories", s.monitors(2, folder, successor.LogKey, s.red.LogKey), "keys of several directories")
	for range 2 {
		s.has("both keys", s.monitors(0, folder, s.all.LogKey, successor.LogKey),
			"consistent: "+string(successor.Origin), "succeeds: "+string(s.all.Origin)+", last known with ", "consistent: "+string(s.red.Origin)+", 2 entries",
			"consistent: "+string(s.blue.Origin)+", 2 entries", "consistent: "+string(s.all.Origin)+", ", ", which agrees with the ", "its successor is "+string(successor.Origin))
	}
	s.has("who comes new", s.monitors(0, filepath.Join(t.TempDir(), "new"), successor.LogKey), "consistent: "+string(successor.Origin), "kept: "+string(s.all.Origin)+", 0 entries")
	s.server.terminate()
	if out, exit := command(t, "agentledger", "fsck", "--data", s.dir); exit != 0 || !strings.Contains(out, "1 of the ledgers is frozen and succeeded by another") {
		t.Errorf("fsck: status %d\n%s", exit, out)
	}
}

// announce configures a key of the directory at the witness.
func (s *listedService) announce(vkey string) {
	s.Helper()
	key, err := tlog.ParseVerifierKey(vkey)
	if err != nil {
		s.Fatal(err)
	}
	s.x.AddLog(key)
}

// held verifies a bundle with a second proof under the pinned keys of the directory.
func (s *listedService) held(bundle, policy, key string, want int) {
	s.Helper()
	for _, pinned := range [][]string{{"--directory-policy", policy}, {"--directory-key", key}} {
		if out, exit := command(s.T, "aps", append([]string{"verify", bundle, "--key", s.red.LogKey}, pinned...)...); exit != want {
			s.Errorf("%v: status %d, want %d\n%s", pinned, exit, want, out)
		}
	}
}

// freezeDirectory restores the store to before an event of the directory that it has shown and a monitor has seen. No
// other log has changed since.
func (s *listedService) freezeDirectory(folder string) {
	s.Helper()
	s.server.terminate()
	db, backup := filepath.Join(s.dir, "db"), filepath.Join(s.TempDir(), "db")
	copyTree(s.T, db, backup)
	s.start()
	s.send(s.all)
	s.has("an event of its own", s.monitors(2, folder, s.all.LogKey), "entries of the directory with undisclosed content")
	s.server.terminate()
	if err := os.RemoveAll(db); err != nil {
		s.Fatal(err)
	}
	copyTree(s.T, backup, db)
	s.start()
	w, err := newWorker(s.server.main, s.all, client.Retry{Attempts: 1})
	if err != nil {
		s.Fatal(err)
	}
	body, err := w.signer.SignEvent(client.Event{TraceID: "t", ActorPrincipal: "p", ActionKind: "tool_call", Decision: id.Allow})
	if err != nil {
		s.Fatal(err)
	}
	if answer := post(s.T, s.server.main+"/v1/ingest/events", s.all.IngestKey.Secret, body); answer != http.StatusServiceUnavailable {
		s.Fatalf("the directory is not frozen: %d", answer)
	}
}

// post sends an event and returns the status.
func post(t *testing.T, url, token string, body []byte) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}
