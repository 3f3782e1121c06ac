package main

import (
	"strings"

	"github.com/agentledger/agentledger/chain"
	"github.com/agentledger/agentledger/verify"
)

// printReport prints each check in words, what no check covers, and the result.
func printReport(s *streams, b *verify.Bundle, r verify.Report) error {
	lines := []string{
		"event       " + plain(string(b.EventID)),
		"log         " + plain(string(b.Origin)),
		verdict(&r.InclusionOK, "inclusion", "the entry is in the tree that the checkpoint signs, at its index"),
		verdict(&r.CheckpointOK, "checkpoint", checkpointWords(r.LogKeySource)),
		verdict(&r.ChainOK, "chain", "the entry names the one before it, which is in the same tree"),
		verdict(r.RecordOK, "record", "the entry commits to this record of this event"),
		verdict(r.SignatureOK, "signature", signatureWords(b)),
		verdict(r.EnvelopeOK, "envelope", "this envelope is the one that was signed"),
	}
	if len(r.Unchecked) > 0 {
		lines = append(lines, "not covered: "+strings.Join(r.Unchecked, ", "))
	}
	for _, e := range r.Errors {
		lines = append(lines, "wrong: "+plain(e))
	}
	if o := b.OperatorStatement; o != nil && o.KeyClaim != "" {
		lines = append(lines, "the operator claims of the key that signed: "+plain(o.KeyClaim))
	}
	switch {
	case r.OK && r.LogKeySource == verify.KeyFromArgument:
		lines = append(lines, "proved, as far as checked above")
	case r.OK:
		lines = append(lines, "whole, but signed by a key that only the bundle vouches for")
	}
	return s.line("%s", strings.Join(lines, "\n"))
}

// verdict is one check: what holds when it is true.
func verdict(ok *bool, name, words string) string {
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

// signatureWords says whose key signed, as the record tells it: what the service
// signed for an agent is not called the agent's.
func signatureWords(b *verify.Bundle) string {
	if b.Record == nil {
		return ""
	}
	record, err := chain.ParseRecord([]byte(*b.Record))
	if err != nil {
		return "the key in the record signed this event"
	}
	words := "the key in the record signed this event; the record calls it "
	switch record.Signer {
	case chain.SignerAgent:
		words += "the agent's"
	case chain.SignerBridge:
		words += "the service's, which signs for tools without a key"
	case chain.SignerSystem:
		words += "the service's own"
	}
	if record.Signer == chain.SignerAgent && record.Custody == chain.CustodyServer {
		words += ", made by the service"
	}
	return words
}
