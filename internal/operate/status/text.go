package status

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/textcheck"
)

// Printed is a report that a command can print.
type Printed interface {
	WriteText(w io.Writer) error
	IsGood() bool
}

// Print writes a report as text or as a line of JSON.
func Print(w io.Writer, p Printed, asJSON bool) error {
	if !asJSON {
		return p.WriteText(w)
	}
	if err := json.MarshalWrite(w, p); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// WriteText writes the report as text for an operator: the findings, then a line for each part.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", r.State)
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s: %s: %s\n    do: %s\n", f.Severity, f.Name, f.Summary, f.Do)
	}
	for _, line := range r.Lines() {
		fmt.Fprintf(&b, "%-14s%s\n", line.Part, line.Text)
	}
	for _, l := range r.Worst {
		b.WriteString(l.Describe() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Line describes a part of the service in words.
type Line struct{ Part, Text string }

// Lines describes each part of the service. The command prints them, and the operator's page shows them.
func (r *Report) Lines() []Line {
	return slices.Concat(r.programLines(), r.ledgerLines(), r.upkeepLines())
}

func (r *Report) programLines() []Line {
	ready := "ready"
	switch {
	case !r.Ready:
		ready = "not ready: " + r.UnreadyReason
	case r.ReadOnly:
		ready = "ready, read-only"
	}
	return []Line{
		{"service", fmt.Sprintf("%s, up for %s", ready, time.Duration(r.Program.UptimeSeconds)*time.Second)},
		{"versions", fmt.Sprintf("program %s, %s, %s store of format %d", r.Program.Version, r.Program.Go,
			r.Store.Engine, r.Store.Format)},
		{"store", fmt.Sprintf("%s, since the start %s failed, %s from memory, %s late",
			formatBytes(float64(r.Store.DiskBytes)), textcheck.Count(r.Store.AppendFailures, "append"),
			textcheck.Count(r.Store.StaleAnswers, "answer"), textcheck.Count(r.Store.LateRequests, "request"))},
	}
}

func (r *Report) ledgerLines() []Line {
	due := "unknown, because the store does not respond"
	if r.Webhooks != nil {
		due = fmt.Sprintf("%d due%s", r.Webhooks.Due, textIf(r.Webhooks.More, " or more"))
	}
	counted := ", not yet counted"
	if r.Events.CountedAt != nil {
		counted = ", as of " + r.Events.CountedAt.String()
	}
	resting := textIf(len(r.Witnesses.Resting) > 0, ", paused: "+strings.Join(r.Witnesses.Resting, ", "))
	return []Line{
		{"events", fmt.Sprintf("%d, %d of them not re-verified%s; %s for an append", r.Events.Total,
			r.Events.NotReverified, counted, textcheck.Count(r.Events.Queued, "waits", "wait"))},
		{"ledgers", fmt.Sprintf("%d frozen, %d read_only, %d held, %d suspect%s; %d missing, %d ahead of the clock",
			r.Ledgers.Faulty["frozen"], r.Ledgers.Faulty["read_only"], r.Ledgers.Faulty["held"], r.Ledgers.Faulty["suspect"], counted,
			r.Ledgers.Missing, r.Ledgers.AheadOfClock)},
		{"anchors", fmt.Sprintf("%.1f s behind, journal of %s", r.Anchors.LagSeconds,
			formatBytes(float64(r.Anchors.JournalBytes)))},
		{"witnesses", r.Witnesses.describe() + resting},
		{"webhooks", due},
		{"exports", r.Exports.describe()},
	}
}

func (w Witnesses) describe() string {
	switch w.WaitingLedgers {
	case 0:
		return "no log is waiting"
	case 1:
		return fmt.Sprintf("1 log has been waiting for %.0f s", w.WaitSeconds)
	}
	return fmt.Sprintf("%d logs are waiting, %.0f s at most", w.WaitingLedgers, w.WaitSeconds)
}

func (e Exports) describe() string {
	text := fmt.Sprintf("%.0f s and %s behind", e.LagSeconds, textcheck.Count(e.LagEvents, "event"))
	for i, name := range e.Behind {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		text += separator + string(name)
	}
	return text
}

func (r *Report) upkeepLines() (lines []Line) {
	for _, n := range r.Nodes {
		lines = append(lines, Line{"node", n.describe()})
	}
	for _, v := range r.Volumes {
		lines = append(lines, Line{"disk, " + v.Folder, v.describeSpace()})
	}
	if r.CertificateEndsAt != nil {
		lines = append(lines, Line{"certificate", "ends at " + r.CertificateEndsAt.String()})
	}
	if a := r.Archive; a != nil {
		lines = append(lines, Line{"archive", fmt.Sprintf("since the start %s moved, %s of damaged "+
			"objects; %.0f s behind, erasures %.0f s", textcheck.Count(a.MovedBundles, "bundle"), textcheck.Count(a.Damaged, "read"),
			a.WaitSeconds, a.ErasureSeconds)})
	}
	made := "no backup by agentledger backup"
	if r.BackupUnread {
		made = "the note of the latest backup can't be read"
	}
	if b := r.Backup; b != nil {
		made = fmt.Sprintf("%s, of %s, %s, verified: %s", b.Path, b.MadeAt.Format(time.RFC3339),
			textcheck.Count(b.Events, "event"), b.Verification)
		if b.LastFailure != nil && b.LastFailure.Path != b.Path {
			made += "; " + b.LastFailure.Path + " failed"
		}
	}
	return append(lines, Line{"backup", made})
}

// describeSpace describes the free space in words: bytes, share and hours.
func (v Volume) describeSpace() string {
	text := fmt.Sprintf("%s free of %s", formatBytes(float64(v.FreeBytes)), formatBytes(float64(v.SizeBytes)))
	switch {
	case v.Growth == nil:
		return text + ", growth not yet known"
	case v.HoursLeft == nil:
		return text + ", not growing"
	}
	return text + fmt.Sprintf(", enough for %.0f hours at %s an hour", *v.HoursLeft, formatBytes(*v.Growth))
}

func (n Node) describe() string {
	return fmt.Sprintf("%s, %s, program %s, owns %s, latest beat %.1f s ago%s%s", n.ID, n.Host, n.Version,
		textcheck.Count(n.Shards, "shard"), n.BeatAgeSeconds, textIf(n.Leaving, ", stopping or not ready"), textIf(n.Self, ", this node"))
}

// Describe describes the ledger in words.
func (l Ledger) Describe() string {
	text := fmt.Sprintf("%s (%s): %s", l.Origin, l.Slug, textcheck.Count(l.Size, "event"))
	if l.NewestEventAt != nil {
		text += ", the latest from " + l.NewestEventAt.String()
	}
	if l.Level != "" {
		text += ", " + l.Level + ": " + l.Reason
	}
	if l.WaitSeconds > 0 {
		text += fmt.Sprintf(", waiting for witnesses for %.0f s", l.WaitSeconds)
	}
	return text
}

// formatBytes formats a number of bytes with the largest unit in which it is at least 1.
func formatBytes(n float64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for n >= 1024 && i < len(units)-1 {
		n, i = n/1024, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%.0f B", n)
	}
	return fmt.Sprintf("%.1f %s", n, units[i])
}
