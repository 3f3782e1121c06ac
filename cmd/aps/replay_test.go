package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/cmd/aps/flags"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

const day = "../../examples/day.ndjson"

func lines(t testing.TB, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

func TestReplay(t *testing.T) {
	s := fakeservice.Start(t, 2)
	o := s.Organization(0)
	o.Rules = map[id.Tool]id.Decision{"crm.customers.export": id.Deny, "shop.refunds.create": id.AllowWithObligation}
	args := with("replay", at(s, o), as(t, o), []string{day})
	n := len(lines(t, day))
	for _, want := range []string{
		fmt.Sprintf("lines      %d: %d created, 0 replayed, 0 refused\ntightened  6, of these denied 2\nhead       size 0 before, size %d after\nrate\n", n, n, n),
		fmt.Sprintf("lines      %d: 0 created, %d replayed, 0 refused\ntightened  0, of these denied 0\nhead       size %d before, size %d after\nrate\n", n, n, n, n),
	} {
		if got := aps(t, "", args...); got.status != 0 || golden(got.out) != want || got.report != "" {
			t.Errorf("got %+v, want %s", got, want)
		}
	}
	if o.Size() != n || s.Organization(1).Size() != 0 {
		t.Errorf("sizes %d, %d", o.Size(), s.Organization(1).Size())
	}
	checkOrder(t, o)
	if got := aps(t, "", with("replay", at(s, s.Organization(1)), as(t, s.Organization(1)), []string{day})...); got.status != 0 || s.Organization(1).Size() != n {
		t.Errorf("the other organization: got %+v", got)
	}
}

// checkOrder checks that the steps of each trace increase by one from 0.
func checkOrder(t *testing.T, o *fakeservice.Organization) {
	t.Helper()
	next := map[id.Trace]uint64{}
	for i := range o.Size() {
		e, err := event.Parse(o.Envelope(i), event.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var extra struct {
			Step uint64 `json:"step"`
		}
		if err := json.Unmarshal(o.Envelope(i), &extra); err != nil {
			t.Fatal(err)
		}
		if extra.Step != next[e.TraceID] {
			t.Errorf("%s: step %d after %d", e.TraceID, extra.Step, next[e.TraceID])
		}
		next[e.TraceID]++
	}
}

// Many overlapping traces, few connections, and a connection that breaks now and then.
func TestReplayKeepsOrder(t *testing.T) {
	for _, batch := range []string{"1", "9", "200"} {
		s := fakeservice.Start(t, 1)
		o := s.Organization(0)
		random := rand.New(rand.NewPCG(1, 2))
		var file strings.Builder
		steps := make([]int, 40)
		for range 600 {
			trace := random.IntN(len(steps))
			fmt.Fprintf(&file, `{"trace":"trc %d","step":%d,"action_kind":"result","payload":{}}`+"\n", trace, steps[trace])
			steps[trace]++
		}
		faults := slices.Repeat([]fakeservice.Fault{fakeservice.None, fakeservice.None, fakeservice.None, fakeservice.Lost, fakeservice.Cut}, 2)
		s.Next(faults...)
		got := aps(t, file.String(), with("replay", at(s, o), as(t, o), []string{"-", "--connections", "5", "--batch", batch, "--json"})...)
		var sum summary
		if err := json.Unmarshal([]byte(got.out), &sum); err != nil {
			t.Fatalf("%v: %+v", err, got)
		}
		if got.status != 0 || sum.Lines != 600 || sum.Created+sum.Replayed != 600 || sum.HeadAfter.TreeSize != 600 || o.Size() != 600 {
			t.Errorf("batches of %s: got %+v", batch, got)
		}
		checkOrder(t, o)
	}
}

func TestReplayContinues(t *testing.T) {
	s := fakeservice.Start(t, 1)
	o := s.Organization(0)
	args := with("replay", at(s, o, "--json"), as(t, o), []string{day})
	n := uint64(len(lines(t, day)))
	for _, tc := range []struct {
		more                    []string
		created, replayed, size uint64
	}{
		{[]string{"--limit", "7"}, 7, 0, 7},
		{[]string{"--skip", "5", "--limit", "10"}, 8, 2, 15},
		{[]string{"--skip", fmt.Sprint(n + 5)}, 0, 0, 15},
		{nil, n - 15, 15, n},
	} {
		got := aps(t, "", append(slices.Clone(args), tc.more...)...)
		var sum summary
		if err := json.Unmarshal([]byte(got.out), &sum); err != nil {
			t.Fatalf("%v: %+v", err, got)
		}
		if got.status != 0 || sum.Created != tc.created || sum.Replayed != tc.replayed || uint64(o.Size()) != tc.size {
			t.Errorf("%v: got %+v, size %d", tc.more, got, o.Size())
		}
	}
}

func TestReplayDryRun(t *testing.T) {
	s := fakeservice.Start(t, 2)
	one := with("replay", as(t, s.Organization(0)), []string{day, "--dry-run"})
	first, second := aps(t, "", one...), aps(t, "", one...)
	if first.status != 0 || first != second {
		t.Fatalf("two dry runs differ: %+v", first)
	}
	envelopes := strings.Split(strings.TrimSuffix(first.out, "\n"), "\n")
	source := lines(t, day)
	if len(envelopes) != len(source) || len(s.Requests()) != 0 {
		t.Fatalf("%d envelopes, %d requests", len(envelopes), len(s.Requests()))
	}
	seen := map[id.Event]bool{}
	for i, text := range envelopes {
		e, err := event.Parse([]byte(text), event.Options{Organization: s.Organization(0).ID})
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("2026-01-01T00:00:0%d.%d00Z", i/10, i%10)
		if seen[e.EventID] || !strings.Contains(text, `"emitted_at":"`+want+`"`) || !strings.Contains(source[i], `"trace":"`+string(e.TraceID)+`"`) {
			t.Errorf("line %d: got %s", i, text)
		}
		seen[e.EventID] = true
	}
	for name, other := range map[string][]string{
		"another start":        append(slices.Clone(one), "--start", "2026-02-01T00:00:00Z"),
		"another key id":       append(slices.Clone(one), "--key-id", "key_2"),
		"another organization": with("replay", as(t, s.Organization(1)), []string{day, "--dry-run"}),
	} {
		for text := range strings.Lines(aps(t, "", other...).out) {
			e, err := event.Parse([]byte(text), event.Options{})
			if err != nil || seen[e.EventID] {
				t.Errorf("%s: same event id, %v", name, err)
			}
		}
	}
}

func TestReplayRejected(t *testing.T) {
	s := fakeservice.Start(t, 1)
	o := s.Organization(0)
	o.Cap = 2
	file := filepath.Join(t.TempDir(), "recording")
	content := strings.Join([]string{
		`{"trace":"a","step":0,"action_kind":"result","payload":{}}`,
		``,
		`{"trace":"a","step":1,"action_kind":"result"}`,
		`{"trace":"a","step":2,"action_kind":"result","payload":{},"policy_decision":"deny"}`,
		`{"step":3,"action_kind":"result","payload":{}}`,
		`hello`,
		`{"trace":"a","step":4,"action_kind":"result","payload":{}}`,
		`{"trace":"a","step":5,"action_kind":"result","payload":{}}`,
	}, "\n")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	got := aps(t, "", with("replay", at(s, o), as(t, o), []string{file})...)
	want := "lines      5: 2 created, 0 replayed, 3 refused\ntightened  0, of these denied 0\nhead       size 0 before, size 2 after\n" +
		"refused    1, first in line 6: The body is not valid JSON\n" +
		"refused    1, first in line 4: not a line of {trace, step, action_kind, tool_name?, payload}\n" +
		"refused    1, first in line 5: trace is missing\nrate\n"
	if got.status != 1 || golden(got.out) != want || !strings.HasPrefix(got.report, "aps: stopped after 5 lines (run again to continue): line 7: send event: 429 ") {
		t.Errorf("got %+v", got)
	}
}

// If the first attempt of a request was stored, the second is a replay, and the summary gives the reason for the retry.
func TestReplayRetries(t *testing.T) {
	s := fakeservice.Start(t, 1)
	o := s.Organization(0)
	s.Next(fakeservice.None, fakeservice.None, fakeservice.BadGateway, fakeservice.BadGateway, fakeservice.OutcomeTaken) // the head comes first: whether the log has a successor, and its checkpoint
	got := aps(t, "", with("replay", []string{"--connections", "1", "--batch", "1"}, at(s, o), as(t, o), []string{day})...)
	n := len(lines(t, day))
	want := fmt.Sprintf("lines      %d: %d created, 1 replayed, 0 refused\ntightened  0, of these denied 0\nhead       size 0 before, size %d after\n", n, n-1, n) +
		"sent again 2 times: 502 Bad Gateway\n" +
		"sent again 1 time: 503 The outcome is unknown [outcome_unknown]\nrate\n"
	if got.status != 0 || golden(got.out) != want || got.report != "" {
		t.Errorf("got %+v, want %s", got, want)
	}
}

func TestRetryReasons(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Addr: &net.TCPAddr{Port: 58200}, Err: errors.New("connection reset by peer")}
	for want, err := range map[string]error{
		"EOF":                            &url.Error{Op: "Post", URL: "http://127.0.0.1:1/x", Err: io.EOF},
		"read: connection reset by peer": &url.Error{Op: "Post", URL: "http://127.0.0.1:1/x", Err: reset},
		"503 Later [overloaded]":         fmt.Errorf("send: %w", &client.Error{Status: 503, Message: "Later", Code: "overloaded", RequestID: "abc"}),
		"else":                           errors.New("else"),
	} {
		if got := retryReason(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestReplayStops(t *testing.T) {
	s := fakeservice.Start(t, 2)
	mine, other := s.Organization(0), s.Organization(1)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx    context.Context
		args   []string
		status int
		want   string
	}{
		"wrong token":     {t.Context(), with("replay", []string{"--url", s.URL, "--token", "t"}, as(t, mine), []string{day}), 1, "hint: APS_TOKEN"},
		"another's token": {t.Context(), with("replay", at(s, other), as(t, mine), []string{day}), 1, "hint: APS_ORG"},
		"interrupted":     {canceled, with("replay", at(s, mine), as(t, mine), []string{day}), 2, "context canceled"},
		"no service":      {t.Context(), with("replay", as(t, mine), []string{day}), 2, "no service"},
		"no file":         {t.Context(), with("replay", at(s, mine), as(t, mine), []string{"none"}), 2, "none"},
		"no batch":        {t.Context(), with("replay", at(s, mine), as(t, mine), []string{day, "--batch", "0"}), 2, "--batch"},
		"no connections":  {t.Context(), with("replay", at(s, mine), as(t, mine), []string{day, "--connections", "0"}), 2, "--connections"},
		"malformed start": {t.Context(), with("replay", at(s, mine), as(t, mine), []string{day, "--start", "today"}), 2, "--start"},
	} {
		if got := apsContext(tc.ctx, "", tc.args...); got.status != tc.status || !strings.Contains(got.report, tc.want) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if mine.Size() != 0 || other.Size() != 0 {
		t.Errorf("sizes %d, %d", mine.Size(), other.Size())
	}
}

// ending cancels a context once its text has been read.
type ending struct {
	*strings.Reader
	cancel func()
}

func (e ending) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	if err != nil {
		e.cancel()
	}
	return n, err
}

// Wherever a run was interrupted, the next one completes it.
func TestReplayInterrupted(t *testing.T) {
	s := fakeservice.Start(t, 1)
	o := s.Organization(0)
	text, n := load(t, day), len(lines(t, day))
	args := with("replay", at(s, o), as(t, o), []string{"-", "--connections", "2"})
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	status := printError(&stderr, runProgram(ctx, args, ending{strings.NewReader(text), cancel}, &stdout, &stderr))
	if status != 2 || !strings.Contains(stderr.String(), "(run again to continue)") || !strings.HasPrefix(stdout.String(), "lines ") {
		t.Errorf("got %d, %s%s", status, &stdout, &stderr)
	}
	if got := aps(t, text, args...); got.status != 0 || o.Size() != n {
		t.Errorf("got %+v, size %d", got, o.Size())
	}
	checkOrder(t, o)
}

// In whatever order lanes are served, events of a trace that wait at the same time share a lane in order, and no lane
// is skipped.
func TestLanes(t *testing.T) {
	l := newSendQueues(4, 1)
	for i := range 4 * minDepth {
		if err := l.enqueueEvent(t.Context(), outgoingEvent{line: uint64(i), trace: fmt.Sprint(i % 10)}); err != nil {
			t.Fatal(err)
		}
	}
	full, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.enqueueEvent(full, outgoingEvent{}); err == nil {
		t.Error("more than the capacity was taken")
	}
	l.closeQueues()
	var group sync.WaitGroup
	laneOf, last := make([]map[string]uint64, 4), make([]int, 4)
	for lane, queue := range l.queues {
		laneOf[lane] = map[string]uint64{}
		group.Go(func() {
			for o := range queue {
				if before, ok := laneOf[lane][o.trace]; ok && before >= o.line {
					t.Errorf("line %d after %d", o.line, before)
				}
				laneOf[lane][o.trace] = o.line
				last[lane]++
				l.finishEvent(o)
			}
		})
	}
	group.Wait()
	traces := 0
	for lane := range 4 {
		traces += len(laneOf[lane])
		if last[lane] == 0 {
			t.Errorf("lane %d got nothing", lane)
		}
	}
	if traces != 10 || len(l.traces) != 0 || len(l.room) != 0 || slices.Max(l.load) != 0 {
		t.Errorf("%d traces in all lanes, %+v remain", traces, l.traces)
	}
}

func TestTake(t *testing.T) {
	queue := make(chan outgoingEvent, 5)
	for i := range 5 {
		queue <- outgoingEvent{line: uint64(i)}
	}
	close(queue)
	var got []int
	for events := takeEvents(queue, 2); events != nil; events = takeEvents(queue, 2) {
		for _, o := range events {
			got = append(got, int(o.line))
		}
		got = append(got, -len(events))
	}
	if want := []int{0, 1, -2, 2, 3, -2, 4, -1}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func FuzzPlayback(f *testing.F) {
	for _, line := range lines(f, day) {
		f.Add(line)
	}
	f.Add(`{"trace":"","step":-1}`)
	f.Add(`{"trace":"../x","step":1,"action_kind":"result","payload":{"salt":1}}`)
	o := fakeservice.Start(f, 1).Organization(0)
	given := as(f, o)
	signer, _, err := flags.Signer{Names: flags.Names{Org: o.ID, Agent: string(o.Agent), KeyID: string(o.Key)}, KeyFile: given[7]}.OpenSigner()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p := playback{signer: signer}
		_, first, err := p.signRecorded(sourceLine{3, []byte(line)})
		if err != nil {
			return
		}
		if _, err := event.Parse(first, event.Options{MaxBytes: len(first), Organization: o.ID}); err != nil {
			t.Errorf("does not parse: %s: %v", first, err)
		}
		if _, second, err := p.signRecorded(sourceLine{3, []byte(line)}); err != nil || !bytes.Equal(first, second) {
			t.Errorf("not deterministic: %v", err)
		}
	})
}

func BenchmarkPlayback(b *testing.B) {
	o := fakeservice.Start(b, 1).Organization(0)
	signer, _, err := flags.Signer{Names: flags.Names{Org: o.ID, Agent: string(o.Agent), KeyID: string(o.Key)}, KeyFile: as(b, o)[7]}.OpenSigner()
	if err != nil {
		b.Fatal(err)
	}
	line := sourceLine{1, []byte(lines(b, day)[0])}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := (playback{signer: signer}).signRecorded(line); err != nil {
			b.Fatal(err)
		}
	}
}
