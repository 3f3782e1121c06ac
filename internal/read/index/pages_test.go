package index_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// maxPage is the longest page that the console requests.
const maxPage = 1000

// Pages of each size, joined to the end, equal a naive scan of the events that existed at the start, while events
// arrive and are indexed.
func TestPagesOfEachSize(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t), 2*index.ChunkEvents+200, func(f *filler) { f.falls = true })
	known := id.Index(len(w.rows[red]))
	agent := ledgertest.NewAgent()
	r := rand.New(rand.NewPCG(9, 10))
	for _, size := range append(sizes(1, 50), maxPage) {
		var under sync.WaitGroup
		under.Go(func() {
			w.sendBy(agent, red, 256)
			if _, err := advanceAll(t.Context(), w.index, red); err != nil {
				t.Error(err)
			}
		})
		w.checkPages(r, known, size)
		under.Wait()
	}
}

func sizes(first, last int) (all []int) {
	for n := first; n <= last; n++ {
		all = append(all, n)
	}
	return all
}

// maxPages bounds the number of compared pages of one list, so that lists of small pages end.
const maxPages = 30

// checkPages compares the pages of a random list of red with the naive scan of its first events.
func (w *world) checkPages(r *rand.Rand, known id.Index, size int) {
	w.t.Helper()
	q := w.randomQuery(r, red)
	q.Limit, q.After = size, nil
	if !q.Ascending { // newer ones are not compared
		q.After = &known
	}
	whole := q
	whole.Limit = len(w.rows[red])
	want := w.want(red, whole)
	name := fmt.Sprintf("size %d, %+v", size, q.Filter)
	var got []index.Row
	for range maxPages {
		page, err := w.index.List(w.t.Context(), red, q)
		if err != nil {
			w.t.Fatalf("%s: %v", name, err)
		}
		if len(page.Rows) > size || page.End < known {
			w.t.Fatalf("%s: got %d rows up to %d", name, len(page.Rows), page.End)
		}
		got = append(got, page.Rows...)
		if q.After = page.Next; page.Next == nil || q.Ascending && *page.Next >= known {
			got = slices.DeleteFunc(got, func(r index.Row) bool { return r.Index >= known })
			if !slices.Equal(got, want) {
				w.t.Fatalf("%s: got %d rows in all, want %d", name, len(got), len(want))
			}
			return
		}
	}
	got = slices.DeleteFunc(got, func(r index.Row) bool { return r.Index >= known })
	if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
		w.t.Fatalf("%s: got %d rows of %d, and others", name, len(got), len(want))
	}
}
