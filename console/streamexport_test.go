package console_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// exportNow makes the export requests that are due.
func (w *world) exportNow() {
	w.t.Helper()
	for range 3 {
		if err := w.exporter.Sweep(w.t.Context(), slog.New(slog.DiscardHandler)); err != nil {
			w.t.Fatal(err)
		}
		ended, cancel := context.WithCancel(w.t.Context())
		cancel()
		w.exporter.Run(ended, slog.New(slog.DiscardHandler))
	}
}

func TestStreamExport(t *testing.T) {
	w := newWorld(t)
	requests := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests++
		if r.Header.Get("X-Key") != "s3cret" {
			t.Errorf("headers: got %v", r.Header)
		}
		io.Copy(io.Discard, r.Body)
	}))
	defer receiver.Close()
	none := "The organization has no stream export"
	w.refuses("none yet", w.request("GET", "/stream-export", ""), 404, none)
	w.refuses("none to test", w.request("POST", "/stream-export/test", ""), 404, none)
	w.refuses("none to end", w.request("DELETE", "/stream-export", ""), 404, none)
	url := receiver.URL + "/v1/logs"
	made := w.call(200, "PUT", "/stream-export", fmt.Sprintf(`{"url":%q,"format":"ocsf","headers":{"X-Key":"s3cret"},"from":0}`, url))
	size := uint64(w.State(t, red).Size())
	want := fmt.Sprintf(`{"url":%q,"header_names":["X-Key"],"format":"ocsf","encoding":"protobuf","payloads":false,"active":true,"state":"behind",
		"position":0,"origin":%q,"lag":{"events":%d,"oldest_received_at":%q,"seconds":0},"sent":0,"rejected":0,"success_at":null,"failing_since":null,
		"next_try_at":null,"last_try":null,"test":null,"changed_at":%q,"changed_by":"acc_red-owner"}`,
		url, made["origin"], size, made["changed_at"], made["changed_at"])
	equal(t, "made", made, want)
	for _, role := range []string{"approver", "auditor", "policy_editor", "member"} { // the address may contain a secret
		equal(t, role, w.call(200, "GET", "/stream-export", "", as("red-"+role)), strings.Replace(want, fmt.Sprintf("%q", url), "null", 1))
	}
	w.refuses("the other organization's", w.request("GET", "/stream-export", "", as("blue-owner")), 404, none)
	test := w.call(202, "POST", "/stream-export/test", "")["test"].(map[string]any)
	if test["asked_at"] != made["changed_at"] || test["try"] != nil {
		t.Errorf("test: got %v", test)
	}
	w.exportNow()
	done := w.call(200, "GET", "/stream-export", "")
	if done["state"] != "current" || done["position"] != float64(size) || done["sent"] != float64(size) || requests != 2 {
		t.Errorf("after %d requests: got %v", requests, done)
	}
	if try := done["test"].(map[string]any)["try"].(map[string]any); try["status"] != 200.0 || try["trouble"] != nil {
		t.Errorf("test: got %v", try)
	}
	off := w.call(200, "PUT", "/stream-export", fmt.Sprintf(`{"url":%q,"format":"cloudevents","encoding":"json","payloads":true,"active":false,"from":"now"}`, url))
	if off["state"] != "paused" || off["format"] != "cloudevents" || off["encoding"] != "json" || off["payloads"] != true || len(off["header_names"].([]any)) != 1 {
		t.Errorf("off: got %v", off)
	}
	for what, from := range map[string]string{"a word": `"then"`, "a fraction": "1.5", "below": "-1", "an object": "{}"} {
		w.refuses(what, w.request("PUT", "/stream-export", fmt.Sprintf(`{"url":%q,"format":"ocsf","from":%s}`, url, from)), 422, `from must be "now" or the index of an event`)
	}
	w.refuses("a member that is not known", w.request("POST", "/stream-export/test", `{"a":1}`), 422, `Member "a" is not known`)
	for _, kind := range []string{"stream_export", "stream_export_status"} {
		found, err := w.Store.Scan(t.Context(), red, storage.Kind(kind), "", "", 10)
		if err != nil || len(found) != 1 || strings.Contains(string(found[0].Value), "s3cret") || strings.Contains(string(found[0].Value), "127.0.0.1") {
			t.Errorf("%s: got %v, %v", kind, found, err)
		}
	}
	w.call(204, "DELETE", "/stream-export", "")
	w.refuses("ended", w.request("GET", "/stream-export", ""), 404, none)
}

func TestPaceOfStreamExport(t *testing.T) {
	w := newWorld(t)
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 1})
	w.call(200, "PUT", "/stream-export", `{"url":"https://logs.example/v1/logs","format":"ocsf"}`)
	w.bounded("put", w.request("PUT", "/stream-export", `{"url":"https://logs.example/v1/logs","format":"cloudevents"}`), 429, "rate_limited", "Too many changes: at most 1 in a minute")
	w.bounded("test", w.request("POST", "/stream-export/test", ""), 429, "rate_limited", "Too many changes: at most 1 in a minute")
	w.call(204, "DELETE", "/stream-export", "")
}
