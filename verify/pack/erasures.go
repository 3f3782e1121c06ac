package pack

import (
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// coverage tracks which events of a range are covered by erasures. Its slices are nil if there are
// no erasures.
type coverage struct {
	within id.Range
	steps  []int32  // steps[i]: number of spans that cover event i, minus the number that cover the event before
	shown  []uint32 // shown[i]: number of shown agent events before i

	at    int   // events before at were queried
	depth int32 // number of spans that cover the event before at
}

func newCoverage(within id.Range) coverage {
	n := within.Len() + 1
	return coverage{within: within, steps: make([]int32, n), shown: make([]uint32, n)}
}

// clip returns the part of s in the range, as offsets.
func (v *coverage) clip(s id.Range) (begin, end int) {
	s.Begin, s.End = max(s.Begin, v.within.Begin), min(s.End, v.within.End)
	if s.Begin >= s.End {
		return 0, 0
	}
	return int(s.Begin - v.within.Begin), int(s.End - v.within.Begin)
}

func (v *coverage) cover(s id.Range) {
	if begin, end := v.clip(s); begin < end {
		v.steps[begin]++
		v.steps[end]--
	}
}

// restart allows calls of covers for the first event again.
func (v *coverage) restart() { v.at, v.depth = 0, 0 }

// covers reports whether a span covers an event. Calls must be in ascending order.
func (v *coverage) covers(i id.Index) bool {
	if v.steps == nil {
		return false
	}
	for to := int(i - v.within.Begin); v.at <= to; v.at++ {
		v.depth += v.steps[v.at]
	}
	return v.depth > 0
}

// show records that an event is shown.
func (v *coverage) show(i id.Index, signer event.Signer) {
	if v.shown != nil && signer != event.SignerSystem {
		v.shown[i-v.within.Begin+1] = 1
	}
}

// sumShown must be called once, after the last call of show.
func (v *coverage) sumShown() {
	for i := 1; i < len(v.shown); i++ {
		v.shown[i] += v.shown[i-1]
	}
}

// coversShown reports whether a span contains a shown event.
func (v *coverage) coversShown(s id.Range) bool {
	begin, end := v.clip(s)
	return v.shown[end] > v.shown[begin]
}

// readErasures checks the statements about erased envelopes.
func (c *checker) readErasures() error {
	var last uint64
	ranges := 0
	for line, err := range c.files.lines(FileErasures) {
		if err != nil {
			return err
		}
		if c.coverage.steps == nil {
			c.coverage = newCoverage(id.Range{Begin: c.manifest.Begin, End: c.manifest.End})
		}
		sequence, spans, err := c.checkErasure(line)
		if err == nil && sequence <= last {
			err = fmt.Errorf("order: %w", verify.ErrMismatch)
		}
		c.found.Erasures++
		if ranges += len(spans); err == nil && (c.found.Erasures > MaxLines || ranges > MaxRanges) {
			err = fmt.Errorf("too many: %w", verify.ErrMalformed)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", c.found.Erasures, err)
		}
		last = sequence
		for _, s := range spans {
			c.coverage.cover(s)
		}
	}
	return nil
}

// checkErasure checks one statement and returns its sequence number and the ranges that it erased.
func (c *checker) checkErasure(line []byte) (sequence uint64, erased []id.Range, err error) {
	d, at, err := c.checkProven(line, event.KindErasure)
	if err != nil {
		return 0, nil, err
	}
	erased, err = parseErased(d.Envelope)
	if err == nil && erased[len(erased)-1].End > at {
		err = fmt.Errorf("ranges and the statement's own index: %w", verify.ErrMismatch)
	}
	return at.Sequence(), erased, err
}

// checkProven checks that the checkpoint proves a statement of a kind, and returns the statement
// with its index.
func (c *checker) checkProven(line []byte, kind string) (d verify.Documents, at id.Index, err error) {
	e, err := parseExact[Erasure](line)
	if err != nil {
		return d, 0, err
	}
	entry, err := event.ParseEntry([]byte(e.Entry))
	if err != nil {
		return d, 0, fmt.Errorf("entry: %w", verify.ErrMalformed)
	}
	r := &d.Record
	if d.Record, err = event.ParseRecord([]byte(e.Record)); err != nil {
		return d, 0, fmt.Errorf("record: %w", verify.ErrMalformed)
	}
	if entry.Record != event.RecordHash([]byte(e.Record)) || entry.Seq != r.SequenceNum ||
		r.Origin != c.manifest.Origin || r.OrganizationID != c.manifest.OrganizationID {
		return d, 0, fmt.Errorf("entry and record: %w", verify.ErrMismatch)
	}
	at = id.Index(entry.Seq - 1)
	if err := tlog.CheckInclusion(at, c.checkpoint.Size, entry.Hash(), e.Proof, c.checkpoint.Root); err != nil {
		return d, 0, err
	}
	return d, at, c.checkStatement(&d, e.Envelope, kind)
}

// parseErased returns the ranges that a statement erased.
func parseErased(e *event.Envelope) ([]id.Range, error) {
	statement, err := event.ParseErasure(e)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", verify.ErrMalformed, err)
	}
	return statement.Ranges, nil
}

// checkErasuresUsed checks that each statement erased the envelope of a shown event.
func (c *checker) checkErasuresUsed() error {
	c.coverage.sumShown()
	for line, err := range c.files.lines(FileErasures) {
		if err != nil {
			return err
		}
		used := false
		e, err := parseExact[Erasure](line)
		if err != nil {
			return err
		}
		envelope, err := event.Parse([]byte(e.Envelope), event.Options{MaxBytes: len(e.Envelope), Server: true})
		if err != nil {
			return err
		}
		spans, err := parseErased(envelope)
		if err != nil {
			return err
		}
		for _, s := range spans {
			used = used || c.coverage.coversShown(s)
		}
		if !used {
			return fmt.Errorf("an erasure of no shown event: %w", verify.ErrMismatch)
		}
	}
	return nil
}

// checkStatement checks that an envelope is one of the service's own, is of a kind and belongs to
// the record.
func (c *checker) checkStatement(d *verify.Documents, text, kind string) error {
	if err := parseEnvelope(d, text); err != nil {
		return err
	}
	if d.Record.Signer != event.SignerSystem || d.Envelope.ActionKind != kind {
		return fmt.Errorf("not a statement of kind %s: %w", kind, verify.ErrMismatch)
	}
	return c.checkSignature(d)
}
