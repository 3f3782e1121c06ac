package streamexport_test

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
)

const (
	someTrace   = "4bf92f3577b34da6a3ce929d0e0e4736"
	otherTrace  = "0af7651916cd43dd8448eb211c80319c"
	someParent  = "00-" + someTrace + "-00f067aa0ba902b7-01"
	otherParent = "00-" + otherTrace + "-b7ad6b7169203331-00"
)

// span is a span in either encoding.
type span struct {
	TraceID, SpanID, ParentSpanID, Name, StartTimeUnixNano, EndTimeUnixNano string
	Kind, Flags                                                             int
	Status                                                                  struct{ Code int }
	Attributes                                                              map[string]string
	schema, organization                                                    string
}

// spanReceiver accepts OTLP traces.
type spanReceiver struct {
	*httptest.Server
	mu     sync.Mutex
	spans  []span
	posts  int
	answer func(http.ResponseWriter)
}

func newSpanReceiver(t testing.TB) *spanReceiver {
	r := &spanReceiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, h *http.Request) {
		unpacked, err := gzip.NewReader(h.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(unpacked)
		if err != nil {
			t.Error(err)
			return
		}
		read := readSpansProtobuf
		if h.Header.Get("Content-Type") == "application/json" {
			read = readSpansJSON
		}
		got, err := read(body)
		if err != nil {
			t.Errorf("%s: %v", body, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.posts++
		r.spans = append(r.spans, got...)
		if r.answer != nil {
			r.answer(w)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *spanReceiver) take() (taken []span, posts int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken, posts, r.spans, r.posts = r.spans, r.posts, nil, 0
	return taken, posts
}

func readSpansProtobuf(body []byte) (all []span, err error) {
	var sent trace.TracesData
	if err := proto.Unmarshal(body, &sent); err != nil {
		return nil, err
	}
	for _, s := range sent.ResourceSpans[0].ScopeSpans[0].Spans {
		one := span{
			TraceID: hex.EncodeToString(s.TraceId), SpanID: hex.EncodeToString(s.SpanId), ParentSpanID: hex.EncodeToString(s.ParentSpanId),
			Name: s.Name, StartTimeUnixNano: fmt.Sprint(s.StartTimeUnixNano), EndTimeUnixNano: fmt.Sprint(s.EndTimeUnixNano),
			Kind: int(s.Kind), Flags: int(s.Flags), Attributes: map[string]string{}, schema: sent.ResourceSpans[0].ScopeSpans[0].SchemaUrl,
			organization: fmt.Sprint(plain(sent.ResourceSpans[0].Resource.Attributes)["agentledger.organization_id"]),
		}
		one.Status.Code = int(s.Status.GetCode())
		for name, value := range plain(s.Attributes) {
			one.Attributes[name] = fmt.Sprint(value)
		}
		all = append(all, one)
	}
	return all, nil
}

// readSpansJSON reads the JSON encoding of OTLP as its specification has it: IDs are in hexadecimal, enums are numbers.
func readSpansJSON(body []byte) ([]span, error) {
	type attribute struct {
		Key   string
		Value struct{ StringValue, IntValue string }
	}
	var sent struct {
		ResourceSpans []struct {
			SchemaURL  string
			Resource   struct{ Attributes []attribute }
			ScopeSpans []struct {
				Spans []struct {
					span
					Attributes []attribute
				}
			}
		}
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return nil, err
	}
	var all []span
	for _, s := range sent.ResourceSpans[0].ScopeSpans[0].Spans {
		one := s.span
		one.Attributes, one.schema = map[string]string{}, sent.ResourceSpans[0].SchemaURL
		for _, a := range s.Attributes {
			one.Attributes[a.Key] = a.Value.StringValue + a.Value.IntValue
		}
		for _, a := range sent.ResourceSpans[0].Resource.Attributes {
			if a.Key == "agentledger.organization_id" {
				one.organization = a.Value.StringValue
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// call is an event of a test.
type call struct {
	members map[string]any // of the envelope
	payload map[string]any
	policy  event.Policy
	seen    string // the traceparent of the request
}

// appendCall appends an event with a policy and returns its ID.
func (h *house) appendCall(tenant id.Tenant, c call) string {
	h.t.Helper()
	h.appended++
	name := fmt.Sprintf("evt-%06d", h.appended)
	e := h.agent.EnvelopeWith(h.t, tenant, name, c.payload, c.members)
	a := h.agent.Attestation(e)
	a.Policy = c.policy
	a.Traceparent, _ = event.ParseTraceparent(c.seen)
	_, err := h.Ledgers.Append(h.t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, a)}}, nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return name
}

func judged(effective id.Decision) event.Policy {
	return event.Policy{Evaluated: true, Declared: id.Allow, Effective: effective, PolicyID: "pol-1", PolicyVersion: 1, RuleID: "rule-1", Engine: "rules"}
}

// Each call that the policy decided is a span in its caller's trace, in both encodings and on both engines. Nothing else is.
func TestGenAISpans(t *testing.T) {
	approved := judged(id.AllowWithObligation)
	approved.ApprovalID = "apr-1"
	result := judged(id.Allow)
	result.Evaluated, result.Intent = false, "evt-000001"
	type want struct{ trace, parent, state, failure string }
	cases := []struct {
		name string
		call call
		want *want
	}{
		{"allowed, signed", call{policy: judged(id.Allow), members: map[string]any{"traceparent": someParent}, payload: map[string]any{"phase": "intent", "call_id": "call-1"}},
			&want{someTrace, "00f067aa0ba902b7", "allowed", ""}},
		{"denied, seen", call{policy: judged(id.Deny), seen: otherParent}, &want{otherTrace, "b7ad6b7169203331", "denied", "denied"}},
		{"waiting, both", call{policy: judged(id.AllowWithObligation), members: map[string]any{"traceparent": someParent}, seen: otherParent},
			&want{someTrace, "00f067aa0ba902b7", "waiting", ""}},
		{"approved, a trace of its own", call{policy: approved, members: map[string]any{"trace_id": otherTrace}}, &want{otherTrace, "", "allowed", ""}},
		{"another trace_id", call{policy: judged(id.Allow), members: map[string]any{"trace_id": "trc"}}, &want{"", "", "allowed", ""}},
		{"malformed", call{policy: judged(id.Allow), members: map[string]any{"traceparent": "00-x"}}, &want{"", "", "allowed", ""}},
		{"result", call{policy: result, payload: map[string]any{"phase": "result", "parent_event_id": "evt-000001"}}, nil},
		{"result of a denied call", call{policy: judged(id.Deny), payload: map[string]any{"phase": "result", "parent_event_id": "evt-000002"}}, nil},
		{"not decided", call{policy: event.Policy{Declared: id.Allow, Effective: id.Allow}}, nil},
		{"without a tool", call{policy: judged(id.Allow), members: map[string]any{"tool_name": nil}}, nil},
	}
	eachHouse(t, func(t *testing.T, h *house) {
		names := map[string]string{}
		for _, tc := range cases {
			names[tc.name] = h.appendCall(red, tc.call)
			h.appendCall(blue, call{policy: judged(id.Deny), members: map[string]any{"traceparent": someParent}})
		}
		var protobuf []span
		for _, encoding := range []streamexport.Encoding{streamexport.EncodingProtobuf, streamexport.EncodingJSON} {
			r := newSpanReceiver(t)
			h.put(red, r.URL, fromIndex(0), func(q *streamexport.Request) { q.Format, q.Encoding = streamexport.FormatGenAI, encoding })
			h.send()
			got, _ := r.take()
			i := 0
			var digestTrace string
			for _, tc := range cases {
				if tc.want == nil {
					continue
				}
				if i == len(got) {
					t.Fatalf("%s: got %d spans", encoding, len(got))
				}
				s := got[i]
				i++
				if tc.want.trace == "" { // the same for equal trace_ids
					if digestTrace == "" {
						digestTrace = s.TraceID
					}
					tc.want.trace = digestTrace
				}
				flags := map[string]int{"": 0, "00f067aa0ba902b7": 0x301, "b7ad6b7169203331": 0x300}[tc.want.parent]
				status := map[string]int{"": 0, "denied": 2}[tc.want.failure]
				for what, pair := range map[string][2]any{
					"trace": {s.TraceID, tc.want.trace}, "parent": {s.ParentSpanID, tc.want.parent}, "name": {s.Name, "execute_tool acme.orders.read"},
					"kind": {s.Kind, 1}, "flags": {s.Flags, flags}, "status": {s.Status.Code, status}, "schema": {s.schema, "https://opentelemetry.io/schemas/1.41.0"},
					"organization": {s.organization, ledgertest.Organization(red).String()},
					"operation":    {s.Attributes["gen_ai.operation.name"], "execute_tool"}, "tool": {s.Attributes["gen_ai.tool.name"], "acme.orders.read"},
					"call id": {s.Attributes["gen_ai.tool.call.id"], fmt.Sprint(tc.call.payload["call_id"])},
					"failure": {s.Attributes["error.type"], tc.want.failure}, "state": {s.Attributes["agentledger.call"], tc.want.state},
					"event": {s.Attributes["agentledger.event_id"], names[tc.name]}, "rule": {s.Attributes["agentledger.rule_id"], "rule-1"},
					"payload": {s.Attributes["agentledger.payload"], ""}, "span length": {len(s.SpanID), 16}, "trace length": {len(s.TraceID), 32},
				} {
					if pair[0] != pair[1] && !(what == "call id" && tc.call.payload["call_id"] == nil && pair[0] == "") {
						t.Errorf("%s, %s: %s: got %v, want %v", encoding, tc.name, what, pair[0], pair[1])
					}
				}
				if s.StartTimeUnixNano > s.EndTimeUnixNano {
					t.Errorf("%s: from %s to %s", tc.name, s.StartTimeUnixNano, s.EndTimeUnixNano)
				}
			}
			if i != len(got) {
				t.Errorf("%s: got %d spans, want %d", encoding, len(got), i)
			}
			if protobuf == nil {
				protobuf = got
			} else if fmt.Sprint(protobuf) != fmt.Sprint(got) {
				t.Errorf("the encodings differ:\n%v\n%v", protobuf, got)
			}
		}
		seen := map[string]bool{}
		for _, s := range protobuf {
			if seen[s.SpanID] {
				t.Errorf("span %s is there twice", s.SpanID)
			}
			seen[s.SpanID] = true
		}
		if e := h.export(red); e.Lag.Events != 0 || e.Sent != uint64(2*len(protobuf)) {
			t.Errorf("got %d events to come, %d sent, want 0, %d", e.Lag.Events, e.Sent, 2*len(protobuf))
		}
	})
}

// Events that are no calls move the position without a request. A batch that is sent again has the same spans.
func TestGenAIWithoutCalls(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		r := newSpanReceiver(t)
		h.append(red, 3) // not decided by a policy
		h.put(red, r.URL, fromIndex(0), func(q *streamexport.Request) { q.Format, q.Payloads = streamexport.FormatGenAI, true })
		h.send()
		if _, posts := r.take(); posts != 0 || h.export(red).Lag.Events != 0 {
			t.Errorf("got %d requests, %d events to come", posts, h.export(red).Lag.Events)
		}
		h.appendCall(red, call{policy: judged(id.Deny), payload: map[string]any{"amount": 10.5}})
		h.send()
		one, _ := r.take()
		h.put(red, r.URL, fromIndex(0), func(q *streamexport.Request) { q.Format, q.Payloads = streamexport.FormatGenAI, true })
		h.send()
		two, _ := r.take()
		if len(one) != 1 || fmt.Sprint(one) != fmt.Sprint(two) || !strings.Contains(one[0].Attributes["agentledger.payload"], `"amount":10.5`) {
			t.Errorf("got %v, then %v", one, two)
		}
		if err := h.exporter.Test(t.Context(), red); err != nil {
			t.Fatal(err)
		}
		h.send()
		if test, _ := r.take(); len(test) != 1 || test[0].Name != "agentledger.test" || h.export(red).Test.Status != 200 {
			t.Errorf("a test: got %v", test)
		}
	})
}

// Rejected spans are counted.
func TestGenAIRejected(t *testing.T) {
	h, r := newHouse(t, enginetest.Pebble(t)), newSpanReceiver(t)
	r.answer = func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"1","errorMessage":"no"}}`)
	}
	h.appendCall(red, call{policy: judged(id.Deny)})
	h.appendCall(red, call{policy: judged(id.Allow)})
	h.put(red, r.URL, fromIndex(0), func(q *streamexport.Request) {
		q.Format, q.Encoding = streamexport.FormatGenAI, streamexport.EncodingJSON
	})
	h.send()
	if e := h.export(red); e.Sent != 1 || e.Rejected != 1 || e.Lag.Events != 0 {
		t.Errorf("got %+v", e)
	}
}

// The log records of the other formats are of the caller's span.
func TestLogRecordsAreOfTheCallersSpan(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		r := newReceiver(t)
		h.appendCall(red, call{policy: judged(id.Deny), members: map[string]any{"traceparent": someParent}})
		h.appendCall(red, call{policy: judged(id.Deny), seen: otherParent})
		h.appendCall(red, call{policy: judged(id.Deny)})
		h.put(red, r.URL, fromIndex(0))
		h.send()
		var got []string
		for _, one := range r.take() {
			for _, record := range one.records {
				got = append(got, fmt.Sprintf("%x-%x-%02x", record.TraceId, record.SpanId, record.Flags))
			}
		}
		if want := []string{someParent[3:], otherParent[3:], "--00"}; fmt.Sprint(got[:3]) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}
