package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// rotate runs the operator's command against a running server.
func (p *process) rotate(slug id.Slug, more ...string) (output string, exit int) {
	p.t.Helper()
	args := append([]string{"rotate-log-key", "--server", p.identity, "--slug", string(slug), "--data", "nowhere"}, more...)
	return commandWith(p.t, []string{"AGENTLEDGER_PLATFORM_SECRET=" + testSecret}, "agentledger", args...)
}

// keysOf reads transparency/keys.
func keysOf(t *testing.T, p *process, slug id.Slug) []verify.LogKey {
	t.Helper()
	keys, err := verify.ParseKeys([]byte(getText(t, p.main+"/v1/public/orgs/"+string(slug)+"/transparency/keys")))
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// keepSending sends events of an organization from several agents until it is stopped. No event may fail.
func keepSending(t *testing.T, p *process, org foundedOrganization, prefix string) (stop func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var senders sync.WaitGroup
	var sent atomic.Int64
	for n := range 4 {
		w, err := newWorker(p.main, org, once)
		if err != nil {
			t.Fatal(err)
		}
		senders.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				body, err := w.signer.SignEvent(client.Event{
					EventID: id.Event(fmt.Sprintf("%s-%d-%d", prefix, n, i)), TraceID: "t", ActorPrincipal: "p", ActionKind: "tool_call", Decision: id.Allow,
				})
				if err == nil {
					_, err = w.client.Send(context.WithoutCancel(ctx), body)
				}
				if err != nil {
					t.Errorf("%s: event %d: %v", prefix, i, err)
					return
				}
				sent.Add(1)
			}
		})
	}
	return func() int64 { cancel(); senders.Wait(); return sent.Load() }
}

// follower is a continuous monitor.
type follower struct {
	t      *testing.T
	cmd    *exec.Cmd
	stderr bytes.Buffer
}

func (l watchedLog) follow(keys ...string) *follower {
	l.Helper()
	args := []string{"monitor", "--url", l.server.main + "/o/" + l.worker.org.OrganizationID.String(), "--state", l.state,
		"--witness", l.x.Signer.Key().String(), "--max-lag", "1m", "--interval", "10ms"}
	for _, k := range keys {
		args = append(args, "--key", k)
	}
	f := &follower{t: l.T, cmd: exec.Command(filepath.Join(programs, "aps"), args...)}
	f.cmd.Stderr = &f.stderr
	if err := f.cmd.Start(); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = f.cmd.Process.Kill() })
	return f
}

// end stops the monitor, which must not have reported anything.
func (f *follower) end() {
	f.t.Helper()
	_ = f.cmd.Process.Signal(syscall.SIGTERM)
	if err := f.cmd.Wait(); err != nil || f.stderr.Len() > 0 {
		f.t.Errorf("the monitor: %v\n%s", err, &f.stderr)
	}
}

// A log's key is rotated while it is served, under load, with a witness and a continuous monitor: no event fails, the
// monitor finds nothing, each checkpoint is valid under the keys that the auditors have at that time, and is cosigned.
// The other organization is not affected.
func TestRotateWhileServing(t *testing.T) {
	x := witnesstest.New(t, "x.example")
	file := filepath.Join(t.TempDir(), "witnesses.policy")
	if err := os.WriteFile(file, []byte(x.PolicyLine("x")+"quorum x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	server := startProcess(t, dir, "--witness-policy-file", file, "tuning.witness_interval=100ms", "--callout-allow", "127.0.0.0/8")
	red, blue := watchLog(t, server, "red", x), watchLog(t, server, "blue", x)
	of := map[string]tlog.VerifierKey{}
	for _, l := range []watchedLog{red, blue} {
		key, err := tlog.ParseVerifierKey(l.worker.org.LogKey)
		if err != nil {
			t.Fatal(err)
		}
		x.AddLog(key)
		sendOne(t, l.worker)
		l.cosigned(1)
		of[string(l.worker.org.Slug)] = key
	}
	old := of["red"]
	before := red.bundle()
	stopRed, stopBlue := keepSending(t, server, red.worker.org, "red"), keepSending(t, server, blue.worker.org, "blue")
	watching, other := red.follow(old.String()), blue.follow(of["blue"].String())

	if out, exit := server.rotate("red", "--finish"); exit != 2 || !strings.Contains(out, "Only the log key ") {
		t.Errorf("nothing to finish: status %d\n%s", exit, out)
	}
	out, exit := server.rotate("red")
	if exit != 0 || !strings.HasPrefix(out, "new key: ") {
		t.Fatalf("status %d\n%s", exit, out)
	}
	added, err := tlog.ParseVerifierKey(strings.TrimPrefix(strings.Split(out, "\n")[0], "new key: "))
	if err != nil {
		t.Fatal(err)
	}
	if out, exit := server.rotate("red"); exit != 2 || !strings.Contains(out, "Two log keys already sign, the newer is "+added.String()) {
		t.Errorf("in the overlap: status %d\n%s", exit, out)
	}
	x.AddLogKey(added)
	red.shows(old, added)
	watching.end()
	watching = red.follow(old.String(), added.String())
	during := red.bundle()
	if out, exit := server.rotate("red", "--finish"); exit != 0 || !strings.HasPrefix(out, "retired: "+old.String()+"\n") {
		t.Fatalf("status %d\n%s", exit, out)
	}
	red.shows(added)
	red.cosignedBy(added)
	after := red.bundle()
	t.Logf("%d and %d events", stopRed(), stopBlue())
	watching.end()
	other.end()

	keys := keysOf(t, server, "red")
	if len(keys) != 2 || keys[0].Key != old || keys[1].Key != added || keys[0].To <= keys[1].From || keys[1].To != tlog.MaxSize+1 || len(keysOf(t, server, "blue")) != 1 {
		t.Fatalf("got %+v", keys)
	}
	for name, b := range map[string]*verify.Bundle{"before": before, "during": during, "after": after} {
		if r := verify.Check(b, verify.Options{Key: &added, Retired: keys}); !r.OK {
			t.Errorf("%s: %v", name, r.Errors)
		}
	}
	server.terminate()
	if out, exit := command(t, "agentledger", "fsck", "--data", dir); exit != 0 {
		t.Errorf("fsck: status %d\n%s", exit, out)
	}
}

// bundle fetches the bundle of an event that it sends.
func (l watchedLog) bundle() *verify.Bundle {
	l.Helper()
	raw, err := l.worker.log.client.FetchBundle(l.Context(), l.worker.org.Slug, sendOne(l.T, l.worker))
	if err != nil {
		l.Fatal(err)
	}
	b, err := verify.ParseBundle(raw)
	if err != nil {
		l.Fatal(err)
	}
	return b
}

// shows checks that the latest checkpoints, which keep coming, are signed by all keys.
func (l watchedLog) shows(keys ...tlog.VerifierKey) {
	l.Helper()
	for range 20 {
		note := getText(l.T, l.server.main+"/o/"+l.worker.org.OrganizationID.String()+"/checkpoint")
		for _, k := range keys {
			if _, err := tlog.OpenCheckpoint([]byte(note), k); err != nil {
				l.Errorf("checkpoint under %s: %v\n%s", k, err, note)
			}
		}
	}
}

// cosignedBy waits until the latest cosigned checkpoint is signed by the key.
func (l watchedLog) cosignedBy(key tlog.VerifierKey) {
	l.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		note := getText(l.T, l.server.main+"/o/"+l.worker.org.OrganizationID.String()+"/checkpoint?cosigned=1")
		c, err := tlog.OpenCheckpoint([]byte(note), key)
		if keys := keysOf(l.T, l.server, l.worker.org.Slug); err == nil && c.Size >= keys[0].To {
			return
		}
		if time.Now().After(end) {
			l.Fatalf("not cosigned under the new key: %s\n%s", note, l.server.logs)
		}
	}
}

// SIGKILL during a step of a rotation, under load: what the operator was told holds, the keys fit the shown
// checkpoints, and the next step continues from there.
func TestKillInRotation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := &drill{t: t, dir: dir, acknowledged: map[id.Slug]map[id.Event]client.Result{},
		asked: map[string]bool{}, erasures: map[string]begun{}, late: map[id.Event]bool{}}
	steps := 0
	for round := range *killRounds + 3 {
		p := startProcess(t, dir)
		if round == 0 {
			d.orgs = []foundedOrganization{p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)}
		}
		before := keysOf(t, p, "red")
		finish := []string{"--finish"}[:overlapping(before)]
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var senders sync.WaitGroup
		for n := range 4 {
			senders.Go(func() { d.send(ctx, p, d.orgs[n%2], fmt.Sprintf("r%d-s%d", round, n)) })
		}
		time.Sleep(50 * time.Millisecond)
		told := make(chan int, 1)
		go func() { _, exit := p.rotate("red", finish...); told <- exit }()
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
		note := getText(t, p.main+"/o/"+d.orgs[0].OrganizationID.String()+"/checkpoint")
		p.kill()
		senders.Wait()
		cancel()
		exit := <-told

		p = startProcess(t, dir)
		after := keysOf(t, p, "red")
		done := len(after) != len(before) || overlapping(after) != overlapping(before)
		if exit == 0 && !done {
			t.Errorf("round %d: the acknowledged step is missing: %+v", round, after)
		}
		if done {
			steps++
		}
		d.signedAll(round, note, after)
		d.verifyEvents(t.Context(), d.log(p, after), d.orgs[0], 20)
		if len(keysOf(t, p, "blue")) != 1 {
			t.Errorf("round %d: the other organization's key was rotated", round)
		}
		p.kill()
	}
	if out, exit := command(t, "agentledger", "fsck", "--data", dir); exit != 0 {
		t.Errorf("fsck: status %d\n%s", exit, out)
	}
	t.Logf("%d steps were done", steps)
}

// overlapping returns 1 while two keys sign.
func overlapping(keys []verify.LogKey) int {
	signing := 0
	for _, k := range keys {
		if k.To == tlog.MaxSize+1 {
			signing++
		}
	}
	return signing - 1
}

// signedAll checks that a shown checkpoint is signed by each key of its size.
func (d *drill) signedAll(round int, note string, keys []verify.LogKey) {
	d.t.Helper()
	c, err := tlog.ReadCheckpoint([]byte(note))
	if err != nil {
		d.t.Fatalf("round %d: %v\n%s", round, err, note)
	}
	for _, k := range keys {
		if _, err := tlog.OpenCheckpoint([]byte(note), k.Key); (err == nil) != k.Signed(c.Size) {
			d.t.Errorf("round %d: the checkpoint at %d and the key of [%d, %d): %v", round, c.Size, k.From, k.To, err)
		}
	}
}

// log is red's log, under the key that bundles name now.
func (d *drill) log(p *process, keys []verify.LogKey) publicLog {
	d.t.Helper()
	d.orgs[0].LogKey = keys[len(keys)-1-overlapping(keys)].Key.String()
	l, err := newPublicLog(p.main, d.orgs[0])
	if err != nil {
		d.t.Fatal(err)
	}
	return l
}
