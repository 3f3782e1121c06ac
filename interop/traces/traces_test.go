// Package traces tests trace context and the export of spans against OpenTelemetry: its SDK and its propagator make the traceparents,
// and the Collector's package of OTLP decodes the spans.
package traces

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/interop"
)

// differences are the vectors that OpenTelemetry's propagator reads differently: it ignores flags that version 00 does not define, reads
// version 00 with a hyphen at its end, and has no bound.
var differences = []string{"all flags", "version 00 with a hyphen", "a later version of 513 bytes"}

// The propagator of OpenTelemetry reads the same traceparents, except for differences.
func TestPropagatorReadsTheSame(t *testing.T) {
	text, err := os.ReadFile("../../testdata/traceparent.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct{ Name, Traceparent, Trace string }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		ours, ok := event.ParseTraceparent(v.Traceparent)
		theirs := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": v.Traceparent}))
		same := theirs.IsValid() == ok
		if same == slices.Contains(differences, v.Name) || same && ok && (theirs.TraceID() != ours.Trace || theirs.SpanID() != ours.Span) {
			t.Errorf("%s: OpenTelemetry reads %v, we read %v", v.Name, theirs, ours)
		}
	}
}

// collector is the receiver of an OpenTelemetry Collector, as far as decoding goes.
type collector struct {
	*httptest.Server
	mu     sync.Mutex
	traces []ptrace.Traces
	logs   []plogotlp.ExportRequest
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(unpacked)
		isJSON := r.Header.Get("Content-Type") == "application/json"
		c.mu.Lock()
		defer c.mu.Unlock()
		if r.URL.Path == "/v1/logs" {
			request := plogotlp.NewExportRequest()
			if err = errors.Join(err, request.UnmarshalJSON(body)); err == nil {
				c.logs = append(c.logs, request)
			}
		} else {
			request := ptraceotlp.NewExportRequest()
			if isJSON {
				err = errors.Join(err, request.UnmarshalJSON(body))
			} else {
				err = errors.Join(err, request.UnmarshalProto(body))
			}
			c.traces = append(c.traces, request.Traces())
		}
		if err != nil {
			t.Errorf("%s: %v: %s", r.URL, err, body)
		}
		answer, err := ptraceotlp.NewExportResponse().MarshalProto()
		if isJSON {
			answer, err = ptraceotlp.NewExportResponse().MarshalJSON()
		}
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		_, _ = w.Write(answer)
	}))
	t.Cleanup(c.Close)
	return c
}

// spans waits for n spans and returns them by the call that they are of.
func (c *collector) spans(t *testing.T, n int) (all map[string]ptrace.Span, schema string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		all = map[string]ptrace.Span{}
		c.mu.Lock()
		for _, one := range c.traces {
			for _, resource := range one.ResourceSpans().All() {
				for _, scope := range resource.ScopeSpans().All() {
					schema = scope.SchemaUrl()
					for _, s := range scope.Spans().All() {
						all[s.Name()] = s
					}
				}
			}
		}
		c.mu.Unlock()
		if len(all) == n {
			return all, schema
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d spans, want %d", len(all), n)
		}
	}
}

// owner is the organization's owner in a browser.
type owner struct {
	*http.Client
	t   *testing.T
	url string
}

func signIn(t *testing.T, s *interop.Service) *owner {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &owner{&http.Client{Jar: jar}, t, "http://" + s.Address}
	o.call("POST", "/v1/id/auth/login", `{"email":"ops@acme.example","password":"a password for tests"}`)
	return o
}

func (o *owner) call(method, path, body string) (answer map[string]any) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), method, o.url+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := o.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode >= 300 {
		o.t.Fatalf("%s %s: got %d %s, %v", method, path, a.StatusCode, text, err)
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &answer); err != nil {
			o.t.Fatal(err)
		}
	}
	return answer
}

const policy = `{"policy_id":"shop","name":"Shop","rules":[
	{"rule_id":"refunds","tool":"acme.refund","decision":"allow_with_obligation","obligations":[{"type":"human_approval"}]},
	{"rule_id":"customers","tool":"acme.customers.**","decision":"deny","reason":"Not the agent's business"}]}`

// Calls under spans of the SDK: an allowed, a denied and a waiting one arrive as children of their callers, and are found by the trace. So
// is an event that is posted with the header alone.
func TestCallsInTheCallersTrace(t *testing.T) {
	s := interop.StartWith(t, "--callout-allow", "127.0.0.0/8")
	o := signIn(t, s)
	o.call("POST", "/v1/console/policies", policy)
	o.call("POST", "/v1/console/policies/shop/activate", "")
	provider := sdk.NewTracerProvider(sdk.WithSampler(sdk.AlwaysSample()))
	tracer := provider.Tracer("an agent")
	signer, err := client.NewSigner(client.Identity{Organization: s.Organization, Agent: s.Agent.AgentID, Key: s.Agent.KeyID}, decode(t, s.Agent.Private))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Config{BaseURL: "http://" + s.Address, Token: s.IngestKey.Secret})
	if err != nil {
		t.Fatal(err)
	}
	journal, err := guard.OpenJournal(t.TempDir(), guard.JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	var stop context.CancelFunc // of the call that runs
	g, err := guard.New(guard.Config{Client: c, Signer: signer, Journal: journal, OnAsk: func(client.Approval) { stop() }})
	if err != nil {
		t.Fatal(err)
	}
	callers := map[string]trace.SpanContext{}
	for tool, want := range map[string]string{"acme.read": "allowed", "acme.customers.delete": "denied", "acme.refund": "waiting"} {
		var ctx context.Context
		ctx, stop = context.WithCancel(t.Context())
		ctx, span := tracer.Start(ctx, "step of "+tool)
		carrier := propagation.MapCarrier{}
		propagation.TraceContext{}.Inject(ctx, carrier)
		_, err := g.Run(ctx, guard.Action{Tool: id.Tool(tool), Traceparent: carrier["traceparent"]}, func(context.Context, guard.Permit) (any, error) { return "done", nil })
		if (err == nil) != (want == "allowed") {
			t.Errorf("%s: got %v", tool, err)
		}
		stop()
		span.End()
		callers["execute_tool "+tool] = span.SpanContext()
	}
	// An event of a client that knows nothing of traceparent, with an instrumented HTTP client below it.
	_, span := tracer.Start(t.Context(), "post")
	callers["execute_tool acme.posted"] = span.SpanContext()
	signed, err := signer.SignEvent(client.Event{ActionKind: "tool_call", Tool: "acme.posted", TraceID: "session-7"})
	if err != nil {
		t.Fatal(err)
	}
	post, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+s.Address+"/v1/ingest/events", bytes.NewReader(signed))
	if err != nil {
		t.Fatal(err)
	}
	post.Header.Set("Authorization", "Bearer "+s.IngestKey.Secret)
	post.Header.Set("Content-Type", "application/json")
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(t.Context(), span), propagation.HeaderCarrier(post.Header))
	if a, err := http.DefaultClient.Do(post); err != nil || a.StatusCode != http.StatusCreated {
		t.Fatalf("post: got %v, %v", a, err)
	}
	states := map[string]string{"acme.read": "allowed", "acme.customers.delete": "denied", "acme.refund": "waiting", "acme.posted": "allowed"}
	for _, encoding := range []string{"protobuf", "json"} {
		receiver := newCollector(t)
		o.call("PUT", "/v1/console/stream-export", fmt.Sprintf(`{"url":"%s/v1/traces","format":"genai-1.41","encoding":%q,"from":0}`, receiver.URL, encoding))
		all, schema := receiver.spans(t, len(states))
		for tool, state := range states {
			span, caller := all["execute_tool "+tool], callers["execute_tool "+tool]
			attributes := span.Attributes().AsRaw()
			if trace.TraceID(span.TraceID()) != caller.TraceID() || trace.SpanID(span.ParentSpanID()) != caller.SpanID() || span.SpanID().IsEmpty() {
				t.Errorf("%s, %s: got %s below %s, want %s below %s", encoding, tool, span.TraceID(), span.ParentSpanID(), caller.TraceID(), caller.SpanID())
			}
			if attributes["gen_ai.operation.name"] != "execute_tool" || attributes["gen_ai.tool.name"] != tool || attributes["agentledger.call"] != state {
				t.Errorf("%s, %s: got %v", encoding, tool, attributes)
			}
			if failed := span.Status().Code() == ptrace.StatusCodeError; failed != (state == "denied") || failed != (attributes["error.type"] == "denied") {
				t.Errorf("%s, %s: got status %v, %v", encoding, tool, span.Status().Code(), attributes["error.type"])
			}
		}
		if schema != "https://opentelemetry.io/schemas/1.41.0" {
			t.Errorf("%s: schema %q", encoding, schema)
		}
	}
	for name, caller := range callers {
		found := o.call("GET", "/v1/console/acts?trace_id="+caller.TraceID().String(), "")["acts"].([]any)
		if len(found) != 1 || "execute_tool "+found[0].(map[string]any)["tool_name"].(string) != name {
			t.Errorf("%s: acts of its trace: got %v", name, found)
		}
	}
	// The log records of another format, in JSON, are of the caller's span too.
	receiver := newCollector(t)
	o.call("PUT", "/v1/console/stream-export", fmt.Sprintf(`{"url":"%s/v1/logs","format":"ocsf","encoding":"json","from":0}`, receiver.URL))
	for deadline := time.Now().Add(30 * time.Second); !receiver.hasLogOf(callers["execute_tool acme.read"]); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no log record of the caller's span")
		}
	}
}

func (c *collector) hasLogOf(caller trace.SpanContext) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range c.logs {
		for _, resource := range request.Logs().ResourceLogs().All() {
			for _, scope := range resource.ScopeLogs().All() {
				for _, r := range scope.LogRecords().All() {
					if trace.TraceID(r.TraceID()) == caller.TraceID() && trace.SpanID(r.SpanID()) == caller.SpanID() {
						return true
					}
				}
			}
		}
	}
	return false
}

func decode(t *testing.T, private string) []byte {
	t.Helper()
	seed, err := base64.StdEncoding.DecodeString(private)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}
