package streamexport_test

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/streamexport"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

const red, blue = ledgertest.Red, ledgertest.Blue

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

// receiver accepts OTLP logs and decodes them with the official package.
type receiver struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	answer   func(w http.ResponseWriter, records int) // if nil, accepts everything
	requests []request
}

type request struct {
	header   http.Header
	resource map[string]any
	records  []*logs.LogRecord
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{t: t}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, h *http.Request) {
	var sent logs.LogsData // with the bytes of ExportLogsServiceRequest
	unpacked, err := gzip.NewReader(h.Body)
	if err != nil || h.Header.Get("Content-Encoding") != "gzip" {
		r.t.Errorf("body: %v, headers %v", err, h.Header)
		return
	}
	text, err := io.ReadAll(unpacked)
	if err == nil && h.Header.Get("Content-Type") == "application/json" {
		err = protojson.Unmarshal(text, &sent)
	} else if err == nil {
		err = proto.Unmarshal(text, &sent)
	}
	if err != nil || len(sent.ResourceLogs) != 1 || len(sent.ResourceLogs[0].ScopeLogs) != 1 {
		r.t.Errorf("request: %v, %v", err, &sent)
		return
	}
	got := request{h.Header, plain(sent.ResourceLogs[0].Resource.Attributes), sent.ResourceLogs[0].ScopeLogs[0].LogRecords}
	r.mu.Lock()
	answer := r.answer
	r.requests = append(r.requests, got)
	r.mu.Unlock()
	if answer != nil {
		answer(w, len(got.records))
	}
}

func (r *receiver) answers(answer func(w http.ResponseWriter, records int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

// take returns the requests since the last call.
func (r *receiver) take() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.requests
	r.requests = nil
	return taken
}

// indices returns the indices of the events in requests, in order.
func indices(requests []request) (all []int64) {
	for _, one := range requests {
		for _, record := range one.records {
			body := plain(record.Body.GetKvlistValue().GetValues())
			if facts, is := body["unmapped"].(map[string]any); is {
				all = append(all, facts["log_index"].(int64))
			} else if facts, is := body["data"].(map[string]any); is {
				all = append(all, facts["log_index"].(int64))
			}
		}
	}
	return all
}

// plain returns members as a map.
func plain(all []*common.KeyValue) map[string]any {
	m := make(map[string]any, len(all))
	for _, kv := range all {
		switch v := kv.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			m[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			m[kv.Key] = v.IntValue
		case *common.AnyValue_KvlistValue:
			m[kv.Key] = plain(v.KvlistValue.Values)
		default:
			m[kv.Key] = fmt.Sprint(v)
		}
	}
	return m
}

// house has the exports of two organizations on real ledgers.
type house struct {
	*ledgertest.Service
	t        testing.TB
	agent    *ledgertest.Agent
	exporter *streamexport.Exporter
	metrics  *prometheus.Registry
	appended int
}

func newHouse(t testing.TB, engine storage.Engine) *house {
	h := &house{Service: ledgertest.On(t, engine), t: t, agent: ledgertest.NewAgent()}
	for _, tenant := range []id.Tenant{red, blue} {
		h.Found(t, tenant)
	}
	h.open(engine)
	return h
}

// open starts a new process on the same store.
func (h *house) open(records storage.RecordStore) {
	h.metrics = prometheus.NewRegistry()
	h.exporter = streamexport.New(streamexport.Options{
		Metrics: h.metrics,
		Records: records, Ledgers: h.Ledgers, Keyring: h.Keyring(), Events: h.SystemEvents, Clock: h.Clock,
		Caller: egress.New(egress.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Timeout: 10 * time.Second}),
	})
}

// readGauge returns the value of a metric without labels.
func (h *house) readGauge(t *testing.T, name string) float64 {
	t.Helper()
	families, err := h.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

func eachHouse(t *testing.T, run func(*testing.T, *house)) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) { run(t, newHouse(t, open(t))) })
}

// append appends n events of an agent.
func (h *house) append(tenant id.Tenant, n int) {
	h.t.Helper()
	for range n {
		h.appended++
		name := fmt.Sprintf("evt-%06d", h.appended)
		e := h.agent.Envelope(h.t, tenant, name, map[string]any{"secret": "payload-of-" + name, "amount": 10.5})
		_, err := h.Ledgers.Append(h.t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
			return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, h.agent.Attestation(e))}}, nil
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// put sets an export to a receiver.
func (h *house) put(tenant id.Tenant, address string, change ...func(*streamexport.Request)) {
	h.t.Helper()
	r := streamexport.Request{URL: address, Format: streamexport.FormatOCSF}
	for _, c := range change {
		c(&r)
	}
	if err := h.exporter.Put(h.t.Context(), tenant, "acc_ann", r); err != nil {
		h.t.Fatal(err)
	}
}

func fromIndex(i id.Index) func(*streamexport.Request) {
	return func(r *streamexport.Request) { r.From.Index = &i }
}

// send makes the due requests and waits for them.
func (h *house) send() {
	h.t.Helper()
	logger := slog.New(slog.NewTextHandler(h.t.Output(), nil))
	for range 3 { // follow-ups of a first sweep
		if err := h.exporter.Sweep(h.t.Context(), logger); err != nil {
			h.t.Fatal(err)
		}
		h.settle()
	}
}

// settle waits for requests in flight.
func (h *house) settle() {
	ended, cancel := context.WithCancel(h.t.Context())
	cancel()
	h.exporter.Run(ended, slog.New(slog.DiscardHandler))
}

func (h *house) export(tenant id.Tenant) streamexport.Export {
	h.t.Helper()
	e, err := h.exporter.Export(h.t.Context(), tenant, ledgertest.Organization(tenant))
	if err != nil {
		h.t.Fatal(err)
	}
	return e
}

func (h *house) said(tenant id.Tenant) (kinds []string) {
	for _, s := range h.Audit(h.t, tenant) {
		kinds = append(kinds, s.Kind+" by "+s.Principal+" "+s.Payload)
	}
	return kinds
}

// upTo returns the numbers [begin, end).
func upTo(begin, end int64) (all []int64) {
	for ; begin < end; begin++ {
		all = append(all, begin)
	}
	return all
}

// sweep starts the due requests.
func (h *house) sweep() {
	h.t.Helper()
	if err := h.exporter.Sweep(h.t.Context(), slog.New(slog.NewTextHandler(h.t.Output(), nil))); err != nil {
		h.t.Fatal(err)
	}
}

// tolerantSend is send on a store that may fail at any write.
func (h *house) tolerantSend() {
	logger := slog.New(slog.DiscardHandler)
	for range 2 {
		_ = h.exporter.Sweep(h.t.Context(), logger) // the store may have failed
		h.settle()
	}
}

// appendMany appends n events of an agent, many in one append.
func (h *house) appendMany(tenant id.Tenant, n int) {
	h.t.Helper()
	const batch = 500
	for range n / batch {
		var prepares []log.Prepare
		for range batch {
			h.appended++
			e := h.agent.Envelope(h.t, tenant, fmt.Sprintf("evt-%06d", h.appended), nil)
			prepares = append(prepares, func(_ context.Context, s *log.State) (log.Submission, error) {
				return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, h.agent.Attestation(e))}}, nil
			})
		}
		for _, o := range h.Ledgers.AppendAll(h.t.Context(), tenant, prepares) {
			if o.Err != nil {
				h.t.Fatal(o.Err)
			}
		}
	}
}
