package pack

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// span is a range [begin, end) of log indices.
type span struct{ begin, end id.Index }

// coverage tells which events of a range erasures cover. Its slices are nil when there is no erasure.
type coverage struct {
	within span
	steps  []int32  // steps[i] is how many more spans cover event i than the one before
	shown  []uint32 // shown[i] is how many events before i are shown and no service's own

	at    int   // events before it were asked for
	depth int32 // spans that cover the event before at
}

func newCoverage(within span) coverage {
	n := within.end - within.begin + 1
	return coverage{within: within, steps: make([]int32, n), shown: make([]uint32, n)}
}

// clip returns the part of s in the range, as offsets.
func (v *coverage) clip(s span) (begin, end int) {
	s.begin, s.end = max(s.begin, v.within.begin), min(s.end, v.within.end)
	if s.begin >= s.end {
		return 0, 0
	}
	return int(s.begin - v.within.begin), int(s.end - v.within.begin)
}

func (v *coverage) cover(s span) {
	if begin, end := v.clip(s); begin < end {
		v.steps[begin]++
		v.steps[end]--
	}
}

// covers reports whether a span covers an event. It is asked in ascending order.
func (v *coverage) covers(i id.Index) bool {
	if v.steps == nil {
		return false
	}
	for to := int(i - v.within.begin); v.at <= to; v.at++ {
		v.depth += v.steps[v.at]
	}
	return v.depth > 0
}

// show notes that an event is shown.
func (v *coverage) show(i id.Index, signer event.Signer) {
	if v.shown != nil && signer != event.SignerSystem {
		v.shown[i-v.within.begin+1] = 1
	}
}

// sumShown is called once, after the last call of show.
func (v *coverage) sumShown() {
	for i := 1; i < len(v.shown); i++ {
		v.shown[i] += v.shown[i-1]
	}
}

// coversShown reports whether a span has an event that is shown.
func (v *coverage) coversShown(s span) bool {
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
			c.coverage = newCoverage(span{c.manifest.Begin, c.manifest.End})
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

// checkErasure checks one statement, and returns its sequence number and what it erased.
func (c *checker) checkErasure(line []byte) (sequence uint64, erased []span, err error) {
	e, err := parseExact[Erasure](line)
	if err != nil {
		return 0, nil, err
	}
	entry, err := event.ParseEntry([]byte(e.Entry))
	if err != nil {
		return 0, nil, fmt.Errorf("entry: %w", verify.ErrMalformed)
	}
	r, err := event.ParseRecord([]byte(e.Record))
	if err != nil {
		return 0, nil, fmt.Errorf("record: %w", verify.ErrMalformed)
	}
	if entry.Record != event.RecordHash([]byte(e.Record)) || entry.Seq != r.SequenceNum ||
		r.Origin != c.manifest.Origin || r.OrganizationID != c.manifest.OrganizationID {
		return 0, nil, fmt.Errorf("entry and record: %w", verify.ErrMismatch)
	}
	err = tlog.CheckInclusion(id.Index(entry.Seq-1), c.checkpoint.Size, entry.Hash(), e.Proof, c.checkpoint.Root)
	if err != nil {
		return 0, nil, err
	}
	envelope, err := c.checkStatement(&r, e.Envelope, erasureKind)
	if err != nil {
		return 0, nil, err
	}
	erased, err = parseErased(envelope.Payload)
	return entry.Seq, erased, err
}

// parseErased reads what a statement erased.
func parseErased(payload []byte) ([]span, error) {
	var said struct {
		Ranges [][2]id.Index `json:"ranges"`
	}
	if err := json.Unmarshal(payload, &said); err != nil {
		return nil, fmt.Errorf("ranges: %w", verify.ErrMalformed)
	}
	spans := make([]span, len(said.Ranges))
	for i, r := range said.Ranges {
		spans[i] = span{r[0], r[1]}
	}
	return spans, nil
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
		envelope, err := verify.ParseEnvelope(e.Envelope)
		if err != nil {
			return err
		}
		spans, err := parseErased(envelope.Payload)
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

// checkStatement checks that an envelope is the service's own, of a kind, and the record's.
func (c *checker) checkStatement(r *event.Record, text, kind string) (*event.Envelope, error) {
	e, err := parseEnvelopeOf(r, []byte(text))
	if err != nil {
		return nil, err
	}
	if r.Signer != event.SignerSystem || e.ActionKind != kind {
		return nil, fmt.Errorf("not a statement of kind %s: %w", kind, verify.ErrMismatch)
	}
	return e, c.checkSignature(r, e)
}
