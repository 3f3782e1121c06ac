// Package packacts derives the acts of an evidence pack: the lines of acts.ndjson, as docs/spec/evidence-pack.md specifies them.
//
// Invariants:
//
//   - A table depends only on what was added: events that a pack shows, their envelopes as far as they are in the pack, and
//     statements about approvals. It does not use the index of events, whose acts it must equal for a whole log.
//   - It takes at most 250 bytes for each act with its result, and has at most MaxVotes votes. It keeps no document.
//
// Package evidence writes acts.ndjson with it, and package verify/pack compares the file with it. The verifiers in other
// languages derive the acts with their own code.
package packacts

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// MaxVotes is the maximum number of votes of a table.
const MaxVotes = 100_000

// Outcome is what became of an act.
type Outcome string

// The outcomes.
const (
	Done      Outcome = "done"
	Failed    Outcome = "failed"
	Refused   Outcome = "refused"
	Denied    Outcome = "denied"
	Expired   Outcome = "expired"
	Cancelled Outcome = "cancelled"
	Unknown   Outcome = "unknown"
	Waiting   Outcome = "waiting"
	Open      Outcome = "open"
)

// Outcomes are all outcomes, in the order in which reports list them.
func Outcomes() []Outcome {
	return []Outcome{Done, Failed, Refused, Denied, Expired, Cancelled, Unknown, Waiting, Open}
}

// Status is the status of an approval.
type Status string

// The statuses of approvals.
const (
	StatusWaiting   Status = "waiting"
	StatusApproved  Status = "approved"
	StatusRefused   Status = "refused"
	StatusExpired   Status = "expired"
	StatusCancelled Status = "cancelled"
)

// statusAfter returns the status of an approval after a transition, or "" if the transition has no meaning here.
func statusAfter(transition string) Status {
	switch transition {
	case "requested", "voted", "pending":
		return StatusWaiting
	case "approved", "consumed":
		return StatusApproved
	case "denied", "revoked":
		return StatusRefused
	case "expired":
		return StatusExpired
	case "cancelled", "invalidated":
		return StatusCancelled
	}
	return ""
}

// Vote is a vote on an approval.
type Vote struct {
	Account   string
	DeputyFor string // the account in whose place the account voted; "" if none
	Approve   bool
}

// report is what an event says about how an act ended.
type report byte

const (
	noReport report = iota
	reportedOK
	reportedError
	reportedDenied
	reportedUnknown
	reportedSkipped
)

// parseStatus returns what payload.status of a result says.
func parseStatus(text string) report {
	switch text {
	case "", "ok":
		return reportedOK
	case "error":
		return reportedError
	case "denied":
		return reportedDenied
	}
	return reportedUnknown
}

// parseStepStatus returns what step_status says, or noReport for a word without a meaning here.
func parseStepStatus(text string) report {
	switch text {
	case "ok", "done", "completed", "succeeded", "success":
		return reportedOK
	case "error", "failed":
		return reportedError
	case "denied":
		return reportedDenied
	case "unknown":
		return reportedUnknown
	case "skipped":
		return reportedSkipped
	}
	return noReport
}

// act is what is known about an act, except for its documents.
type act struct {
	at        id.Index
	result    id.Index // valid if hasResult
	approval  int32    // position in Table.approvals, or a value below
	hasResult bool
	report    report
	decision  id.Decision
	announces bool // a result
	unseen    bool // the envelope is not in the pack
}

// Values of act.approval.
const (
	noApproval  = -1
	ownApproval = -2 // the one that the record names, of which there is no statement
)

// result is an event that states the result of an act.
type result struct {
	of     id.Hash // name of the act
	at     id.Index
	report report
}

// approval is an approval as far as its statements were added.
type approval struct {
	name   string
	intent id.Hash // name of the act that requested it; zero if unknown
	status Status
	last   id.Index // its latest statement
	votes  []Vote
}

// named is an act by the name of its event, or an approval that an act's record names.
type named struct {
	name id.Hash
	act  int32
}

// Table contains the acts of a pack. Add all events and statements, call Join once, and then Line.
type Table struct {
	acts      []act
	names     []named // of the acts
	uses      []named // of approvals by acts
	results   []result
	steps     []named  // acts of steps that did not state how they ended, by the name of the step
	ends      []result // of these steps, by the name of the step
	approvals []approval
	byName    map[string]int32 // positions in approvals
	accounts  map[string]string
	votes     int
	at        int // of the act that Line returned last
	columns   []string
	size      uint64 // maximum size of the lines, in bytes; without votes before Join

	paths *step // of the columns
}

// New returns an empty table with columns of payloads.
func New(columns []string) *Table {
	columns = slices.Sorted(slices.Values(columns))
	return &Table{byName: make(map[string]int32), accounts: make(map[string]string), columns: columns, paths: newSteps(columns)}
}

// Size returns a maximum of the bytes of all lines, with their line ends. It must be called after Join.
func (t *Table) Size() uint64 { return t.size }

// Len returns the number of acts.
func (t *Table) Len() int { return len(t.acts) }

// nameOf returns a name of bounded size.
func nameOf[T ~string](text T) id.Hash { return sha256.Sum256([]byte(text)) }

// AddEvent adds a shown event. Events must be added in the order of the log. e is nil if the envelope is not in the pack.
func (t *Table) AddEvent(at id.Index, r *event.Record, e *event.Envelope) {
	switch {
	case r.Signer == event.SignerSystem:
	case r.Signer == event.SignerBridge && e != nil && e.Tool == "" && e.ActionKind == "result":
		if step, is := stepName(e, ".result"); is {
			t.ends = append(t.ends, result{step, at, cmp.Or(parseStepStatus(textOf(e.Canonical, "step_status")), reportedUnknown)})
		}
	case r.Policy.Intent != "":
		t.results = append(t.results, result{nameOf(r.Policy.Intent), at, reportOfResult(r, e)})
	case isAct(r, e):
		a := act{at: at, approval: noApproval, decision: r.Policy.Effective, unseen: e == nil}
		if e != nil {
			a.report, a.announces = ownReport(r, e)
		}
		n := int32(len(t.acts))
		if e != nil && r.Signer == event.SignerBridge && a.report == noReport && phase(e) != event.PhaseIntent {
			if step, is := stepName(e, ""); is {
				t.steps = append(t.steps, named{step, n})
			}
		}
		if r.Policy.ApprovalID != "" {
			a.approval = ownApproval
			t.uses = append(t.uses, named{nameOf(r.Policy.ApprovalID), n})
		}
		t.acts, t.names = append(t.acts, a), append(t.names, named{nameOf(r.EventID), n})
		t.size += t.maxLine(at, r, e)
	}
}

// stepName returns the name of the step of a run that an envelope names with a suffix.
func stepName(e *event.Envelope, suffix string) (name id.Hash, is bool) {
	run, key, attempt := textOf(e.Canonical, "run_id"), textOf(e.Canonical, "step_key"), memberOf(e.Canonical, "attempt")
	key, is = strings.CutSuffix(key, suffix)
	n, err := strconv.ParseUint(string(attempt), 10, 64)
	if !is || run == "" || key == "" || err != nil || n > event.MaxSeq {
		return name, false
	}
	// No line end is in the quoted run or in the number, so the parts are distinct.
	return nameOf(string(jcs.AppendString(nil, run)) + "\n" + string(attempt) + "\n" + key), true
}

// isAct reports whether an event is an act.
func isAct(r *event.Record, e *event.Envelope) bool {
	if r.Signer == event.SignerSystem || !r.Policy.Evaluated || r.Policy.Intent != "" {
		return false
	}
	return e == nil || e.Tool != "" && phase(e) != event.PhaseResult
}

func phase(e *event.Envelope) string {
	if !bytes.Contains(e.Payload, []byte(`"phase":"`)) { // an object is parsed only if it may have the member
		return ""
	}
	return textOf(e.Payload, "phase")
}

// reportOfResult returns what the result of an act reports.
func reportOfResult(r *event.Record, e *event.Envelope) report {
	switch {
	case e == nil:
		return reportedUnknown
	case r.Signer == event.SignerBridge:
		return cmp.Or(parseStepStatus(textOf(e.Canonical, "step_status")), reportedUnknown)
	}
	return parseStatus(textOf(e.Payload, "status"))
}

// ownReport returns what an act itself reports, and whether it announces a result.
func ownReport(r *event.Record, e *event.Envelope) (reported report, announces bool) {
	switch {
	case phase(e) == event.PhaseIntent:
		return noReport, true
	case r.Signer != event.SignerBridge:
		return noReport, false
	}
	status := textOf(e.Canonical, "step_status")
	return parseStepStatus(status), status == "started"
}

// AddStatement adds a statement of the service about an approval. The statements about one approval must be added in the
// order of the log. It reports whether the table has at most MaxVotes votes.
func (t *Table) AddStatement(approvalID string, at id.Index, e *event.Envelope) bool {
	if !event.ValidEvent(approvalID) {
		return true
	}
	n, known := t.byName[approvalID]
	if !known {
		n = int32(len(t.approvals))
		t.byName[approvalID], t.approvals = n, append(t.approvals, approval{name: approvalID})
	}
	a := &t.approvals[n]
	if intent := textOf(e.Payload, "intent_event_id"); intent != "" && a.intent == (id.Hash{}) {
		a.intent = nameOf(intent)
	}
	transition := textOf(e.Payload, "transition")
	status := statusAfter(transition)
	if status == "" {
		return true
	}
	a.status, a.last = status, at
	vote := textOf(e.Payload, "vote")
	account, _, _ := strings.Cut(e.ActorPrincipal, "/")
	if vote == "" && transition != "revoked" || !event.ValidEvent(account) {
		return true
	}
	if t.votes++; t.votes > MaxVotes {
		return false
	}
	represented := textOf(e.Payload, "deputy_for")
	if !event.ValidEvent(represented) {
		represented = ""
	}
	a.votes = append(a.votes, Vote{t.intern(account), t.intern(represented), vote == "approve"})
	return true
}

// intern returns the copy of an account's name that all votes share.
func (t *Table) intern(account string) string {
	known, is := t.accounts[account]
	if !is {
		known = strings.Clone(account)
		t.accounts[known] = known
	}
	return known
}

// maxVotes returns a maximum of the size of the votes in a line.
func (a *approval) maxVotes() (n uint64) {
	for _, v := range a.votes {
		n += uint64(maxVote)
		if v.DeputyFor != "" {
			n += uint64(maxFor)
		}
	}
	return n
}

// RemoveApproval removes an approval and its votes. It must be called before Join.
func (t *Table) RemoveApproval(approvalID string) {
	if n, known := t.byName[approvalID]; known {
		t.approvals[n] = approval{}
	}
}

// Approvals returns the names of the approvals with statements that an added act requested or used. It must be called before Join.
func (t *Table) Approvals() map[string]bool {
	acts, uses := make(map[id.Hash]bool, len(t.names)), make(map[id.Hash]bool, len(t.uses))
	for _, a := range t.names {
		acts[a.name] = true
	}
	for _, u := range t.uses {
		uses[u.name] = true
	}
	found := make(map[string]bool)
	for i := range t.approvals {
		if a := &t.approvals[i]; acts[a.intent] || uses[nameOf(a.name)] {
			found[a.name] = true
		}
	}
	return found
}

// Join joins results and approvals to their acts. It reports whether no two acts have the same event ID.
func (t *Table) Join() bool {
	byName := func(a, b named) int { return bytes.Compare(a.name[:], b.name[:]) }
	slices.SortFunc(t.names, byName)
	for i := 1; i < len(t.names); i++ {
		if t.names[i].name == t.names[i-1].name {
			return false
		}
	}
	find := func(name id.Hash) *act {
		i, found := slices.BinarySearchFunc(t.names, named{name: name}, byName)
		if !found {
			return nil
		}
		return &t.acts[t.names[i].act]
	}
	for i := range t.results {
		if a := find(t.results[i].of); a != nil && !a.hasResult {
			a.hasResult, a.result, a.report = true, t.results[i].at, t.results[i].report
		}
	}
	t.joinSteps()
	used := make(map[id.Hash]int32, len(t.approvals))
	for i := range t.approvals {
		if t.approvals[i].status == "" {
			continue
		}
		used[nameOf(t.approvals[i].name)] = int32(i)
		if t.approvals[i].intent != (id.Hash{}) {
			t.link(find(t.approvals[i].intent), int32(i))
		}
	}
	for _, use := range t.uses {
		if n, known := used[use.name]; known {
			t.link(&t.acts[use.act], n)
		}
	}
	t.names, t.uses, t.results, t.steps, t.ends = nil, nil, nil, nil, nil
	for i := range t.acts {
		if n := t.acts[i].approval; n >= 0 {
			t.size += t.approvals[n].maxVotes()
		}
	}
	return true
}

// joinSteps joins results that steps without a tool state to the acts of earlier steps.
func (t *Table) joinSteps() {
	steps := make(map[id.Hash]int32, len(t.steps))
	for _, s := range t.steps {
		steps[s.name] = s.act
	}
	for i := range t.ends {
		n, known := steps[t.ends[i].of]
		if !known {
			continue
		}
		if a := &t.acts[n]; !a.hasResult && a.at < t.ends[i].at {
			a.hasResult, a.result, a.report = true, t.ends[i].at, t.ends[i].report
		}
	}
}

// link gives an act an approval, unless it has one with a later statement. a may be nil.
func (t *Table) link(a *act, n int32) {
	if a != nil && (a.approval < 0 || t.approvals[a.approval].last < t.approvals[n].last) {
		a.approval = n
	}
}

func (t *Table) outcome(a *act) Outcome {
	status := t.status(a)
	switch {
	case a.report == reportedOK:
		return Done
	case a.report == reportedError:
		return Failed
	case status == StatusRefused:
		return Refused
	case a.decision == id.Deny:
		return Denied
	case status == StatusExpired:
		return Expired
	case status == StatusCancelled || a.report == reportedSkipped:
		return Cancelled
	case a.report == reportedDenied:
		return Denied
	case a.report == reportedUnknown:
		return Unknown
	case status == StatusWaiting:
		return Waiting
	case a.unseen:
		return Unknown
	case a.announces || a.decision == id.AllowWithObligation && status != StatusApproved:
		return Open
	}
	return Done
}

// status returns the status of the approval of an act, or "" if there is none.
func (t *Table) status(a *act) Status {
	switch a.approval {
	case noApproval:
		return ""
	case ownApproval:
		return StatusApproved
	}
	return t.approvals[a.approval].status
}

// textOf returns the value of a member of a canonical object if that is a string, and otherwise "".
func textOf(object []byte, name string) string {
	text, _ := jcs.AppendDecoded(nil, memberOf(object, name))
	return string(text)
}

// memberOf returns the JSON text of a member of a canonical object, or nil if there is none.
func memberOf(object []byte, name string) []byte {
	var buf [32]jcs.Member
	canonical, members, err := jcs.ParseObject(buf[:0], object, jcs.MaxDepth)
	if err != nil {
		return nil // not an object
	}
	for _, m := range members {
		if string(m.Name(canonical)) == name {
			return canonical[m.Value:m.End]
		}
	}
	return nil
}
