package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// Severities of findings. A page needs an operator at once.
const (
	Page   = "page"
	Ticket = "ticket"
)

// Finding is a reason for an operator to act.
type Finding struct {
	Name     string `json:"name"` // of the rule in deploy/alerts.yaml, if there is one
	Severity string `json:"severity"`
	Summary  string `json:"summary"`
	Do       string `json:"do"`
}

// rule creates one kind of finding. If do is empty, the finding refers to the runbook of the alert with its name. check
// returns the summary, or "" if there is nothing to report.
type rule struct {
	name, severity, do string
	check              func(r *Report, now time.Time) string
}

// runbooks is the page that has a section for each alert.
const runbooks = "/help/runbooks#"

// rules returns all rules.
func rules() []rule {
	return slices.Concat(integrityRules(), storeRules(), lagRules(), archiveRules(), upkeepRules())
}

// judge sets the findings and the state of the report.
func (r *Report) judge(now time.Time) {
	r.Findings = []Finding{}
	for _, rule := range rules() {
		if summary := rule.check(r, now); summary != "" {
			do := cmp.Or(rule.do, "see "+runbooks+rule.name)
			r.Findings = append(r.Findings, Finding{rule.name, rule.severity, summary, do})
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.Severity, b.Severity) })
	r.State = Good
	if len(r.Findings) > 0 {
		r.State = Attention
	}
}

// above returns a check that reports the summary, which contains the value, if the value is above the limit.
func above(limit float64, value func(*Report) float64, summary string) func(*Report, time.Time) string {
	return func(r *Report, _ time.Time) string {
		if v := value(r); v > limit {
			return fmt.Sprintf(summary, v)
		}
		return ""
	}
}

// wantZero returns a check for a number that should be 0. The summary is the number with one or many (textcheck.Count).
func wantZero[T uint64 | float64](value func(*Report) T, one, many string) func(*Report, time.Time) string {
	return func(r *Report, _ time.Time) string {
		v := value(r)
		return textIf(v > 0, textcheck.Count(v, one, many))
	}
}

// grew returns a check for a counter that grew recently.
func grew(counter, one, many string) func(*Report, time.Time) string {
	return wantZero(func(r *Report) float64 { return r.increases[counter] }, one, many)
}

// lasts returns a check for a lag that has been above the limit for a while. The summary contains the current value.
func lasts(limit float64, lag string, value func(*Report) float64, summary string) func(*Report, time.Time) string {
	return func(r *Report, _ time.Time) string {
		return textIf(r.minimum[lag] > limit, fmt.Sprintf(summary, value(r)))
	}
}

func faulty(levels ...string) func(*Report) uint64 {
	return func(r *Report) (n uint64) {
		for _, level := range levels {
			n += r.Ledgers.Faulty[level]
		}
		return n
	}
}

func integrityRules() []rule {
	return []rule{
		{"AgentledgerLedgerFrozen", Page, "",
			wantZero(faulty("frozen"), "ledger is frozen", "ledgers are frozen")},
		{"AgentledgerLedgerReadOnly", Ticket, "",
			wantZero(faulty("read_only", "held", "suspect", "importing", "moved"),
				"ledger is read_only, held, suspect, importing or moved",
				"ledgers are read_only, held, suspect, importing or moved")},
		{"AgentledgerLedgersMissing", Page, "",
			wantZero(func(r *Report) uint64 { return r.Ledgers.Missing },
				"published ledger is not in the store", "published ledgers are not in the store")},
		{"AgentledgerFaultFound", Page, "", grew(faultsFound, "fault was found in 15 minutes", "faults were found in 15 minutes")},
		{"AgentledgerBadProof", Page, "look for bad memory, then run fsck",
			grew(badProofs, "proof was invalid in 15 minutes and was not served",
				"proofs were invalid in 15 minutes and were not served")},
		{"AgentledgerContradicted", Page, "",
			grew(contradictions, "witness has seen a different history of a log", "witnesses have seen different histories of logs")},
		{"AgentledgerAnchorsLost", Page, "",
			grew(anchorsLost, "time in 15 minutes, the anchors were removed or replaced under the process",
				"times in 15 minutes, the anchors were removed or replaced under the process")},
		{"AgentledgerAnchorsBehind", Page, "check the volume of the anchors",
			above(30, func(r *Report) float64 { return r.Anchors.LagSeconds }, "the anchors are %.0f s behind")},
	}
}

func storeRules() []rule {
	return []rule{
		{"AgentledgerNotReady", Page, "",
			func(r *Report, _ time.Time) string { return r.UnreadyReason }},
		{"AgentledgerReadOnlyMode", Page, "",
			func(r *Report, _ time.Time) string {
				return textIf(r.ReadOnly, "the service is read-only")
			}},
		{"AgentledgerClockHeld", Page, "", func(r *Report, _ time.Time) string {
			return textIf(r.Clock.Held, "the machine's clock is not trusted")
		}},
		{"AgentledgerLedgerAheadOfClock", Page, "",
			wantZero(func(r *Report) uint64 { return r.Ledgers.AheadOfClock }, "ledger is ahead of the clock",
				"ledgers are ahead of the clock")},
		{"AgentledgerStoreFailing", Page, "check the disk, then the log",
			grew(appendFailures, "append failed in 15 minutes", "appends failed in 15 minutes")},
		{"AgentledgerAppendHangs", Page, "",
			above(10, func(r *Report) float64 { return r.Store.OldestAppendSeconds },
				"an append has been in flight for %.0f s")},
		{"AgentledgerRequestsLate", Page, "",
			grew(lateRequests, "request in 15 minutes was answered because its handler did not return",
				"requests in 15 minutes were answered because their handlers did not return")},
		{"AgentledgerInternalErrors", Page, "",
			grew(internalErrors, "request in 15 minutes failed with status 500",
				"requests in 15 minutes failed with status 500")},
		{"AgentledgerUnavailable", Page, "",
			grew(refusals, "request in 15 minutes failed with status 503, because the store or another component did not respond",
				"requests in 15 minutes failed with status 503, because the store or another component did not respond")},
		{"AgentledgerStaleAnswers", Page, "",
			grew(staleAnswers, "request in 15 minutes was answered from memory, because the store did not respond",
				"requests in 15 minutes were answered from memory, because the store did not respond")},
	}
}

// longestWait is how long a log may wait for its witnesses, in seconds.
const longestWait = 900

// oldestQuorum is the maximum age of the last quorum for a log, in seconds.
const oldestQuorum = 10800

func lagRules() []rule {
	return []rule{
		{"AgentledgerQueueFills", Ticket, "", func(r *Report, _ time.Time) string {
			return textIf(2*r.Events.Queued > r.Events.QueueLimit,
				fmt.Sprintf("%s waiting, limit %d", textcheck.Count(r.Events.Queued, "event is", "events are"),
					r.Events.QueueLimit))
		}},
		{"AgentledgerWitnessesBehind", Ticket, "",
			lasts(longestWait, witnessWait, func(r *Report) float64 { return r.Witnesses.WaitSeconds },
				"a log has been waiting for its witnesses for %.0f s")},
		{"AgentledgerCosignaturesOld", Ticket, "", func(r *Report, _ time.Time) string {
			return textIf(r.Witnesses.OldestQuorumSeconds > oldestQuorum,
				fmt.Sprintf("no quorum has cosigned a log for %.0f s", r.Witnesses.OldestQuorumSeconds))
		}},
		{"AgentledgerReverificationLags", Ticket, "give the service more processor time, or check the disk",
			lasts(1800, reverifyLag, func(r *Report) float64 { return r.Events.ReverifyLagSecond },
				"the oldest event that was not re-verified is %.0f s old")},
		{"AgentledgerStreamExportBehind", Ticket, "",
			lasts(3600, exportLag, func(r *Report) float64 { return r.Exports.LagSeconds },
				"a stream export is %.0f s behind")},
	}
}

// The longest waits for the archive, in seconds.
const (
	longestMove    = 86400
	longestErasure = 3600
)

func archiveRules() []rule {
	return []rule{
		{"AgentledgerArchiveDamaged", Page, "",
			grew(archiveFailures, "read in 15 minutes found a damaged or missing object in the archive",
				"reads in 15 minutes found a damaged or missing object in the archive")},
		{"AgentledgerArchiveBehind", Ticket, "", func(r *Report, _ time.Time) string {
			a := r.Archive
			if a == nil || a.WaitSeconds <= longestMove && a.ErasureSeconds <= longestErasure {
				return ""
			}
			return fmt.Sprintf("old events have been waiting for %.0f hours, erasures for %.0f minutes",
				a.WaitSeconds/3600, a.ErasureSeconds/60)
		}},
	}
}

// Limits of the rules about disk space, certificate and backup.
const (
	fullShare      = 0.02 // of the volume: page
	LowShare       = 0.1  // of the volume: ticket
	lowHours       = 24
	CertificateLow = 14 * 24 * time.Hour // before its end
	backupOld      = 48 * time.Hour
)

func upkeepRules() []rule {
	return []rule{
		{"AgentledgerVolumeFull", Page, "free space now: a full volume ends the process",
			func(r *Report, _ time.Time) string { return findVolume(r, Volume.isFull) }},
		{"AgentledgerVolumeFills", Ticket, "free space, or make the volume larger",
			func(r *Report, _ time.Time) string { return findVolume(r, Volume.fills) }},
		{"AgentledgerCertificateEnds", Page, "", func(r *Report, now time.Time) string {
			if r.CertificateEndsAt == nil || r.CertificateEndsAt.Time().Sub(now) > CertificateLow {
				return ""
			}
			return fmt.Sprintf("the certificate ends at %s", r.CertificateEndsAt)
		}},
		{"AgentledgerCertificateMissing", Page, "", func(r *Report, _ time.Time) string {
			n := r.increases[noCertificate]
			return textIf(r.CertificateEndsAt == nil && n > 0,
				textcheck.Count(n, "connection", "connections")+
					" in 15 minutes got no certificate, because the ACME server has issued none")
		}},
		{"AgentledgerBackupOld", Ticket, "", func(r *Report, now time.Time) string {
			if r.Backup == nil || now.Sub(r.Backup.MadeAt) <= backupOld {
				return textIf(r.BackupUnread, "the note of the latest backup can't be read")
			}
			return fmt.Sprintf("the latest backup is %.0f hours old", now.Sub(r.Backup.MadeAt).Hours())
		}},
		{"AgentledgerBackupNotWhole", Page, "",
			func(r *Report, _ time.Time) string { return describeFailedBackup(r.Backup) }},
	}
}

// freeShare returns the free fraction of the volume, or 1 if the size is unknown.
func (v Volume) freeShare() float64 {
	if v.SizeBytes == 0 {
		return 1
	}
	return float64(v.FreeBytes) / float64(v.SizeBytes)
}

func (v Volume) isFull() bool { return v.freeShare() < fullShare }

// fills reports whether a volume that is not full will soon be full.
func (v Volume) fills() bool {
	return !v.isFull() && (v.freeShare() < LowShare || v.HoursLeft != nil && *v.HoursLeft < lowHours)
}

// findVolume describes the first volume that matches.
func findVolume(r *Report, matches func(Volume) bool) string {
	i := slices.IndexFunc(r.Volumes, matches)
	if i < 0 {
		return ""
	}
	return "the volume of the folder " + r.Volumes[i].Folder + " has " + r.Volumes[i].describeSpace()
}

func textIf(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}

// describeFailedBackup returns why the backups are unreliable, or "" if they are reliable.
func describeFailedBackup(b *backup.Note) string {
	switch {
	case b == nil:
		return ""
	case b.LastFailure != nil:
		return fmt.Sprintf("the backup %s is damaged or its verification failed, as found on %s, and none was verified "+
			"completely since", b.LastFailure.Path, b.LastFailure.MadeAt.Format(time.RFC3339))
	}
	return textIf(b.Faults > 0, "the latest backup has faults")
}
