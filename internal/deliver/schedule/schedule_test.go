package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

func newIndex() *schedule.Index {
	return &schedule.Index{Records: storagetest.NewModel(), Kind: "things_due"}
}

// at is a clock that stands still.
func at(now id.Instant) func() id.Instant { return func() id.Instant { return now } }

func note(t *testing.T, x *schedule.Index, entries ...schedule.Entry) {
	t.Helper()
	for _, e := range entries {
		if err := x.NoteEntries(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// seen returns a Look that records its entries and returns what outcome returns.
func seen(to *[]string, outcome func(schedule.Entry) schedule.Outcome) schedule.Look {
	return func(_ context.Context, e schedule.Entry) (schedule.Outcome, error) {
		*to = append(*to, fmt.Sprintf("%d/%d/%s", e.At, e.Tenant, e.Name))
		return outcome(e), nil
	}
}

func TestSweep(t *testing.T) {
	x := newIndex()
	note(t, x, schedule.Entry{At: 30, Tenant: 1, Name: "late"}, schedule.Entry{At: 10, Tenant: 2, Name: "b"}, schedule.Entry{At: 20, Tenant: 1, Name: "stays"}, schedule.Entry{At: 10, Tenant: 1, Name: "a/x"}, schedule.Entry{At: 20, Tenant: 2, Name: "put-off"})
	note(t, &schedule.Index{Records: x.Records, Kind: "others"}, schedule.Entry{At: 1, Tenant: 1, Name: "another family's"})
	outcome := func(e schedule.Entry) schedule.Outcome {
		switch e.Name {
		case "stays":
			return schedule.Keep()
		case "put-off":
			return schedule.Until(29)
		}
		return schedule.Done()
	}
	for _, step := range []struct {
		now  id.Instant
		want []string
	}{
		{20, []string{"10/1/a/x", "20/1/stays", "10/2/b", "20/2/put-off"}}, {20, []string{"20/1/stays"}}, {28, []string{"20/1/stays"}},
		{29, []string{"20/1/stays", "29/2/put-off"}}, {30, []string{"20/1/stays", "30/1/late", "29/2/put-off"}},
	} {
		var got []string
		if err := x.Sweep(t.Context(), at(step.now), seen(&got, outcome)); err != nil || !slices.Equal(got, step.want) {
			t.Errorf("at %d: got %q, %v; want %q", step.now, got, err, step.want)
		}
	}
	if err := x.Settle(t.Context(), schedule.Entry{At: 20, Tenant: 1, Name: "stays"}, schedule.Done()); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := x.Sweep(t.Context(), at(28), seen(&got, outcome)); err != nil || len(got) != 0 {
		t.Errorf("got %q, %v", got, err)
	}
}

// An entry that fails does not delay the others, over many pages, and is retried a second later.
func TestSweepGoesOn(t *testing.T) {
	x := newIndex()
	const all = 1100
	for i := range all {
		note(t, x, schedule.Entry{At: id.Instant(i), Tenant: 7, Name: fmt.Sprintf("n%d", i)})
	}
	broken := []storage.Change{
		{Kind: x.Kind, Key: "0000", Value: []byte("{}"), If: storage.AnyVersion},
		{Kind: x.Kind, Key: "t/0000", Value: []byte("{}"), If: storage.AnyVersion},
		{Kind: x.Kind, Key: "t/0000000000000007/", Value: []byte("{}"), If: storage.AnyVersion},
	}
	if err := x.Records.Write(t.Context(), id.Service, broken); err != nil {
		t.Fatal(err)
	}
	bad := errors.New("bad")
	looked := 0
	sweep := func(now id.Instant, fails bool) error {
		looked = 0
		return x.Sweep(t.Context(), at(now), func(_ context.Context, e schedule.Entry) (schedule.Outcome, error) {
			looked++
			if fails && e.At%100 == 0 {
				return schedule.Done(), bad
			}
			return schedule.Done(), nil
		})
	}
	if err := sweep(all, true); !errors.Is(err, bad) || !errors.Is(err, storage.ErrCorrupt) || looked != all {
		t.Errorf("looked at %d, %v", looked, err)
	}
	if err := sweep(all+999, false); looked != 0 || !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("too soon: looked at %d, %v", looked, err)
	}
	if err := sweep(all+1000, false); looked != all/100 || !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("what failed: looked at %d, %v", looked, err)
	}
}

func TestParse(t *testing.T) {
	for _, e := range []schedule.Entry{{At: 1, Tenant: 2, Name: "x"}, {At: 1 << 50, Tenant: 1<<63 - 1, Name: "run_a/b"}, {At: 9, Tenant: 3, Name: "x/y", Since: 8}} {
		if got, err := schedule.ParseEntry(e.Key()); err != nil || got != e {
			t.Errorf("got %+v, %v; want %+v", got, err, e)
		}
	}
	good := schedule.Entry{At: 255, Tenant: 2, Name: "x"}.Key()
	for _, bad := range []string{"", "x", good[1:], good[:len(good)-1], "0" + good, good + " y", "00000000000000FF" + good[16:], good + ";", good + ";0000000000000000", good + ";00000000000000ff;"} {
		if _, err := schedule.ParseEntry(bad); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0000000000000001/0000000000000002/x")
	f.Add("0000000000000001/0000000000000002/x;0000000000000001")
	f.Fuzz(func(t *testing.T, key string) {
		if e, err := schedule.ParseEntry(key); err == nil && e.Key() != key {
			t.Errorf("%q became %q", key, e.Key())
		}
	})
}

// The pause between looks for a missing record grows, up to an hour.
func TestAbsent(t *testing.T) {
	x := newIndex()
	const began = 1000
	note(t, x, schedule.Entry{At: began, Tenant: 7, Name: "n"})
	looks, last := 0, id.Instant(0)
	for now := id.Instant(began); now <= began+3_600_000; now += 250 {
		err := x.Sweep(t.Context(), at(now), func(_ context.Context, e schedule.Entry) (schedule.Outcome, error) {
			looks, last = looks+1, now
			return schedule.Absent(e, now), nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if looks < 10 || looks > 60 || last != began+3_600_000 {
		t.Errorf("got %d looks, the last one at %d", looks, last)
	}
	if left, err := x.Records.Scan(t.Context(), id.Service, x.Kind, "", "", 1); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Due entries are counted, filed or not, over all organizations and for one family, up to a bound.
func TestCountDue(t *testing.T) {
	x := newIndex()
	note(t, &schedule.Index{Records: x.Records, Kind: "others"}, schedule.Entry{At: 1, Tenant: 1, Name: "another family's"})
	backlog(t, x, 1, 6, "a") // due at 0 to 5
	backlog(t, x, 2, 3, "b")
	count := func(now id.Instant, limit, want int) {
		t.Helper()
		if got, err := x.CountDue(t.Context(), now, limit); got != want || err != nil {
			t.Errorf("at %d, up to %d: got %d, %v, want %d", now, limit, got, err, want)
		}
	}
	for range 2 {
		count(2, 100, 6)
		count(2, 5, 5)
		count(2, 1, 1)
		count(1000, 100, 9)
		var got []string // files what is due, and finishes nothing
		if err := x.Sweep(t.Context(), at(2), seen(&got, func(schedule.Entry) schedule.Outcome { return schedule.Keep() })); err != nil {
			t.Fatal(err)
		}
	}
}
