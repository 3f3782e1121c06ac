package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
)

// fixedPorts returns flags with which a service keeps its addresses over restarts.
func fixedPorts(t *testing.T) (main, identity, metrics string) {
	t.Helper()
	var addresses [3]string
	for i := range addresses {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses[i] = l.Addr().String()
		defer l.Close()
	}
	return addresses[0], addresses[1], addresses[2]
}

// house is a service with a fixed address and two organizations.
type house struct {
	t              *testing.T
	main, identity string // base URLs
	metrics        string
	dir            string
	red, blue      foundedOrganization
	sent           int
	acknowledged   map[string][]id.Event // by slug
}

func newHouse(t *testing.T, dir string) *house {
	main, identity, metrics := fixedPorts(t)
	return &house{t: t, dir: dir, main: "http://" + main, identity: "http://" + identity, metrics: metrics, acknowledged: map[string][]id.Event{}}
}

// start runs the program.
func (h *house) start(more ...string) *process {
	h.t.Helper()
	return startProcess(h.t, h.dir, append([]string{"--listen", h.main[len("http://"):], "--id-listen", h.identity[len("http://"):],
		"--metrics-listen", h.metrics, "tuning.reverify_pause=1h"}, more...)...)
}

func (h *house) found(p *process) {
	h.t.Helper()
	h.red, h.blue = p.found(h.t.Context(), "red", nil), p.found(h.t.Context(), "blue", nil)
}

// send sends one event of an organization.
func (h *house) send(org foundedOrganization, weight int) error {
	h.t.Helper()
	w, err := newWorker(h.main, org, client.Retry{Attempts: 1})
	if err != nil {
		h.t.Fatal(err)
	}
	h.sent++
	name := id.Event(fmt.Sprintf("e-%d", h.sent))
	body, err := w.signer.SignEvent(client.Event{
		EventID: name, TraceID: "t", ActorPrincipal: "p", ActionKind: "tool_call", Tool: "acme.read", Decision: id.Allow,
		Payload: map[string]any{"text": noise(weight, h.sent)},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := w.client.Send(h.t.Context(), body); err != nil {
		return err
	}
	h.acknowledged[string(org.Slug)] = append(h.acknowledged[string(org.Slug)], name)
	return nil
}

// noise is a text of n bytes that can't be compressed.
func noise(n, seed int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%x", sha256.Sum256(fmt.Appendf(nil, "%d %d", seed, i)))
	}
	return b.String()[:n]
}

func (h *house) must(n int) {
	h.t.Helper()
	for range n {
		for _, org := range []foundedOrganization{h.red, h.blue} {
			if err := h.send(org, 100); err != nil {
				h.t.Fatal(err)
			}
		}
	}
}

// reads returns what the public is shown.
func (h *house) reads() map[string]string {
	h.t.Helper()
	shown := map[string]string{}
	for _, org := range []foundedOrganization{h.red, h.blue} {
		orgs, log := "/v1/public/orgs/"+string(org.Slug)+"/", "/o/"+org.OrganizationID.String()
		for _, path := range []string{
			orgs + "transparency/head", orgs + "transparency/checkpoint", orgs + "transparency/inclusion?log_index=0", orgs + "transparency/consistency?from=1",
			orgs + "transparency/keys", orgs + "transparency/policy", orgs + "verify/" + string(h.acknowledged[string(org.Slug)][0]), log + "/checkpoint",
			log + "/tile/0/000.p/1", log + "/tile/entries/000.p/1", "/v1/public/agents/" + string(org.Agent.AgentID) + "/did.json",
		} {
			answer, body := ask(h.t, "GET", h.main+path, "")
			if answer.StatusCode != http.StatusOK {
				h.t.Errorf("GET %s: got %d %s", path, answer.StatusCode, body)
			}
			body, _, _ = strings.Cut(body, `"operator_statement"`) // the time of the log's last re-verification
			shown[path] = body
		}
	}
	return shown
}

// shows checks that the public is shown the same as before.
func (h *house) shows(what string, before map[string]string) {
	h.t.Helper()
	for path, got := range h.reads() {
		if want := before[path]; got != want {
			h.t.Errorf("%s: GET %s: got %s, want %s", what, path, got, want)
		}
	}
}

// call makes a request with red's credential and returns status and body.
func (h *house) call(method, url, body string, header http.Header) (int, string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// refusesWrites checks that changes are answered with 503, and everything else works.
func (h *house) refusesWrites() {
	h.t.Helper()
	const refusal = `{"error":"The service is read-only at the moment","code":"read_only_mode"`
	var refused *client.Error
	if err := h.send(h.red, 100); !errors.As(err, &refused) || refused.Status != 503 || refused.Code != "read_only_mode" || refused.Message != "The service is read-only at the moment" {
		h.t.Errorf("event: got %v", err)
	}
	agent, platform := http.Header{"Authorization": {"Bearer " + h.red.IngestKey.Secret}}, http.Header{"X-Platform-Secret": {testSecret}}
	for what, c := range map[string]struct {
		url, body string
		header    http.Header
	}{
		"run":          {h.main + "/workflows/runs", `{"workflow":{"name":"n"}}`, agent},
		"login":        {h.identity + "/v1/id/auth/login", `{"email":"ops@red.example","password":"` + testPassword + `"}`, http.Header{}},
		"organization": {h.identity + "/v1/id/platform/organizations", `{"name":"n","slug":"green","admin_email":"ops@green.example"}`, platform},
		"password":     {h.identity + "/v1/id/platform/accounts/password", `{"email":"ops@red.example","password":"another horse battery"}`, platform},
	} {
		if status, body := h.call("POST", c.url, c.body, c.header); status != http.StatusServiceUnavailable || !strings.HasPrefix(body, refusal) {
			h.t.Errorf("%s: got %d %s, want 503 %s", what, status, body, refusal)
		}
	}
	question := fmt.Sprintf(`{"organization_id":%q,"agent_id":%q,"tool_name":"acme.read"}`, h.red.OrganizationID, h.red.Agent.AgentID)
	if status, body := h.call("POST", h.main+"/v1/ingest/policy/evaluate", question, agent); status != http.StatusOK {
		h.t.Errorf("evaluate: got %d %s", status, body)
	}
	for _, base := range []string{h.main, h.identity} {
		if answer, body := ask(h.t, "GET", base+"/readyz", ""); answer.StatusCode != http.StatusOK || body != "ok, read-only\n" {
			h.t.Errorf("readyz: got %d %q", answer.StatusCode, body)
		}
	}
	if _, body := ask(h.t, "GET", "http://"+h.metrics+"/metrics", ""); !strings.Contains(body, "agentledger_read_only_mode 1") {
		h.t.Error("agentledger_read_only_mode is not 1")
	}
}

// writesAgain waits until events are accepted.
func (h *house) writesAgain() {
	h.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := h.send(h.red, 100)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("no event is accepted: %v", err)
		}
	}
	h.must(1)
}

// keeps checks that everything acknowledged is stored, and that the store is intact.
func (h *house) keeps() {
	h.t.Helper()
	for _, org := range []foundedOrganization{h.red, h.blue} {
		for _, name := range h.acknowledged[string(org.Slug)] {
			path := "/v1/public/orgs/" + string(org.Slug) + "/transparency/inclusion?event_id=" + string(name)
			if answer, body := ask(h.t, "GET", h.main+path, ""); answer.StatusCode != http.StatusOK {
				h.t.Errorf("%s of %s: got %d %s", name, org.Slug, answer.StatusCode, body)
			}
		}
	}
}

// A service that is started read-only on the store of a killed one shows everything, accepts no change and leaves each
// file unchanged.
func TestReadOnlyOnPurpose(t *testing.T) {
	h := newHouse(t, t.TempDir())
	p := h.start()
	h.found(p)
	h.must(5)
	before := h.reads()
	p.kill()
	files := hashes(t, h.dir)
	p = h.start("--read-only")
	h.shows("read-only", before)
	h.refusesWrites()
	h.shows("after refusals", before)
	p.terminate()
	after := hashes(t, h.dir)
	for path, digest := range files {
		if after[path] != digest {
			t.Errorf("%s was changed", path)
		}
	}
	if len(after) != len(files) {
		t.Errorf("got %d files, want the same %d", len(after), len(files))
	}
	p = h.start()
	h.shows("writing again", before)
	h.writesAgain()
	h.keeps()
	p.terminate()
	if out, exit := command(t, "agentledger", "fsck", "--data", h.dir); exit != 0 {
		t.Errorf("fsck: %d %s", exit, out)
	}
}

// A rolled-back store is also frozen in the read-only mode.
func TestReadOnlyRolledBack(t *testing.T) {
	h := newHouse(t, t.TempDir())
	p := h.start()
	h.found(p)
	h.must(2)
	p.terminate()
	older := filepath.Join(t.TempDir(), "db")
	copyTree(t, filepath.Join(h.dir, "db"), older)
	p = h.start()
	if err := h.send(h.red, 100); err != nil {
		t.Fatal(err)
	}
	p.terminate()
	if err := os.RemoveAll(filepath.Join(h.dir, "db")); err != nil {
		t.Fatal(err)
	}
	copyTree(t, older, filepath.Join(h.dir, "db"))
	p = h.start("--read-only")
	for slug, want := range map[string]bool{"red": true, "blue": false} {
		if _, body := ask(t, "GET", h.main+"/v1/public/orgs/"+slug+"/transparency/head", ""); strings.Contains(body, `"fault":"frozen"`) != want {
			t.Errorf("%s: got %s", slug, body)
		}
	}
	p.terminate()
}

// If a volume becomes unwritable, the service becomes read-only; if it becomes writable again, the service writes
// again, automatically and at the same address.
func TestVolumeComesBack(t *testing.T) {
	for _, cause := range volumeErrors {
		t.Run(cause.Error(), func(t *testing.T) {
			h := newHouse(t, t.TempDir())
			p := h.start()
			h.found(p)
			h.must(3)
			before := h.reads()
			p.terminate()
			t.Setenv("AGENTLEDGER_PLATFORM_SECRET", testSecret)
			var full atomic.Bool
			full.Store(true)
			m := machine{clocks: clock.Machine(), pause: 10 * time.Millisecond, volumes: func(folders []string) error {
				if full.Load() {
					return fmt.Errorf("%s is not writable: %w", folders[0], &fs.PathError{Op: "write", Path: folders[0], Err: cause})
				}
				return nil
			}}
			c := testSettings(h.dir)
			c.Listen.Listen, c.IDListen, c.MetricsListen = h.main[len("http://"):], h.identity[len("http://"):], h.metrics
			c.PublicURL = "http://log.test"
			ctx, stop := context.WithCancel(t.Context())
			var logs lockedBuffer
			ended := make(chan error, 1)
			go func() { ended <- m.serveUntilDone(ctx, c, terminal{stdout: io.Discard, stderr: &logs}) }()
			h.waitFor("ok, read-only\n")
			h.shows("full", before)
			h.refusesWrites()
			full.Store(false)
			h.waitFor("ok\n")
			h.writesAgain()
			h.keeps()
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if !strings.Contains(logs.String(), "serving read-only") || !strings.Contains(logs.String(), cause.Error()) {
				t.Errorf("the log does not state the reason: %s", logs.String())
			}
		})
	}
}

// A full volume has lost nothing that it accepted; a failed one may have.
func TestMayBeUnwritten(t *testing.T) {
	want := map[error]bool{syscall.ENOSPC: false, syscall.EDQUOT: false, syscall.EROFS: true, syscall.EIO: true}
	for _, cause := range volumeErrors {
		if got := mayBeUnwritten(fmt.Errorf("/data is not writable: %w", cause)); got != want[cause] {
			t.Errorf("%v: got %v, want %v", cause, got, want[cause])
		}
	}
}

// waitFor waits until readiness has this text.
func (h *house) waitFor(want string) {
	h.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if answer, err := http.Get(h.main + "/readyz"); err == nil {
			body, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if string(body) == want {
				return
			}
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("the service does not report %q", want)
		}
	}
}

// Wrong permissions are a mistake in the setup, and a first start has nothing to show: both end with the cause.
func TestNoReadOnlyStart(t *testing.T) {
	for name, c := range map[string]struct {
		cause error
		there bool
	}{"permission": {syscall.EACCES, true}, "first start": {syscall.ENOSPC, false}} {
		dir := t.TempDir()
		settings := testSettings(dir)
		if c.there {
			foundIn(t, settings, "red")
		}
		m := machine{clocks: clock.Machine(), pause: time.Minute, volumes: func([]string) error { return &fs.PathError{Op: "write", Path: dir, Err: c.cause} }}
		err := m.serveUntilDone(t.Context(), settings, terminal{stdout: io.Discard, stderr: io.Discard})
		if !errors.Is(err, c.cause) {
			t.Errorf("%s: got %v, want %v", name, err, c.cause)
		}
		if left := hashes(t, dir); !c.there && len(left) != 0 {
			t.Errorf("%s: it created %d files", name, len(left))
		}
	}
}

// The attempt to write leaves nothing behind, and removes the leftovers of a killed process.
func TestTryVolume(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, probeName+"1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := probeVolumes([]string{dir, filepath.Join(dir, "absent")}); err != nil {
		t.Errorf("a writable folder: %v", err)
	}
	if left := hashes(t, dir); len(left) != 0 {
		t.Errorf("remaining files: %v", left)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := probeVolumes([]string{file}); err == nil || !strings.Contains(err.Error(), file+" is not writable") {
		t.Errorf("a file instead of a folder: got %v", err)
	}
}
