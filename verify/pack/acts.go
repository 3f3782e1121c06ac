package pack

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/packacts"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/verify"
)

// Act is a line of acts.ndjson.
type Act struct {
	LogIndex       id.Index       `json:"log_index"`
	EventID        id.Event       `json:"event_id"`
	ReceivedAt     id.Instant     `json:"received_at"`
	AgentID        id.Agent       `json:"agent_id"`
	ToolName       id.Tool        `json:"tool_name"`       // "" if the envelope is not in the pack
	ActorPrincipal string         `json:"actor_principal"` // "" if the envelope is not in the pack
	Outcome        string         `json:"outcome"`
	Decision       id.Decision    `json:"decision"`
	PolicyID       string         `json:"policy_id"`
	PolicyVersion  uint64         `json:"policy_version"`
	RuleID         string         `json:"rule_id"`
	ApprovalID     string         `json:"approval_id"`     // "" if there is none
	ApprovalStatus string         `json:"approval_status"` // "", waiting, approved, refused, expired or cancelled
	Votes          []ActVote      `json:"votes"`
	ResultLogIndex *id.Index      `json:"result_log_index"`
	Columns        map[string]any `json:"columns"` // float64, string or nil
	// Confirmed is what the tool states in its receipt. It is nil unless a key of Options.ToolKeys signed it for this act.
	Confirmed *verify.Confirmation `json:"confirmed,omitzero"`
}

// ActVote is a vote on the approval of an act.
type ActVote struct {
	AccountID string `json:"account_id"`
	DeputyFor string `json:"deputy_for,omitzero"` // the account in whose place a deputy voted, according to the operator
	Vote      string `json:"vote"`                // approve or deny
}

// Acts counts the acts of a pack by what became of them in the range.
type Acts struct {
	Count uint64 `json:"count"`
	// Columns are the names of the columns, as in the manifest.
	Columns []string `json:"columns"`
	// Outcomes are the numbers of acts by outcome, as docs/guides/acts.md names them, without those of which there are none.
	Outcomes map[string]uint64 `json:"outcomes"`
	// ApprovedDone counts the acts that are done and whose approval was given with a vote in the pack.
	ApprovedDone uint64 `json:"approved_done"`
	// RefusedDone counts the acts that are done although their approval was refused, or has expired or was cancelled.
	RefusedDone uint64 `json:"refused_done"`
	// Receipts counts the acts that tools confirm. It is nil if no act has a receipt and no key of a tool was given.
	Receipts *Receipts `json:"receipts,omitzero"`
	// Approvers are those of the first MaxApprovers accounts that voted on an act, ascending by account ID.
	Approvers []Approver `json:"approvers"`
}

// Approver is an account that voted on acts.
type Approver struct {
	AccountID string `json:"account_id"`
	Email     string `json:"email"`    // stated by the operator; "" if unknown
	Name      string `json:"name"`     // stated by the operator; "" if unknown
	Approved  uint64 `json:"approved"` // acts whose approval was given with the account's vote
	Refused   uint64 `json:"refused"`  // acts whose approval was refused by the account
}

// noActs is what a pack without acts.ndjson leaves open.
const noActs = "this pack has no table of acts, so no number in " + FileReport + " is checked"

// ActLines returns the printed lines about acts, which are the same in every verifier.
func (r *Report) ActLines() (lines []string) {
	a := r.Acts
	if a == nil {
		return []string{"acts        none: " + noActs}
	}
	var parts []string
	for _, o := range packacts.Outcomes() {
		if n := a.Outcomes[string(o)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	line := "acts        " + textcheck.Count(a.Count, "act")
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	if a.ApprovedDone > 0 {
		line += fmt.Sprintf("; %d approved and done", a.ApprovedDone)
	}
	if a.RefusedDone > 0 {
		line += fmt.Sprintf("; %d done without the approval", a.RefusedDone)
	}
	lines = append(append(lines, line), a.Receipts.lines()...)
	for i := range a.Approvers {
		p := &a.Approvers[i]
		lines = append(lines, fmt.Sprintf("approver    %s: %d approved, %d refused", p.words(), p.Approved, p.Refused))
	}
	return lines
}

// Label returns the name or the email address of the approver, as the operator states it, and otherwise the account ID.
func (p *Approver) Label() string { return textcheck.Printable(cmp.Or(p.Name, p.Email, p.AccountID)) }

// words names an approver.
func (p *Approver) words() string {
	var claims []string
	for _, claim := range []string{p.Name, p.Email} {
		if claim != "" {
			claims = append(claims, textcheck.Printable(claim))
		}
	}
	if len(claims) == 0 {
		return p.AccountID
	}
	return fmt.Sprintf("%s (%s, as the operator states)", p.AccountID, strings.Join(claims, ", "))
}

// checkActs derives the acts from the events, envelopes and approvals, which were checked, and compares their lines.
func (c *checker) checkActs() error {
	if c.acts == nil {
		return nil
	}
	if !c.acts.Join() {
		return fmt.Errorf("event_id of two acts: %w", verify.ErrMismatch)
	}
	var counts packacts.Summary
	found, receipts := uint64(0), c.newReceipts()
	lines, stop := iter.Pull2(c.files.lines(FileActs))
	defer stop()
	var text []byte
	for shown, err := range c.shownAgain() {
		if err != nil {
			return err
		}
		line, is := c.acts.Line(shown.at, &shown.record, shown.envelope)
		if !is {
			continue
		}
		got, err, more := lines()
		if err != nil {
			return err
		}
		text = line.AppendText(text[:0])
		found++
		if !more || !bytes.Equal(got, text) {
			return fmt.Errorf("line %d and the act that follows from the pack: %w", found, verify.ErrMismatch)
		}
		verdict := c.receiptOf(&line)
		wanted, err := c.wants(text, verdict)
		if err != nil {
			return err
		}
		if wanted {
			counts.Add(&line)
			receipts.add(&line, verdict)
		}
	}
	if _, err, more := lines(); more {
		return fmt.Errorf("a line without an act: %w", orMismatch(err))
	}
	if found != c.manifest.Acts.Lines {
		return fmt.Errorf("lines of the manifest: %w", verify.ErrMismatch)
	}
	c.report.Acts = c.describeActs(&counts)
	if c.receipts != nil || receipts.given {
		c.report.Acts.Receipts = receipts
	}
	return nil
}

// wants reports whether the report counts the act of a line.
func (c *checker) wants(text []byte, receipt *receiptVerdict) (bool, error) {
	if c.options.CountAct == nil {
		return true, nil
	}
	var a Act
	if err := json.Unmarshal(text, &a); err != nil {
		return false, fmt.Errorf("%w: %w", verify.ErrMalformed, err)
	}
	if a.Confirmed = nil; receipt != nil && receipt.err == nil {
		a.Confirmed = &receipt.by
	}
	return c.options.CountAct(&a), nil
}

func (c *checker) describeActs(counts *packacts.Summary) *Acts {
	a := &Acts{Count: counts.Count, Columns: c.manifest.Acts.Columns, Outcomes: make(map[string]uint64), ApprovedDone: counts.ApprovedDone, RefusedDone: counts.RefusedDone,
		Approvers: []Approver{}}
	for outcome, n := range counts.Outcomes {
		a.Outcomes[string(outcome)] = n
	}
	for _, p := range counts.Approvers {
		known := c.people[p.Account]
		a.Approvers = append(a.Approvers, Approver{AccountID: p.Account, Email: known.email, Name: known.name, Approved: p.Approved, Refused: p.Refused})
	}
	return a
}

// shownEvent is an event whose documents were checked.
type shownEvent struct {
	at       id.Index
	record   event.Record
	envelope *event.Envelope // nil if it is not in the pack
}

// shownAgain yields the shown events. They must have been checked.
func (c *checker) shownAgain() iter.Seq2[shownEvent, error] {
	return func(yield func(shownEvent, error) bool) {
		next, stop := iter.Pull2(c.files.lines(FileEnvelopes))
		defer stop()
		c.coverage.restart()
		for line, err := range c.files.lines(FileRecords) {
			var e shownEvent
			if err == nil {
				e.record, err = event.ParseRecord(line)
			}
			if err == nil {
				e.at = id.Index(e.record.SequenceNum - 1)
				if erased := c.coverage.covers(e.at) && e.record.Signer != event.SignerSystem; c.manifest.Request.Envelopes && !erased {
					var text []byte
					if text, err, _ = next(); err == nil {
						e.envelope, err = event.Parse(text, event.Options{MaxBytes: len(text), Server: true})
					}
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
