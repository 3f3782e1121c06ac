package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// none is an environment without variables.
func none(string) string { return "" }

// namesOf returns path, headers and names of the spans of a request, decoded with OTLP's own package.
func namesOf(t *testing.T, r *http.Request) []string {
	t.Helper()
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return nil
		}
		body = unpacked
	}
	text, err := io.ReadAll(body)
	var sent spans.TracesData // the bytes of ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(text, &sent)
	}
	if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("request: %v, headers %v", err, r.Header)
	}
	var names []string
	for _, of := range sent.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				names = append(names, serviceOf(of.GetResource().GetAttributes())+" "+s.GetName())
			}
		}
	}
	return names
}

func serviceOf(all []*common.KeyValue) string {
	for _, kv := range all {
		if kv.GetKey() == "service.name" {
			return kv.GetValue().GetStringValue()
		}
	}
	return ""
}

func TestTracesArrive(t *testing.T) {
	for _, compression := range []string{"", "none"} {
		got := make(chan string, 8)
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got <- fmt.Sprint(r.Method, r.URL.Path, namesOf(t, r), r.Header["Content-Encoding"], r.Header["X-Key"], r.UserAgent())
		}))
		t.Cleanup(receiver.Close)
		environment := map[string]string{
			"OTEL_EXPORTER_OTLP_COMPRESSION":    compression,
			"OTEL_EXPORTER_OTLP_HEADERS":        "x-key=of%20all",
			"OTEL_EXPORTER_OTLP_TRACES_HEADERS": " x-key = a%2Cb ,",
			"OTEL_EXPORTER_OTLP_ENDPOINT":       "http://192.0.2.1",
		}
		tracer, stop, err := newTracer(t.Context(), tracerOptions{Endpoint: receiver.URL + "/base/", Ratio: 1, Service: "red", Version: "7",
			Getenv: func(name string) string { return environment[name] }, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		if err != nil {
			t.Fatal(err)
		}
		_, s := tracer.StartSpan(t.Context(), "request")
		s.End()
		if err := stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := "POST/base/v1/traces[red request] [gzip] [a,b]red/7"
		if compression == "none" {
			want = strings.Replace(want, "[gzip]", "[]", 1)
		}
		if got := <-got; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestTracesOffWithoutEndpoint(t *testing.T) {
	tracer, stop, err := newTracer(t.Context(), tracerOptions{})
	if err != nil || tracer.Enabled() {
		t.Errorf("got on %v, %v", tracer.Enabled(), err)
	}
	if err := stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// taker answers requests without a network.
type taker func(r *http.Request) (*http.Response, error)

func (f taker) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answerOf(status int, body string, told string) *http.Response {
	h := http.Header{}
	if told != "" {
		h.Set("Retry-After", told)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// The responses of a receiver, the number and duration of attempts, and the log lines.
func TestTracesReceiverAnswers(t *testing.T) {
	for name, row := range map[string]struct {
		answers  []*http.Response
		tries    int
		from, to time.Duration
		log      string
	}{
		"taken":             {[]*http.Response{answerOf(200, "", "")}, 1, 0, 0, ""},
		"not OTLP":          {[]*http.Response{answerOf(200, "<html>", "")}, 1, 0, 0, ""},
		"a part":            {[]*http.Response{answerOf(202, "\x0a\x07\x08\x96\x01\x12\x02no", "")}, 1, 0, 0, "rejected=150"},
		"a warning":         {[]*http.Response{answerOf(200, "\x0a\x06\x12\x04slow", "")}, 1, 0, 0, "slow"},
		"busy":              {[]*http.Response{answerOf(503, "", ""), answerOf(200, "", "")}, 2, time.Second / 2, time.Second, ""},
		"busy, told":        {[]*http.Response{answerOf(429, "", "7"), answerOf(200, "", "")}, 2, 7 * time.Second, 7 * time.Second, ""},
		"told too long":     {[]*http.Response{answerOf(429, "", "60")}, 1, 0, 0, "the deadline does not allow"},
		"busy for ever":     {[]*http.Response{answerOf(502, "", "")}, 5, 7500 * time.Millisecond, 15 * time.Second, "answered 502"},
		"refused":           {[]*http.Response{answerOf(400, "secret", "")}, 1, 0, 0, "answered 400"},
		"fails":             {[]*http.Response{answerOf(500, "", "1")}, 1, 0, 0, "answered 500"},
		"sent elsewhere":    {[]*http.Response{answerOf(307, "", "")}, 1, 0, 0, "answered 307"},
		"no answer":         {[]*http.Response{nil}, 1, 0, 0, "no route"},
		"a large rejection": {[]*http.Response{answerOf(200, "\x0a\x80\x80\x10\x12\xfc\xff\x0f"+strings.Repeat("x", 1<<18), "")}, 1, 0, 0, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			tries := 0
			c, err := newClient(tracerOptions{Endpoint: "http://red.example", Getenv: none, Logger: slog.New(slog.NewTextHandler(&out, nil))})
			if err != nil {
				t.Fatal(err)
			}
			c.http.Transport = taker(func(r *http.Request) (*http.Response, error) {
				if _, err := io.ReadAll(r.Body); err != nil {
					t.Error(err)
				}
				a := row.answers[min(tries, len(row.answers)-1)]
				tries++
				if a == nil {
					return nil, fmt.Errorf("no route")
				}
				return a, nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			began := time.Now()
			if err := c.UploadTraces(ctx, []*spans.ResourceSpans{{}}); err != nil {
				t.Error(err)
			}
			took, told := time.Since(began), out.String()
			if tries != row.tries || took < row.from || took > row.to {
				t.Errorf("%s: got %d tries in %v, want %d in %v to %v", name, tries, took, row.tries, row.from, row.to)
			}
			if !strings.Contains(told, row.log) || (told == "") != (row.log == "") || strings.Contains(told, "secret") {
				t.Errorf("%s: got the log %q, want %q", name, told, row.log)
			}
		})
	}
}

// A receiver that never answers holds a request for as long as the environment allows.
func TestTracesSilentReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		c, err := newClient(tracerOptions{Endpoint: "https://red.example", Logger: slog.New(slog.NewTextHandler(&out, nil)),
			Getenv: func(name string) string { return map[string]string{"OTEL_EXPORTER_OTLP_TIMEOUT": "2500"}[name] }})
		if err != nil {
			t.Fatal(err)
		}
		c.http.Transport = taker(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		began := time.Now()
		if err := c.UploadTraces(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 2500*time.Millisecond || !strings.Contains(out.String(), "deadline exceeded") {
			t.Errorf("got %v, log %q", took, out.String())
		}
	})
}

func TestTracesWrongSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ endpoint, variable, value, want string }{
		{"127.0.0.1:4318", "", "", "the endpoint is not an http or https URL"},
		{"ftp://red.example", "", "", "the endpoint is not an http or https URL"},
		{"http://", "", "", "the endpoint is not an http or https URL"},
		{"http://red.example", "HEADERS", "secret", "HEADERS: must be name=value"},
		{"http://red.example", "HEADERS", "a b=secret", "HEADERS: must be name=value"},
		{"http://red.example", "HEADERS", "a=secret%0d%0ab:c", "HEADERS: a value is not a percent-encoded"},
		{"http://red.example", "HEADERS", "a=secret%zz", "HEADERS: a value is not a percent-encoded"},
		{"http://red.example", "TIMEOUT", "0", "TIMEOUT: must be a number"},
		{"http://red.example", "TIMEOUT", "10s", "TIMEOUT: must be a number"},
		{"http://red.example", "COMPRESSION", "zstd", "COMPRESSION: must be gzip or none"},
		{"http://red.example", "CERTIFICATE", file, "CERTIFICATE: the file has no certificate"},
		{"http://red.example", "CERTIFICATE", file + "x", "CERTIFICATE: open"},
		{"http://red.example", "CLIENT_CERTIFICATE", file, "CLIENT_CERTIFICATE and its key"},
		{"http://red.example", "CLIENT_KEY", file, "CLIENT_CERTIFICATE and its key"},
	} {
		_, _, err := newTracer(t.Context(), tracerOptions{Endpoint: row.endpoint, Getenv: func(name string) string {
			return map[string]string{"OTEL_EXPORTER_OTLP_" + row.variable: row.value}[name]
		}})
		if err == nil || !strings.Contains(err.Error(), row.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: got %v", row, err)
		}
	}
}

// Only the environment makes a receiver with a private authority trusted. Without a certificate in the environment, the
// service presents none.
func TestTracesPrivateAuthority(t *testing.T) {
	asked := make(chan int, 1)
	receiver := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- len(r.TLS.PeerCertificates)
	}))
	receiver.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	receiver.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	receiver.StartTLS()
	defer receiver.Close()
	dir := t.TempDir()
	authority := filepath.Join(dir, "authority.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: receiver.Certificate().Raw})
	if err := os.WriteFile(authority, text, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		file string
		want string
	}{{"", "certificate"}, {authority, ""}} {
		var out bytes.Buffer
		c, err := newClient(tracerOptions{Endpoint: receiver.URL, Logger: slog.New(slog.NewTextHandler(&out, nil)),
			Getenv: func(name string) string { return map[string]string{"OTEL_EXPORTER_OTLP_CERTIFICATE": row.file}[name] }})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.UploadTraces(t.Context(), nil); err != nil {
			t.Error(err)
		}
		if told := out.String(); !strings.Contains(told, row.want) || (told == "") != (row.want == "") {
			t.Errorf("%q: got the log %q", row.file, told)
		}
		if err := c.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if got := <-asked; got != 0 {
		t.Errorf("got %d certificates of the service, want none", got)
	}
}
