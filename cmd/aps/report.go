package main

import (
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/verify"
)

// bundleReport is the JSON output of verify for a bundle.
type bundleReport struct {
	verify.Report
	QuorumOK *bool `json:"quorum_ok,omitzero"` // enough witnesses of the policy have cosigned; absent unless the policy asks for any
	// QuorumTime is when a quorum had cosigned; absent if the cosignatures prove no time.
	QuorumTime *id.Instant `json:"quorum_time,omitzero"`
	// DirectoryQuorumOK and DirectoryQuorumTime are the same of the directory's policy
	// and checkpoint.
	DirectoryQuorumOK   *bool       `json:"directory_quorum_ok,omitzero"`
	DirectoryQuorumTime *id.Instant `json:"directory_quorum_time,omitzero"`
	// ToolReceipt is the verdict on the tool's receipt in the envelope; absent if it has none, or if the bundle is not proved.
	ToolReceipt *toolReceipt `json:"tool_receipt,omitzero"`
	// UnknownKeys are the keys that signed, by name and key ID, if the only fault is that they are unknown.
	UnknownKeys []string `json:"unknown_keys,omitzero"`
}

// printReport prints each check in words, the members that no check covers, and the result.
func printReport(s *streams, b *verify.Bundle, r bundleReport) error {
	lines := []string{
		"event       " + textcheck.Printable(string(b.EventID)),
		"log         " + textcheck.Printable(string(b.Origin)),
		verdictLine(&r.InclusionOK, "inclusion", "the entry is in the tree that the checkpoint signs, at its index"),
		verdictLine(&r.CheckpointOK, "checkpoint", checkpointWords(r.LogKeySource)),
		verdictLine(&r.ChainOK, "chain", "the entry names the one before it, which is in the same tree"),
		verdictLine(r.RecordOK, "record", "the entry commits to this record of this event"),
		verdictLine(r.SignatureOK, "signature", signatureWords(b)),
		verdictLine(r.EnvelopeOK, "envelope", "this envelope is the one that was signed"),
	}
	if b.Directory != nil {
		lines = append(lines, verdictLine(r.DirectoryOK, "directory",
			"the service's directory lists a tree of this log that has the entry"))
	}
	if succession, ok := b.Succession(); ok && r.OK {
		lines = append(lines, successionLine(succession))
	}
	if r.ToolReceipt != nil {
		lines = append(lines, r.ToolReceipt.line())
	}
	lines = append(lines, quorumLines(r.QuorumOK, r.QuorumTime, r.Cosignatures, "")...)
	lines = append(lines, quorumLines(r.DirectoryQuorumOK, r.DirectoryQuorumTime, r.DirectoryCosignatures, "the directory, ")...)
	if len(r.Unchecked) > 0 {
		lines = append(lines, "not covered: "+strings.Join(r.Unchecked, ", "))
	}
	for _, e := range r.Errors {
		lines = append(lines, "wrong: "+textcheck.Printable(e))
	}
	lines = softenFailures(lines, r.UnknownKeys)
	if o := b.OperatorStatement; o != nil && o.KeyClaim != "" {
		lines = append(lines, "the operator claims of the key that signed: "+textcheck.Printable(o.KeyClaim))
	}
	switch {
	case r.OK && (isFalse(r.QuorumOK) || isFalse(r.DirectoryQuorumOK)):
	case r.OK && r.LogKeySource == verify.KeyFromArgument:
		lines = append(lines, "proved, as far as checked above")
	case r.OK:
		lines = append(lines, "whole, but signed by a key that only the bundle vouches for")
	}
	return s.printLine("%s", strings.Join(lines, "\n"))
}

// successionLine describes the predecessor that the first event of a log names.
func successionLine(s verify.Succession) string {
	last, _ := s.Last() // it was parsed
	return fmt.Sprintf("succeeds    %s, last known with %s: %s", textcheck.Printable(string(s.Predecessor)),
		entries(last.Size), textcheck.Printable(s.Reason))
}

func isFalse(verdict *bool) bool { return verdict != nil && !*verdict }

// quorumLines describes the quorum of a policy and the cosignatures. of names the
// signer of the checkpoint, if it is not the log.
func quorumLines(quorum *bool, at *id.Instant, by []verify.Cosignature, of string) (lines []string) {
	switch {
	case quorum == nil:
	case *quorum:
		words := of + "enough witnesses of the policy have cosigned the checkpoint"
		if at != nil {
			words += ", by " + at.String()
		}
		lines = append(lines, verdictLine(quorum, "quorum", words))
	default:
		lines = append(lines,
			"--    quorum      "+of+"not reached: too few witnesses of the policy have cosigned the checkpoint")
	}
	for _, c := range by {
		lines = append(lines, fmt.Sprintf("cosigned    %s%s, by %s", of, describeTime(c), textcheck.Printable(c.Name)))
	}
	return lines
}

// printProof prints the report of a tlog-proof.
func printProof(s *streams, r proofReport) error {
	if s.json {
		return s.printJSON(r)
	}
	var lines []string
	if r.CheckpointOK {
		lines = append(lines, "log         "+textcheck.Printable(string(r.Origin)))
	}
	lines = append(lines, verdictLine(&r.CheckpointOK, "checkpoint", checkpointWords(verify.KeyFromArgument)))
	if r.CheckpointOK {
		lines = append(lines, verdictLine(&r.InclusionOK, "inclusion",
			"the entry is in the tree that the checkpoint signs, at its index"))
	}
	lines = append(lines, quorumLines(r.QuorumOK, r.QuorumTime, r.Cosignatures, "")...)
	if r.OK && (r.QuorumOK == nil || *r.QuorumOK) {
		lines = append(lines, fmt.Sprintf("proved: entry %d in a tree of %d entries. "+
			"A tlog-proof says nothing about the chain and the event; a bundle does",
			r.LogIndex, r.TreeSize))
	}
	return s.printLine("%s", strings.Join(softenFailures(lines, r.UnknownKeys), "\n"))
}

// softenFailures writes "can't tell" for failures when unknown keys are their only cause.
func softenFailures(lines, unknown []string) []string {
	if len(unknown) == 0 {
		return lines
	}
	for i, line := range lines {
		if name, failed := strings.CutPrefix(line, "FAIL"); failed {
			lines[i] = "--  " + name
		} else if what, wrong := strings.CutPrefix(line, "wrong: "); wrong {
			lines[i] = "can't tell: " + what
		}
	}
	return lines
}

// verdictLine returns the line of one check. words say which statement the check is about.
func verdictLine(ok *bool, name, words string) string {
	sign := "ok  "
	switch {
	case ok == nil:
		sign, words = "--  ", "not disclosed"
	case !*ok:
		sign, words = "FAIL", "it does not hold that "+words
	}
	return sign + "  " + name + strings.Repeat(" ", len("checkpoint  ")-len(name)) + words
}

func checkpointWords(source verify.KeySource) string {
	if source == verify.KeyFromArgument {
		return "the checkpoint is signed by the key given"
	}
	return "the checkpoint is signed by the key that the bundle names itself"
}

// signatureWords names the owner of the key that signed, from the record. A signature that the service made for an agent is
// not attributed to the agent.
func signatureWords(b *verify.Bundle) string {
	if b.Record == nil {
		return ""
	}
	record, err := event.ParseRecord([]byte(*b.Record))
	if err != nil {
		return "the key in the record signed this event"
	}
	words := "the key in the record signed this event; the record calls it "
	switch record.Signer {
	case event.SignerAgent:
		words += "the agent's"
	case event.SignerBridge:
		words += "the service's, which signs for tools without a key"
	case event.SignerSystem:
		words += "the service's own"
	}
	if record.Signer == event.SignerAgent && record.Custody == event.CustodyServer {
		words += ", with a key that the service made"
	}
	return words
}
