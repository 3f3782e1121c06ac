package status

import (
	"sync"
	"time"
)

// recentWindow is the window in which the increase of a counter is a finding.
const recentWindow = 15 * time.Minute

// The counters whose increase is a finding.
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

// The gauges that are a finding only if they stay high.
const (
	reverifyLag = "agentledger_reverify_lag_seconds"
	witnessWait = "agentledger_witness_wait_seconds"
	exportLag   = "agentledger_stream_export_lag_seconds"
)

// lagWindows returns how long each lag must last to be a finding, at most recentWindow, as in deploy/alerts.yaml. A
// machine that slept, or a start after a pause, sees old events for a moment.
func lagWindows() map[string]time.Duration {
	const soon = 5 * time.Minute
	return map[string]time.Duration{reverifyLag: recentWindow, witnessWait: soon, exportLag: soon}
}

// archiveBundles exists only if the service has an archive.
const archiveBundles = "agentledger_archive_bundles_moved_total"

// recent contains the samples of the last recentWindow.
type recent struct {
	mu      sync.Mutex
	samples []counted // oldest first
}

type counted struct {
	at     time.Time
	values map[string]float64
	lags   map[string]float64
}

// readLags returns the current lags.
func readLags(all figures) map[string]float64 {
	lags := make(map[string]float64)
	for name := range lagWindows() {
		lags[name] = all.sum(name)
	}
	return lags
}

// countAll returns the current counters. It counts only failed appends that the disk caused, failures of the archive
// because of damaged objects, and rejected requests for which the store or another component did not respond.
func countAll(all figures) map[string]float64 {
	values := make(map[string]float64)
	for _, name := range []string{faultsFound, badProofs, contradictions, anchorsLost, staleAnswers, lateRequests, noCertificate} {
		values[name] = all.sum(name)
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

// addSample adds a sample of the counters, and drops all samples before the window except the latest.
func (r *recent) addSample(now time.Time, all figures) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples = append(r.samples, counted{now, countAll(all), readLags(all)})
	for len(r.samples) > 1 && now.Sub(r.samples[1].at) >= recentWindow {
		r.samples = r.samples[1:]
	}
}

// increases returns how much each counter grew within the window. In a younger process, counters started at 0.
func (r *recent) increases(now time.Time, all figures) map[string]float64 {
	values := countAll(all)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.samples) > 0 && now.Sub(r.samples[0].at) >= recentWindow {
		for name, before := range r.samples[0].values {
			values[name] -= before
		}
	}
	return values
}

// minimum returns the smallest value of each lag in its window, or 0 if the process is younger than the window.
func (r *recent) minimum(now time.Time, all figures) map[string]float64 {
	lags := readLags(all)
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, window := range lagWindows() {
		covered := false
		for i := len(r.samples) - 1; i >= 0 && !covered; i-- {
			lags[name] = min(lags[name], r.samples[i].lags[name])
			covered = now.Sub(r.samples[i].at) >= window
		}
		if !covered {
			lags[name] = 0
		}
	}
	return lags
}
