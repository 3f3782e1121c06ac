package pack

import (
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

// addCoverage adds the comparison that a shown event of the service states. A statement in another form, as of a later version, is not listed.
func (c *checker) addCoverage(e *event.Envelope, at id.Index) {
	stated := Coverage{}
	if len(c.report.Coverage) < MaxCoverage && json.Unmarshal(e.Payload, &stated) == nil && stated.FileSHA256 != (id.Hash{}) {
		stated.LogIndex = at
		c.report.Coverage = append(c.report.Coverage, stated)
	}
}
