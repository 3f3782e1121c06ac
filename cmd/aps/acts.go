package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/verify/pack"
)

// maxActRows bounds the acts that are listed.
const maxActRows = 10_000

// maxRowVotes bounds the votes that are listed for an act.
const maxRowVotes = 100

// actRow is a listed act.
type actRow struct {
	pack.Act
	MoreVotes int `json:"more_votes,omitzero"` // that are not listed
}

// newActRow returns the row of an act, with a bounded number of votes.
func newActRow(a *pack.Act) actRow {
	row := actRow{Act: *a}
	if more := len(a.Votes) - maxRowVotes; more > 0 {
		row.Votes, row.MoreVotes = slices.Clone(a.Votes[:maxRowVotes]), more
	}
	return row
}

// actQuestion selects acts of a pack, and keeps them if they are to be listed.
type actQuestion struct {
	list       bool
	conditions []column.Condition
	rows       []actRow // at most maxActRows
}

// addCondition adds a condition, with the meaning of conditions of the service's lists of acts.
func (q *actQuestion) addCondition(text string) error {
	c, err := column.ParseCondition(text)
	if err != nil {
		return fmt.Errorf("--where %s: %s", textcheck.Printable(text), fault.Of(err).Message)
	}
	if q.conditions = append(q.conditions, c); len(q.conditions) > column.MaxConditions {
		return fmt.Errorf("--where may be given at most %d times", column.MaxConditions)
	}
	return nil
}

// count reports whether an act satisfies the conditions.
func (q *actQuestion) count(a *pack.Act) bool {
	for i := range q.conditions {
		if !q.conditions[i].Accepts(valueOf(a.Columns[q.conditions[i].Path])) {
			return false
		}
	}
	if q.list && len(q.rows) < maxActRows {
		q.rows = append(q.rows, newActRow(a))
	}
	return true
}

// valueOf returns the value of a pack's act in a column.
func valueOf(value any) column.Value {
	switch v := value.(type) {
	case float64:
		return column.Value{Kind: column.Number, Number: v}
	case string:
		return column.Value{Kind: column.Text, Text: v}
	}
	return column.Value{}
}

// checkAnswered returns an error if the pack can't answer the question.
func (q *actQuestion) checkAnswered(r *pack.Report) error {
	if (q.list || len(q.conditions) > 0) && r.Acts == nil {
		return errors.New("can't tell: the pack has no table of acts")
	}
	for i := range q.conditions {
		if !slices.Contains(r.Acts.Columns, q.conditions[i].Path) {
			return fmt.Errorf("can't tell: the pack has no column %s; its columns are: %s", textcheck.Printable(q.conditions[i].Path),
				strings.Join(r.Acts.Columns, ", "))
		}
	}
	return nil
}

// lines returns the lines about acts.
func (q *actQuestion) lines(r *pack.Report) []string {
	var lines []string
	for i := range q.conditions {
		lines = append(lines, "counted     acts with "+textcheck.Printable(q.conditions[i].String()))
	}
	lines = append(lines, r.ActLines()...)
	if r.Acts != nil && r.Acts.Receipts != nil {
		for _, e := range r.Acts.Receipts.Errors {
			lines = append(lines, "wrong       "+textcheck.Printable(e))
		}
	}
	for i := range q.rows {
		lines = append(lines, describeAct(&q.rows[i], r))
	}
	if q.list && r.Acts != nil && r.Acts.Count > uint64(len(q.rows)) {
		lines = append(lines, fmt.Sprintf("act         %d more are not listed", r.Acts.Count-uint64(len(q.rows))))
	}
	return lines
}

func describeAct(a *actRow, r *pack.Report) string {
	words := []string{a.ReceivedAt.Time().UTC().Format(time.DateTime), string(a.ToolName)}
	for _, name := range r.Acts.Columns {
		switch v := a.Columns[name].(type) {
		case float64:
			words = append(words, name+"="+strconv.FormatFloat(v, 'f', -1, 64))
		case string:
			words = append(words, name+"="+textcheck.Printable(v))
		}
	}
	words = append(words, a.Outcome)
	if a.Confirmed != nil {
		confirmed := fmt.Sprintf("confirmed by %s with status %d", textcheck.Printable(a.Confirmed.By), a.Confirmed.Status)
		if a.Confirmed.Approval == "" {
			confirmed += " without a grant"
		}
		words = append(words, confirmed)
	}
	var voters []string
	for _, v := range a.Votes {
		who := v.AccountID
		if at := slices.IndexFunc(r.Acts.Approvers, func(p pack.Approver) bool { return p.AccountID == v.AccountID }); at >= 0 {
			who = r.Acts.Approvers[at].Label()
		}
		voters = append(voters, v.Vote+" by "+who)
	}
	if a.MoreVotes > 0 {
		voters = append(voters, fmt.Sprintf("and %d more votes", a.MoreVotes))
	}
	if len(voters) > 0 {
		words = append(words, "("+strings.Join(voters, ", ")+")")
	}
	return fmt.Sprintf("act         %d  %s", a.LogIndex, strings.Join(words, "  "))
}
