package nodestest_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/internal/test/nodestest"
)

// overlapping records calls that all overlap, one for each outcome.
func overlapping(note func(nodestest.Call, nodestest.Outcome), begin func() nodestest.Call, outcomes ...nodestest.Outcome) {
	calls := make([]nodestest.Call, len(outcomes))
	for i := range calls {
		calls[i] = begin()
	}
	for i, o := range outcomes {
		note(calls[i], o)
	}
}

// oneByOne records calls each of which begins after the previous one.
func oneByOne(note func(nodestest.Call, nodestest.Outcome), begin func() nodestest.Call, outcomes ...nodestest.Outcome) {
	for _, o := range outcomes {
		note(begin(), o)
	}
}

// Possible histories pass, and each planted fault in a similar history is found.
func TestCheck(t *testing.T) {
	type order = func(func(nodestest.Call, nodestest.Outcome), func() nodestest.Call, ...nodestest.Outcome)
	created, replayed, shown, granted := nodestest.Created, nodestest.Replayed(), nodestest.Shown, nodestest.Granted
	tests := []struct {
		name     string
		note     func(nodestest.Call, nodestest.Outcome)
		order    order
		outcomes []nodestest.Outcome
		possible bool
	}{
		{"stored, then there", nodestest.Call.Append, oneByOne, []nodestest.Outcome{created(4), replayed}, true},
		{"there, then stored", nodestest.Call.Append, oneByOne, []nodestest.Outcome{replayed, created(4)}, false},
		{"the same at once", nodestest.Call.Append, overlapping, []nodestest.Outcome{replayed, created(4)}, true},
		{"stored twice", nodestest.Call.Append, oneByOne, []nodestest.Outcome{created(4), created(5)}, false},
		{"stored twice at once", nodestest.Call.Append, overlapping, []nodestest.Outcome{created(4), created(5)}, false},
		{"unknown, then there", nodestest.Call.Append, oneByOne, []nodestest.Outcome{nodestest.Unknown(), replayed}, true},
		{"unknown, then stored", nodestest.Call.Append, oneByOne, []nodestest.Outcome{nodestest.Unknown(), created(4)}, true},
		{"refused, then there", nodestest.Call.Append, oneByOne, []nodestest.Outcome{nodestest.Refused(), replayed}, false},
		{"refused, then stored", nodestest.Call.Append, oneByOne, []nodestest.Outcome{nodestest.Refused(), created(4)}, true},

		{"heads rise", nodestest.Call.Read, oneByOne, []nodestest.Outcome{shown(3), shown(3), shown(9)}, true},
		{"a head goes back", nodestest.Call.Read, oneByOne, []nodestest.Outcome{shown(9), shown(3)}, false},
		{"heads at once", nodestest.Call.Read, overlapping, []nodestest.Outcome{shown(9), shown(3)}, true},

		{"used twice", nodestest.Call.Consume, oneByOne, []nodestest.Outcome{granted("a"), granted("a")}, true},
		{"two grants", nodestest.Call.Consume, oneByOne, []nodestest.Outcome{granted("a"), granted("b")}, false},
		{"two grants at once", nodestest.Call.Consume, overlapping, []nodestest.Outcome{granted("a"), granted("b")}, false},
		{"unknown, then a grant", nodestest.Call.Consume, oneByOne, []nodestest.Outcome{nodestest.Unknown(), granted("a"), granted("a")}, true},
		{"unknown, then two grants", nodestest.Call.Consume, oneByOne, []nodestest.Outcome{nodestest.Unknown(), granted("a"), granted("b")}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var h nodestest.History
			for _, log := range []string{"blue", "red"} { // blue's are calls of its own
				test.order(test.note, func() nodestest.Call { return h.Begin(log, "n") }, test.outcomes...)
			}
			if err := h.Check(); (err == nil) != test.possible {
				t.Errorf("got %v, want possible %v", err, test.possible)
			}
			if got := h.Calls(); got != 2*len(test.outcomes) {
				t.Errorf("got %d calls, want %d", got, 2*len(test.outcomes))
			}
		})
	}
}

// clients append and read concurrently, thousands of times, on a log that is correct except for one fault.
func clients(fault func(size int64) int64) error {
	var h nodestest.History
	var group sync.WaitGroup
	var mu sync.Mutex
	var size int64
	for client := range 8 {
		group.Go(func() {
			for n := range 400 {
				name := fmt.Sprint(client, "-", n)
				call := h.Begin("red", name)
				mu.Lock()
				number := size
				size++
				mu.Unlock()
				call.Append(nodestest.Created(number))
				read := h.Begin("red", "")
				mu.Lock()
				shown := fault(size)
				mu.Unlock()
				read.Read(nodestest.Shown(shown))
			}
		})
	}
	group.Wait()
	return h.Check()
}

// A long history of a correct log passes, and one head among thousands that is slightly too small is found.
func TestLongHistory(t *testing.T) {
	if err := clients(func(size int64) int64 { return size }); err != nil {
		t.Errorf("a right log: %v", err)
	}
	planted := false
	err := clients(func(size int64) int64 {
		if size > 2000 && !planted {
			planted = true
			return size - 40 // before calls that have returned
		}
		return size
	})
	if err == nil {
		t.Error("a head that is too small is not found")
	}
}

// A fault between two calls in different parts of a long history is found, even if the second call began long after.
func TestFaultFarApart(t *testing.T) {
	var h nodestest.History
	h.Begin("red", "first").Append(nodestest.Created(5000))
	for range 2000 {
		h.Begin("red", "").Read(nodestest.Shown(int64(5001)))
	}
	if err := h.Check(); err != nil {
		t.Errorf("a right log: %v", err)
	}
	h.Begin("red", "").Read(nodestest.Shown(5000))
	if err := h.Check(); err == nil {
		t.Error("a head that is too small is not found")
	}
}
