// Package status reports the health of a service: totals, the worst few ledgers, and findings that need an operator.
// It also contains the health check of the store (Probe). Callers get one report and need not know which metric or
// record a value comes from.
//
// Invariants:
//
//   - The time of a report does not grow with the number of organizations: it reads metrics, at most twenty ledgers
//     and the names of ten organizations, counts at most 1,000 deliveries, and sorts the ledgers that wait for
//     witnesses, whose number the queue limits, and the stream exports that are behind.
//   - If the store does not respond, the parts of a report that need it are omitted. That is never an error.
//   - A report contains no secret and no content of an event.
//   - Findings have the names and limits of the rules in deploy/alerts.yaml. Tests compare them, and run the rules with
//     promtool; cmd/agentledger compares the rules with the metrics of a running service.
package status

import (
	"context"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
)

const (
	// sampleEvery is the time between two samples.
	sampleEvery = time.Minute
	// storeTime bounds all queries of a report to the store together.
	storeTime = 2 * time.Second
	// maxDue bounds the deliveries that a report counts.
	maxDue = 1000
	// maxBehind bounds the organizations in a report whose exports are behind.
	maxBehind = 10
	// maxWaiting bounds the ledgers that wait for witnesses in a report.
	maxWaiting = 10
)

// Organizations returns the names of organizations. org.Orgs implements it.
type Organizations interface {
	Summary(ctx context.Context, t id.Tenant) (org.Summary, error)
}

// Options configure New. All fields are required except those after Clock.
type Options struct {
	Metrics      *prometheus.Registry // of the process; New adds the metrics of volumes and backups
	Ledgers      *log.Ledgers
	Orgs         Organizations
	Worst        func() []id.Tenant             // ledgers with faults, the worst first
	Waits        func() map[id.Tenant]time.Time // since when each ledger has been waiting for witnesses
	Behind       func(n int) []id.Tenant        // at most n organizations whose stream exports are behind, the furthest first
	AnchorSizes  AnchorSizes
	Cosignatures Cosignatures
	CountDue     func(ctx context.Context, limit int) (int, error)
	Ready        func(ctx context.Context) string // returns why the service can't be used, or ""
	Nodes        func() []Node                    // nodes of the service; empty for a single process
	Clock        func() time.Time

	Version  string            // of the program
	Engine   string            // embedded or postgresql
	DataDir  string            // contains the note of the latest backup
	Folders  map[string]string // directories whose volumes are measured, by their names in reports
	ReadOnly bool
}

// Service creates reports. Its methods may be called concurrently.
type Service struct {
	Options
	startedAt time.Time
	meters    []*meter
	recent    recent
	backup    backupNote
}

// New returns a service. It registers the metrics of volumes and backups, and measures the volumes once.
func New(o Options) *Service {
	s := &Service{Options: o, startedAt: o.Clock()}
	for _, name := range []string{"data", "store", "anchors"} {
		if path := o.Folders[name]; path != "" {
			m := &meter{name: name, path: path, measure: measureVolume}
			m.register(o.Metrics)
			m.takeSample(s.startedAt)
			s.meters = append(s.meters, m)
		}
	}
	s.backup.dir = o.DataDir
	s.backup.loadNote()
	s.backup.register(o.Metrics)
	return s
}

// Run samples the volumes, the counters and the note of the backup every minute until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		s.takeSamples()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Service) takeSamples() {
	now := s.Clock()
	if all, err := readFigures(s.Metrics); err == nil {
		s.recent.addSample(now, all)
	}
	for _, m := range s.meters {
		m.takeSample(now)
	}
	s.backup.loadNote()
}

// Report returns the current state of the service. It returns the error of ctx or of the metrics.
func (s *Service) Report(ctx context.Context) (*Report, error) {
	all, err := readFigures(s.Metrics)
	if err != nil {
		return nil, err
	}
	now := s.Clock()
	r := &Report{At: id.InstantOf(now), ReadOnly: s.ReadOnly,
		Program: Program{Version: s.Version, Go: runtime.Version(), StartedAt: id.InstantOf(s.startedAt),
			UptimeSeconds: int64(now.Sub(s.startedAt).Seconds())}}
	ready, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	r.UnreadyReason = s.Ready(ready)
	r.Nodes = s.Nodes()
	r.Ready = r.UnreadyReason == ""
	r.setFigures(all, s.Engine, s.recent.increases(now, all))
	r.minimum = s.recent.minimum(now, all)
	for _, m := range s.meters {
		if v, ok := m.describeVolume(); ok {
			r.Volumes = append(r.Volumes, v)
		}
	}
	queries, end := context.WithTimeout(ctx, storeTime)
	defer end()
	r.Backup, r.BackupUnread = s.backup.readNote(queries)
	s.readWebhooks(queries, r)
	r.Exports.Behind = s.listBehind(queries)
	r.Worst = s.describeWorst(queries, now)
	r.judge(now)
	return r, ctx.Err()
}

// listBehind returns the names of organizations whose exports are behind. It omits names that it can't read.
func (s *Service) listBehind(ctx context.Context) []id.Slug {
	names := []id.Slug{}
	for _, t := range s.Behind(maxBehind) {
		if named, err := s.Orgs.Summary(ctx, t); err == nil {
			names = append(names, named.Slug)
		}
	}
	return names
}

// readWebhooks counts the deliveries that are due. If the store does not respond, it sets nothing.
func (s *Service) readWebhooks(ctx context.Context, r *Report) {
	if n, err := s.CountDue(ctx, maxDue); err == nil {
		r.Webhooks = &Webhooks{Due: n, More: n == maxDue}
	}
}
