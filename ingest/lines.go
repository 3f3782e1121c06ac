package ingest

import (
	"bytes"
	"fmt"

	"github.com/agentledger/agentledger/fault"
)

const batchPath = "/v1/ingest/events/batch"

// Bounds of a batch.
const (
	maxBatchBytes = 8 << 20
	maxBatchLines = 1000
)

// splitLines returns the lines of an NDJSON body (https://github.com/ndjson/ndjson-spec) that are not blank, without
// their LF. The last line needs none, and a CR before an LF is white space. It returns fault.TooLarge if there are more
// than maxBatchLines.
func splitLines(body []byte) ([][]byte, error) {
	lines := make([][]byte, 0, min(bytes.Count(body, []byte{'\n'})+1, maxBatchLines))
	for line := range bytes.SplitSeq(body, []byte{'\n'}) {
		if isBlankLine(line) {
			continue
		}
		if len(lines) == maxBatchLines {
			return nil, fault.New(fault.TooLarge, fmt.Sprintf("A batch has at most %d lines", maxBatchLines))
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// isBlankLine reports whether a line contains only JSON white space.
func isBlankLine(line []byte) bool {
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}
