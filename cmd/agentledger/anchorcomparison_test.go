package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// A store is rolled back to before the second organization was created: the start reports the missing organization, its
// slug stays taken, and the first organization works.
func TestRollbackBeforeOrganization(t *testing.T) {
	dir, backup := t.TempDir(), filepath.Join(t.TempDir(), "db")
	p := startProcess(t, dir)
	red := p.found(t.Context(), "red", nil)
	p.terminate()
	if err := os.CopyFS(backup, os.DirFS(filepath.Join(dir, "db"))); err != nil {
		t.Fatal(err)
	}
	p = startProcess(t, dir)
	blue := p.found(t.Context(), "blue", nil)
	p.terminate()
	if err := os.RemoveAll(filepath.Join(dir, "db")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(backup, filepath.Join(dir, "db")); err != nil {
		t.Fatal(err)
	}
	p = startProcess(t, dir, "--metrics-listen", "127.0.0.1:0")
	logged := func() bool { // the log arrives through a pipe
		return strings.Contains(p.read("/metrics"), "\nagentledger_missing_ledgers 1\n") && strings.Contains(p.logs.String(), "slug=blue")
	}
	for end := time.Now().Add(2 * time.Minute); !logged(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the missing organization is not counted")
		}
	}
	if logged := p.logs.String(); !strings.Contains(logged, blue.OrganizationID.String()) || strings.Contains(logged, red.OrganizationID.String()) {
		t.Errorf("the log does not name it: %s", logged)
	}
	o, err := newOperator(p.main, p.identity)
	if err != nil {
		t.Fatal(err)
	}
	request := map[string]any{"name": "blue", "slug": "blue", "admin_email": "ops@blue.example", "admin_password": testPassword}
	if _, err := o.foundOrganization(t.Context(), testSecret, request); err == nil || !strings.Contains(err.Error(), "409") {
		t.Errorf("founding another one under its slug: got %v, want 409", err)
	}
	w, err := newWorker(p.main, red, client.Retry{})
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := w.signer.SignEvent(client.Event{EventID: id.Event("e"), TraceID: "t", ActionKind: "tool_call"})
	if err == nil {
		err = w.sendEnvelope(t.Context(), envelope)
	}
	if err != nil {
		t.Errorf("the other organization: %v", err)
	}
	p.terminate()
	if out, exit := command(t, "agentledger", "fsck", "--data", dir); exit != exitFound || !strings.Contains(out, blue.OrganizationID.String()) || !strings.Contains(out, "its slug was blue") {
		t.Errorf("fsck: exit %d\n%s", exit, out)
	}
}

// read returns the text of a page of the metrics listener.
func (p *process) read(path string) string {
	p.t.Helper()
	answer, err := http.Get(p.metrics + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(body)
}
