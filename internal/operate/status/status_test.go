package status

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

const red, blue id.Tenant = 1, 2

// names are the organizations of a test.
type names map[id.Tenant]id.Slug

func (n names) Summary(_ context.Context, t id.Tenant) (org.Summary, error) {
	if n[t] == "" {
		return org.Summary{}, errors.New("it can't be read")
	}
	return org.Summary{Slug: n[t]}, nil
}

// sizes are the anchors of a test: each log was published at size 3.
type sizes struct{}

func (sizes) Size(id.Origin) (id.Index, bool) { return 3, true }

// cosigned is the state of the witnesses of a test by tenant; nil for none.
type cosigned map[id.Tenant]*witness.Checkpoint

func (c cosigned) Status(_ context.Context, t id.Tenant) (witness.Status, error) {
	return witness.Status{Newest: c[t], Quorum: c[t], Witnesses: make([]witness.WitnessStatus, 2)}, nil
}

// An organization is healthy or not regardless of its neighbour.
func TestOrganization(t *testing.T) {
	o, s := begun(t)
	o.Cosignatures = cosigned{blue: {Size: 2}}
	waits := map[id.Tenant]time.Time{blue: s.Clock().Add(-15 * time.Minute)}
	o.Waits = func() map[id.Tenant]time.Time { return waits }
	if err := s.Ledgers.Freeze(t.Context(), red, "for a test"); err != nil {
		t.Fatal(err)
	}
	all := New(o)
	for name, tc := range map[string]struct {
		tenant id.Tenant
		wait   time.Duration
		want   string
	}{
		"frozen": {red, 0, "attention\n" + string(s.State(t, red).Identity().Origin) + " (red): 0 events, frozen: for a test\nanchored at 3 events; 2 witnesses, cosigned at 0 events, quorum at 0\n"},
		"well": {blue, 15 * time.Minute, "good\n" + string(s.State(t, blue).Identity().Origin) +
			" (blue): 0 events, waiting for witnesses for 900 s\nanchored at 3 events; 2 witnesses, cosigned at 2 events, quorum at 2\n"},
		"waits for long": {blue, 15*time.Minute + time.Second, "attention\n" + string(s.State(t, blue).Identity().Origin) +
			" (blue): 0 events, waiting for witnesses for 901 s\nanchored at 3 events; 2 witnesses, cosigned at 2 events, quorum at 2\n"},
	} {
		waits[blue] = s.Clock().Add(-tc.wait)
		r, err := all.ReportOrganization(t.Context(), tc.tenant)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := Print(&b, r, false); err != nil || b.String() != tc.want {
			t.Errorf("%s: got %q, %v, want %q", name, b.String(), err, tc.want)
		}
		if r.IsGood() != (r.State == Good) {
			t.Errorf("%s: got %+v", name, r)
		}
	}
	if r, err := all.ReportOrganization(t.Context(), 77); err == nil {
		t.Errorf("an unknown one: got %+v", r)
	}
}

// begun returns a service with the two organizations, without metrics.
func begun(t *testing.T) (Options, *ledgertest.Service) {
	t.Helper()
	s := ledgertest.New(t)
	s.Found(t, red)
	s.Found(t, blue)
	return Options{Metrics: prometheus.NewRegistry(), Ledgers: s.Ledgers, Orgs: names{red: "red", blue: "blue"},
		Worst: func() []id.Tenant { return nil }, Waits: func() map[id.Tenant]time.Time { return nil },
		AnchorSizes: sizes{}, Cosignatures: cosigned{}, Behind: func(int) []id.Tenant { return nil },
		CountDue: func(context.Context, int) (int, error) { return 3, nil },
		Nodes:    func() []Node { return []Node{} },
		Ready:    func(context.Context) string { return "" }, Clock: s.Clock, Version: "v1", Engine: "embedded",
		DataDir: t.TempDir(), Folders: map[string]string{"data": t.TempDir()}}, s
}

// report returns the report of a service whose volumes have space, however full those of the test machine are.
func report(t *testing.T, o Options) *Report {
	t.Helper()
	all := New(o)
	for _, m := range all.meters {
		if len(m.samples) != 1 || m.samples[0].size == 0 {
			t.Errorf("%s: the volume was not measured: %+v", m.name, m.samples)
			continue
		}
		m.samples[0].free = m.samples[0].size / 2
	}
	r, err := all.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReportOfAServiceThatIsWell(t *testing.T) {
	o, _ := begun(t)
	r := report(t, o)
	if r.State != Good || len(r.Findings) != 0 || !r.Ready || len(r.Worst) != 0 {
		t.Errorf("got %+v", r)
	}
	if r.Events.CountedAt != nil {
		t.Errorf("counted without a look at %v", r.Events.CountedAt)
	}
	if r.Webhooks == nil || *r.Webhooks != (Webhooks{Due: 3}) {
		t.Errorf("webhooks: got %+v", r.Webhooks)
	}
	if len(r.Volumes) != 1 || r.Volumes[0].Folder != "data" || r.Volumes[0].SizeBytes == 0 {
		t.Errorf("volumes: got %+v", r.Volumes)
	}
	if r.Program.Version != "v1" || !strings.HasPrefix(r.Program.Go, "go") || r.Store.Engine != "embedded" {
		t.Errorf("got %+v, %+v", r.Program, r.Store)
	}
}

// Each node of a service is described, and the one that answers is named.
func TestNodes(t *testing.T) {
	o, _ := begun(t)
	o.Nodes = func() []Node {
		return []Node{{ID: "aa", Host: "10.1.0.7:8092", Version: "v1", Shards: 512, BeatAgeSeconds: 0.25, Self: true},
			{ID: "bb", Host: "10.1.0.8:8092", Version: "v2", Shards: 0, BeatAgeSeconds: 1, Leaving: true}}
	}
	r := report(t, o)
	var b strings.Builder
	if err := Print(&b, r, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"node          aa, 10.1.0.7:8092, program v1, owns 512 shards, latest beat 0.2 s ago, this node\n",
		"node          bb, 10.1.0.8:8092, program v2, owns 0 shards, latest beat 1.0 s ago, stopping or not ready\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("got %q, want %q in it", b.String(), want)
		}
	}
}

// A frozen ledger is named; its neighbour is not.
func TestWorstLedgers(t *testing.T) {
	o, s := begun(t)
	if err := s.Ledgers.Freeze(t.Context(), red, "for a test"); err != nil {
		t.Fatal(err)
	}
	o.Worst = func() []id.Tenant { return []id.Tenant{red} }
	r := report(t, o)
	if len(r.Worst) != 1 || r.Worst[0].Slug != "red" || r.Worst[0].Level != string(log.Frozen) ||
		r.Worst[0].Reason != "for a test" || r.Worst[0].Origin != s.State(t, red).Identity().Origin {
		t.Errorf("got %+v", r.Worst)
	}
	o.Metrics = prometheus.NewRegistry()
	o.Waits = func() map[id.Tenant]time.Time {
		return map[id.Tenant]time.Time{blue: s.Clock().Add(-time.Minute), red: s.Clock().Add(-time.Second)}
	}
	r = report(t, o)
	if len(r.Worst) != 2 || r.Worst[0].WaitSeconds != 1 || r.Worst[1].Slug != "blue" || r.Worst[1].WaitSeconds != 60 {
		t.Errorf("got %+v", r.Worst)
	}
}

// If the store does not answer, the report is incomplete but not late.
func TestStoreThatHangs(t *testing.T) {
	o, _ := begun(t)
	o.Ready = func(context.Context) string { return "the store does not answer" }
	o.CountDue = func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); return 0, ctx.Err() }
	o.Worst = func() []id.Tenant { return []id.Tenant{77} }
	r := report(t, o)
	if r.Webhooks != nil || r.Ready || r.State != Attention || r.Findings[0].Name != "AgentledgerNotReady" {
		t.Errorf("got %+v", r)
	}
	if len(r.Worst) != 1 || r.Worst[0] != (Ledger{}) {
		t.Errorf("a ledger that can't be read: got %+v", r.Worst)
	}
}

// However many ledgers wait, ten are named: those that wait longest.
func TestManyWait(t *testing.T) {
	o, s := begun(t)
	waits := make(map[id.Tenant]time.Time)
	for i := range 1000 {
		waits[id.Tenant(i+1)] = s.Clock().Add(-time.Duration(i) * time.Second)
	}
	o.Waits = func() map[id.Tenant]time.Time { return waits }
	r := report(t, o)
	for i, l := range r.Worst {
		if want := float64(999 - i); l.WaitSeconds != want {
			t.Errorf("number %d waits for %v, want %v", i, l.WaitSeconds, want)
		}
	}
	if len(r.Worst) != 10 {
		t.Errorf("%d are named", len(r.Worst))
	}
}

// The organizations whose exports are behind are named, so that the operator knows whom to ask.
func TestExportsThatAreBehind(t *testing.T) {
	o, _ := begun(t)
	o.Behind = func(n int) []id.Tenant { return []id.Tenant{blue, 77, red}[:min(n, 3)] }
	var b strings.Builder
	if err := report(t, o).WriteText(&b); err != nil || !strings.Contains(b.String(), " events behind: blue, red\n") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

func TestBackupInReports(t *testing.T) {
	o, s := begun(t)
	if r := report(t, o); r.Backup != nil || len(r.Findings) > 0 {
		t.Errorf("without a backup: got %+v", r)
	}
	for name, tc := range map[string]struct {
		age      time.Duration
		verified backup.Verification
		want     []string
	}{
		"fresh":         {time.Hour, backup.Whole, nil},
		"not requested": {time.Hour, backup.NotVerified, nil},
		"old":           {49 * time.Hour, backup.Whole, []string{"AgentledgerBackupOld"}},
		"damaged":       {time.Hour, backup.Failed, []string{"AgentledgerBackupNotWhole"}},
	} {
		o.DataDir = t.TempDir() // a failure is noted until a verification succeeds
		made := backup.Made{Path: "/backups/x", Manifest: backup.Manifest{MadeAt: s.Clock().Add(-tc.age), Events: 7}}
		if err := made.WriteNote(o.DataDir, tc.verified); err != nil {
			t.Fatal(err)
		}
		o.Metrics = prometheus.NewRegistry()
		r := report(t, o)
		if got := namesOf(r); fmt.Sprint(got) != fmt.Sprint(tc.want) || r.Backup.Events != 7 {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
		all, err := readFigures(o.Metrics)
		if err != nil {
			t.Fatal(err)
		}
		want := 0.0
		if tc.verified == backup.Whole {
			want = float64(made.MadeAt.Unix())
		}
		if got := all.sum("agentledger_backup_verified_timestamp_seconds"); got != want {
			t.Errorf("%s: the verified one is of %v, want %v", name, got, want)
		}
		if got := all.sum("agentledger_backup_timestamp_seconds"); got != float64(made.MadeAt.Unix()) {
			t.Errorf("%s: it is of %v", name, got)
		}
	}
	if err := os.WriteFile(filepath.Join(o.DataDir, "backup.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Metrics = prometheus.NewRegistry()
	unread := report(t, o)
	if got := namesOf(unread); fmt.Sprint(got) != "[AgentledgerBackupOld]" {
		t.Errorf("a note that can't be read: got %v", got)
	}
	if got := unread.Lines()[len(unread.Lines())-1]; got != (Line{"backup", "the note of the latest backup can't be read"}) {
		t.Errorf("a note that can't be read: got %v", got)
	}
}

// A failed verification stays in reports and metrics until another one succeeds.
func TestFailedBackupStaysInReports(t *testing.T) {
	o, s := begun(t)
	for i, tc := range []struct {
		verification backup.Verification
		failed       bool
	}{
		{backup.Failed, true}, {backup.NotVerified, true}, {backup.NotVerified, true}, {backup.Whole, false}, {backup.NotVerified, false},
	} {
		made := backup.Made{Path: fmt.Sprint("/backups/", i), Manifest: backup.Manifest{MadeAt: s.Clock()}}
		if err := made.WriteNote(o.DataDir, tc.verification); err != nil {
			t.Fatal(err)
		}
		o.Metrics = prometheus.NewRegistry()
		r := report(t, o)
		all, err := readFigures(o.Metrics)
		if err != nil {
			t.Fatal(err)
		}
		metric, text := all.sum("agentledger_backup_failed") == 1, fmt.Sprint(r.Findings)
		if finding := strings.Contains(text, "the backup /backups/0 is damaged"); finding != tc.failed || metric != tc.failed || (r.State == Good) == tc.failed {
			t.Errorf("%d: finding %v, metric %v, state %s, want %v", i, finding, metric, r.State, tc.failed)
		}
	}
}

func namesOf(r *Report) (all []string) {
	for _, f := range r.Findings {
		all = append(all, f.Name)
	}
	return all
}
