package index_test

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

// checkList compares all pages of a query with the naive scan.
func (w *world) checkList(tenant id.Tenant, q index.Query, pages int) {
	w.t.Helper()
	for range pages {
		got, err := w.index.List(w.t.Context(), tenant, q)
		if err != nil {
			w.t.Fatalf("%+v: %v", q, err)
		}
		if want := w.want(tenant, q); !slices.Equal(got.Rows, want) && got.Next == nil || len(got.Rows) > 0 && !slices.Equal(got.Rows, want[:min(len(want), len(got.Rows))]) {
			w.t.Fatalf("%+v: got %d rows, want %d\n got %+v\nwant %+v", q, len(got.Rows), len(want), first(got.Rows), first(want))
		}
		if got.End != id.Index(len(w.rows[tenant])) {
			w.t.Fatalf("%+v: got end %d, want %d", q, got.End, len(w.rows[tenant]))
		}
		if got.Next == nil {
			if q.After = nil; len(got.Rows) == q.Limit { // the end was reached exactly
				last := got.Rows[q.Limit-1].Index
				q.After = &last
				if rest := w.want(tenant, q); len(rest) > 0 {
					w.t.Fatalf("%+v: %d rows are missing", q, len(rest))
				}
			}
			return
		}
		q.After = got.Next
	}
}

func first(rows []index.Row) []index.Row { return rows[:min(2, len(rows))] }

// Lists equal naive scans before the index is built, while it grows and afterwards.
func TestListsAgainstNaiveScans(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t), index.ChunkEvents+500, func(f *filler) { f.falls = true })
		r := rand.New(rand.NewPCG(3, 4))
		check := func() {
			t.Helper()
			for range 40 {
				tenant := pick(r, []id.Tenant{red, blue})
				w.checkList(tenant, w.randomQuery(r, tenant), 4)
			}
		}
		check()
		w.follow()
		check()
		for _, tenant := range []id.Tenant{red, blue} { // a block in several steps
			f := newFillerBehind(w, tenant)
			f.append(index.ChunkEvents)
			w.rows[tenant], w.texts[tenant] = append(w.rows[tenant], f.rows...), append(w.texts[tenant], f.texts...)
		}
		w.reopen()
		w.follow()
		check()
	})
}

// Lists span the ends of blocks.
func TestListsOverBlocks(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t), 70_000, func(f *filler) { f.falls = true })
	w.follow()
	r := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		tenant := pick(r, []id.Tenant{red, red, red, blue})
		w.checkList(tenant, w.randomQuery(r, tenant), 4)
	}
}

// Pages do not change while events arrive and are indexed, in either order. No event of the other organization is
// shown.
func TestPagesWhileEventsComeIn(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t), index.ChunkEvents-500)
	ctx, stop := context.WithCancel(t.Context())
	var under sync.WaitGroup
	under.Go(func() { w.index.Run(ctx, quiet) })
	under.Go(func() {
		agent := ledgertest.NewAgent()
		for ctx.Err() == nil && w.State(t, red).Size() < 3*index.ChunkEvents {
			w.sendBy(agent, red, 256)
			w.sendBy(agent, blue, 256)
		}
	})
	known := id.Index(len(w.rows[red]))
	r := rand.New(rand.NewPCG(7, 8))
	for range 40 {
		q := w.randomQuery(r, red)
		q.After = nil
		if !q.Ascending {
			q.After = &known // what was there before
		}
		want := w.want(red, q)
		got, err := w.index.List(t.Context(), red, q)
		if err != nil {
			t.Fatal(err)
		}
		old := slices.DeleteFunc(slices.Clone(got.Rows), func(r index.Row) bool { return r.Index >= known })
		if !slices.Equal(old, want) {
			t.Errorf("%+v: got %d rows, want %d", q, len(old), len(want))
		}
		if !slices.IsSortedFunc(got.Rows, func(a, b index.Row) int {
			if q.Ascending {
				return cmp.Compare(a.Index, b.Index)
			}
			return cmp.Compare(b.Index, a.Index)
		}) {
			t.Errorf("%+v: not in order", q)
		}
	}
	stop()
	under.Wait()
}

// A text search reports how far it looked, continues from there, stops when its time has passed, and finds what a naive scan finds.
func TestTextSearch(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, open(t), index.ChunkEvents+500)
		clock := &steps{now: w.Clock()}
		x := index.New(index.Options{Ledgers: w.Ledgers, Store: w.engine, Clock: clock.next})
		w.index = x
		w.follow()
		turns := 0
		for _, envelopes := range []bool{false, true} {
			for _, text := range []string{`"amount":77,`, "zoë", "no such text", "evt_11_0000"} {
				for _, ascending := range []bool{false, true} {
					for _, limit := range []int{3, 1000} {
						q := index.Query{Text: text, Envelopes: envelopes, Ascending: ascending, Limit: limit, TakeTurn: func(context.Context) (func(), error) {
							turns++
							return func() {}, nil
						}}
						q.Tool = pick(rand.New(rand.NewPCG(1, uint64(limit))), []string{"", "acme.area1.*"})
						all := q
						all.Limit = 1 << 20
						want, got, looked, pages := w.want(red, all), []index.Row{}, 0, 0
						for more := true; more; pages++ {
							page, err := x.List(t.Context(), red, q)
							if err != nil {
								t.Fatal(err)
							}
							got = append(got, page.Rows...)
							looked += page.Looked
							if page.Next != nil && page.Looked > 0 && *page.Next != page.LookedTo || page.Looked > 0 && page.LookedToAt != w.rows[red][page.LookedTo].ReceivedAt {
								t.Fatalf("%q: got %+v", text, page)
							}
							q.After, more = page.Next, page.Next != nil
						}
						if !slices.Equal(got, want) {
							t.Errorf("%q, %v: got %d rows, want %d", text, ascending, len(got), len(want))
						}
						if q.Tool == "" && (looked != len(w.rows[red]) || pages < 3) {
							t.Errorf("%q, %v: looked at %d events on %d pages", text, ascending, looked, pages)
						}
					}
				}
			}
		}
		if turns == 0 {
			t.Error("no turn was taken")
		}
		long := index.Query{Text: "no such text", Limit: 1, Longest: time.Hour}
		if page, err := x.List(t.Context(), red, long); err != nil || page.Next != nil || page.Looked != len(w.rows[red]) {
			t.Errorf("for an hour: got %+v, %v", page, err)
		}
	})
}

// steps is a clock that advances by 50 ms whenever it is read.
type steps struct{ now time.Time }

func (s *steps) next() time.Time {
	s.now = s.now.Add(50 * time.Millisecond)
	return s.now
}
