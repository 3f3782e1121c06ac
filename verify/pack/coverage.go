package pack

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// Coverage is a comparison of a tool's own record of its calls with the log, as a shown event of the service states it. That the service stated
// it is proved; the comparison itself is the operator's word.
type Coverage struct {
	LogIndex   id.Index       `json:"log_index"`   // of the event
	FileSHA256 id.Hash        `json:"file_sha256"` // of the record, which no pack contains
	From       id.Instant     `json:"from"`
	To         id.Instant     `json:"to"`
	Covered    bool           `json:"covered"`
	Counts     CoverageCounts `json:"counts"`
}

// CoverageCounts are the numbers of a comparison.
type CoverageCounts struct {
	Calls       uint64 `json:"calls"`
	Outside     uint64 `json:"outside"`
	Matched     uint64 `json:"matched"`
	Unpermitted uint64 `json:"unpermitted"`
	Missing     uint64 `json:"missing"`
	Extra       uint64 `json:"extra"`
}

// String returns the line about a comparison. The verifiers in other languages use the same words.
func (c *Coverage) String() string {
	word := "not covered"
	if c.Covered {
		word = "covered"
	}
	n := &c.Counts
	return fmt.Sprintf("compared    %d: calls from %s until before %s %s, as the service states: %d of %d matched, %d unpermitted, %d missing, %d extra; record %s",
		c.LogIndex, c.From, c.To, word, n.Matched, n.Calls-min(n.Outside, n.Calls), n.Unpermitted, n.Missing, n.Extra, c.FileSHA256)
}

// ParseCoverage parses the comparison that an event of the service at a log index states. It reports false for another event, and for a
// statement in another form, such as that of a later version.
func ParseCoverage(e *event.Envelope, at id.Index) (Coverage, bool) {
	type counts struct {
		Calls       *uint64 `json:"calls"`
		Outside     *uint64 `json:"outside"`
		Matched     *uint64 `json:"matched"`
		Unpermitted *uint64 `json:"unpermitted"`
		Missing     *uint64 `json:"missing"`
		Extra       *uint64 `json:"extra"`
	}
	var stated struct {
		FileSHA256 string `json:"file_sha256"`
		From       string `json:"from"`
		To         string `json:"to"`
		Covered    *bool  `json:"covered"`
		Counts     counts `json:"counts"`
	}
	c := Coverage{LogIndex: at}
	if e.ActionKind != coverageKind || json.Unmarshal(e.Payload, &stated) != nil || stated.Covered == nil {
		return c, false
	}
	var wrong [3]error
	c.FileSHA256, wrong[0] = id.ParseHash(stated.FileSHA256)
	c.From, wrong[1] = id.ParseInstant(stated.From)
	c.To, wrong[2] = id.ParseInstant(stated.To)
	c.Covered = *stated.Covered
	n := &stated.Counts
	for i, to := range []*uint64{&c.Counts.Calls, &c.Counts.Outside, &c.Counts.Matched, &c.Counts.Unpermitted, &c.Counts.Missing, &c.Counts.Extra} {
		from := []*uint64{n.Calls, n.Outside, n.Matched, n.Unpermitted, n.Missing, n.Extra}[i]
		if from == nil || *from > event.MaxSeq {
			return c, false
		}
		*to = *from
	}
	return c, errors.Join(wrong[:]...) == nil && c.FileSHA256 != (id.Hash{})
}

// addCoverage adds the comparison that a shown event of the service states, if it does.
func (c *checker) addCoverage(e *event.Envelope, at id.Index) {
	if stated, is := ParseCoverage(e, at); is && len(c.report.Coverage) < MaxCoverage {
		c.report.Coverage = append(c.report.Coverage, stated)
	}
}
