package openset_test

import (
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/openset"
	"github.com/agentledger/agentledger/internal/ratelimit"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

const (
	red  id.Tenant = 11
	blue id.Tenant = 12
)

type tally struct {
	N    int            `json:"n"`
	Pace ratelimit.GCRA `json:"pace"`
}

type share struct {
	N int `json:"n"`
}

type entry struct {
	Text string `json:"text"`
}

type world struct {
	t     *testing.T
	store storage.RecordStore
	share openset.Share
	set   *openset.Set[tally, share, entry]
}

func newWorld(t *testing.T, b openset.Bounds) *world {
	store := storagetest.NewModel()
	b.TooMany, b.TooFast = "too many", "too fast"
	return &world{t, store, openset.Share{Most: 2, TooMany: "too many by key"}, openset.New(openset.Options[tally, share, entry]{
		Records: store, Tallies: "thing_tally", List: "thing_newest", Message: "Things can't be read",
		Tally:  func(r *tally) (*int, *ratelimit.GCRA) { return &r.N, &r.Pace },
		Share:  func(r *share) *int { return &r.N },
		Bounds: b,
	})}
}

// write makes one change and writes it if it succeeds.
func (w *world) write(tenant id.Tenant, do func(*openset.Change[tally, share, entry]) error) error {
	w.t.Helper()
	c := w.set.Begin(tenant)
	if err := do(c); err != nil {
		return err
	}
	changes, err := c.Changes()
	if err == nil {
		err = w.store.Write(w.t.Context(), tenant, changes)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return nil
}

func (w *world) open(tenant id.Tenant, key string, at id.Instant) error {
	w.t.Helper()
	return w.write(tenant, func(c *openset.Change[tally, share, entry]) error { return c.Open(w.t.Context(), at, w.shareOf(key)) })
}

func (w *world) shareOf(key string) openset.Share {
	s := w.share
	s.Key = key
	return s
}

func (w *world) close(tenant id.Tenant, key string) {
	w.t.Helper()
	var shares []string
	if key != "" {
		shares = append(shares, key)
	}
	if err := w.write(tenant, func(c *openset.Change[tally, share, entry]) error { return c.Close(w.t.Context(), shares...) }); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) wantMessage(err error, want string) {
	w.t.Helper()
	switch {
	case want == "" && err != nil, want != "" && (!fault.Is(err, fault.RateLimited) || fault.Of(err).Message != want):
		w.t.Errorf("got %v, want %q", err, want)
	}
}

// Each bound refuses what exceeds it, for the organization alone, until an object is closed or time has passed.
func TestBounds(t *testing.T) {
	w := newWorld(t, openset.Bounds{Open: 3, Burst: 5, Every: time.Second})
	w.wantMessage(w.open(red, "a", 1000), "")
	w.wantMessage(w.open(red, "a", 1000), "")
	w.wantMessage(w.open(red, "a", 1000), "too many by key")
	w.wantMessage(w.open(red, "b", 1000), "")
	w.wantMessage(w.open(red, "b", 1000), "too many")
	w.wantMessage(w.open(blue, "a", 1000), "")
	w.close(red, "a")
	w.wantMessage(w.open(red, "a", 1000), "")
	w.close(red, "a")
	w.close(red, "") // an object that was not counted for its key
	w.wantMessage(w.open(red, "a", 1000), "")
	w.close(red, "a")
	w.wantMessage(w.open(red, "c", 1000), "too fast")
	w.wantMessage(w.open(red, "c", 2000), "")
}

// An object counts for each of its shares, and none of them may be exceeded.
func TestSeveralShares(t *testing.T) {
	w := newWorld(t, openset.Bounds{Open: 9, Burst: 9, Every: time.Second})
	open := func(key, agent string) error {
		return w.write(red, func(c *openset.Change[tally, share, entry]) error {
			return c.Open(t.Context(), 1000, w.shareOf(key), openset.Share{Key: "agent/" + agent, Most: 1, TooMany: "too many by agent"})
		})
	}
	w.wantMessage(open("a", "x"), "")
	w.wantMessage(open("b", "x"), "too many by agent")
	w.wantMessage(open("a", "y"), "")
	w.wantMessage(open("a", "z"), "too many by key")
	w.wantMessage(w.write(red, func(c *openset.Change[tally, share, entry]) error { return c.Close(t.Context(), "a", "agent/x") }), "")
	w.wantMessage(open("b", "x"), "")
	for key, want := range map[string]string{"": `{"n":2,"pace":{"paid":"1970-01-01T00:00:04.000Z"}}`, "a": `{"n":1}`, "b": `{"n":1}`, "agent/x": `{"n":1}`, "agent/y": `{"n":1}`} {
		if r, err := w.store.Get(t.Context(), red, "thing_tally", key); err != nil || string(r.Value) != want {
			t.Errorf("%q: got %s, %v, want %s", key, r.Value, err, want)
		}
	}
}

// One change may close an object and open another one. Its records have the stored form that the caller chose.
func TestChange(t *testing.T) {
	w := newWorld(t, openset.Bounds{Open: 1, Burst: 5, Every: time.Second})
	err := w.write(red, func(c *openset.Change[tally, share, entry]) error {
		err := c.Open(t.Context(), 0, w.shareOf("a"))
		if !c.First() {
			t.Error("the first object is not the first")
		}
		return err
	})
	w.wantMessage(err, "")
	err = w.write(red, func(c *openset.Change[tally, share, entry]) error {
		if err := c.Close(t.Context(), "a"); err != nil {
			return err
		}
		err := c.Open(t.Context(), 0, w.shareOf("a"))
		if c.First() {
			t.Error("the second object is the first")
		}
		return err
	})
	w.wantMessage(err, "")
	for key, want := range map[string]string{"": `{"n":1,"pace":{"paid":"1970-01-01T00:00:02.000Z"}}`, "a": `{"n":1}`} {
		r, err := w.store.Get(t.Context(), red, "thing_tally", key)
		if err != nil || string(r.Value) != want {
			t.Errorf("%q: got %s, %v, want %s", key, r.Value, err, want)
		}
		if err := openset.Check[tally, share](r); err != nil {
			t.Error(err)
		}
	}
	if changes, err := w.set.Begin(red).Changes(); err != nil || len(changes) != 0 {
		t.Errorf("a change of nothing: got %v, %v", changes, err)
	}
}

func TestEntry(t *testing.T) {
	w := newWorld(t, openset.Bounds{})
	c, err := w.set.Entry("thing_1", entry{"x"})
	want := storage.Change{Kind: "thing_newest", Key: records.ReverseKey("thing_1"), Value: []byte(`{"text":"x"}`), If: storage.AnyVersion}
	if err != nil || c.Kind != want.Kind || c.Key != want.Key || string(c.Value) != string(want.Value) || c.If != want.If {
		t.Errorf("got %+v, %v", c, err)
	}
}
