package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// Runs by the real server and both engines, killed during steps repeatedly: each acknowledged step is in the ledger
// once, as acknowledged, and the run has the root that anyone can compute from the public entries.
func TestWorkflowsThroughKills(t *testing.T) {
	t.Parallel()
	t.Run("pebble", func(t *testing.T) { workflowsThroughKills(t) })
	t.Run("postgres", func(t *testing.T) {
		s, err := pgtest.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Stop() })
		workflowsThroughKills(t, "--storage", s.URL())
	})
}

const (
	workflowKills = 4
	runsOfEach    = 3 // of each organization
)

func workflowsThroughKills(t *testing.T, flags ...string) {
	dir := t.TempDir()
	p := startProcess(t, dir, flags...)
	var runs []*toolRun
	for _, org := range []foundedOrganization{p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)} {
		for n := range runsOfEach {
			runs = append(runs, &toolRun{t: t, org: org, external: fmt.Sprint("exec-", n), told: map[string]stepAnswer{}})
		}
	}
	for range workflowKills {
		var group sync.WaitGroup
		var answered atomic.Int64
		for _, r := range runs {
			group.Go(func() { r.keepReporting(p.main, &answered) })
		}
		awaitAnswers(&answered, 2*len(runs)) // of starts and steps: a busy machine takes longer
		time.Sleep(time.Duration(rand.IntN(350)) * time.Millisecond)
		p.kill()
		group.Wait()
		p = startProcess(t, dir, flags...)
	}
	acknowledged, pending := 0, 0
	for _, r := range runs {
		acknowledged += len(r.told)
		if r.pending != "" {
			pending++
		}
		r.finish(p)
	}
	abandoned := abandonedThroughKill(t, p, dir, runs[0].org, flags...)
	abandoned.terminate()
	arguments := append([]string{"fsck", "--data", dir}, flags...)
	if out, exit := command(t, "agentledger", arguments...); exit != 0 || !strings.Contains(out, "2 ledgers") || !strings.Contains(out, " 0 faults") {
		t.Errorf("fsck: status %d, %s", exit, out)
	}
	if acknowledged < len(runs)*workflowKills {
		t.Errorf("only %d steps were acknowledged", acknowledged)
	}
	t.Logf("%d runs, %d kills, %d steps acknowledged, %d requests in flight at the last one", len(runs), workflowKills, acknowledged, pending)
}

// toolRun is an automation tool that reports one run, one request at a time, and resends what was not answered.
type toolRun struct {
	t        *testing.T
	org      foundedOrganization
	external string
	path     string // "" until the run has started
	sent     int    // steps that were answered
	pending  string // body of the request for steps that was not answered
	told     map[string]stepAnswer
}

// stepAnswer is the answer to a step.
type stepAnswer struct {
	EventID  id.Event `json:"event_id"`
	Number   uint64   `json:"sequence_num"`
	Hash     id.Hash  `json:"event_hash"`
	Replayed string   `json:"status"`
}

// ask makes one request of the tool. Only a response of the server counts.
func (r *toolRun) ask(base, method, path, body string) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+r.org.IngestKey.Secret)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	var b bytes.Buffer
	_, err = b.ReadFrom(response.Body)
	return response.StatusCode, b.Bytes(), err
}

// keepReporting reports steps until the server is gone, and counts the answers.
func (r *toolRun) keepReporting(base string, answered *atomic.Int64) {
	for r.one(base) {
		answered.Add(1)
	}
}

// awaitAnswers waits for a number of answers, at most half a minute.
func awaitAnswers(answered *atomic.Int64, wanted int) {
	for end := time.Now().Add(30 * time.Second); answered.Load() < int64(wanted) && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
}

func (r *toolRun) one(base string) bool {
	if r.path == "" {
		return r.start(base)
	}
	if r.pending == "" {
		r.pending = r.next()
	}
	status, answer, err := r.ask(base, "POST", r.path+"/steps", r.pending)
	if err != nil || status == http.StatusServiceUnavailable {
		return false
	}
	if status != http.StatusCreated && status != http.StatusOK {
		r.t.Errorf("step: got %d %s", status, answer)
		return false
	}
	r.keep(answer)
	r.pending = ""
	return true
}

func (r *toolRun) start(base string) bool {
	status, answer, err := r.ask(base, "POST", "/workflows/runs", `{"workflow":{"name":"drill"},"external_run_id":"`+r.external+`"}`)
	if err != nil || status == http.StatusServiceUnavailable {
		return false
	}
	var started struct {
		RunID string `json:"run_id"`
	}
	if err := json.Unmarshal(answer, &started); err != nil || started.RunID == "" {
		r.t.Errorf("start: got %d %s", status, answer)
		return false
	}
	r.path = "/workflows/runs/" + started.RunID
	return true
}

// next is a list of one to three steps, or one step alone.
func (r *toolRun) next() string {
	step := func() string {
		r.sent++
		return fmt.Sprintf(`{"step_key":"s%d","tool_name":"acme.orders.read","payload":{"n":%d},"status":"succeeded"}`, r.sent, r.sent)
	}
	switch rand.IntN(3) {
	case 0:
		return step()
	case 1:
		return "[" + step() + "]"
	}
	return "[" + step() + "," + step() + "," + step() + "]"
}

// keep records the answer to the steps of the pending request.
func (r *toolRun) keep(answer []byte) {
	type recorded struct {
		Event stepAnswer `json:"event"`
	}
	var all []recorded
	var keys []struct {
		Key string `json:"step_key"`
	}
	list := func(text []byte) []byte {
		if text[0] == '[' {
			return text
		}
		return append(append([]byte("["), text...), ']')
	}
	err := errors.Join(
		json.Unmarshal(list(answer), &all, jsontext.AllowDuplicateNames(false)),
		json.Unmarshal(list([]byte(r.pending)), &keys),
	)
	if err != nil || len(all) != len(keys) {
		r.t.Errorf("got %s for %s: %v", answer, r.pending, err)
		return
	}
	for i, k := range keys {
		if before, known := r.told[k.Key]; known {
			r.t.Errorf("%s was answered differently: %+v, %+v", k.Key, before, all[i].Event)
		}
		r.told[k.Key] = all[i].Event
	}
}

// finish resends what was not answered, ends the run and checks it.
func (r *toolRun) finish(p *process) {
	r.t.Helper()
	if !r.one(p.main) || r.path == "" || r.pending != "" {
		r.t.Errorf("%s of %s could not continue", r.external, r.org.Slug)
		return
	}
	var ended struct {
		Status   string  `json:"status"`
		Recorded int     `json:"steps_recorded"`
		Root     id.Hash `json:"run_root"`
	}
	for range 2 {
		status, answer, err := r.ask(p.main, "POST", r.path+"/complete", `{"status":"succeeded"}`)
		if err == nil {
			err = json.Unmarshal(answer, &ended)
		}
		if err != nil || status != http.StatusOK || ended.Recorded != len(r.told) {
			r.t.Errorf("complete: got %d %s, %v; want %d steps", status, answer, err, len(r.told))
		}
	}
	events := r.events(p)
	var hashes []id.Hash
	for i, e := range events {
		if i == 0 || e.Key != "" {
			hashes = append(hashes, r.public(p, e.EventID))
		}
		if e.Key == "" {
			continue
		}
		if told := r.told[e.Key]; told.Hash != e.Hash || told.Number != e.Number || told.EventID != e.EventID {
			r.t.Errorf("%s: acknowledged as %+v, is %+v", e.Key, told, e)
		}
		delete(r.told, e.Key)
	}
	if got := workflow.StepsRoot(hashes); got != ended.Root {
		r.t.Errorf("run_root from the public entries: got %s, want %s", got, ended.Root)
	}
	if len(r.told) != 0 {
		r.t.Errorf("acknowledged steps are missing: %v", r.told)
	}
}

// runEvent is an event of a run as its tool reads it.
type runEvent struct {
	EventID id.Event `json:"event_id"`
	Kind    string   `json:"action_kind"`
	Number  uint64   `json:"sequence_num"`
	Hash    id.Hash  `json:"event_hash"`
	Key     string   `json:"step_key"`
}

// events reads the whole run, page by page.
func (r *toolRun) events(p *process) (all []runEvent) {
	r.t.Helper()
	for after := 0; ; {
		status, answer, err := r.ask(p.main, "GET", fmt.Sprintf("%s?after=%d&limit=7", r.path, after), "")
		var page struct {
			Events []runEvent `json:"events"`
			Next   *int       `json:"next"`
		}
		if err == nil {
			err = json.Unmarshal(answer, &page)
		}
		if err != nil || status != http.StatusOK {
			r.t.Fatalf("run: got %d %s, %v", status, answer, err)
		}
		all = append(all, page.Events...)
		if page.Next == nil {
			return all
		}
		after = *page.Next
	}
}

// public returns the event hash that is proven under the log's public key.
func (r *toolRun) public(p *process, name id.Event) id.Hash {
	r.t.Helper()
	l, err := newPublicLog(p.main, r.org)
	if err != nil {
		r.t.Fatal(err)
	}
	raw, err := l.client.FetchBundle(r.t.Context(), r.org.Slug, name)
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	bundle, err := verify.ParseBundle(raw)
	if err != nil {
		r.t.Fatal(err)
	}
	key, err := tlog.ParseVerifierKey(r.org.LogKey)
	if err != nil {
		r.t.Fatal(err)
	}
	if report := verify.Check(bundle, verify.Options{Key: &key}); !report.OK {
		r.t.Errorf("%s: %v", name, report.Errors)
	}
	return bundle.EventHash
}

// abandonedThroughKill starts a run that is not continued, kills the server and waits for the end of the run, which
// comes once. It returns the restarted server.
func abandonedThroughKill(t *testing.T, p *process, dir string, org foundedOrganization, flags ...string) *process {
	t.Helper()
	brief := append([]string{"tuning.workflow_silence=300ms"}, flags...)
	p.kill()
	p = startProcess(t, dir, brief...)
	r := &toolRun{t: t, org: org, external: "silent", told: map[string]stepAnswer{}}
	if !r.one(p.main) {
		t.Fatal("the run could not start")
	}
	for range 2 {
		p.kill()
		p = startProcess(t, dir, brief...)
	}
	var run struct {
		Status  string     `json:"status"`
		EndedAt *string    `json:"ended_at"`
		Events  []runEvent `json:"events"`
	}
	for deadline := time.Now().Add(2 * time.Minute); (run.EndedAt == nil || len(run.Events) < 2) && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		_, answer, err := r.ask(p.main, "GET", r.path, "")
		if err == nil {
			err = json.Unmarshal(answer, &run)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if run.Status != "abandoned" || run.EndedAt == nil || len(run.Events) != 2 {
		t.Errorf("a silent run: got %+v", run)
	}
	if status, answer, _ := r.ask(p.main, "POST", r.path+"/steps", `{"step_key":"late","status":"succeeded"}`); status != http.StatusConflict {
		t.Errorf("a step of an abandoned run: got %d %s", status, answer)
	}
	return p
}
