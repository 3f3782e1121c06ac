package cluster_test

import (
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
	"github.com/agentledger/agentledger/internal/syncs"
)

const (
	red  id.Tenant = 1<<63 - 1
	blue id.Tenant = 2
)

// take returns the content of an inbox, in order.
func take(b *syncs.Inbox[id.Tenant]) ([]id.Tenant, bool) {
	changed, missed := b.Take()
	slices.Sort(changed)
	return changed, missed
}

func TestJournal(t *testing.T) {
	missed := slices.Collect(func(yield func([]byte) bool) {
		for note := range cluster.NewJournal().Notes() {
			yield(note)
		}
	})
	grown, relisted := cluster.NoteOf(cluster.Grown, red), cluster.NoteOf(cluster.Relisted, red)
	for name, test := range map[string]struct {
		notes           [][]byte
		grown, relisted []id.Tenant
		missed, refused bool
	}{
		"nothing":           {},
		"one of each":       {notes: [][]byte{grown, relisted}, grown: []id.Tenant{red}, relisted: []id.Tenant{red}},
		"twice":             {notes: [][]byte{grown, cluster.NoteOf(cluster.Grown, blue), grown}, grown: []id.Tenant{blue, red}},
		"missed":            {notes: append(missed, relisted), relisted: []id.Tenant{red}, missed: true},
		"a kind to come":    {notes: [][]byte{cluster.NoteOf('x', red), grown}, grown: []id.Tenant{red}},
		"a short note":      {notes: [][]byte{grown[:5]}, refused: true},
		"a long note":       {notes: [][]byte{append(slices.Clone(grown), 0)}, refused: true},
		"an unknown letter": {notes: [][]byte{{'x'}}, refused: true},
	} {
		j := cluster.NewJournal()
		if err := j.Put(test.notes...); (err != nil) != test.refused {
			t.Errorf("%s: got %v", name, err)
		}
		for kind, inbox := range map[string]struct {
			*syncs.Inbox[id.Tenant]
			want []id.Tenant
		}{"grown": {j.Grown, test.grown}, "relisted": {j.Relisted, test.relisted}} {
			ready := len(inbox.Ready()) > 0
			if changed, missed := take(inbox.Inbox); !slices.Equal(changed, inbox.want) || missed != test.missed || ready != (len(inbox.want) > 0 || missed) {
				t.Errorf("%s: %s: got %v, %v, ready %v, want %v, %v", name, kind, changed, missed, ready, inbox.want, test.missed)
			}
			if changed, missed := take(inbox.Inbox); len(changed) > 0 || missed {
				t.Errorf("%s: %s: taken twice", name, kind)
			}
		}
	}
}
