package loglist

import (
	"errors"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/log"
)

// A list contains the logs of other nodes as soon as there is news of them. After missed news, all logs are found
// again.
func TestNewsOfOtherNodes(t *testing.T) {
	s, j := newService(t), cluster.NewJournal()
	s.logs = map[id.Tenant]log.Listing{1: keyOf(t, "log.example/o/red", 1)}
	l := New(Options{Ledgers: s, Store: s, Contact: "ops@log.example", PerDay: 1, Others: j.Relisted})
	find := func() {
		t.Helper()
		if err := errors.Join(l.findAllLogs(t.Context()), l.step(t)); err != nil {
			t.Fatal(err)
		}
	}
	find()
	want := func(step string, found bool, logs ...id.Tenant) {
		t.Helper()
		text := string(l.Current().Text)
		if l.found != found || l.Current().Logs != len(logs) {
			t.Errorf("%s: all are found: %v; got %s", step, l.found, text)
		}
		for _, tenant := range logs {
			if !strings.Contains(text, s.logs[tenant].Key.String()) {
				t.Errorf("%s: log %d is missing in %s", step, tenant, text)
			}
		}
	}
	s.logs[2], s.logs[3] = keyOf(t, "log.example/o/blue", 1), keyOf(t, "log.example/o/green", 1)
	if err := errors.Join(j.Put(cluster.NoteOf(cluster.Relisted, 2), cluster.NoteOf(cluster.Grown, 3)), l.step(t)); err != nil {
		t.Fatal(err)
	}
	want("a log that came, and one that grew", true, 1, 2)
	for note := range j.Notes() {
		if err := errors.Join(j.Put(note), l.step(t)); err != nil {
			t.Fatal(err)
		}
	}
	want("missed", false, 1, 2)
	find()
	want("found again", true, 1, 2, 3)
	s.logs[3] = keyOf(t, "log.example/o/green", 2)
	first := l.Current()
	find()
	want("another key", true, 1, 2, 3)
	if find(); l.Current() == first {
		t.Error("the list with another key is the same")
	}
}
