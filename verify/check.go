package verify

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/agentledger/agentledger/event"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// errUndisclosed means that a verdict needs a part that is not disclosed.
var errUndisclosed = errors.New("not disclosed")

// Check checks a bundle of version 1. It never fails: the report contains the errors.
//
// Unchecked lists members of the bundle that no verdict covers, so a change of them goes unnoticed.
// Names record.* are statements of the record that the log commits to but only the operator vouches
// for. Names "checkpoint: …" are signature lines of the checkpoint by unknown keys.
func Check(b *Bundle, o Options) Report { return (&checker{bundle: b, options: o}).checkBundle() }

func (c *checker) checkBundle() Report {
	c.parseParts()
	r := &c.report
	r.CheckedAt, r.TreeSize, r.Cosignatures = c.options.CheckedAt, c.checkpoint.Size, c.cosignatures()
	r.Errors = []string{}
	r.InclusionOK = c.recordVerdict("inclusion", c.checkInclusion())
	r.CheckpointOK = c.recordVerdict("checkpoint", c.checkCheckpoint())
	r.ChainOK = c.recordVerdict("chain", c.checkChain())
	r.RecordOK = c.recordDisclosed("record", c.checkRecord())
	r.SignatureOK = c.recordDisclosed("signature", c.checkSignature())
	r.EnvelopeOK = c.recordDisclosed("envelope", c.checkEnvelope())
	r.DirectoryOK = c.recordDisclosed("directory", c.checkDirectory())
	r.OK = len(r.Errors) == 0
	r.Unchecked = c.listUnchecked()
	return *r
}

// checker is one run of Check: the parsed parts of the bundle, each with the error if it is missing
// or malformed.
type checker struct {
	bundle  *Bundle
	options Options
	report  Report

	entry         event.Entry
	entryErr      error
	checkpoint    tlog.Checkpoint // the content of the note; checkCheckpoint checks its signature
	checkpointErr error
	note          tlog.Note // with all its lines; zero if it is malformed
	noteErr       error
	vouched       []tlog.WitnessKey // witnesses whose cosignatures verify
	key           tlog.VerifierKey  // the key that counts; zero until it is selected
	record        event.Record
	recordErr     error // errUndisclosed if there is no record
	envelope      *event.Envelope
	envelopeErr   error    // errUndisclosed if there is no envelope
	directory     *checker // of the second proof's bundle; nil if there is none
}

// parseParts parses the texts of the bundle.
func (c *checker) parseParts() {
	b := c.bundle
	if c.entry, c.entryErr = event.ParseEntry([]byte(b.Entry)); c.entryErr != nil {
		c.entryErr = fmt.Errorf("entry: %w", ErrMalformed)
	}
	if c.note, c.noteErr = tlog.ParseNote([]byte(b.Checkpoint)); c.noteErr != nil {
		c.checkpointErr = fmt.Errorf("read checkpoint: %w", c.noteErr)
	} else {
		c.checkpoint, c.checkpointErr = c.note.ReadCheckpoint()
	}
	c.recordErr, c.envelopeErr = errUndisclosed, errUndisclosed
	if b.Record != nil {
		if c.record, c.recordErr = event.ParseRecord([]byte(*b.Record)); c.recordErr != nil {
			c.recordErr = fmt.Errorf("not the exact canonical form: %w", ErrMalformed)
		}
	}
	if b.Envelope != nil {
		c.envelope, c.envelopeErr = readEnvelope(*b.Envelope)
	}
}

// cosignatures returns the valid cosignatures by the given witnesses.
func (c *checker) cosignatures() []Cosignature {
	all := []Cosignature{}
	if c.checkpointErr != nil {
		return all
	}
	for _, w := range c.options.Witnesses {
		if at, err := w.Cosigned(c.note); err == nil {
			ahead := c.options.CheckedAt != 0 && trust.IsAhead(at, c.options.CheckedAt)
			all = append(all, Cosignature{Name: w.Name(), Time: at, InFuture: ahead})
			c.vouched = append(c.vouched, w)
		}
	}
	return all
}

// readEnvelope parses an envelope in canonical form. The limit of the service that accepted it is
// unknown, so its own length is the limit.
func readEnvelope(text string) (*event.Envelope, error) {
	e, err := event.Parse([]byte(text), event.Options{MaxBytes: len(text), Server: true})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if string(e.Canonical) != text {
		return nil, fmt.Errorf("not the exact canonical form: %w", ErrMalformed)
	}
	return e, nil
}

// recordVerdict adds an error to the report, if any. It returns true if there is no error.
func (c *checker) recordVerdict(step string, err error) bool {
	if err != nil {
		c.report.Errors = append(c.report.Errors, step+": "+err.Error())
	}
	return err == nil
}

// recordDisclosed is recordVerdict for a part that may be undisclosed, in which case it returns
// nil.
func (c *checker) recordDisclosed(step string, err error) *bool {
	if errors.Is(err, errUndisclosed) {
		return nil
	}
	ok := c.recordVerdict(step, err)
	return &ok
}

// listUnchecked lists the members that no verdict covers.
func (c *checker) listUnchecked() []string {
	b, names := c.bundle, []string{"organization_slug", "disclosure"}
	add := func(name string, when bool) {
		if when {
			names = append(names, name)
		}
	}
	covered := c.report.RecordOK != nil && *c.report.RecordOK
	add("organization_id", !covered)
	add("event_id", !covered)
	add("log_key", c.report.LogKeySource == KeyFromBundle || len(b.LogKeys) > 0 && !c.options.isGivenKey(b.LogKey))
	add("log_keys", slices.ContainsFunc(b.LogKeys, func(k string) bool { return !c.options.isGivenKey(k) }))
	for _, s := range c.note.Signatures {
		vouched := slices.ContainsFunc(c.vouched, func(k tlog.WitnessKey) bool { return k.Matches(s) })
		add("checkpoint: "+sanitizeName(s.Name), !vouched && (s.Name != c.key.Name() || s.KeyHash != c.key.Hash()))
	}
	for _, name := range []string{"record.public_key", "record.custody", "record.received_at", "record.policy"} {
		add(name, covered)
	}
	add("envelope.sig_value_b64", c.envelope != nil &&
		(c.recordErr != nil || c.envelope.SignatureB64 != c.record.SigValueB64))
	add("erased_at", b.ErasedAt != nil)
	if c.directory != nil {
		for _, name := range c.directory.report.Unchecked {
			add("directory.bundle."+name, true)
		}
	}
	add("verification", b.Verification != nil)
	add("operator_statement", b.OperatorStatement != nil)
	for _, name := range b.unknown {
		add(sanitizeName(name), true)
	}
	return names
}

// sanitizeName makes a name from a bundle safe to print: ASCII without control characters, at most
// 64 bytes.
func sanitizeName(name string) string {
	quoted := strconv.QuoteToASCII(name[:min(len(name), 64)])
	return quoted[1:min(len(quoted)-1, 65)]
}

// checkProof checks that p proves leaf at index in the tree of the bundle's checkpoint.
func (c *checker) checkProof(p Inclusion, index id.Index, leaf id.Hash) error {
	if c.checkpointErr != nil {
		return fmt.Errorf("checkpoint: %w", c.checkpointErr)
	}
	return checkInclusion(p, index, leaf, c.checkpoint)
}
