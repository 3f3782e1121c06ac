package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/monitor"
)

// monitorOutput is the output of a check with --json.
type monitorOutput struct {
	monitor.Report
	Consistent bool   `json:"consistent"`
	Finding    string `json:"finding,omitzero"` // fork, rollback or tampering
	Evidence   string `json:"evidence,omitzero"`
	Error      string `json:"error,omitzero"`
	// UnknownSigners have signed as the log and none of the given keys has: the log may have another key now.
	UnknownSigners []string `json:"unknown_signers,omitzero"`
}

func printMonitored(s *streams, r monitor.Report, err error) error {
	if lines := monitoredLines(r, err); !s.json {
		if len(lines) == 0 {
			return nil
		}
		return s.printLine("%s", strings.Join(lines, "\n"))
	}
	out := monitorOutput{Report: r, Consistent: err == nil}
	var f *monitor.Finding
	if errors.As(err, &f) {
		out.Finding, out.Evidence = string(f.Kind), f.Folder
	}
	if unknown := (*monitor.UnknownKeyError)(nil); errors.As(err, &unknown) {
		out.UnknownSigners = unknown.Signers
	}
	if err != nil {
		out.Error = err.Error()
	}
	return s.printJSON(out)
}

// monitoredLines returns a report for users. The error of the check is printed separately.
func monitoredLines(r monitor.Report, err error) (lines []string) {
	name := textcheck.Printable(string(r.Origin))
	switch next := r.Successor; {
	case err != nil:
	case next != nil && next.Unread != "":
		lines = append(lines, fmt.Sprintf("kept: %s, %s; nothing more can be checked: %s", name, entries(r.KeptSize),
			textcheck.Printable(next.Unread)))
	default:
		lines = append(lines, fmt.Sprintf("consistent: %s, %s (%d new), root %s", name, entries(r.TreeSize),
			r.NewEntries, r.RootHash))
	}
	if q := r.Quorum; q != nil && err == nil {
		lines = append(lines, describeQuorum(q))
	}
	if err == nil {
		lines = append(lines, describeAge(r)...)
	}
	for _, k := range r.AcceptedKeys {
		lines = append(lines, "new key: "+textcheck.Printable(k.String()))
	}
	if len(r.OtherSigners) > 0 && err == nil {
		lines = append(lines, fmt.Sprintf("also signed by: %s; if the log is getting another key, no entry of it states "+
			"this key under a known key yet: take it from a source that you trust, and give it as a further --key",
			textcheck.Printable(strings.Join(r.OtherSigners, " and "))))
	}
	if r.HiddenEntries != nil && *r.HiddenEntries > 0 && err == nil {
		lines = append(lines, fmt.Sprintf("not shown: what %s of %s list, if anything", entries(*r.HiddenEntries), name))
	}
	if p := r.Succession; p != nil && err == nil {
		lines = append(lines, describeSuccession(p))
	}
	if next := r.Successor; next != nil {
		lines = append(lines, fmt.Sprintf("ended: %s; its successor is %s, whose key is said to be %s", name,
			textcheck.Printable(string(next.Origin)), textcheck.Printable(next.LogKey)))
	}
	return lines
}

// describeAge describes the age of the view, and names cosignatures from the future.
func describeAge(r monitor.Report) []string {
	lines := []string{"as of: unknown; without cosignatures an old view cannot be told from a log that does not grow"}
	if r.AsOf != nil {
		lines[0] = fmt.Sprintf("as of: %s, confirmed by witnesses", r.AsOf)
	}
	for _, c := range r.Cosignatures {
		if c.InFuture {
			lines = append(lines, fmt.Sprintf("in the future: %s, by %s; it does not count for the age of the view",
				c.Time, textcheck.Printable(c.Name)))
		}
	}
	return lines
}

// describeQuorum describes up to which size a quorum of the policy has cosigned.
func describeQuorum(q *monitor.QuorumReport) string {
	line := fmt.Sprintf("cosigned: %s the quorum", textcheck.Count(q.TreeSize, "entry has", "entries have"))
	if q.WaitingSince != nil {
		line += fmt.Sprintf(", %s for it since %s", textcheck.Count(q.Waiting, "waits", "wait"), q.WaitingSince)
	}
	return line
}

// describeSuccession describes how a log continues its predecessor.
func describeSuccession(p *monitor.SuccessionReport) string {
	compared := fmt.Sprintf("which agrees with the %s kept of it", entries(p.KeptSize))
	switch {
	case p.KeptSize == 0:
		compared = "of which nothing was kept"
	case p.KeptSize > p.LastSize:
		compared += ": the service gives up the last " + strconv.FormatUint(uint64(p.KeptSize-p.LastSize),
			10) + " of them"
	}
	return fmt.Sprintf("succeeds: %s, last known with %s, %s; the reason given: %s",
		textcheck.Printable(string(p.Predecessor)), entries(p.LastSize), compared, textcheck.Printable(p.Reason))
}

// entries returns a number of entries in words.
func entries(n id.Index) string { return textcheck.Count(n, "entry", "entries") }
