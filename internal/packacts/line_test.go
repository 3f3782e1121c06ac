package packacts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/packacts"
)

// The time for the columns of a large payload does not depend on their number and depth.
func TestColumnsAreReadOnce(t *testing.T) {
	payload := strings.Repeat(`{"a":`, 15) + `{"a":5,"b":[` + strings.Repeat("0,", 1<<20) + `0]}` + strings.Repeat("}", 15)
	line := func(columns ...string) (l packacts.Line, took time.Duration) {
		table := packacts.New(columns)
		e := &event.Envelope{Tool: "tool", Payload: []byte(payload)}
		r := &event.Record{EventID: "e", Policy: event.Policy{Evaluated: true}}
		table.AddEvent(0, r, e)
		table.Join()
		begin := time.Now()
		l, is := table.Line(0, r, e)
		if !is {
			t.Fatal("not an act")
		}
		return l, time.Since(begin)
	}
	_, one := line("c")
	path := strings.Repeat("a.", 14) + "a"
	l, eight := line(path+".a", path+".b", path+".c", path+".d", path+".e", path+".f", path+".g", "a")
	if got := string(l.Columns[1].Value); got != "5" {
		t.Errorf("got %s, want 5", got)
	}
	if eight > 10*one+100*time.Millisecond {
		t.Errorf("got %v for eight columns, and %v for one", eight, one)
	}
}
