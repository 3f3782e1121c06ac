package packacts

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Maximum sizes in a line, in bytes: of a column's value, whose text may have escapes of six bytes, of a vote with its comma,
// of the represented account in it, and of what an act may get from other events: the status and ID of its approval, its result and its outcome.
const (
	maxValue = 6*column.MaxText + 2
	maxVote  = len(`{"account_id":"","vote":"approve"},`) + maxID
	maxFor   = len(`"deputy_for":"",`) + maxID
	maxAdded = len(`"cancelled""cancelled""`) + maxID + 20
	maxID    = 128 // of event.ValidEvent
)

// Line is a line of acts.ndjson. It is valid until the next call of Table.Line.
type Line struct {
	Index     id.Index
	Record    *event.Record
	Envelope  *event.Envelope // nil if it is not in the pack
	Outcome   Outcome
	Approval  string // "" if none
	Status    Status // of Approval
	Votes     []Vote
	Result    id.Index // if HasResult
	HasResult bool
	Columns   []Column // in ascending order of their names
}

// Column is the value of a column of an act.
type Column struct {
	Name  string
	Value []byte // canonical JSON: a number, a string or null
}

// Line returns the line of the event at an index, and whether the event is an act. It must be called after Join with
// the events that were added, in the order of the log.
func (t *Table) Line(at id.Index, r *event.Record, e *event.Envelope) (line Line, is bool) {
	if t.at >= len(t.acts) || t.acts[t.at].at != at {
		return line, false
	}
	a := &t.acts[t.at]
	t.at++
	line = Line{Index: at, Record: r, Envelope: e, Outcome: t.outcome(a), Status: t.status(a), Result: a.result, HasResult: a.hasResult}
	switch {
	case a.approval == ownApproval:
		line.Approval = r.Policy.ApprovalID
	case a.approval >= 0:
		line.Approval, line.Votes = t.approvals[a.approval].name, t.approvals[a.approval].votes
	}
	line.Columns = t.columnValues(e)
	return line, true
}

// maxLine returns a maximum of the size of the line of an act, without votes. No two columns have the same value of a payload.
func (t *Table) maxLine(at id.Index, r *event.Record, e *event.Envelope) uint64 {
	line := Line{Index: at, Record: r, Envelope: e}
	n := len(line.AppendText(nil)) + len("\n") + maxAdded
	for _, name := range t.columns {
		n += len(name) + len(`"":null,`)
	}
	if e != nil {
		n += min(len(e.Payload), len(t.columns)*maxValue)
	}
	return uint64(n)
}

// Voters returns the votes that approved, or that denied, the first of each account.
func (l *Line) Voters(approve bool) (votes []Vote) {
	seen := make(map[string]bool)
	for _, v := range l.Votes {
		if v.Approve == approve && !seen[v.Account] {
			seen[v.Account] = true
			votes = append(votes, v)
		}
	}
	return votes
}

// step is a node of the tree of the columns' paths.
type step struct {
	column  int              // position of the column that ends here, or -1
	members map[string]*step // of an object
	places  map[int]*step    // of an array
}

// newSteps returns the tree of columns, which must be valid.
func newSteps(columns []string) *step {
	root := &step{column: -1}
	for i, name := range columns {
		at := root
		for segment := range strings.SplitSeq(name, ".") {
			member, rest, _ := strings.Cut(segment, "[")
			at = child(&at.members, member)
			for place := range strings.SplitSeq(rest, "[") {
				if n, err := strconv.Atoi(strings.TrimSuffix(place, "]")); err == nil {
					at = child(&at.places, n)
				}
			}
		}
		at.column = i
	}
	return root
}

func child[K comparable](of *map[K]*step, key K) *step {
	if *of == nil {
		*of = make(map[K]*step)
	}
	if (*of)[key] == nil {
		(*of)[key] = &step{column: -1}
	}
	return (*of)[key]
}

// columnValues returns the values of the columns in the payload of an envelope, which may be nil. It reads the payload once.
func (t *Table) columnValues(e *event.Envelope) []Column {
	values := make([]Column, len(t.columns))
	for i, name := range t.columns {
		values[i] = Column{name, []byte("null")}
	}
	if e != nil && len(t.columns) > 0 {
		in := jsontext.NewDecoder(bytes.NewReader(e.Payload), jsontext.AllowDuplicateNames(true))
		_ = t.paths.read(in, values) // the payload was parsed before
	}
	return values
}

// read reads the next value, and stores those of the columns in it. s is nil if no column leads there.
func (s *step) read(in *jsontext.Decoder, values []Column) error {
	kind := in.PeekKind()
	switch {
	case s != nil && kind == '{' && s.members != nil:
		if _, err := in.ReadToken(); err != nil {
			return err
		}
		for in.PeekKind() == '"' {
			name, err := in.ReadToken()
			if err == nil {
				err = s.members[name.String()].read(in, values)
			}
			if err != nil {
				return err
			}
		}
	case s != nil && kind == '[' && s.places != nil:
		if _, err := in.ReadToken(); err != nil {
			return err
		}
		for n := 0; in.PeekKind() != ']'; n++ {
			if err := s.places[n].read(in, values); err != nil {
				return err
			}
		}
	case s != nil && s.column >= 0 && (kind == '0' || kind == '"'):
		value, err := in.ReadValue()
		if err != nil {
			return err
		}
		if text, is := jcs.AppendDecoded(nil, value); !is || len(text) <= column.MaxText {
			values[s.column].Value = bytes.Clone(value)
		}
		return nil
	default:
		return in.SkipValue()
	}
	_, err := in.ReadToken()
	return err
}

// AppendText appends the text of the line, without its line end.
func (l *Line) AppendText(b []byte) []byte {
	text := func(name, value string) { b = jcs.AppendString(append(b, name...), value) }
	textOrNull := func(name, value string) {
		if value == "" {
			b = append(append(b, name...), "null"...)
			return
		}
		text(name, value)
	}
	number := func(name string, value uint64, is bool) {
		b = append(b, name...)
		if !is {
			b = append(b, "null"...)
			return
		}
		b = strconv.AppendUint(b, value, 10)
	}
	r := l.Record
	principal, tool := "", ""
	if l.Envelope != nil {
		principal, tool = l.Envelope.ActorPrincipal, string(l.Envelope.Tool)
	}
	textOrNull(`{"actor_principal":`, principal)
	text(`,"agent_id":`, string(r.AgentID))
	textOrNull(`,"approval_id":`, l.Approval)
	textOrNull(`,"approval_status":`, string(l.Status))
	b = append(b, `,"columns":{`...)
	for i, c := range l.Columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(append(b, '"'), c.Name...), `":`...), c.Value...)
	}
	text(`},"decision":`, r.Policy.Effective.String())
	text(`,"event_id":`, string(r.EventID))
	number(`,"log_index":`, uint64(l.Index), true)
	text(`,"outcome":`, string(l.Outcome))
	textOrNull(`,"policy_id":`, r.Policy.PolicyID)
	number(`,"policy_version":`, r.Policy.PolicyVersion, r.Policy.PolicyVersion != 0)
	text(`,"received_at":`, r.ReceivedAt.String())
	number(`,"result_log_index":`, uint64(l.Result), l.HasResult)
	textOrNull(`,"rule_id":`, r.Policy.RuleID)
	textOrNull(`,"tool_name":`, tool)
	b = append(b, `,"votes":[`...)
	for i, v := range l.Votes {
		if i > 0 {
			b = append(b, ',')
		}
		text(`{"account_id":`, v.Account)
		if v.DeputyFor != "" {
			text(`,"deputy_for":`, v.DeputyFor)
		}
		word := "deny"
		if v.Approve {
			word = "approve"
		}
		text(`,"vote":`, word)
		b = append(b, '}')
	}
	return append(b, "]}"...)
}
