package clock_test

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/clock/clocktest"
)

const day = 24 * time.Hour

// act is something that happens to a machine or its operator, and the expected state of the guard afterwards.
type act struct {
	what   string
	pass   time.Duration // of time, asleep or not
	asleep bool
	step   time.Duration
	accept bool

	ahead time.Duration // trusted time minus true time; true time only passes
	held  bool
}

func TestGuard(t *testing.T) {
	tests := map[string][]act{
		"nothing":       {{what: "a year passes", pass: 365 * day}},
		"step forward":  {{what: "step", step: 400 * day, held: true}, {what: "3 s", pass: 3 * time.Second, held: true}, {what: "return", step: -400 * day}},
		"step back":     {{what: "step", step: -day, held: true}, {what: "an hour", pass: time.Hour, held: true}, {what: "return", step: day}},
		"not quite":     {{what: "step", step: day, held: true}, {what: "return", step: -day + 3*time.Second, ahead: 3 * time.Second}},
		"far from it":   {{what: "step", step: day, held: true}, {what: "return", step: -day + 6*time.Second, held: true}},
		"correction":    {{what: "forward", step: 4 * time.Second, ahead: 4 * time.Second}},
		"backwards too": {{what: "back", step: -5 * time.Second, ahead: -5 * time.Second}},
		"creep": {
			{what: "one", step: 4 * time.Second, ahead: 4 * time.Second},
			{what: "two", pass: time.Minute, step: 4 * time.Second, ahead: 4 * time.Second, held: true},
			{what: "three", pass: time.Minute, step: 4 * time.Second, ahead: 4 * time.Second, held: true},
			{what: "an hour later", pass: time.Hour, ahead: 4 * time.Second, held: true},
			{what: "one is taken back", step: -4 * time.Second, ahead: 8 * time.Second},
		},
		"creep of 90 ms": {
			{what: "1", step: 90 * time.Millisecond, ahead: 90 * time.Millisecond},
			{what: "2", step: 90 * time.Millisecond, ahead: 180 * time.Millisecond},
			{what: "3 to 53", step: 51 * 90 * time.Millisecond, ahead: 53 * 90 * time.Millisecond},
			{what: "54 to 57", step: 4 * 90 * time.Millisecond, ahead: 53 * 90 * time.Millisecond, held: true},
		},
		"to and fro": {
			{what: "to", step: 3 * time.Second, ahead: 3 * time.Second},
			{what: "fro", step: -3 * time.Second},
			{what: "to", step: 3 * time.Second, ahead: 3 * time.Second},
			{what: "back to a little before", step: -5 * time.Second, ahead: -2 * time.Second},
			{what: "too far before", step: -time.Second, ahead: -2 * time.Second, held: true},
			{what: "right again", step: 3 * time.Second},
		},
		"a step forward is corrected": {
			{what: "step", step: 4 * time.Second, ahead: 4 * time.Second},
			{what: "corrected", pass: time.Minute, step: -4 * time.Second},
			{what: "step", pass: time.Minute, step: 4 * time.Second, ahead: 4 * time.Second},
			{what: "corrected", pass: time.Minute, step: -4 * time.Second},
			{what: "all of the bound forward", step: 5 * time.Second, ahead: 5 * time.Second},
		},
		"a step back is corrected": {
			{what: "step", step: -5 * time.Second, ahead: -5 * time.Second},
			{what: "corrected", step: 5 * time.Second},
			{what: "step", step: -5 * time.Second, ahead: -5 * time.Second},
			{what: "corrected", step: 5 * time.Second},
		},
		"a correction does not free the way back": {
			{what: "step", step: 4 * time.Second, ahead: 4 * time.Second},
			{what: "corrected", step: -4 * time.Second},
			{what: "6 s before the latest time", step: -2 * time.Second, held: true},
			{what: "5 s before the latest time", step: time.Second, ahead: -time.Second},
		},
		"the bound comes back": {
			{what: "one", step: 5 * time.Second, ahead: 5 * time.Second},
			{what: "half an hour later", pass: 30 * time.Minute, step: 2 * time.Second, ahead: 7 * time.Second},
			{what: "an hour later", pass: time.Hour, step: 5 * time.Second, ahead: 12 * time.Second},
		},
		"sleep": {{what: "the night", pass: 8 * time.Hour, asleep: true}, {what: "again", pass: 60 * day, asleep: true}, {what: "a correction", step: time.Second, ahead: time.Second}},
		"step in sleep": {
			{what: "asleep", pass: time.Hour, step: day, asleep: true, held: true},
			{what: "asleep again", pass: time.Hour, asleep: true, held: true},
			{what: "return", step: -day},
		},
		"accept": {
			{what: "step", step: 40 * day, held: true},
			{what: "accept", accept: true, ahead: 40 * day},
			{what: "a correction", step: 5 * time.Second, ahead: 40*day + 5*time.Second},
			{what: "back", step: -40 * day, ahead: 40*day + 5*time.Second, held: true},
			{what: "accept", accept: true, ahead: 5 * time.Second},
		},
		"accept what is right": {{what: "accept", accept: true}},
	}
	for name, acts := range tests {
		t.Run(name, func(t *testing.T) {
			m := clocktest.New()
			g := clock.New(m, clock.Start{})
			play(t, m, g, acts)
		})
	}
}

func play(t *testing.T, m *clocktest.Machine, g *clock.Guard, acts []act) {
	t.Helper()
	for _, a := range acts {
		switch {
		case a.asleep:
			m.Sleep(a.pass)
		default:
			m.Pass(a.pass)
		}
		m.Step(a.step)
		if a.accept {
			g.Accept()
		}
		if got := g.HeldReason(); (got != "") != a.held {
			t.Errorf("%s: held because of %q, want %v", a.what, got, a.held)
		}
		if got := g.Now().Sub(m.TrueTime()); got != a.ahead {
			t.Errorf("%s: trusted time is %v ahead, want %v", a.what, got, a.ahead)
		}
		if err := g.Check(); (err != nil) != a.held || a.held && (fault.Of(err).Code != "clock" || !fault.Is(err, fault.Unavailable)) {
			t.Errorf("%s: got %v", a.what, err)
		}
	}
}

func TestStart(t *testing.T) {
	const gap = 31 * day
	tests := map[string]struct {
		newest time.Duration // before the start; negative: after it
		start  clock.Start
		acts   []act
	}{
		"soon":           {newest: time.Minute, start: clock.Start{MaxGap: gap}, acts: []act{{what: "start"}}},
		"a month":        {newest: gap, start: clock.Start{MaxGap: gap}, acts: []act{{what: "start"}}},
		"a little early": {newest: -5 * time.Second, start: clock.Start{MaxGap: gap}, acts: []act{{what: "start"}}},
		"too late": {newest: gap + time.Second, start: clock.Start{MaxGap: gap}, acts: []act{
			{what: "start", ahead: -gap - time.Second, held: true},
			{what: "an hour", pass: time.Hour, ahead: -gap - time.Second, held: true},
			{what: "accept", accept: true},
		}},
		"too early": {newest: -6 * time.Second, start: clock.Start{MaxGap: gap}, acts: []act{
			{what: "start", ahead: 6 * time.Second, held: true},
			{what: "an hour", pass: time.Hour, ahead: 6 * time.Second, held: true},
			{what: "mended", step: 2 * time.Second, ahead: 2 * time.Second},
			{what: "a correction", step: 5 * time.Second, ahead: 7 * time.Second},
		}},
		"a machine without a clock": {newest: -50 * 365 * day, start: clock.Start{MaxGap: gap}, acts: []act{
			{what: "start", ahead: 50 * 365 * day, held: true},
			{what: "time comes, two days later than the newest", pass: time.Minute, step: 50*365*day + 2*day, ahead: 50*365*day + 2*day},
		}},
		"early, and back again": {newest: -4 * time.Second, start: clock.Start{MaxGap: gap}, acts: []act{
			{what: "start"},
			{what: "6 s before the newest", step: -2 * time.Second, held: true},
			{what: "5 s before the newest", step: time.Second, ahead: -time.Second},
		}},
		"any gap":  {newest: 9000 * day, acts: []act{{what: "start"}}},
		"accepted": {newest: -day, start: clock.Start{MaxGap: gap, Accept: true}, acts: []act{{what: "start"}, {what: "step", step: day, held: true}}},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			m := clocktest.New()
			c.start.Newest = m.TrueTime().Add(-c.newest)
			play(t, m, clock.New(m, c.start), c.acts)
		})
	}
}

// Whatever the steps are, trusted time is never more than Bound behind an earlier trusted time, so the received times
// of a log need not decrease. A clock that is right again is trusted if it was within Bound.
func TestGuardNeverGoesBackFurtherThanBound(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		m := clocktest.New()
		g := clock.New(m, clock.Start{})
		newest, ahead := g.Now(), time.Duration(0)
		for range 100 {
			m.Pass(time.Duration(random.Int64N(int64(10 * time.Minute))))
			step := time.Duration(random.Int64N(int64(12*time.Second))) - 6*time.Second
			if random.IntN(3) == 0 {
				step = -ahead // the machine's clock becomes right
			}
			ahead += step
			m.Step(step)
			now := g.Now()
			if back := newest.Sub(now); back > clock.Bound {
				t.Fatalf("seed %d: trusted time went back by %v", seed, back)
			}
			if now.After(newest) {
				newest = now
			}
			if held := g.HeldReason(); held == "" && now.Sub(m.TrueTime()) != ahead {
				t.Fatalf("seed %d: trusted time is %v ahead, the clock %v", seed, now.Sub(m.TrueTime()), ahead)
			}
		}
	}
}

// A step is detected by whichever caller comes first, and none of many concurrent callers sees it.
func TestGuardConcurrently(t *testing.T) {
	m := clocktest.New()
	g := clock.New(m, clock.Start{})
	want := m.TrueTime()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 2000 {
				if got := g.Now(); !got.Equal(want) {
					t.Errorf("got %v, want %v", got, want)
					return
				}
			}
		})
	}
	for range 200 {
		m.Step(400 * day)
		m.Step(-400 * day)
	}
	all.Wait()
}

func TestMark(t *testing.T) {
	m := clock.Mark{Path: filepath.Join(t.TempDir(), "clock")}
	if got, err := m.Read(); err != nil || !got.IsZero() {
		t.Errorf("without a file: got %v, %v", got, err)
	}
	want := time.Date(2026, 11, 22, 10, 0, 0, 123_000_000, time.UTC)
	for range 2 {
		if err := m.Write(want); err != nil {
			t.Fatal(err)
		}
		if got, err := m.Read(); err != nil || !got.Equal(want) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
		want = want.Add(time.Second)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(m.Path), ".clock-*")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	if err := os.WriteFile(m.Path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := m.Read(); err == nil {
		t.Errorf("an empty file: got %v", got)
	}
}

// Watch logs each state once, and does not write the mark while the clock is not trusted.
func TestWatch(t *testing.T) {
	m := clocktest.New()
	g := clock.New(m, clock.Start{})
	mark := clock.Mark{Path: filepath.Join(t.TempDir(), "clock")}
	var logged bytes.Buffer
	watch := func() string {
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // one look
		logged.Reset()
		g.Watch(ctx, slog.New(slog.NewTextHandler(&logged, nil)), mark)
		return logged.String()
	}
	trusted := m.TrueTime()
	if got := watch(); got != "" {
		t.Errorf("got %q", got)
	}
	m.Step(400 * day)
	if got := watch(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, "the clock moved by 9600h0m0s") {
		t.Errorf("got %q", got)
	}
	if got, err := mark.Read(); err != nil || !got.Equal(trusted) {
		t.Errorf("got %v, %v, want %v", got, err, trusted)
	}
}

// The clocks of this machine advance, and agree.
func TestMachine(t *testing.T) {
	g := clock.New(clock.Machine(), clock.Start{})
	before := time.Now()
	s := g.Status()
	if after := time.Now(); s.Trusted.Before(before) || s.Trusted.After(after) || s.Held != "" {
		t.Errorf("got %+v between %v and %v", s, before, after)
	}
}

func BenchmarkNow(b *testing.B) {
	g := clock.New(clock.Machine(), clock.Start{})
	for b.Loop() {
		g.Now()
	}
}

func BenchmarkTimeNow(b *testing.B) {
	for b.Loop() {
		_ = time.Now()
	}
}
