package log

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/id"
)

// sumOf is the naive result: everything after begin.
func sumOf(t *testing.T, all []amount, begin id.Instant) decimal.Decimal {
	t.Helper()
	var sum decimal.Decimal
	for _, a := range all {
		if a.at <= begin {
			continue
		}
		var err error
		if sum, err = sum.Add(a.value); err != nil {
			t.Fatal(err)
		}
	}
	return sum
}

func cents(n int64) decimal.Decimal {
	d, err := decimal.FromFloat(float64(n) / 100)
	if err != nil {
		panic(err)
	}
	return d
}

// A sum is exact to the cent and the millisecond, even if it is written and read in between.
func TestSumIsExact(t *testing.T) {
	const window = 20 * time.Second
	random := rand.New(rand.NewPCG(1, 2))
	var s slidingSum
	var all []amount
	now := id.Instant(1_800_000_000_000)
	for range 2000 {
		now += id.Instant(random.IntN(100)) // about 400 in a window
		if got, want := s.At(now, window), sumOf(t, all, now-20_000); got != want {
			t.Fatalf("at %d: got %s, want %s", now, got, want)
		}
		value := cents(1 + random.Int64N(500))
		s.Add(now, value, window)
		all = append(all, amount{now, value})
		if len(all) > 2000 {
			all = all[1000:]
		}
		if random.IntN(50) == 0 {
			stored, err := parseSlidingSum(s.AppendTo(nil))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(stored, s) {
				t.Fatal("read back as another sum")
			}
			s = stored
		}
	}
}

// If there are more events than a sum keeps, it drops none too early, and none much too late.
func TestSumIsBounded(t *testing.T) {
	const window = 10 * time.Minute // with about 2400 events
	random := rand.New(rand.NewPCG(3, 4))
	var s slidingSum
	var all []amount
	now := id.Instant(1_800_000_000_000)
	late := id.Instant(window.Milliseconds() / stepsPerWindow)
	for i := range 8000 {
		now += id.Instant(random.IntN(500))
		got := s.At(now, window)
		if i%10 == 0 {
			least, most := sumOf(t, all, now-600_000), sumOf(t, all, now-600_000-late)
			if got.Cmp(least) < 0 || got.Cmp(most) > 0 {
				t.Fatalf("at %d: got %s, want %s to %s", now, got, least, most)
			}
		}
		s.Add(now, decimal.FromInt(1), window)
		all = append(all, amount{now, decimal.FromInt(1)})
		if len(all) > 4500 {
			all = all[1500:]
		}
		if len(s.amounts) > maxAmounts {
			t.Fatalf("%d amounts are kept", len(s.amounts))
		}
	}
}

func TestSumEdges(t *testing.T) {
	var s slidingSum
	s.Add(1000, decimal.FromInt(1), time.Second)
	for now, want := range map[id.Instant]int64{1000: 1, 1999: 1, 2000: 0} {
		c := slidingSum{amounts: s.amounts, total: s.total}
		if got := c.At(now, time.Second); got != decimal.FromInt(want) {
			t.Errorf("added at 1000, at %d: got %s, want %d", now, got, want)
		}
	}
}

// A sum that overflows has the maximum value until the cause leaves the window.
func TestSumWithoutRoom(t *testing.T) {
	var s slidingSum
	for i := range 3 {
		s.At(id.Instant(1000+i), time.Second)
		s.Add(id.Instant(1000+i), decimal.Max(), time.Second)
	}
	for now, want := range map[id.Instant]decimal.Decimal{1002: decimal.Max(), 2001: decimal.Max(), 2002: {}} {
		c, err := parseSlidingSum(s.AppendTo(nil))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.At(now, time.Second); got != want {
			t.Errorf("at %d: got %s, want %s", now, got, want)
		}
	}
	s.Add(1002, decimal.FromInt(1), time.Second)
	if got := s.At(2001, time.Second); got != decimal.Max() {
		t.Errorf("got %s, want the largest", got)
	}
}

func FuzzSum(f *testing.F) {
	var s slidingSum
	s.Add(5, cents(7), time.Second)
	s.Add(9, cents(70), time.Second)
	f.Add(s.AppendTo(nil))
	f.Add([]byte{1, 1, 1, '0'})
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseSlidingSum(b)
		if err != nil {
			return
		}
		again, err := parseSlidingSum(s.AppendTo(nil))
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("got %v, %v, want %v", again, err, s)
		}
		s.At(1<<40, time.Hour)
	})
}

// An event added in the future counts from now on, for the whole window, in memory and after it is written and read.
func TestSumPull(t *testing.T) {
	const window, now = time.Minute, id.Instant(1_800_000_000_000)
	for name, c := range map[string]struct {
		at     []id.Instant
		pulled bool
		want   []amount
	}{
		"none":       {nil, false, nil},
		"all before": {[]id.Instant{now - 5, now}, false, []amount{{now - 5, cents(1)}, {now, cents(1)}}},
		"all after":  {[]id.Instant{now + 1, now + 2}, true, []amount{{now, cents(2)}}},
		"around":     {[]id.Instant{now - 5, now, now + 1, now + 9}, true, []amount{{now - 5, cents(1)}, {now, cents(3)}}},
		"but now":    {[]id.Instant{now - 5, now + 9}, true, []amount{{now - 5, cents(1)}, {now, cents(1)}}},
	} {
		var s slidingSum
		for _, at := range c.at {
			s.Add(at, cents(1), window)
		}
		if got := s.MoveBack(now); got != c.pulled || !reflect.DeepEqual(s.amounts, c.want) {
			t.Errorf("%s: got %v, %v; want %v, %v", name, got, s.amounts, c.pulled, c.want)
		}
		sum := s.At(now, window)
		if want := cents(int64(len(c.at))); sum != want {
			t.Errorf("%s: got %s, want %s", name, sum, want)
		}
		if got := s.At(now+60_000, window); c.at != nil && got != (decimal.Decimal{}) {
			t.Errorf("%s: a window later: got %s", name, got)
		}
	}
}
