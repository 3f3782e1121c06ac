package index

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Column is a member of payloads whose values of acts are indexed.
type Column struct {
	Path string   `json:"path"` // in the payload: names of members, separated by dots, and places such as [0]
	From id.Index `json:"from"` // the values of acts at or after this index
}

// The reasons why an event has no value in a column.
const (
	Missing   = "missing"
	OtherType = "other_type" // neither a number nor a text
	TooLong   = "too_long"
	Erased    = "erased"
)

// PayloadOf returns the payload of an envelope with exact numbers, as policies see it.
func PayloadOf(envelope []byte) []byte { return jcs.UntagPayload(memberOf(envelope, "payload")) }

// ReadValue returns the canonical JSON of a payload's value in a column, or nil and the reason why there is none.
func ReadValue(payload []byte, path string) (text []byte, reason string) {
	found := memberAt(payload, path)
	switch {
	case found == nil || string(found) == "null":
		return nil, Missing
	case found[0] == '-' || '0' <= found[0] && found[0] <= '9':
		return found, ""
	case found[0] != '"':
		return nil, OtherType
	}
	if decoded, _ := jcs.AppendDecoded(nil, found); len(decoded) > column.MaxText {
		return nil, TooLong
	}
	return found, ""
}

// memberAt returns the text at a path of canonical JSON, or nil if there is none.
func memberAt(value []byte, path string) []byte {
	for path != "" && len(value) > 0 {
		if path[0] != '[' {
			name := path
			if end := strings.IndexAny(path, ".["); end >= 0 {
				name = path[:end]
			}
			if value[0] != '{' {
				return nil
			}
			value, path = memberOf(value, name), strings.TrimPrefix(path[len(name):], ".")
			continue
		}
		digits, rest, _ := strings.Cut(path[1:], "]")
		n, err := strconv.Atoi(digits)
		if err != nil || value[0] != '[' {
			return nil
		}
		value, path = elementOf(value, n), strings.TrimPrefix(rest, ".")
	}
	return value
}

// elementOf returns an element of a canonical array, or nil if there is none.
func elementOf(array []byte, n int) []byte {
	for rest := array[1:]; ; n-- {
		switch end := valueEnd(rest); {
		case end == 0: // an empty array
			return nil
		case n == 0:
			return rest[:end]
		case rest[end] != ',':
			return nil
		default:
			rest = rest[end+1:]
		}
	}
}

// readCells returns the values of an event's columns, or nil if it has none.
func readCells(envelope []byte, columns []Column) (cells []column.Value) {
	if len(columns) == 0 || envelope == nil {
		return nil
	}
	payload := PayloadOf(envelope)
	for i := range columns {
		text, _ := ReadValue(payload, columns[i].Path)
		if text == nil {
			continue
		}
		if cells == nil {
			cells = make([]column.Value, len(columns))
		}
		cells[i] = column.ParseValue(text)
	}
	return cells
}

// chunkSet is a set of the events of a chunk.
type chunkSet [chunkEvents / 64]uint64

func (s *chunkSet) add(at id.Index)           { s[at%chunkEvents/64] |= 1 << (at % 64) }
func (s *chunkSet) contains(at id.Index) bool { return s[at%chunkEvents/64]&(1<<(at%64)) != 0 }

func (s *chunkSet) isEmpty() bool { return *s == chunkSet{} }

func (s *chunkSet) intersect(other *chunkSet) {
	for i := range s {
		s[i] &= other[i]
	}
}

// findValues returns the indexed events of a chunk that satisfy all conditions, of which there is at least one. Events that are erased in the
// tail may be among them.
func (x *Index) findValues(ctx context.Context, v *view, chunk uint64, conditions []column.Condition) (*chunkSet, error) {
	begin := id.Index(chunk * chunkEvents)
	if begin >= v.position {
		return new(chunkSet), nil
	}
	record, err := x.readRecord(ctx, v.tenant, kindValues, columnsKey(v.generation.Number, chunk))
	if err != nil {
		return nil, fmt.Errorf("read values: %w", err)
	}
	sets := make([]chunkSet, len(conditions))
	froms := make([]id.Index, len(conditions))
	for i := range conditions {
		froms[i] = v.columns[indexOfColumn(v.columns, conditions[i].Path)].From
	}
	var of []int // the conditions on the column
	err = visitValues(record, begin, func(path string) (wanted bool) {
		of = of[:0]
		for i := range conditions {
			if conditions[i].Path == path {
				of = append(of, i)
			}
		}
		return len(of) > 0
	}, func(at id.Index, value column.Value) {
		for _, i := range of {
			if froms[i] <= at && conditions[i].Accepts(value) {
				sets[i].add(at)
			}
		}
	})
	for i := range sets[1:] {
		sets[0].intersect(&sets[1+i])
	}
	return &sets[0], damaged(err)
}

// satisfies reports whether the event at an index of the tail satisfies all conditions.
func (v *view) satisfies(at id.Index, conditions []column.Condition) bool {
	cells := v.tail.cells[at-v.tail.begin]
	for i := range conditions {
		c := v.columns[indexOfColumn(v.columns, conditions[i].Path)]
		n := indexOfColumn(v.tail.columns, c.Path)
		if cells == nil || n < 0 || at < c.From || !conditions[i].Accepts(cells[n]) {
			return false
		}
	}
	return true
}
