package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
	"github.com/agentledger/agentledger/verify"
)

// watchedLog is one log of a real server with a witness, and its real monitor.
type watchedLog struct {
	*testing.T
	server *process
	worker *worker
	x      *witnesstest.Witness
	state  string
}

func watchLog(t *testing.T, server *process, slug string, x *witnesstest.Witness) watchedLog {
	t.Helper()
	w, err := newWorker(server.main, server.found(t.Context(), slug, nil), client.Retry{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	return watchedLog{T: t, server: server, worker: w, x: x, state: filepath.Join(t.TempDir(), "state")}
}

// lookedAt is the output of a monitor with --json.
type lookedAt struct {
	Consistent   bool                 `json:"consistent"`
	TreeSize     id.Index             `json:"tree_size"`
	Cosignatures []verify.Cosignature `json:"cosignatures"`
	Error        string               `json:"error"`
}

// look runs the monitor once.
func (l watchedLog) look(want int, more ...string) (at lookedAt) {
	l.Helper()
	args := append([]string{"--json", "monitor", "--once", "--tries", "1", "--url", l.server.main + "/o/" + l.worker.org.OrganizationID.String(),
		"--key", l.worker.org.LogKey, "--witness", l.x.Signer.Key().String(), "--state", l.state}, more...)
	out, exit := command(l.T, "aps", args...)
	said, _, _ := strings.Cut(out, "\n") // then the failure, on standard error
	if err := json.Unmarshal([]byte(said), &at); err != nil || exit != want || at.Consistent != (want == 0) {
		l.Fatalf("got status %d, %v, want %d\n%s", exit, err, want, out)
	}
	return at
}

// cosigned waits until the log shows a cosigned checkpoint of that size.
func (l watchedLog) cosigned(size id.Index) {
	l.Helper()
	base := l.server.main + "/v1/public/orgs/" + string(l.worker.org.Slug) + "/transparency/"
	policy, err := trust.Parse([]byte(getText(l.T, base+"policy")))
	if err != nil {
		l.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		text := getText(l.T, base+"checkpoint?cosigned=1")
		if o, err := policy.Open([]byte(text)); err == nil && o.Checkpoint.Size == size {
			return
		}
		if time.Now().After(end) {
			l.Fatalf("not cosigned: %s\n%s", text, l.server.logs)
		}
	}
}

// Witnesses of both algorithms form a quorum together, for the service, the offline verifier and the monitor; a log
// that one of them does not know has none.
func TestWitnessesOfBothAlgorithms(t *testing.T) {
	x, y := witnesstest.New(t, "x.example"), witnesstest.NewMLDSA(t, "y.example")
	file := filepath.Join(t.TempDir(), "witnesses.policy")
	if err := os.WriteFile(file, []byte(x.PolicyLine("x")+y.PolicyLine("y")+"group both all x y\nquorum both\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := startProcess(t, t.TempDir(), "--witness-policy-file", file, "tuning.witness_interval=100ms", "--callout-allow", "127.0.0.0/8")
	red, blue := watchLog(t, server, "red", y), watchLog(t, server, "blue", x)
	for log, witnesses := range map[*worker][]*witnesstest.Witness{red.worker: {x, y}, blue.worker: {x}} {
		key, err := tlog.ParseVerifierKey(log.org.LogKey)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range witnesses {
			w.AddLog(key)
		}
	}
	for size := range id.Index(3) {
		sendOne(t, red.worker)
		red.cosigned(size + 1)
	}
	sendOne(t, blue.worker)
	blue.look(2)
	if at := red.look(0, "--max-lag", "1h"); len(at.Cosignatures) != 1 || at.Cosignatures[0].Name != "y.example" {
		t.Errorf("got %+v", at)
	}
	base := server.main + "/v1/public/orgs/red/"
	policy := filepath.Join(t.TempDir(), "policy")
	if err := os.WriteFile(policy, []byte(getText(t, base+"transparency/policy")), 0o600); err != nil {
		t.Fatal(err)
	}
	last := string(sendOne(t, red.worker))
	red.cosigned(4)
	if out, exit := command(t, "aps", "verify", base+"verify/"+last, "--policy", policy); exit != 0 || !strings.Contains(out, ", by y.example\n") {
		t.Errorf("got status %d\n%s", exit, out)
	}
	if out, exit := command(t, "aps", "verify", base+"verify/"+last+"?verify=1", "--policy", policy); exit != 0 || !strings.Contains(out, ", by x.example\n") {
		t.Errorf("got status %d\n%s", exit, out)
	}
}

// The monitor reads the cosigned checkpoint that the service shows: none before the first quorum, then the latest, and
// while the witness is unavailable an older one or, if the service fails closed, none. A log that the witness does not
// know has none.
func TestMonitorReadsCosigned(t *testing.T) {
	t.Parallel()
	for _, fail := range []string{"open", "closed"} {
		t.Run(fail, func(t *testing.T) {
			x := witnesstest.New(t, "x.example")
			file := filepath.Join(t.TempDir(), "witnesses.policy")
			if err := os.WriteFile(file, []byte(x.PolicyLine("x")+"quorum x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			server := startProcess(t, t.TempDir(), "--witness-policy-file", file, "tuning.witness_interval=100ms", "tuning.witness_max_lag=0s",
				"tuning.witness_fail="+fail, "--callout-allow", "127.0.0.0/8")
			red, blue := watchLog(t, server, "red", x), watchLog(t, server, "blue", x)
			key, err := tlog.ParseVerifierKey(red.worker.org.LogKey)
			if err != nil {
				t.Fatal(err)
			}
			x.AddLog(key)
			red.followed(fail)
			sendOne(t, blue.worker)
			if at := blue.look(2); len(at.Cosignatures) != 0 {
				t.Errorf("blue: got %+v", at)
			}
		})
	}
}

// With a policy, the monitor reports how far the quorum has followed, and can't tell if it has not followed for too
// long; the neighbor, which the witness does not know, never has a quorum.
func TestMonitorByPolicy(t *testing.T) {
	t.Parallel()
	x := witnesstest.New(t, "x.example")
	dir := t.TempDir()
	file := filepath.Join(dir, "witnesses.policy")
	if err := os.WriteFile(file, []byte(x.PolicyLine("x")+"quorum x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := startProcess(t, t.TempDir(), "--witness-policy-file", file, "tuning.witness_interval=100ms", "--callout-allow", "127.0.0.0/8")
	red, blue := watchLog(t, server, "red", x), watchLog(t, server, "blue", x)
	key, err := tlog.ParseVerifierKey(red.worker.org.LogKey)
	if err != nil {
		t.Fatal(err)
	}
	x.AddLog(key)
	sendOne(t, blue.worker)
	sendOne(t, red.worker)
	red.cosigned(1)
	look := func(l watchedLog, want int, more ...string) (said string) {
		t.Helper()
		policy := filepath.Join(dir, string(l.worker.org.Slug))
		text := getText(t, server.main+"/v1/public/orgs/"+string(l.worker.org.Slug)+"/transparency/policy")
		if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"--json", "monitor", "--once", "--tries", "1", "--url", server.main + "/o/" + l.worker.org.OrganizationID.String(),
			"--policy", policy, "--state", l.state}, more...)
		said, exit := command(t, "aps", args...)
		if exit != want {
			t.Fatalf("got status %d, want %d\n%s", exit, want, said)
		}
		return said
	}
	if said := look(red, 0, "--max-lag", "1ns", "--max-age", "3h"); !strings.Contains(said, `"quorum":{"tree_size":1,`) || !strings.Contains(said, `"waiting_entries":0,"waiting_since":null`) {
		t.Errorf("cosigned: got %s", said)
	}
	x.AnswerWith(unwell)
	sendOne(t, red.worker)
	if said := look(red, 0); !strings.Contains(said, `"quorum":{"tree_size":1,`) || !strings.Contains(said, `"waiting_entries":1,"waiting_since":"`) {
		t.Errorf("the witness is unavailable: got %s", said)
	}
	if said := look(red, 2, "--max-lag", "1ns"); !strings.Contains(said, "no quorum of the policy's witnesses: 1 of 2 entries have it") {
		t.Errorf("for too long: got %s", said)
	}
	x.AnswerWith(nil)
	sendOne(t, red.worker)
	red.cosigned(3)
	if said := look(red, 0, "--max-lag", "1ns", "--max-age", "3h"); !strings.Contains(said, `"quorum":{"tree_size":3,`) {
		t.Errorf("the witness is back: got %s", said)
	}
	if said := look(blue, 0); !strings.Contains(said, `"quorum":{"tree_size":0,`) {
		t.Errorf("blue: got %s", said)
	}
	if said := look(blue, 2, "--max-lag", "1ns"); !strings.Contains(said, "no quorum of the policy's witnesses: 0 of 1 entry has it") {
		t.Errorf("blue: got %s", said)
	}
}

// followed runs through the life of a log that the witness knows.
func (l watchedLog) followed(fail string) {
	size := id.Index(0)
	l.x.AnswerWith(unwell)
	sendOne(l.T, l.worker)
	size++
	if at := l.look(2); len(at.Cosignatures) != 0 {
		l.Errorf("never cosigned: got %+v", at)
	}
	l.x.AnswerWith(nil)
	sendOne(l.T, l.worker)
	size++
	l.cosigned(size)
	first := l.look(0, "--max-lag", "1h")
	if len(first.Cosignatures) != 1 || first.Cosignatures[0].Name != "x.example" || first.TreeSize != size {
		l.Fatalf("cosigned: got %+v", first)
	}
	l.x.AnswerWith(unwell)
	sendOne(l.T, l.worker)
	size++
	if fail == "closed" {
		l.look(2)
	} else if at := l.look(0); len(at.Cosignatures) != 1 || at.Cosignatures[0] != first.Cosignatures[0] || at.TreeSize != size {
		l.Errorf("the witness is unavailable: got %+v, want the earlier cosignature", at)
	}
	if at := l.look(2, "--max-lag", "1ns"); at.Error == "" {
		l.Errorf("too old: got %+v", at)
	}
	l.x.AnswerWith(nil)
	sendOne(l.T, l.worker)
	size++
	l.cosigned(size)
	if at := l.look(0, "--max-lag", "1h"); at.TreeSize != size || len(at.Cosignatures) != 1 {
		l.Errorf("the witness is back: got %+v", at)
	}
}

func unwell(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusServiceUnavailable) }
