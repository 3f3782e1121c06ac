package streamexport

import (
	"crypto/sha256"
	"fmt"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/otlp"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// codec encodes OTLP requests and decodes their responses.
type codec struct {
	format   Format
	encoding Encoding
	payloads bool
	now      time.Time
}

func (e Encoding) contentType() string {
	if e == EncodingJSON {
		return "application/json"
	}
	return "application/x-protobuf"
}

// The names of log records.
const (
	eventName = "agentledger.event"
	testName  = "agentledger.test"
)

// encodeEvents returns the compressed body of a request with events, and the number of its log records or spans. If it is 0, there is
// nothing to send.
func (c *codec) encodeEvents(identity *log.Identity, events []storage.Event) (body []byte, n int, err error) {
	var records []*logs.LogRecord
	var spans []*trace.Span
	for i := range events {
		read, err := follow.ReadEvent(events[i])
		if err != nil {
			return nil, 0, err
		}
		if c.format != FormatGenAI {
			records = append(records, c.logRecord(&read))
		} else if span := c.callSpan(&read); span != nil {
			spans = append(spans, span)
		}
	}
	if n = len(records) + len(spans); n == 0 {
		return nil, 0, nil
	}
	body, err = c.encode(identity, records, spans)
	return body, n, err
}

// encodeTest returns the compressed body of a test delivery.
func (c *codec) encodeTest(identity *log.Identity) ([]byte, error) {
	now := uint64(c.now.UnixNano())
	if c.format == FormatGenAI {
		sum := sha256.Sum256(fmt.Appendf(nil, "agentledger/test\n%s\n%d", identity.Organization, now))
		return c.encode(identity, nil, []*trace.Span{{
			TraceId: c.spanBytes(sum[:16]), SpanId: c.spanBytes(sum[16:24]), Name: testName, Kind: trace.Span_SPAN_KIND_INTERNAL,
			StartTimeUnixNano: now, EndTimeUnixNano: now,
		}})
	}
	return c.encode(identity, []*logs.LogRecord{{
		TimeUnixNano: now, ObservedTimeUnixNano: now, EventName: testName,
		SeverityNumber: logs.SeverityNumber_SEVERITY_NUMBER_INFO, SeverityText: "INFO",
		Body: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: "Test delivery of a stream export"}},
	}}, nil)
}

// encode returns the compressed body of a request with log records or with spans, which are two kinds of requests.
func (c *codec) encode(identity *log.Identity, records []*logs.LogRecord, spans []*trace.Span) ([]byte, error) {
	source := &resource.Resource{Attributes: members{}.
		text("service.name", "agentledger").
		text("agentledger.organization_id", identity.Organization.String()).
		text("agentledger.origin", string(identity.Origin))}
	scope := &common.InstrumentationScope{Name: "agentledger"}
	var request proto.Message = &logs.LogsData{ResourceLogs: []*logs.ResourceLogs{{
		Resource: source, ScopeLogs: []*logs.ScopeLogs{{Scope: scope, LogRecords: records}},
	}}}
	if spans != nil {
		request = &trace.TracesData{ResourceSpans: []*trace.ResourceSpans{{
			Resource: source, SchemaUrl: genAISchema,
			ScopeSpans: []*trace.ScopeSpans{{Scope: scope, SchemaUrl: genAISchema, Spans: spans}},
		}}}
	}
	text, err := c.marshal(request)
	if err != nil {
		return nil, fmt.Errorf("write request: %w", err)
	}
	return otlp.Compress(text)
}

func (c *codec) marshal(request proto.Message) ([]byte, error) {
	if c.encoding == EncodingJSON {
		return protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(request)
	}
	return proto.Marshal(request)
}

// rejectedRecords returns how many log records or spans the receiver rejects in a successful response. A response that is not
// OTLP rejects none, because its status means that the request was accepted.
func (c *codec) rejectedRecords(body []byte) int64 {
	read := otlp.ReadProtobuf
	if c.encoding == EncodingJSON {
		read = otlp.ReadJSON
	}
	rejected, _ := read(body)
	return rejected.Count
}

// logRecord returns the log record of an event.
func (c *codec) logRecord(e *follow.Event) *logs.LogRecord {
	r := &logs.LogRecord{
		TimeUnixNano:         uint64(e.Record.ReceivedAt.Time().UnixNano()),
		ObservedTimeUnixNano: uint64(c.now.UnixNano()),
		EventName:            eventName,
		SeverityNumber:       logs.SeverityNumber_SEVERITY_NUMBER_INFO, SeverityText: "INFO",
	}
	if e.Record.Policy.Effective == id.Deny {
		r.SeverityNumber, r.SeverityText = logs.SeverityNumber_SEVERITY_NUMBER_WARN, "WARN"
	}
	body := c.ocsfEvent(e)
	if c.format == FormatCloudEvents {
		body, r.Attributes = c.cloudEvent(e), cloudAttributes(e)
	}
	r.Body = body.value()
	if caller := callerOf(e); caller != (event.Traceparent{}) {
		r.TraceId, r.SpanId, r.Flags = c.spanBytes(caller.Trace[:]), c.spanBytes(caller.Span[:]), uint32(caller.Flags)
	}
	return r
}

// members collects the members of an object in the order in which they are added.
type members []*common.KeyValue

func (m members) addMember(name string, v *common.AnyValue) members {
	return append(m, &common.KeyValue{Key: name, Value: v})
}

// text adds a text if it is not empty.
func (m members) text(name, s string) members {
	if s == "" {
		return m
	}
	return m.addMember(name, &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: s}})
}

func (m members) number(name string, n int64) members {
	return m.addMember(name, &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: n}})
}

func (m members) object(name string, o members) members { return m.addMember(name, o.value()) }

func (m members) value() *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_KvlistValue{KvlistValue: &common.KeyValueList{Values: m}}}
}
