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
	refusals        = "agentledger_refusals_total"
	noCertificate   = "agentledger_certificate_failures_total"
	internalErrors  = refusals + " of status 500"
)

// lags are gauges that are a finding only while they last.
const (
	reverifyLag = "agentledger_reverify_lag_seconds"
	witnessWait = "agentledger_witness_wait_seconds"
	exportLag   = "agentledger_stream_export_lag_seconds"
)

// lastTime says for how long each lag has to last, at most recentWindow, as in deploy/alerts.yaml. A machine that
// slept, or a start after a pause, shows old events for a moment.
func lastTime() map[string]time.Duration {
	const soon = 5 * time.Minute
	return map[string]time.Duration{reverifyLag: recentWindow, witnessWait: soon, exportLag: soon}
}

// archiveBundles is there with an archive.
const archiveBundles = "agentledger_archive_bundles_moved_total"

// recent keeps the counters and lags of the last recentWindow.
type recent struct {
	mu   sync.Mutex
	kept []counted // oldest first
}

type counted struct {
	at     time.Time
	values map[string]float64
	lags   map[string]float64
}

// readLags returns the lags of now.
func readLags(all figures) map[string]float64 {
	lags := make(map[string]float64)
	for name := range lastTime() {
		lags[name] = all.sumOf(name)
	}
	return lags
}

// countAll returns the present counters. Of failed appends it counts those caused by the disk, of the archive's failures
// damaged objects, and of refusals those for which the store or another part did not answer.
func countAll(all figures) map[string]float64 {
	values := make(map[string]float64)
	for _, name := range []string{faultsFound, badProofs, contradictions, anchorsLost, staleAnswers, lateRequests, noCertificate} {
		values[name] = all.sumOf(name)
	}
	for _, cause := range []string{"broken", "unknown", "unavailable"} {
		values[appendFailures] += all.valuesBy(appendFailures, "cause")[cause]
	}
	for _, code := range []string{"unavailable", "outcome_unknown"} {
		values[refusals] += all.valuesBy(refusals, "code")[code]
	}
	values[internalErrors] = all.valuesBy(refusals, "status")["500"]
	values[archiveFailures] = all.valuesBy(archiveFailures, "step")["damaged"]
	return values
}

// keepCounters keeps the counters of now, and forgets those from before the window but the newest.
func (r *recent) keepCounters(now time.Time, all figures) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, counted{now, countAll(all), readLags(all)})
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

// least returns the smallest value of each lag while it has to last: 0 in a process that is younger than that.
func (r *recent) least(now time.Time, all figures) map[string]float64 {
	lags := readLags(all)
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, lasts := range lastTime() {
		covered := false
		for i := len(r.kept) - 1; i >= 0 && !covered; i-- {
			lags[name] = min(lags[name], r.kept[i].lags[name])
			covered = now.Sub(r.kept[i].at) >= lasts
		}
		if !covered {
			lags[name] = 0
		}
	}
	return lags
}
