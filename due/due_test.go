package due_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/due"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

func newIndex() due.Index { return due.Index{Records: storagetest.NewModel(), Kind: "things_due"} }

func note(t *testing.T, x due.Index, entries ...due.Entry) {
	t.Helper()
	for _, e := range entries {
		if err := x.Note(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSweep(t *testing.T) {
	x := newIndex()
	note(t, x, due.Entry{At: 30, Tenant: 1, Name: "late"}, due.Entry{At: 10, Tenant: 2, Name: "b"}, due.Entry{At: 10, Tenant: 1, Name: "a/x"}, due.Entry{At: 20, Tenant: 1, Name: "stays"})
	note(t, due.Index{Records: x.Records, Kind: "others"}, due.Entry{At: 1, Tenant: 1, Name: "another family's"})
	var seen []string
	look := func(_ context.Context, e due.Entry) (due.Outcome, error) {
		seen = append(seen, fmt.Sprintf("%d/%d/%s", e.At, e.Tenant, e.Name))
		if e.Name == "stays" {
			return due.Keep, nil
		}
		return due.Done, nil
	}
	for _, want := range [][]string{{"10/1/a/x", "10/2/b", "20/1/stays"}, {"20/1/stays"}} {
		seen = nil
		if err := x.Sweep(t.Context(), 20, look); err != nil || !slices.Equal(seen, want) {
			t.Errorf("got %q, %v; want %q", seen, err, want)
		}
	}
	if err := x.Drop(t.Context(), due.Entry{At: 20, Tenant: 1, Name: "stays"}); err != nil {
		t.Fatal(err)
	}
	seen = nil
	if err := x.Sweep(t.Context(), 29, look); err != nil || len(seen) != 0 {
		t.Errorf("got %q, %v", seen, err)
	}
}

// One that fails keeps nobody from the others, over many pages.
func TestSweepGoesOn(t *testing.T) {
	x := newIndex()
	const all = 1000
	for i := range all {
		note(t, x, due.Entry{At: id.Instant(i), Tenant: 7, Name: fmt.Sprintf("n%d", i)})
	}
	broken := storage.Change{Kind: x.Kind, Key: "0000", Value: []byte("{}"), If: storage.AnyVersion}
	if err := x.Records.Write(t.Context(), id.Service, []storage.Change{broken}); err != nil {
		t.Fatal(err)
	}
	bad := errors.New("bad")
	looked := 0
	sweep := func(fails bool) error {
		looked = 0
		return x.Sweep(t.Context(), all, func(_ context.Context, e due.Entry) (due.Outcome, error) {
			looked++
			if fails && e.At%100 == 0 {
				return due.Done, bad
			}
			return due.Done, nil
		})
	}
	if err := sweep(true); !errors.Is(err, bad) || !errors.Is(err, storage.ErrCorrupt) || looked != all {
		t.Errorf("looked at %d, %v", looked, err)
	}
	if err := sweep(false); looked != 10 || !errors.Is(err, storage.ErrCorrupt) {
		t.Errorf("what failed: looked at %d, %v", looked, err)
	}
}

func TestSweepStops(t *testing.T) {
	x := newIndex()
	for i := range 1000 {
		note(t, x, due.Entry{At: id.Instant(i), Tenant: 7, Name: "n"})
	}
	looked := 0
	for _, want := range []int{401, 801, 1000} { // the one that stops is looked at again
		err := x.Sweep(t.Context(), 1000, func(context.Context, due.Entry) (due.Outcome, error) {
			if looked++; looked == want {
				return due.Stop, nil
			}
			return due.Done, nil
		})
		if err != nil || looked != want {
			t.Errorf("looked at %d, %v; want %d", looked, err, want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, e := range []due.Entry{{At: 1, Tenant: 2, Name: "x"}, {At: 1 << 50, Tenant: 1<<63 - 1, Name: "run_a/b"}} {
		if got, err := due.Parse(e.Key()); err != nil || got != e {
			t.Errorf("got %+v, %v; want %+v", got, err, e)
		}
	}
	good := due.Entry{At: 255, Tenant: 2, Name: "x"}.Key()
	for _, bad := range []string{"", "x", good[1:], good[:len(good)-1], "0" + good, good + " y", "00000000000000FF" + good[16:]} {
		if _, err := due.Parse(bad); !errors.Is(err, storage.ErrCorrupt) {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0000000000000001/0000000000000002/x")
	f.Fuzz(func(t *testing.T, key string) {
		if e, err := due.Parse(key); err == nil && e.Key() != key {
			t.Errorf("%q became %q", key, e.Key())
		}
	})
}

func TestAbsent(t *testing.T) {
	e := due.Entry{At: 1000}
	for now, want := range map[id.Instant]due.Outcome{1000: due.Keep, 1000 + 3_599_999: due.Keep, 1000 + 3_600_000: due.Done} {
		if got := due.Absent(e, now); got != want {
			t.Errorf("at %d: got %d, want %d", now, got, want)
		}
	}
}
