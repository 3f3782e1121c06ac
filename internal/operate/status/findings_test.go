package status

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/backup"
)

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func hours(n float64) *float64 { return &n }

// well is a report without findings: each value is one below the limit of its rule.
func well() *Report {
	ends := id.InstantOf(now.Add(15 * 24 * time.Hour))
	return &Report{Ready: true, Ledgers: Ledgered{Faulty: map[string]uint64{"frozen": 0, "succeeded": 9}},
		Store: Store{OldestAppendSeconds: 10}, Anchors: Anchors{LagSeconds: 30},
		Events: Events{Queued: 50, QueueLimit: 100, ReverifyLagSecond: 1800}, Witnesses: Witnesses{WaitSeconds: 900, OldestQuorumSeconds: 10800},
		Archive: &Archive{WaitSeconds: 86400, ErasureSeconds: 3600},
		Exports: Exports{LagSeconds: 3600}, CertificateEndsAt: &ends, increases: make(map[string]float64),
		minimum: map[string]float64{reverifyLag: 1800, witnessWait: 900, exportLag: 3600},
		Volumes: []Volume{{Folder: "data", FreeBytes: 10, SizeBytes: 100, HoursLeft: hours(24)}, {Folder: "anchors"}},
		Backup:  &backup.Note{MadeAt: now.Add(-48 * time.Hour), Verification: backup.Whole}}
}

// Each rule finds one thing, and nothing in a healthy report.
func TestFindings(t *testing.T) {
	ends := id.InstantOf(now.Add(13 * 24 * time.Hour))
	cases := map[string]func(*Report){
		"AgentledgerLedgerFrozen":       func(r *Report) { r.Ledgers.Faulty["frozen"] = 1 },
		"AgentledgerLedgerReadOnly":     func(r *Report) { r.Ledgers.Faulty["suspect"] = 1 },
		"AgentledgerLedgersMissing":     func(r *Report) { r.Ledgers.Missing = 1 },
		"AgentledgerFaultFound":         func(r *Report) { r.increases[faultsFound] = 1 },
		"AgentledgerBadProof":           func(r *Report) { r.increases[badProofs] = 1 },
		"AgentledgerContradicted":       func(r *Report) { r.increases[contradictions] = 1 },
		"AgentledgerAnchorsLost":        func(r *Report) { r.increases[anchorsLost] = 1 },
		"AgentledgerAnchorsBehind":      func(r *Report) { r.Anchors.LagSeconds = 31 },
		"AgentledgerNotReady":           func(r *Report) { r.UnreadyReason = "the store can't be read" },
		"AgentledgerReadOnlyMode":       func(r *Report) { r.ReadOnly = true },
		"AgentledgerClockHeld":          func(r *Report) { r.Clock.Held = true },
		"AgentledgerLedgerAheadOfClock": func(r *Report) { r.Ledgers.AheadOfClock = 1 },
		"AgentledgerStoreFailing":       func(r *Report) { r.increases[appendFailures] = 1 },
		"AgentledgerAppendHangs":        func(r *Report) { r.Store.OldestAppendSeconds = 11 },
		"AgentledgerRequestsLate":       func(r *Report) { r.increases[lateRequests] = 1 },
		"AgentledgerInternalErrors":     func(r *Report) { r.increases[internalErrors] = 1 },
		"AgentledgerUnavailable":        func(r *Report) { r.increases[refusals] = 1 },
		"AgentledgerStaleAnswers":       func(r *Report) { r.increases[staleAnswers] = 1 },
		"AgentledgerQueueFills":         func(r *Report) { r.Events.Queued = 51 },
		"AgentledgerWitnessesBehind":    func(r *Report) { r.minimum[witnessWait] = 901 },
		"AgentledgerCosignaturesOld":    func(r *Report) { r.Witnesses.OldestQuorumSeconds = 10801 },
		"AgentledgerReverificationLags": func(r *Report) { r.minimum[reverifyLag] = 1801 },
		"AgentledgerStreamExportBehind": func(r *Report) { r.minimum[exportLag] = 3601 },
		"AgentledgerVolumeFull":         func(r *Report) { r.Volumes[0].FreeBytes = 1 },
		"AgentledgerVolumeFills":        func(r *Report) { r.Volumes[0].HoursLeft = hours(23) },
		"AgentledgerCertificateEnds":    func(r *Report) { r.CertificateEndsAt = &ends },
		"AgentledgerCertificateMissing": func(r *Report) { r.CertificateEndsAt, r.increases[noCertificate] = nil, 1 },
		"AgentledgerBackupOld":          func(r *Report) { r.Backup.MadeAt = now.Add(-49 * time.Hour) },
		"AgentledgerArchiveDamaged":     func(r *Report) { r.increases[archiveFailures] = 1 },
		"AgentledgerArchiveBehind":      func(r *Report) { r.Archive.ErasureSeconds = 3601 },
		"AgentledgerBackupNotWhole":     func(r *Report) { r.Backup.LastFailure = &backup.Failure{Path: "/backups/w"} },
	}
	r := well()
	if r.judge(now); r.State != Good || len(r.Findings) > 0 {
		t.Errorf("well: got %+v", r.Findings)
	}
	for _, rule := range rules() {
		change := cases[rule.name]
		if change == nil {
			t.Errorf("there is no case of %s", rule.name)
			continue
		}
		r := well()
		change(r)
		r.judge(now)
		if got := namesOf(r); !slices.Equal(got, []string{rule.name}) || r.State != Attention {
			t.Errorf("got %v, want %s", got, rule.name)
		}
		if f := r.Findings[0]; f.Severity != rule.severity || f.Summary == "" || f.Do == "" || strings.Contains(f.Summary, "%!") {
			t.Errorf("%s: got %+v", rule.name, f)
		}
	}
	r = well()
	r.Volumes[0].FreeBytes, r.Ledgers.Faulty["frozen"] = 9, 1
	if r.judge(now); !slices.Equal(namesOf(r), []string{"AgentledgerLedgerFrozen", "AgentledgerVolumeFills"}) {
		t.Errorf("the gravest is first: got %v", namesOf(r))
	}
}

// Each rule has a Prometheus alert with its name and severity.
func TestFindingsAreAlerts(t *testing.T) {
	alerts, err := os.ReadFile("../../../deploy/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules() {
		_, after, found := strings.Cut(string(alerts), "alert: "+rule.name+"\n")
		if !found {
			t.Errorf("deploy/alerts.yaml has no %s", rule.name)
		}
		if _, labels, _ := strings.Cut(after, "severity: "); found && !strings.HasPrefix(labels, rule.severity+"}") {
			t.Errorf("%s is a %s here, and not in deploy/alerts.yaml", rule.name, rule.severity)
		}
	}
}
