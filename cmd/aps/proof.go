package main

import (
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/chain"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// proofReport is what verify says of a tlog-proof in JSON output. A tlog-proof
// shows inclusion; the chain and what the entry commits to take a bundle.
type proofReport struct {
	InclusionOK bool      `json:"inclusion_ok"`
	OK          bool      `json:"ok"`
	Origin      id.Origin `json:"origin"`
	LogIndex    id.Index  `json:"log_index"`
	TreeSize    id.Index  `json:"tree_size"`
	Errors      []string  `json:"errors"`
}

// checkProof checks C2SP tlog-proof text, which holds neither key nor entry.
func (c *verifyCommand) checkProof(s *streams, text []byte, o verify.Options) error {
	if o.Key == nil || c.Entry == "" {
		return errors.New("a tlog-proof holds neither the key nor the entry: set --key and --entry")
	}
	entry, err := s.read(c.Entry, tlog.MaxEntry)
	if err != nil {
		return fmt.Errorf("--entry: %w", err)
	}
	proof, err := tlog.ParseProof(text)
	if err != nil {
		return fmt.Errorf("not a tlog-proof that this program reads: %w", err)
	}
	checkpoint, failed := openProof(proof, entry, o)
	report := proofReport{
		InclusionOK: failed == nil, OK: failed == nil, Origin: checkpoint.Origin,
		LogIndex: proof.Index, TreeSize: checkpoint.Size, Errors: []string{},
	}
	if failed != nil {
		report.Errors = append(report.Errors, "inclusion: "+failed.Error())
	}
	if err := printProof(s, report); err != nil {
		return err
	}
	if failed != nil {
		return &negative{fmt.Errorf("not proved: inclusion: %w", failed)}
	}
	return nil
}

// openProof checks the proof under each key given, and that an entry of this
// service names the index at which it lies.
func openProof(p tlog.Proof, entry []byte, o verify.Options) (c tlog.Checkpoint, err error) {
	leaf := tlog.LeafHash(entry)
	for _, key := range append([]tlog.VerifierKey{*o.Key}, o.Retired...) {
		if c, err = p.Check(leaf, key); !errors.Is(err, tlog.ErrSignature) {
			break
		}
	}
	if err != nil {
		return tlog.Checkpoint{}, err
	}
	parsed, err := chain.ParseEntry(entry)
	if err != nil {
		return tlog.Checkpoint{}, err
	}
	if parsed.Seq != p.Index.Sequence() {
		return tlog.Checkpoint{}, fmt.Errorf("entry and index: %w", verify.ErrMismatch)
	}
	return c, nil
}

func printProof(s *streams, r proofReport) error {
	if s.json {
		return s.value(r)
	}
	const words = "the entry is in the tree that the checkpoint signs, at its index"
	if err := s.line("%s", verdict(&r.InclusionOK, "inclusion", words)); err != nil || !r.OK {
		return err
	}
	return s.line("log         %s\nproved: entry %d of %d. A tlog-proof says nothing about the chain and the event; a bundle does", plain(string(r.Origin)), r.LogIndex.Sequence(), r.TreeSize)
}
