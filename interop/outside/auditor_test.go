package outside

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/monitor"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
	"github.com/agentledger/agentledger/verify"
)

func TestVerify(t *testing.T) {
	s := startedService(t)
	sent := s.sendEvent(t, client.Event{ActionKind: "tool_call", Tool: "acme.orders.read", Payload: map[string]any{"order": "A-1"}})
	audited := s.client(t).Log(s.Slug, s.logKey(t))
	_, before, err := audited.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bundle, report, err := audited.Bundle(t.Context(), sent)
	if err != nil || !report.OK || report.EnvelopeOK == nil || !*report.EnvelopeOK {
		t.Fatalf("got %+v, %v", report, err)
	}
	entry, err := event.ParseEntry([]byte(bundle.Entry))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := audited.Inclusion(t.Context(), bundle.LogIndex, entry.Hash(), before); err != nil {
		t.Error(err)
	}
	s.sendEvent(t, client.Event{ActionKind: "tool_call"})
	after, note, err := audited.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := audited.Consistency(t.Context(), before, after); err != nil {
		t.Error(err)
	}
	policy, err := trust.Parse([]byte("log " + s.LogKey + "\nquorum none\n"))
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := policy.Open(note); err != nil || opened.Checkpoint != after {
		t.Errorf("by the trust policy: got %+v, %v", opened, err)
	}
	s.verifyOffline(t, sent)
	s.computeRoot(t, after)
}

// verifyOffline checks a stored bundle, a changed one and one under another key.
func (s *service) verifyOffline(t *testing.T, sent id.Event) {
	t.Helper()
	text, err := s.client(t).FetchBundle(t.Context(), s.Slug, sent)
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string, key tlog.VerifierKey) bool {
		bundle, err := verify.ParseBundle([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return verify.Check(bundle, verify.Options{Key: &key, CheckedAt: id.InstantOf(time.Now())}).OK
	}
	if !check(string(text), s.logKey(t)) {
		t.Error("the bundle does not verify")
	}
	changed := strings.Replace(string(text), `\"order\":\"A-1\"`, `\"order\":\"A-2\"`, 1)
	if changed == string(text) || check(changed, s.logKey(t)) {
		t.Error("a changed payload verifies")
	}
	other, err := tlog.NewVerifierKey(string(s.Origin), edkey.NewPrivate().Public())
	if err != nil {
		t.Fatal(err)
	}
	if check(string(text), other) {
		t.Error("another key verifies")
	}
	if _, err := verify.ParseBundle([]byte("{}")); !errors.Is(err, verify.ErrMalformed) && !errors.Is(err, verify.ErrVersion) {
		t.Errorf("no bundle: %v", err)
	}
}

// computeRoot rebuilds a signed root from the log's tiles.
func (s *service) computeRoot(t *testing.T, c tlog.Checkpoint) {
	t.Helper()
	tiles, err := client.OpenTiles(client.Config{BaseURL: s.main + "/o/" + s.Organization.String()})
	if err != nil {
		t.Fatal(err)
	}
	root, err := tlog.Root(t.Context(), tiles.At(c.Size), c.Size)
	if err != nil || root != c.Root {
		t.Errorf("root %s, want %s, %v", root, c.Root, err)
	}
}

// A monitor accepts the log's growth, and detects a smaller head that the log's key signed.
func TestMonitor(t *testing.T) {
	s := startedService(t)
	s.sendEvent(t, client.Event{ActionKind: "tool_call"})
	target, err := url.Parse(s.main)
	if err != nil {
		t.Fatal(err)
	}
	var rolledBack atomic.Bool
	old := s.fetchCheckpoint(t)
	forward := httputil.NewSingleHostReverseProxy(target)
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rolledBack.Load() && strings.HasSuffix(r.URL.Path, "/checkpoint") {
			w.Write(old)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	defer mirror.Close()
	tiles, err := client.OpenTiles(client.Config{BaseURL: mirror.URL + "/o/" + s.Organization.String()})
	if err != nil {
		t.Fatal(err)
	}
	follow, err := monitor.New(monitor.Options{
		Log: tiles, Keys: []tlog.VerifierKey{s.logKey(t)}, State: filepath.Join(t.TempDir(), "state"), Looks: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	first, err := follow.Check(t.Context())
	if err != nil || first.TreeSize == 0 {
		t.Fatalf("got %+v, %v", first, err)
	}
	s.sendEvent(t, client.Event{ActionKind: "tool_call"})
	second, err := follow.Check(t.Context())
	if err != nil || second.NewEntries != second.TreeSize-first.TreeSize || second.NewEntries == 0 {
		t.Fatalf("got %+v, %v", second, err)
	}
	rolledBack.Store(true)
	var finding *monitor.Finding
	if _, err := follow.Check(t.Context()); !errors.As(err, &finding) || finding.Kind != monitor.Rollback {
		t.Errorf("got %v", err)
	}
}

func (s *service) fetchCheckpoint(t *testing.T) []byte {
	t.Helper()
	answer, err := http.Get(s.main + "/o/" + s.Organization.String() + "/checkpoint")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	note, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return note
}

func TestDecimal(t *testing.T) {
	sum, err := decimal.Parse("0.1")
	if err != nil {
		t.Fatal(err)
	}
	if sum, err = sum.Add(sum); err != nil || sum.String() != "0.2" {
		t.Errorf("got %s, %v", sum, err)
	}
	if _, err := decimal.Max().Add(decimal.Max()); !errors.Is(err, decimal.ErrRange) {
		t.Errorf("got %v", err)
	}
}
