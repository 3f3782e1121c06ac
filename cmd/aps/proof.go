package main

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// proofReport is the JSON output of verify for a tlog-proof. A tlog-proof shows
// inclusion only. The chain, the record and the envelope take a bundle.
type proofReport struct {
	CheckpointOK bool                 `json:"checkpoint_ok"` // strict, and signed by a key that is trusted
	InclusionOK  bool                 `json:"inclusion_ok"`  // the entry is at its index in that checkpoint's tree
	QuorumOK     *bool                `json:"quorum_ok,omitzero"`
	QuorumTime   *id.Instant          `json:"quorum_time,omitzero"` // when a quorum had cosigned
	OK           bool                 `json:"ok"`
	Origin       id.Origin            `json:"origin"` // of the checkpoint, or "" if it is not signed
	LogIndex     id.Index             `json:"log_index"`
	TreeSize     id.Index             `json:"tree_size"`
	Cosignatures []verify.Cosignature `json:"cosignatures"`
	Errors       []string             `json:"errors"`
	UnknownKeys  []string             `json:"unknown_keys,omitzero"` // set if they are the only fault
}

// checkProof checks a C2SP tlog-proof, which contains neither key nor entry.
func (c *verifyCommand) checkProof(s *streams, text []byte, trusted auditorTrust) error {
	if c.Require != "commitment" {
		return fmt.Errorf("can't tell: a tlog-proof does not show the %s; a bundle does", c.Require)
	}
	if len(trusted.keys) == 0 || c.Entry == "" {
		return errors.New("a tlog-proof holds neither the key nor the entry: set --key or --policy, and --entry")
	}
	entry, err := c.readEntry(s)
	if err != nil {
		return fmt.Errorf("--entry: %w", err)
	}
	proof, err := tlog.ParseProof(text)
	if err != nil {
		return unreadableProof(text, err)
	}
	r := newProofReport(proof, entry, trusted)
	if err := printProof(s, r); err != nil {
		return err
	}
	switch {
	case len(r.UnknownKeys) > 0:
		return unknownKeysError(r.UnknownKeys, "")
	case !r.OK:
		return &negative{fmt.Errorf("not proved: %s", textcheck.Printable(r.Errors[0]))}
	case r.QuorumOK != nil && !*r.QuorumOK:
		return errQuorum
	}
	return nil
}

// readEntry reads the entry. No entry ends in LF, so a final LF belongs to the file.
func (c *verifyCommand) readEntry(s *streams) ([]byte, error) {
	if c.Entry == stdin && c.Bundle == stdin {
		return nil, errors.New("standard input is already used for the proof")
	}
	entry, err := s.readInput(c.Entry, tlog.MaxEntry+1)
	return bytes.TrimSuffix(entry, []byte("\n")), err
}

// unreadableProof is unreadable for tlog-proofs: another version can't be told.
func unreadableProof(text []byte, err error) error {
	if !bytes.HasPrefix(text, []byte("c2sp.org/tlog-proof@v1\n")) {
		return fmt.Errorf("not a tlog-proof that this program reads: %w", err)
	}
	return &negative{fmt.Errorf("not proved: %w", err)}
}

// newProofReport checks the checkpoint under the trusted keys, the proof, and that an entry of this service names its own
// index.
func newProofReport(p tlog.Proof, entry []byte, trusted auditorTrust) proofReport {
	r := proofReport{LogIndex: p.Index, Cosignatures: []verify.Cosignature{}, Errors: []string{}}
	checkpoint, err := trusted.openCheckpoint(p.Checkpoint)
	if err != nil {
		r.Errors = append(r.Errors, "checkpoint: "+err.Error())
		if c, err := tlog.ReadCheckpoint(p.Checkpoint); err == nil && checkIncluded(p, entry, c) == nil {
			r.UnknownKeys = verify.UnknownSigners(p.Checkpoint, trusted.knownKeys())
		}
		return r
	}
	r.CheckpointOK, r.Origin, r.TreeSize = true, checkpoint.Origin, checkpoint.Size
	r.Cosignatures, r.QuorumOK = trusted.validCosignatures(p.Checkpoint), trusted.checkQuorum(true, p.Checkpoint)
	r.QuorumTime = trusted.quorumTime(true, p.Checkpoint)
	if err := checkIncluded(p, entry, checkpoint); err != nil {
		r.Errors = append(r.Errors, "inclusion: "+err.Error())
		return r
	}
	r.InclusionOK, r.OK = true, true
	return r
}

func checkIncluded(p tlog.Proof, entry []byte, c tlog.Checkpoint) error {
	if err := tlog.CheckInclusion(p.Index, c.Size, tlog.LeafHash(entry), p.Hashes, c.Root); err != nil {
		return err
	}
	parsed, err := event.ParseEntry(entry)
	if err != nil {
		return err
	}
	if parsed.Seq != p.Index.Sequence() {
		return fmt.Errorf("entry and index: %w", verify.ErrMismatch)
	}
	return nil
}
