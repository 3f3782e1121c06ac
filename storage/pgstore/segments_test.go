package pgstore

import (
	"testing"

	"github.com/agentledger/agentledger/storage"
)

// Events of one append become segments of about equal size; small groups and large events are stored in separate rows.
// All of them are stored, in order.
func TestSplit(t *testing.T) {
	const small, large = 1000, segmentBytes + 1
	sizes := func(n, bytes int) (all []int) {
		for range n {
			all = append(all, bytes)
		}
		return all
	}
	tests := map[string]struct {
		sizes []int
		want  []int // events of each segment, and 1 for each alone
	}{
		"none":                 {nil, nil},
		"one":                  {sizes(1, small), []int{1}},
		"few":                  {sizes(segmentLeast-1, small), []int{1, 1, 1}},
		"enough":               {sizes(segmentLeast, small), []int{segmentLeast}},
		"as many as go":        {sizes(segmentEvents, small), []int{segmentEvents}},
		"one more":             {sizes(segmentEvents+1, small), []int{9, 8}},
		"three":                {sizes(40, small), []int{14, 14, 12}},
		"large ones":           {sizes(5, large), []int{1, 1, 1, 1, 1}},
		"large among small":    {[]int{small, small, small, small, large, small, small, small, small, small}, []int{4, 1, 5}},
		"half of the bytes":    {sizes(6, segmentBytes/2), []int{1, 1, 1, 1, 1, 1}},
		"a fourth":             {sizes(9, segmentBytes/4), []int{4, 4, 1}},
		"one large at the end": {append(sizes(5, small), large), []int{5, 1}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			events := make([]storage.Event, len(test.sizes))
			for i, n := range test.sizes {
				events[i] = storage.Event{Item: i, Record: make([]byte, n/2), Envelope: make([]byte, n-n/2)}
			}
			var got []int
			next := 0
			came := func(e *storage.Event) {
				if e.Item != next {
					t.Errorf("got event %d, want %d", e.Item, next)
				}
				next++
			}
			split(events, func(all []storage.Event) {
				got = append(got, len(all))
				for i := range all {
					came(&all[i])
				}
			}, func(e *storage.Event) {
				got = append(got, 1)
				came(e)
			})
			if len(got) != len(test.want) {
				t.Fatalf("got %v, want %v", got, test.want)
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Fatalf("got %v, want %v", got, test.want)
				}
			}
			if next != len(events) {
				t.Errorf("got %d events, want %d", next, len(events))
			}
		})
	}
}
