package coverage

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"net/url"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
)

// newAct returns an act of the service's list. Without its identifiers, those of payloads are "".
func newAct(a *wire.Act) Act {
	known := cmp.Or(a.Identifiers, &wire.ActIdentifiers{})
	return Act{Index: a.Index, Tool: string(a.Tool), Agent: string(a.Agent), Time: a.ReceivedAt, Outcome: a.Outcome,
		Permitted: Permits(a.Outcome, a.Decision, a.Approval != ""), InputDigest: string(known.InputDigest),
		Traces: [2]string{string(a.Trace), string(a.Caller)},
		IDs: IDs{eventID: string(a.ID), grantNonce: string(known.GrantNonce), approvalID: string(a.Approval), callID: string(known.CallID),
			actionDigest: string(known.ActionDigest)}}
}

// Acts are acts that a comparison reads.
type Acts struct {
	List        []Act
	IndexedTo   id.Index // acts before this log index are complete
	Predecessor bool     // the organization has an earlier log, whose acts are not read
}

// ReadActs reads the acts that may be of calls in the range, of these tools or, if pattern is not empty, of the tools that match it. read
// returns a page of the list of acts.
func (o *Options) ReadActs(tools map[string]bool, pattern string, read func(url.Values) (wire.Acts, error)) (Acts, error) {
	begin := o.From - o.Tolerance
	q := url.Values{"order": {"oldest"}, "from": {max(1, begin-ApprovalTime).String()}, "to": {(o.To + o.Tolerance).String()}}
	every := pattern != ""
	if len(tools) == 1 && !every {
		for tool := range tools {
			if event.ValidTool(tool) {
				pattern = tool
			}
		}
	}
	if pattern != "" {
		q.Set("tool", pattern)
	}
	for acts := (Acts{}); ; {
		page, err := read(q)
		if err != nil {
			return Acts{}, err
		}
		if !q.Has("after") {
			acts.IndexedTo, acts.Predecessor = page.IndexedTo, page.Predecessor != nil
		}
		for i := range page.Acts {
			if a := &page.Acts[i]; (every || tools[string(a.Tool)]) && (a.ReceivedAt >= begin || a.Approval != "") {
				acts.List = append(acts.List, newAct(a))
			}
		}
		if len(acts.List) > MaxActs {
			return Acts{}, fmt.Errorf("the range has more than %d acts: compare a part of it", MaxActs)
		}
		if page.Next == "" {
			return acts, nil
		}
		q.Set("after", string(page.Next))
	}
}

// Tools returns the tools that a record names.
func (r *Record) Tools() map[string]bool {
	tools := make(map[string]bool)
	for i := range r.Calls {
		tools[r.Calls[i].Tool] = true
	}
	return tools
}

// Report is a result for readers.
type Report struct {
	Stated      *id.Index      `json:"log_index,omitzero"` // of the event that states the result, if one does
	SHA256      id.Hash        `json:"file_sha256"`
	From        id.Instant     `json:"from"`
	To          id.Instant     `json:"to"`
	ToleranceMS int64          `json:"tolerance_ms"`
	Strict      bool           `json:"strict"`
	Covered     bool           `json:"covered"` // false without calls in the range
	Counts      Counts         `json:"counts"`
	ByRule      map[string]int `json:"by_rule"`     // of matched calls
	IndexedTo   id.Index       `json:"indexed_to"`  // acts before this log index were compared
	Identifiers bool           `json:"identifiers"` // the acts had those of payloads
	Predecessor bool           `json:"predecessor"` // the organization has an earlier log, whose acts were not compared
	Matched     []Row          `json:"matched,omitzero"`
	Unpermitted []Row          `json:"unpermitted"`
	Missing     []Row          `json:"missing"`
	Extra       []Row          `json:"extra"`
}

// Counts are the numbers of a result.
type Counts struct {
	Calls       int `json:"calls"`   // of the file
	Skipped     int `json:"skipped"` // lines, rows or spans of the file that are no calls
	Outside     int `json:"outside"`
	Matched     int `json:"matched"`
	Unknown     int `json:"unknown_identifiers"` // of matched calls: they have an identifier, and were matched by none
	Unpermitted int `json:"unpermitted"`
	Missing     int `json:"missing"`
	Acts        int `json:"acts"` // that were compared
	Extra       int `json:"extra"`
	NotMade     int `json:"not_made"`
}

// Row is a call, an act, or both.
type Row struct {
	Line   int         `json:"line,omitzero"` // of a call
	Time   *id.Instant `json:"time,omitzero"` // of a call, or else of an act
	Tool   string      `json:"tool"`
	Agent  string      `json:"agent_id,omitzero"`
	By     string      `json:"by,omitzero"`     // the rule
	Reason string      `json:"reason,omitzero"` // why the call is missing, or the outcome of the act
	Index  *id.Index   `json:"log_index,omitzero"`
	Event  id.Event    `json:"event_id,omitzero"`
}

// NewReport describes the result of Compare for the calls of a file.
func NewReport(file []byte, record *Record, acts *Acts, o Options, r *Result) Report {
	report := Report{SHA256: sha256.Sum256(file), From: o.From, To: o.To, ToleranceMS: int64(o.Tolerance), Strict: o.Strict, Covered: r.Covered() && len(record.Calls) > r.Outside,
		Counts: Counts{Calls: len(record.Calls), Skipped: record.Skipped, Outside: r.Outside, Matched: len(r.Matched), Unpermitted: len(r.Unpermitted),
			Missing: len(r.Missing), Acts: len(acts.List), Extra: len(r.Extra), NotMade: r.NotMade},
		ByRule: make(map[string]int), IndexedTo: acts.IndexedTo, Predecessor: acts.Predecessor, Matched: []Row{}, Unpermitted: []Row{}, Missing: []Row{}, Extra: []Row{}}
	for rule, n := range r.ByRule() {
		if n > 0 {
			report.ByRule[Rule(rule).String()] = n
		}
	}
	row := func(call, act int, by, reason string) (row Row) {
		if row.By, row.Reason = by, reason; act >= 0 {
			a := &acts.List[act]
			row.Time, row.Tool, row.Agent, row.Index, row.Event = &a.Time, a.Tool, a.Agent, &a.Index, id.Event(a.IDs[eventID])
		}
		if call >= 0 {
			made := &record.Calls[call]
			row.Line, row.Tool, row.Agent, row.Time = made.Line, made.Tool, cmp.Or(made.Agent, row.Agent), nil
			if made.Time != 0 {
				row.Time = &made.Time
			}
		}
		return row
	}
	for _, m := range r.Matched {
		report.Matched = append(report.Matched, row(m.Call, m.Act, m.By.String(), ""))
		if record.Calls[m.Call].IDs != (IDs{}) && m.By >= ByInput {
			report.Counts.Unknown++
		}
	}
	for _, m := range r.Unpermitted {
		report.Unpermitted = append(report.Unpermitted, row(m.Call, m.Act, m.By.String(), acts.List[m.Act].Outcome))
	}
	for _, m := range r.Missing {
		report.Missing = append(report.Missing, row(m.Call, m.Act, "", string(m.Reason)))
	}
	for _, a := range r.Extra {
		report.Extra = append(report.Extra, row(-1, a, "", acts.List[a].Outcome))
	}
	return report
}

// Weak returns how many calls were matched by time alone.
func (r *Report) Weak() int { return r.ByRule[ByTimeAgent.String()] + r.ByRule[ByTime.String()] }
