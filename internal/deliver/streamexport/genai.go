package streamexport

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
)

// genAISchema is the version of the OpenTelemetry semantic conventions whose names FormatGenAI uses. Another version is another
// format, so that the names of an export never change by an upgrade.
const genAISchema = "https://opentelemetry.io/schemas/1.41.0"

// The flags of a span whose parent is a span of another process.
const parentIsRemote = uint32(trace.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK | trace.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)

// What the ledger says about a call.
const (
	callAllowed = "allowed"
	callDenied  = "denied"
	callWaiting = "waiting" // for an approval
)

// callSpan returns the span execute_tool of an event, or nil for events that are not calls: results, events without a tool, the
// service's own events, and calls whose envelope is erased.
func (c *codec) callSpan(e *follow.Event) *trace.Span {
	r, v := &e.Record, e.Envelope
	if v == nil || v.Tool == "" || r.Signer == event.SignerSystem || !r.Policy.Evaluated || r.Policy.Intent != "" {
		return nil
	}
	call := v.Call()
	if call.Phase == event.PhaseResult { // of a call that was denied, for example
		return nil
	}
	state, failure := callAllowed, ""
	switch {
	case r.Policy.Effective == id.Deny:
		state, failure = callDenied, "denied"
	case r.Policy.Effective == id.AllowWithObligation && r.Policy.ApprovalID == "":
		state = callWaiting
	}
	ended := r.ReceivedAt.Time()
	begun := v.EmittedAt
	if begun.After(ended) { // the clock of the agent is ahead
		begun = ended
	}
	traceID, caller := traceOf(e)
	s := &trace.Span{
		TraceId: c.spanBytes(traceID[:]), SpanId: c.spanBytes(spanOf(r)), Name: "execute_tool " + string(v.Tool),
		Kind: trace.Span_SPAN_KIND_INTERNAL, Status: &trace.Status{},
		StartTimeUnixNano: uint64(begun.UnixNano()), EndTimeUnixNano: uint64(ended.UnixNano()),
	}
	if caller != (event.Traceparent{}) {
		s.ParentSpanId, s.Flags = c.spanBytes(caller.Span[:]), uint32(caller.Flags)|parentIsRemote
	}
	attributes := members{}.
		text("gen_ai.operation.name", "execute_tool").text("gen_ai.tool.name", string(v.Tool)).text("gen_ai.tool.call.id", call.ID)
	if failure != "" {
		attributes = attributes.text("error.type", failure)
		s.Status.Code = trace.Status_STATUS_CODE_ERROR
	}
	attributes = attributes.text("agentledger.call", state)
	for _, fact := range c.facts(e) {
		attributes = attributes.addMember("agentledger."+fact.Key, fact.Value)
	}
	s.Attributes = attributes
	return s
}

// callerOf returns the traceparent of an event: the signed one, or else that of its request.
func callerOf(e *follow.Event) event.Traceparent {
	if e.Envelope != nil {
		if signed := e.Envelope.Traceparent(); signed != (event.Traceparent{}) {
			return signed
		}
	}
	return e.Record.Traceparent
}

// traceOf returns the trace of a call: that of its traceparent, or its trace_id if it is a trace of W3C Trace Context, or else a digest
// of its trace_id, so that the calls of one trace_id are one trace.
func traceOf(e *follow.Event) (traceID [16]byte, caller event.Traceparent) {
	if caller = callerOf(e); caller != (event.Traceparent{}) {
		return caller.Trace, caller
	}
	name := string(e.Envelope.TraceID)
	if named, ok := event.ParseTraceparent("00-" + name + "-0000000000000001-00"); ok {
		return named.Trace, caller
	}
	sum := sha256.Sum256([]byte("agentledger/trace\n" + e.Record.OrganizationID.String() + "\n" + name))
	return [16]byte(sum[:16]), caller
}

// spanOf returns the ID of the span of an event. It is the same each time, so a batch that is sent again repeats its spans.
func spanOf(r *event.Record) []byte {
	sum := sha256.Sum256([]byte("agentledger/span\n" + r.OrganizationID.String() + "\n" + string(r.EventID)))
	return sum[:8]
}

// spanBytes returns the ID of a trace or a span in the form that the encoding needs. OTLP in JSON has such IDs in hexadecimal, but the JSON
// form of protobuf writes bytes in base64. So these are the bytes whose base64 is the hexadecimal text, which has a multiple of four digits.
func (c *codec) spanBytes(b []byte) []byte {
	if c.encoding != EncodingJSON {
		return b
	}
	text, err := base64.StdEncoding.DecodeString(hex.EncodeToString(b))
	if err != nil {
		panic(err) // hexadecimal digits are digits of base64
	}
	return text
}
