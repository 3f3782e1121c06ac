package index

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/storage"
)

// Outcome is what became of an act. docs/guides/acts.md defines the outcomes.
type Outcome byte

// The outcomes, in order of precedence. The numbers are not stored.
const (
	NoOutcome Outcome = iota // of an event that is not an act
	Done
	Failed
	Refused // by an approver
	Denied  // by the policy
	Expired
	Cancelled
	Unknown // interrupted, or the envelope with the outcome is erased
	Waiting // for approvers
	Open    // there is no result yet
)

var outcomes = [...]string{"", "done", "failed", "refused", "denied", "expired", "cancelled", "unknown", "waiting", "open"}

func (o Outcome) String() string { return outcomes[o] }

// ParseOutcome parses the name of an outcome.
func ParseOutcome(name string) (Outcome, error) {
	if at := slices.Index(outcomes[:], name); at > 0 {
		return Outcome(at), nil
	}
	return NoOutcome, fmt.Errorf("outcome %q: %w", name, id.ErrMalformed)
}

// Vote is a vote of a user on the approval of an act, or the user's withdrawal of it.
type Vote struct {
	Account   string
	DeputyFor string // the account in whose place the user voted; "" if none
	Approve   bool
}

// Act is what became of an act.
type Act struct {
	Outcome  Outcome
	Approval string   // the ID of the approval that was requested for the act; "" if none
	Votes    []Vote   // on Approval, in the order of the ledger
	Result   id.Index // the event that states the result; 0 if there is none

	Receipt     Receipt // of a tool, in Result
	ConfirmedBy string  // the name of the tool's key if Receipt is Confirmed; otherwise ""
}

// status is what an act's result says. The numbers are stored.
type status byte

const (
	noStatus status = iota
	statusOK
	statusError
	statusDenied
	statusUnknown
	statusSkipped
)

// parseStatus returns the status that an agent's result states.
func parseStatus(text string) status {
	switch text {
	case "", "ok":
		return statusOK
	case "error":
		return statusError
	case "denied":
		return statusDenied
	}
	return statusUnknown
}

// parseStepStatus returns the status that a tool reports with a step of a run. Tools choose their own words; one that is not
// known here says nothing.
func parseStepStatus(text string) status {
	switch text {
	case "ok", "done", "completed", "succeeded", "success":
		return statusOK
	case "error", "failed":
		return statusError
	case "skipped":
		return statusSkipped
	case "denied", "unknown":
		return parseStatus(text)
	}
	return noStatus
}

// stepStarted is the step_status of a step whose result will follow.
const stepStarted = "started"

// consent is the state of an act's approval. The numbers are stored.
type consent byte

const (
	noConsent consent = iota
	consentPending
	consentGiven
	consentRefused
	consentExpired
	consentCancelled
)

// consents are the states after the transitions of an approval (package approval).
var consents = map[string]consent{
	"requested": consentPending, "voted": consentPending, "pending": consentPending, "approved": consentGiven,
	"consumed": consentGiven, "denied": consentRefused, "revoked": consentRefused, "expired": consentExpired,
	"cancelled": consentCancelled, "invalidated": consentCancelled,
}

// act is the stored form of an act: what the ledger says about it.
type act struct {
	at        id.Index
	effective id.Decision
	claimed   bool // the event announced a result
	erased    bool // the envelope of the event is erased
	status    status
	consent   consent
	approval  string
	votes     []Vote
	wait      int64 // milliseconds from the request to the decision of the approvers, at least 1; 0 if they have not decided
	result    id.Index
	linked    bool // result is a step without a tool; its entry is a link
	receipt   Receipt
	tool      string // that confirms the act; "" if receipt is not Confirmed

	// link marks an entry that is not an act: the event at this index is a step without a tool that states the result of the act at
	// index result. An erasure of this event finds the act here, because only the envelopes connect the two. The link is removed if
	// result is its own index.
	link bool
}

// outcome returns the first outcome, in order of precedence, that the ledger supports.
func (a *act) outcome() Outcome {
	switch {
	case a.status == statusOK:
		return Done
	case a.status == statusError:
		return Failed
	case a.consent == consentRefused:
		return Refused
	case a.effective == id.Deny:
		return Denied
	case a.consent == consentExpired:
		return Expired
	case a.consent == consentCancelled || a.status == statusSkipped:
		return Cancelled
	case a.status == statusDenied:
		return Denied
	case a.status == statusUnknown:
		return Unknown
	case a.consent == consentPending:
		return Waiting
	case a.erased:
		return Unknown
	case a.claimed || a.effective == id.AllowWithObligation && a.consent != consentGiven:
		return Open
	}
	return Done // a recorded call: no result was announced
}

func (a *act) describe() *Act {
	return &Act{Outcome: a.outcome(), Approval: a.approval, Votes: a.votes, Result: a.result, Receipt: a.receipt, ConfirmedBy: a.tool}
}

// role is what an event says about acts.
type role byte

const (
	roleNone       role = iota
	roleAct             // the event is an act
	roleResult          // the result of an act
	roleStepResult      // the result of the act of a step, stated by a step without a tool
	roleApproval        // a transition of an approval
	roleErasure         // the erasure of envelopes
	roleToolKeys        // a change of the keys of tools
)

// stepName is a digest of a step's run, key and attempt. The zero value is no step.
type stepName [16]byte

// newStepName returns the name of a step by the members of an envelope, as they are encoded there. key is without quotes.
func newStepName(run, key, attempt []byte) stepName {
	sum := sha256.Sum256(bytes.Join([][]byte{run, attempt, key}, []byte("\n")))
	return stepName(sum[:16])
}

// A step without a tool and with this kind states the result of the step that has its key without the suffix and the same attempt.
const (
	stepResultKind   = "result"
	stepResultSuffix = ".result"
)

// part is what an event says about acts.
type part struct {
	role     role
	claimed  bool     // of an act: a result will follow
	status   status   // of a result, and of an act that states its own
	intent   id.Event // of a result, and of a requested approval that belongs to an event
	step     stepName // of a step's result, of the act of a step that did not state how it ended, and of a step without a tool
	approval string   // of a transition, and of an act that consumed an approval
	consent  consent  // of a transition
	first    bool     // of a transition: the approval was requested
	vote     Vote     // of a transition; Account "" if none
	erased   []id.Range
	receipt  []byte   // of a result: its payload if that has the receipt of a tool; otherwise nil
	toolKeys toolKeys // of a change of keys: those in force after it
}

// readPart returns what an event says about acts. A statement of the service in another form says nothing: lists must not fail because of it.
func readPart(e *storage.Event, r *Row, read *statement) part {
	switch {
	case r.Signer == event.SignerSystem && r.Kind == string(sysevent.Approval):
		return readTransition(e.Envelope, r)
	case r.Signer == event.SignerSystem && r.Kind == event.KindErasure:
		return readErasure(e.Envelope)
	case r.Signer == event.SignerSystem && r.Kind == string(sysevent.ToolKeysChanged):
		return part{role: roleToolKeys, toolKeys: readToolKeys(e.Envelope)}
	case r.Signer == event.SignerBridge && r.Tool == "" && e.Envelope != nil:
		return readStep(e.Envelope, r.Kind)
	case r.Signer == event.SignerSystem || r.Tool == "":
		return part{}
	case read.Policy.Intent != "":
		p := part{role: roleResult, intent: read.Policy.Intent, status: statusUnknown}
		payload := memberOf(e.Envelope, "payload")
		p.receipt = readReceipt(payload)
		switch {
		case e.Envelope == nil:
		case r.Signer == event.SignerBridge:
			p.status = cmp.Or(parseStepStatus(textMember(e.Envelope, "step_status")), statusUnknown)
		default:
			p.status = parseStatus(textMember(payload, "status"))
		}
		return p
	case !read.Policy.Evaluated:
		return part{}
	}
	p := part{role: roleAct, approval: read.Policy.ApprovalID}
	if e.Envelope == nil || r.Signer != event.SignerBridge && !bytes.Contains(e.Envelope, []byte(`"phase":"`)) {
		return p
	}
	switch textMember(memberOf(e.Envelope, "payload"), "phase") {
	case event.PhaseResult: // of an act that was denied, or of another event
		return part{}
	case event.PhaseIntent:
		p.claimed = true
	default:
		if r.Signer == event.SignerBridge {
			reported := textMember(e.Envelope, "step_status")
			if p.status, p.claimed = parseStepStatus(reported), reported == stepStarted; p.status == noStatus {
				run, key, attempt := stepMembers(e.Envelope)
				p.step = newStepName(run, key, attempt)
			}
		}
	}
	return p
}

// stepMembers returns the members of a step's envelope that name it. key is without quotes.
func stepMembers(envelope []byte) (run, key, attempt []byte) {
	return memberOf(envelope, "run_id"), bytes.Trim(memberOf(envelope, "step_key"), `"`), memberOf(envelope, "attempt")
}

// readStep returns what a step without a tool says about the act of another step.
func readStep(envelope []byte, kind string) part {
	run, key, attempt := stepMembers(envelope)
	of, states := bytes.CutSuffix(key, []byte(stepResultSuffix))
	if !states || kind != stepResultKind {
		return part{step: newStepName(run, key, attempt)}
	}
	status := cmp.Or(parseStepStatus(textMember(envelope, "step_status")), statusUnknown)
	return part{role: roleStepResult, step: newStepName(run, of, attempt), status: status}
}

// readTransition returns what a transition of an approval says.
func readTransition(envelope []byte, r *Row) part {
	var read struct {
		Approval   string   `json:"approval_id"`
		Transition string   `json:"transition"`
		Vote       string   `json:"vote"`
		DeputyFor  string   `json:"deputy_for"`
		Intent     id.Event `json:"intent_event_id"`
	}
	if err := json.Unmarshal(memberOf(envelope, "payload"), &read); err != nil {
		return part{}
	}
	to, known := consents[read.Transition]
	if !known {
		return part{}
	}
	p := part{role: roleApproval, approval: read.Approval, consent: to, intent: read.Intent, first: read.Transition == "requested"}
	if read.Vote != "" || read.Transition == "revoked" {
		p.vote = Vote{Account: r.actor(), DeputyFor: read.DeputyFor, Approve: read.Vote == "approve"}
	}
	return p
}

// readErasure returns which envelopes the statement of an erasure names.
func readErasure(envelope []byte) part {
	statement, err := event.ParseErasure(&event.Envelope{ActionKind: event.KindErasure, Payload: memberOf(envelope, "payload")})
	if err != nil {
		return part{}
	}
	return part{role: roleErasure, erased: statement.Ranges}
}

// memberOf returns the text of a member of a canonical object, or nil if there is none. The name must not need escapes. It takes a tenth
// of the time of decoding.
func memberOf(object []byte, name string) []byte {
	for rest := object; len(rest) > 1; {
		end := valueEnd(rest[1:]) + 1 // of a name, after { or a comma
		if end >= len(rest) || rest[end] != ':' {
			return nil
		}
		value := rest[end+1:]
		n := valueEnd(value)
		if n == 0 {
			return nil
		}
		if string(rest[1:end]) == `"`+name+`"` {
			return value[:n]
		}
		rest = value[n:]
	}
	return nil
}

// textMember returns the value of a member of a canonical object if that is a string, and otherwise "". A string with escapes is
// returned as it is written, with its quotes: it is none of the known words.
func textMember(object []byte, name string) string {
	value := memberOf(object, name)
	switch {
	case len(value) < 2 || value[0] != '"':
		return ""
	case bytes.IndexByte(value, '\\') >= 0:
		return string(value)
	}
	return string(value[1 : len(value)-1])
}

// valueEnd returns the length of the canonical value at the beginning of b, or 0 if it does not end.
func valueEnd(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 && i < len(b) {
				return i + 1
			}
		case '{', '[':
			depth++
		case ',', '}', ']':
			if depth == 0 {
				return i // of a number or a literal
			}
			if b[i] != ',' {
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
	}
	return 0
}
