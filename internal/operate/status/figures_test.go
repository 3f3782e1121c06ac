package status

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/backup"
)

func TestFigures(t *testing.T) {
	r := prometheus.NewRegistry()
	resting := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "resting"}, []string{"witness"})
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "failures"}, []string{"cause", "of"})
	times := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "times"})
	r.MustRegister(resting, failures, times)
	resting.WithLabelValues("b").Set(1)
	resting.WithLabelValues("c").Set(0)
	resting.WithLabelValues("a").Set(1)
	failures.WithLabelValues("disk", "x").Add(2)
	failures.WithLabelValues("disk", "y").Add(3)
	failures.WithLabelValues("duplicate", "x").Add(100)
	times.Observe(7)
	all, err := readFigures(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := all.namesAboveZero("resting", "witness"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %v", got)
	}
	if got := all.valuesBy("failures", "cause")["disk"]; got != 5 {
		t.Errorf("got %v", got)
	}
	if all.sum("failures") != 105 || all.sum("times") != 0 || all.sum("none") != 0 {
		t.Errorf("got %v, %v, %v", all.sum("failures"), all.sum("times"), all.sum("none"))
	}
}

// Only refusals because something did not answer count.
func TestCountedRefusals(t *testing.T) {
	r := prometheus.NewRegistry()
	all := prometheus.NewCounterVec(prometheus.CounterOpts{Name: refusals}, []string{"status", "code"})
	r.MustRegister(all)
	for code, n := range map[string]float64{"unavailable": 2, "outcome_unknown": 3, "overloaded": 10, "clock": 20, "": 40} {
		all.WithLabelValues("503", code).Add(n)
	}
	all.WithLabelValues("500", "").Add(80)
	read, err := readFigures(r)
	if err != nil {
		t.Fatal(err)
	}
	if got := countAll(read); got[refusals] != 5 || got[internalErrors] != 80 {
		t.Errorf("got %v and %v, want 5 and 80", got[refusals], got[internalErrors])
	}
}

// Growth is reported for the window only.
func TestIncreases(t *testing.T) {
	var r recent
	at := func(minute int) time.Time { return now.Add(time.Duration(minute) * time.Minute) }
	with := func(n float64) figures { return figures{badProofs: {{value: n}}} }
	if got := r.increases(at(0), with(2))[badProofs]; got != 2 {
		t.Errorf("a young process: got %v", got)
	}
	for minute := range 61 {
		n := 2.0 // counted from the start, plus one at minute 30
		if minute >= 30 {
			n = 3
		}
		r.addSample(at(minute), with(n))
		want := 0.0
		switch {
		case minute < 15:
			want = 2
		case minute >= 30 && minute < 45:
			want = 1
		}
		if got := r.increases(at(minute), with(n))[badProofs]; got != want {
			t.Errorf("minute %d: got %v, want %v", minute, got, want)
		}
	}
	if len(r.samples) > 17 {
		t.Errorf("%d are kept", len(r.samples))
	}
	disk := figures{appendFailures: {{map[string]string{"cause": "broken"}, 1}, {map[string]string{"cause": "duplicate"}, 5}}}
	if got := countAll(disk)[appendFailures]; got != 1 {
		t.Errorf("failures that are the disk's: got %v", got)
	}
}

// A lag counts only while it lasts: old events that a sleep or a start leaves for a moment do not.
func TestLags(t *testing.T) {
	with := func(n float64) figures {
		return figures{reverifyLag: {{value: n}}, witnessWait: {{value: n}}, exportLag: {{value: n}}}
	}
	steps := []struct {
		name                       string
		minute                     int
		lag                        float64
		reverify, witness, streams float64
	}{
		{"a start after a pause", 0, 4000, 0, 0, 0},
		{"soon after", 1, 4000, 0, 0, 0},
		{"six minutes after", 6, 4000, 0, 4000, 4000},
		{"it lasts", 16, 4100, 4000, 4000, 4000},
		{"it is over", 17, 0, 0, 0, 0},
		{"after a sleep", 57, 4000, 0, 0, 0},
		{"a minute after", 58, 3990, 0, 0, 0},
		{"six minutes after", 63, 3980, 0, 3980, 3980},
		{"it lasts again", 73, 4500, 3980, 3980, 3980},
	}
	var r recent
	for _, s := range steps {
		at := now.Add(time.Duration(s.minute) * time.Minute)
		got := r.minimum(at, with(s.lag))
		want := map[string]float64{reverifyLag: s.reverify, witnessWait: s.witness, exportLag: s.streams}
		if !maps.Equal(got, want) {
			t.Errorf("minute %d, %s: got %v, want %v", s.minute, s.name, got, want)
		}
		r.addSample(at, with(s.lag))
	}
}

func TestGrowth(t *testing.T) {
	const hour = time.Hour
	for name, tc := range map[string]struct {
		free   []uint64 // readings an hour apart
		apart  time.Duration
		growth *float64
		left   *float64
	}{
		"one sample":   {[]uint64{100}, hour, nil, nil},
		"too young":    {[]uint64{100, 90}, 29 * time.Minute, nil, nil},
		"grows":        {[]uint64{100, 90, 80}, hour, hours(10), hours(8)},
		"shrinks":      {[]uint64{80, 100}, hour, hours(-20), nil},
		"stays":        {[]uint64{80, 80}, hour, hours(0), nil},
		"is full":      {[]uint64{10, 0}, hour, hours(10), hours(0)},
		"old is gone":  {[]uint64{9000, 90, 80, 70, 60, 50, 40, 30}, hour, hours(10), hours(3)},
		"half an hour": {[]uint64{100, 90}, 30 * time.Minute, hours(20), hours(4.5)},
	} {
		m := &meter{name: "data"}
		for i, free := range tc.free {
			m.measure = func(string) (space, error) { return space{free, 1000}, nil }
			m.takeSample(now.Add(time.Duration(i) * tc.apart))
		}
		m.measure = func(string) (space, error) { return space{}, errors.New("the disk hangs") }
		m.takeSample(now.Add(hour))
		v, ok := m.describeVolume()
		if !ok || v.FreeBytes != tc.free[len(tc.free)-1] || !equal(v.Growth, tc.growth) || !equal(v.HoursLeft, tc.left) {
			t.Errorf("%s: got %+v", name, v)
		}
		if len(m.samples) > 7 {
			t.Errorf("%s: %d samples", name, len(m.samples))
		}
	}
	if _, ok := new(meter).describeVolume(); ok {
		t.Error("there is room without a sample")
	}
}

func equal(a, b *float64) bool { return a == b || a != nil && b != nil && *a == *b }

func TestWaitingLogsInText(t *testing.T) {
	for n, want := range []string{"no log is waiting", "1 log has been waiting for 7 s", "2 logs are waiting, 7 s at most"} {
		r := &Report{Witnesses: Witnesses{WaitingLedgers: uint64(n), WaitSeconds: 7}}
		var b strings.Builder
		if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "witnesses     "+want+"\n") {
			t.Errorf("%d: %v\n%s", n, err, b.String())
		}
	}
}

func TestText(t *testing.T) {
	r := well()
	r.Store.Engine, r.Program.Version, r.Store.DiskBytes = "embedded", "v1", 3<<20
	r.Volumes = []Volume{{Folder: "data", FreeBytes: 5 << 30, SizeBytes: 10 << 30, Growth: hours(1 << 20), HoursLeft: hours(5120)},
		{Folder: "store", FreeBytes: 5, SizeBytes: 10, Growth: hours(-1)}, {Folder: "anchors", FreeBytes: 5, SizeBytes: 10}}
	r.Worst = []Ledger{{Slug: "red", Origin: "log.test/o/x", Size: 7, Level: "frozen", Reason: "damage"}}
	r.Backup = &backup.Note{Path: "/backups/x", MadeAt: now, Events: 7, Verification: backup.Whole}
	ends := id.InstantOf(now)
	r.CertificateEndsAt, r.Ledgers.Faulty["frozen"], r.Witnesses.Resting = &ends, 1, []string{"a.example"}
	r.Events.CountedAt = &ends
	r.judge(now)
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"attention\npage: AgentledgerLedgerFrozen: 1 ledger is frozen\n    do: see /help/runbooks#AgentledgerLedgerFrozen\npage: AgentledgerCertificateEnds: the certificate ends at 2026-11-24T12:00:00.000Z\n    do: ",
		"service       ready, up for 0s\n",
		"store         3.0 MiB, since the start 0 appends failed, ",
		"events        0, 0 of them not re-verified, as of 2026-11-24T12:00:00.000Z; 50 wait for an append\n",
		"ledgers       1 frozen, 0 read_only, 0 held, 0 suspect, as of 2026-11-24T12:00:00.000Z; 0 missing, 0 ahead of the clock\n",
		"witnesses     no log is waiting, paused: a.example\n",
		"archive       since the start 0 bundles moved, 0 reads of damaged objects; 86400 s behind, erasures 3600 s\n",
		"webhooks      unknown, because the store does not respond\n",
		"disk, data    5.0 GiB free of 10.0 GiB, enough for 5120 hours at 1.0 MiB an hour\n",
		"disk, store   5 B free of 10 B, not growing\n", "disk, anchors 5 B free of 10 B, growth not yet known\n",
		"backup        /backups/x, of 2026-11-24T12:00:00Z, 7 events, verified: whole\n",
		"log.test/o/x (red): 7 events, frozen: damage\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}
