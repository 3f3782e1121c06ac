package ingest

import (
	"encoding/hex"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/policy"
)

// answer is the response to a request that was not refused. Bodies on the hot path are encoded without reflection.
type answer struct {
	status int
	body   []byte // one JSON object, or one line for each event
}

func (s *Server) writeJSON(w http.ResponseWriter, a answer) {
	s.values.writeAnswer(w, a, s.values.json)
}

// writeDocument writes a response that is not on the hot path.
func (s *Server) writeDocument(w http.ResponseWriter, status int, document any) error {
	body, err := json.Marshal(document)
	if err == nil {
		s.writeJSON(w, answer{status, body})
	}
	return err
}

// headerValues are values of headers that all responses share. They never change.
type headerValues struct{ version, json, lines, noStore, noSniff []string }

func newHeaderValues() headerValues {
	return headerValues{
		version: []string{Version}, json: []string{edge.MediaJSON}, lines: []string{edge.MediaNDJSON},
		noStore: []string{"no-store"}, noSniff: []string{"nosniff"},
	}
}

func (v *headerValues) writeAnswer(w http.ResponseWriter, a answer, mediaType []string) {
	h := w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = mediaType, v.noStore, v.noSniff
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // an error means that the client has disconnected
}

// Size of a response without the event ID: of a replay, of an event, and of an event with the policy's decision.
const (
	replaySize  = 64
	createdSize = 192
	decidedSize = 512
)

// renderAnswer encodes the response to a request with one event.
func (in *incomingEvent) renderAnswer() answer {
	size := replaySize + len(in.envelope.EventID)
	switch {
	case in.fate == created && in.policy.Effective != in.policy.Declared:
		size = decidedSize
	case in.fate == created:
		size = createdSize + len(in.envelope.EventID)
	}
	b := in.appendMembers(append(make([]byte, 0, size), '{'))
	return answer{in.httpStatus(), append(b, '}')}
}

func (in *incomingEvent) httpStatus() int {
	switch in.fate {
	case created:
		return http.StatusCreated
	case replayed:
		return http.StatusOK
	}
	return edge.StatusOf(in.err)
}

// appendMembers appends the members of the response for an event that is in the ledger. It contains the policy's
// decision if that differs from the declared one, and for a replay if the sender asks for it.
func (in *incomingEvent) appendMembers(b []byte) []byte {
	b = jcs.AppendString(append(b, `"event_id":`...), string(in.envelope.EventID))
	if in.fate == replayed {
		b = append(b, `,"status":"replayed"`...)
		if in.decided != nil {
			b = in.appendDecision(b)
		}
		return appendAsked(b, in.asked)
	}
	b = append(b, `,"sequence_num":`...)
	b = strconv.AppendUint(b, in.receipt.Index.Sequence(), 10)
	b = append(b, `,"event_hash":"`...)
	b = hex.AppendEncode(b, in.receipt.EventHash[:])
	b = append(b, `","chain_valid":`...)
	b = strconv.AppendBool(b, in.receipt.ChainValid)
	b = append(b, `,"status":"created"`...)
	if in.policy.Effective != in.policy.Declared || in.asked != nil {
		b = in.appendDecision(b)
		judged := policystore.Judgement{Policy: in.policy, Evaluation: in.evaluation}
		if reason := judged.Reasons()[in.policy.RuleID]; in.asksDecision && reason != "" {
			b = jcs.AppendString(append(b, `,"reason":`...), reason)
		}
	}
	return appendAsked(b, in.asked)
}

// appendDecision appends the decision that the ledger contains. The record has no policy_id if no policy was evaluated.
func (in *incomingEvent) appendDecision(b []byte) []byte {
	p := &in.policy
	b = jcs.AppendString(append(b, `,"policy_decision":`...), p.Effective.String())
	b = jcs.AppendString(append(b, `,"policy_id":`...), p.PolicyID)
	return jcs.AppendString(append(b, `,"rule_id":`...), p.RuleID)
}

// renderDecision encodes the response to an evaluation. Version and digest are omitted if no policy is active.
func renderDecision(o policy.Outcome, input id.Hash) answer {
	b := append(make([]byte, 0, 512), `{"decision":`...)
	b = jcs.AppendString(b, o.Decision.String())
	b = jcs.AppendString(append(b, `,"policy_id":`...), o.PolicyID)
	b = jcs.AppendString(append(b, `,"rule_id":`...), o.RuleID)
	b = jcs.AppendString(append(b, `,"reason":`...), o.Reason)
	b = jcs.AppendString(append(b, `,"engine":`...), o.Engine)
	if o.PolicyVersion > 0 {
		b = append(b, `,"policy_version":`...)
		b = strconv.AppendUint(b, o.PolicyVersion, 10)
		b = append(b, `,"policy_digest":"`...)
		b = append(hex.AppendEncode(b, o.PolicyDigest[:]), '"')
	}
	b = append(b, `,"input_digest":"`...)
	b = append(hex.AppendEncode(b, input[:]), '"')
	if len(o.Obligations) > 0 {
		b = appendObligations(b, o.Obligations)
	}
	return answer{http.StatusOK, append(b, '}')}
}

func appendObligations(b []byte, obligations []policy.Obligation) []byte {
	b = append(b, `,"obligations":[`...)
	for i, o := range obligations {
		if i > 0 {
			b = append(b, ',')
		}
		b = jcs.AppendString(append(b, `{"type":`...), o.Type)
		b = append(b, `,"approvals":`...)
		b = strconv.AppendInt(b, int64(o.Approvals), 10)
		if o.Signed {
			b = append(b, `,"signed":true`...)
		}
		b = append(b, `,"ttl_seconds":`...)
		b = append(strconv.AppendInt(b, int64(o.TTLSeconds), 10), '}')
	}
	return append(b, ']')
}

// appendAsked appends the approval that an event or an evaluation requests, if any.
func appendAsked(b []byte, approval *approval.Approval) []byte {
	if approval == nil {
		return b
	}
	b = jcs.AppendString(append(b, `,"approval_id":`...), string(approval.ID))
	view, err := json.Marshal(newApprovalView(*approval), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic(err) // its members are texts and numbers
	}
	return append(append(b, `,"approval":`...), view...)
}
