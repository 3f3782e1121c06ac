package operator

import (
	"fmt"
	"html/template"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/internal/operate/status"
	"github.com/agentledger/agentledger/internal/wire"
)

// Tiles show what is known: events that nobody has counted are not 0, a note that can't be read is not a missing backup, and a clock
// is ahead or behind.
func TestTiles(t *testing.T) {
	views, err := template.New("").Funcs(template.FuncMap{"number": fmt.Sprint, "title": fmt.Sprint}).ParseFS(templates, "templates/report.html")
	if err != nil {
		t.Fatal(err)
	}
	now := id.InstantOf(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC))
	nodes := []status.Node{{ID: "a", Self: true}, {ID: "b", Leaving: true}}
	for name, tc := range map[string]struct {
		of         status.Report
		clock      int64 // milliseconds
		want, none []string
	}{
		"before the first count": {status.Report{Events: status.Events{Queued: 3}}, 0,
			[]string{`<span class="big">–</span><span class="quiet small">not yet counted, 3 wait`, "none by <code>agentledger backup"}, []string{"this node", ">0<"}},
		"counted": {status.Report{Events: status.Events{CountedAt: &now, Total: 7, NotReverified: 2}}, 0,
			[]string{`<span class="big">7</span><span class="quiet small">2 not re-verified, 0 wait`}, []string{"not yet counted"}},
		"an unread note": {status.Report{BackupUnread: true}, 0, []string{"its note can't be read"}, []string{"none by"}},
		"a backup": {status.Report{At: now, Backup: &backup.Note{MadeAt: now.Time().Add(-3 * time.Hour), Verification: backup.Whole}}, 0,
			[]string{`<span class="big">3 h</span>`, "verified: whole"}, nil},
		"a backup by a clock ahead": {status.Report{At: now, Backup: &backup.Note{MadeAt: now.Time().Add(time.Minute)}}, 0, []string{`<span class="big">0 s</span>`}, nil},
		"several nodes": {status.Report{Nodes: nodes, Volumes: []status.Volume{{Folder: "data", SizeBytes: 100, FreeBytes: 40}}}, -1500,
			[]string{"Events on this node", "1 of 2", "clock of this node 1.500 s behind", "Disk of data on this node", "60 %"}, []string{"-1"}},
		"a node whose clock is ahead": {status.Report{Nodes: nodes[:1]}, 20, []string{"1 of 1", "clock of this node 0.020 s ahead"}, []string{"Events on this node"}},
		"a node whose clock is right": {status.Report{Nodes: nodes[:1]}, 0, []string{"clock of this node within 1 ms"}, nil},
	} {
		var b strings.Builder
		if err := views.ExecuteTemplate(&b, "tiles", report{&tc.of, wire.Clock{OffsetMS: tc.clock}}); err != nil {
			t.Fatal(err)
		}
		got := strings.ReplaceAll(b.String(), "\n", "")
		for _, part := range tc.want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: got %s without %q", name, got, part)
			}
		}
		for _, part := range tc.none {
			if strings.Contains(got, part) {
				t.Errorf("%s: got %s with %q", name, got, part)
			}
		}
	}
}
