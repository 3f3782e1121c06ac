package monitor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// An attacker who answers in the log's name shows one moment again and again, while the log grows for
// others. Nothing in the view is contradictory: only its age reveals the attack.
func TestFrozenView(t *testing.T) {
	a, b := witness(t, "a.example", 1), witness(t, "b.example", 2)
	now := id.Instant(1_795_176_000_000)
	h := newHistory(t, "red").grow(100, 1)
	s := serve(t, h)
	o := follow(t, s).Options
	o.Policy, o.Witnesses = two(t, a, b), nil
	clock := now
	o.Clock = func() time.Time { return clock.Time() }
	for _, c := range []struct {
		name   string
		after  time.Duration
		maxAge time.Duration
		note   []byte
		asOf   time.Duration
		old    bool
	}{
		{"at once", 0, 0, cosign(t, h.note(t), now, 0, a, b), 0, false},
		{"frozen for three hours", 3 * time.Hour, 0, cosign(t, h.note(t), now, 0, a, b), 0, false},
		{"frozen for longer", 3*time.Hour + time.Second, 0, cosign(t, h.note(t), now, 0, a, b), 0, true},
		{"frozen for longer than asked for", 3 * time.Hour, time.Hour, cosign(t, h.note(t), now, 0, a, b), 0, true},
		{"any age", 30 * time.Hour, -1, cosign(t, h.note(t), now, 0, a, b), 0, false},
		{"the cosignatures are left out", 4 * time.Hour, 0, h.note(t), 0, true},
		{"one of two signs again", 4 * time.Hour, 0, cosign(t, cosign(t, h.note(t), now, -4*time.Hour, a), now, 0, b), 0, true},
		{"both sign again", 4 * time.Hour, 0, cosign(t, h.note(t), now, -4*time.Hour, a, b), 4 * time.Hour, false},
	} {
		clock = id.InstantOf(now.Time().Add(c.after))
		s.shown(h, h.note(t), c.note)
		o.MaxAge = c.maxAge
		m, err := New(o) // another process
		if err != nil {
			t.Fatal(err)
		}
		r, err := m.Check(t.Context())
		if c.old != errors.Is(err, ErrLag) || !c.old && err != nil {
			t.Errorf("%s: got %v", c.name, err)
		}
		if r.AsOf == nil || r.AsOf.Time() != now.Time().Add(c.asOf) {
			t.Errorf("%s: as of %v, want %s after the beginning", c.name, r.AsOf, c.asOf)
		}
		if r.TreeSize != 100 {
			t.Errorf("%s: the head was verified but not stored", c.name)
		}
	}
}

// A witness with a wrong clock, or one that lies, cannot make an old view look fresh.
func TestClockOfAWitness(t *testing.T) {
	a, b, c := witness(t, "a.example", 1), witness(t, "b.example", 2), witness(t, "c.example", 3)
	now := id.Instant(1_795_176_000_000)
	h := newHistory(t, "red").grow(100, 1)
	twoOf3, err := trust.Parse([]byte("witness a " + a.Key().String() + "\nwitness b " + b.Key().String() + "\nwitness c " + c.Key().String() + "\ngroup two 2 a b c\nquorum two\n"))
	if err != nil {
		t.Fatal(err)
	}
	const hour, century = time.Hour, 100 * 365 * 24 * time.Hour
	for name, tc := range map[string]struct {
		policy  *trust.Policy // if nil, a and b are given as witnesses
		ages    [3]time.Duration
		asOf    time.Duration // age; unknown if negative
		old     bool
		futures int
	}{
		"policy, all clocks right":        {twoOf3, [3]time.Duration{1, 2, 3}, 2, false, 0},
		"policy, one in the future":       {twoOf3, [3]time.Duration{-century, 5 * hour, 6 * hour}, 6 * hour, true, 1},
		"policy, one minute ahead":        {twoOf3, [3]time.Duration{-time.Minute, 5 * hour, 6 * hour}, 5 * hour, true, 0},
		"policy, one in the past":         {twoOf3, [3]time.Duration{40 * 365 * 24 * hour, time.Minute, 2 * time.Minute}, 2 * time.Minute, false, 0},
		"policy, two in the future":       {twoOf3, [3]time.Duration{-century, -century, time.Minute}, -1, true, 2},
		"witnesses, one in the future":    {nil, [3]time.Duration{-century, 5 * hour}, 5 * hour, true, 1},
		"witnesses, all in the future":    {nil, [3]time.Duration{-century, -6 * time.Minute}, -1, true, 2},
		"witnesses, one within 5 minutes": {nil, [3]time.Duration{-4 * time.Minute, hour}, -4 * time.Minute, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, h)
			note := cosign(t, cosign(t, h.note(t), now, tc.ages[0], a), now, tc.ages[1], b)
			o := follow(t, s).Options
			o.Clock = func() time.Time { return now.Time() }
			o.Witnesses, o.MaxLag = []tlog.WitnessKey{a.Key(), b.Key()}, hour
			if o.Policy = tc.policy; o.Policy != nil {
				note = cosign(t, note, now, tc.ages[2], c)
				o.MaxLag = 0
			}
			s.shown(h, note, note)
			m, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			r, err := m.Check(t.Context())
			if tc.old != errors.Is(err, ErrLag) || !tc.old && err != nil {
				t.Errorf("got %v", err)
			}
			if known := tc.asOf != -1; known != (r.AsOf != nil) ||
				known && r.AsOf.Time().Sub(now.Time().Add(-tc.asOf)).Abs() > time.Second {
				t.Errorf("as of %v, want an age of %s", r.AsOf, tc.asOf)
			}
			futures := 0
			for _, c := range r.Cosignatures {
				if c.InFuture {
					futures++
				}
				if c.InFuture && err != nil && !strings.Contains(err.Error(), c.Name+" states ") {
					t.Errorf("%s is not named: %v", c.Name, err)
				}
			}
			if futures != tc.futures {
				t.Errorf("%d cosignatures are from the future, want %d: %v", futures, tc.futures, r.Cosignatures)
			}
		})
	}
}

// A policy without witnesses proves nothing about the age.
func TestAgeWithoutWitnesses(t *testing.T) {
	h := newHistory(t, "red").grow(10, 1)
	o := follow(t, serve(t, h)).Options
	o.Policy = &trust.Policy{Quorum: trust.None}
	for maxAge, old := range map[time.Duration]bool{0: false, -1: false, time.Hour: true} {
		o.MaxAge = maxAge
		m, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := m.Check(t.Context()); old != errors.Is(err, ErrLag) || !old && err != nil || r.AsOf != nil || r.Quorum != nil {
			t.Errorf("%s: got %v, as of %v, quorum %v", maxAge, err, r.AsOf, r.Quorum)
		}
	}
}
