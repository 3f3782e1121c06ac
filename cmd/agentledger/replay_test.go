package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"reflect"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
)

// A recorded day (flag -traces) goes through the real programs, for two organizations at once: one has a policy that
// denies one of the tools, the other has none. Every line is stored once, whatever is sent again, the stored events
// verify offline, and all of them are there after a restart.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, dir)
	recording := readRecording(t, *traces)
	red := newReplayer(t, p.found(t.Context(), "red", map[string]any{"disclosure": "full"}))
	blue := newReplayer(t, p.found(t.Context(), "blue", nil))
	p.denyTool(t.Context(), red.org, recording.tool)

	first := replayAll(p, red, blue)
	checkFirst(t, first[0], recording, recording.uses, 1) // and the policy's activation
	checkFirst(t, first[1], recording, 0, 0)
	for i, again := range replayAll(p, red, blue) {
		checkAgain(t, again, first[i], recording)
	}

	red.fetchSample(p)
	blue.fetchSample(p)
	red.checkSample(recording.tool)
	blue.checkSample("")
	for _, pair := range [][2]*replayer{{red, blue}, {blue, red}} {
		pair[0].checkApart(p, pair[1])
	}

	shown := [2]string{p.checkpoint(red.org), p.checkpoint(blue.org)}
	p.terminate()
	out, exit := command(t, "agentledger", "fsck", "--data", dir)
	if want := fmt.Sprintf("2 ledgers, %d events, 0 faults\n", 2*recording.lines+1); exit != 0 || out != want {
		t.Errorf("fsck: exit %d, got %q, want %q", exit, out, want)
	}
	p = startProcess(t, dir)
	if got := [2]string{p.checkpoint(red.org), p.checkpoint(blue.org)}; got != shown {
		t.Errorf("after the restart: got %q, want %q", got, shown)
	}
}

// recording is what the test needs to know of a file of traces.
type recording struct {
	lines int
	tool  id.Tool // of the first line with a tool
	uses  int     // lines with that tool
}

func readRecording(t *testing.T, file string) (r recording) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	scanner := bufio.NewScanner(f)
	for scanner.Buffer(nil, 1<<20); scanner.Scan(); r.lines++ {
		var line struct {
			Tool id.Tool `json:"tool_name"`
		}
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if r.tool == "" {
			r.tool = line.Tool
		}
		if line.Tool != "" && line.Tool == r.tool {
			r.uses++
		}
	}
	if scanner.Err() != nil || r.uses == 0 {
		t.Fatalf("%s: %d lines, none with a tool, %v", file, r.lines, scanner.Err())
	}
	return r
}

// denyTool activates a policy that denies one tool.
func (p *process) denyTool(ctx context.Context, org foundedOrganization, tool id.Tool) {
	p.t.Helper()
	o, err := newOperator(p.main, p.identity)
	if err != nil {
		p.t.Fatal(err)
	}
	policy := map[string]any{"policy_id": "day", "name": "Day", "rules": []map[string]any{
		{"rule_id": "not-this-one", "tool": tool, "decision": "deny", "reason": "for the test"}}}
	if err := o.signIn(ctx, "ops@"+string(org.Slug)+".example", testPassword); err != nil {
		p.t.Fatal(err)
	}
	if err := o.callConsole(ctx, "POST", "/policies", policy, nil); err != nil {
		p.t.Fatal(err)
	}
	if err := o.callConsole(ctx, "POST", "/policies/day/activate", map[string]any{}, nil); err != nil {
		p.t.Fatal(err)
	}
}

// checkpoint returns the signed note of an organization's log.
func (p *process) checkpoint(org foundedOrganization) string {
	p.t.Helper()
	l, err := newPublicLog(p.main, org)
	if err != nil {
		p.t.Fatal(err)
	}
	_, note, err := l.log.Checkpoint(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return string(note)
}

// replayed is the output of aps for a replay.
type replayed struct {
	Lines, Created, Replayed, Tightened, Denied, Refused int

	HeadBefore treeHead `json:"head_before"`
	HeadAfter  treeHead `json:"head_after"`

	Retries []retried
}

// retried counts the reasons for retries.
type retried struct {
	Reason   string
	Requests int
}

type treeHead struct {
	Size int     `json:"tree_size"`
	Root id.Hash `json:"root_hash"`
}

// replayAll replays for all organizations at once.
func replayAll(p *process, all ...*replayer) []replayed {
	p.t.Helper()
	results := make([]replayed, len(all))
	var group sync.WaitGroup
	for i, r := range all {
		group.Go(func() {
			out, exit := r.aps(p, "replay", "--json", "--connections", "4", *traces)
			if err := json.Unmarshal([]byte(out), &results[i], json.MatchCaseInsensitiveNames(true)); err != nil || exit != 0 {
				p.t.Errorf("%s: replay: exit %d, %v\n%s", r.org.Slug, exit, err, out)
			}
		})
	}
	group.Wait()
	return results
}

// checkFirst checks a replay into a log with a number of existing entries. An answer that was lost, or took longer than
// aps waits, shows as a replayed line: that is reported, and makes no difference to the log.
func checkFirst(t *testing.T, got replayed, r recording, denied, before int) {
	t.Helper()
	for _, again := range got.Retries {
		t.Logf("first replay: %d requests sent again: %s", again.Requests, again.Reason)
	}
	if len(got.Retries) > 0 && got.Tightened <= denied {
		got.Created, got.Replayed = got.Created+got.Replayed, 0
		got.Tightened, got.Denied = denied, denied
	}
	checkReplayed(t, "first", got, replayed{
		Lines: r.lines, Created: r.lines, Tightened: denied, Denied: denied,
		HeadBefore: treeHead{before, got.HeadBefore.Root}, HeadAfter: treeHead{before + r.lines, got.HeadAfter.Root},
	})
}

// checkAgain checks that a second replay changed nothing.
func checkAgain(t *testing.T, got, first replayed, r recording) {
	t.Helper()
	checkReplayed(t, "second", got, replayed{Lines: r.lines, Replayed: r.lines, HeadBefore: first.HeadAfter, HeadAfter: first.HeadAfter})
}

func checkReplayed(t *testing.T, which string, got, want replayed) {
	t.Helper()
	got.Retries = nil // reported, or counted as nothing
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s replay: got %+v, want %+v", which, got, want)
	}
}
