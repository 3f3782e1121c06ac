package status

import (
	"sync"
	"time"
)

// recentWindow is the time over which the increase of a counter is a finding.
const recentWindow = 15 * time.Minute

// counters are those whose increase is a finding.
const (
	faultsFound     = "agentledger_ledger_faults_total"
	badProofs       = "agentledger_bad_proofs_total"
	contradictions  = "agentledger_witness_contradictions_total"
	appendFailures  = "agentledger_append_failures_total"
	archiveFailures = "agentledger_archive_failures_total"
	anchorsLost     = "agentledger_anchors_lost_total"
	staleAnswers    = "agentledger_stale_answers_total"
	lateRequests    = "agentledger_http_requests_late_total"
)

// archiveBundles is there with an archive.
const archiveBundles = "agentledger_archive_bundles_moved_total"

// recent keeps the counters of the last recentWindow.
type recent struct {
	mu   sync.Mutex
	kept []counted // oldest first
}

type counted struct {
	at     time.Time
	values map[string]float64
}

// countAll returns the counters of now. Of failed appends those count that are the disk's, and of the archive's
// failures damaged objects.
func countAll(all figures) map[string]float64 {
	values := make(map[string]float64)
	for _, name := range []string{faultsFound, badProofs, contradictions, anchorsLost, staleAnswers, lateRequests} {
		values[name] = all.sumOf(name)
	}
	for _, cause := range []string{"broken", "unknown", "unavailable"} {
		values[appendFailures] += all.valuesBy(appendFailures, "cause")[cause]
	}
	values[archiveFailures] = all.valuesBy(archiveFailures, "step")["damaged"]
	return values
}

// keepCounters keeps the counters of now, and forgets those from before the window but the newest.
func (r *recent) keepCounters(now time.Time, all figures) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, counted{now, countAll(all)})
	for len(r.kept) > 1 && now.Sub(r.kept[1].at) >= recentWindow {
		r.kept = r.kept[1:]
	}
}

// increases returns by how much each counter grew within the window. Counters of a younger process began at 0.
func (r *recent) increases(now time.Time, all figures) map[string]float64 {
	values := countAll(all)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.kept) > 0 && now.Sub(r.kept[0].at) >= recentWindow {
		for name, before := range r.kept[0].values {
			values[name] -= before
		}
	}
	return values
}
