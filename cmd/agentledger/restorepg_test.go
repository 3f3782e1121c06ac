package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// The procedure of docs/operate/postgresql.md with a base backup and an archive: restored to the end, nothing is lost and the
// service continues. Restored to a point in time, the log with later events is frozen and gets a successor, and the log
// of the other organization continues.
func TestRestoreDatabase(t *testing.T) {
	t.Parallel()
	primary, err := pgtest.Start(pgtest.Archiving()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { primary.Stop() })
	dir := t.TempDir()
	p := startProcess(t, dir, "--storage", primary.URL())
	red, blue := p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)
	events := &resender{t, map[string][]byte{}}
	events.want(client.Created, p.main, red, 0, 5)
	events.want(client.Created, p.main, blue, 0, 2)
	whole, old := baseBackup(t, primary), baseBackup(t, primary)
	events.want(client.Created, p.main, red, 5, 10)
	if err := primary.Exec("SELECT pg_create_restore_point('ten')"); err != nil {
		t.Fatal(err)
	}
	events.want(client.Created, p.main, red, 10, 15)
	if err := primary.Archived(); err != nil {
		t.Fatal(err)
	}
	p.kill()
	if err := primary.Kill(); err != nil {
		t.Fatal(err)
	}

	if err := old.Restore(primary, "recovery_target_name=ten"); err != nil {
		t.Fatal(err)
	}
	out, exit := command(t, "agentledger", "fsck", "--data", dir, "--storage", old.URL())
	if exit != 1 || strings.Count(out, "does not extend the checkpoint shown at size") != 1 {
		t.Errorf("fsck at a point in time: exit %d\n%s", exit, out)
	}
	if err := old.Halt(); err != nil {
		t.Fatal(err)
	}

	if err := whole.Restore(primary); err != nil {
		t.Fatal(err)
	}
	if out, exit := command(t, "agentledger", "fsck", "--data", dir, "--storage", whole.URL()); exit != 0 {
		t.Errorf("fsck of all: exit %d\n%s", exit, out)
	}
	p = startProcess(t, dir, "--storage", whole.URL())
	events.want(client.Replayed, p.main, red, 0, 15)
	events.want(client.Replayed, p.main, blue, 0, 2)
	p.terminate()

	events.wantSuccessorAfterRollback(dir, old, red, blue)
}

// wantSuccessorAfterRollback serves the database as it was at the point in time.
func (r *resender) wantSuccessorAfterRollback(dir string, old *pgtest.Server, red, blue foundedOrganization) {
	t := r.t
	t.Helper()
	if err := old.Run(); err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, dir, "--storage", old.URL())
	_, err := r.send(p.main, red, 20)
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code != "frozen" || refused.Status != http.StatusServiceUnavailable {
		t.Errorf("an event of the log that lost some: got %v", err)
	}
	r.want(client.Created, p.main, blue, 20, 21)
	p.terminate()
	if out, exit := command(t, "agentledger", "succeed", "--data", dir, "--storage", old.URL(), "--organization", "red",
		"--reason", "the database was restored to a point in time"); exit != 0 {
		t.Fatalf("succeed: exit %d\n%s", exit, out)
	}
	p = startProcess(t, dir, "--storage", old.URL())
	r.want(client.Created, p.main, red, 20, 21)
	p.terminate()
}

func baseBackup(t *testing.T, primary *pgtest.Server) *pgtest.Server {
	t.Helper()
	made, err := primary.BaseBackup()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { made.Stop() })
	return made
}

// resender sends events, and the same ones again.
type resender struct {
	t         *testing.T
	envelopes map[string][]byte
}

// send sends the event with a number, which is signed once.
func (r *resender) send(main string, org foundedOrganization, i int) (client.Result, error) {
	r.t.Helper()
	w, err := newWorker(main, org, once)
	if err != nil {
		r.t.Fatal(err)
	}
	name := fmt.Sprintf("%s-%d", org.Slug, i)
	if r.envelopes[name] == nil {
		r.envelopes[name], err = w.signer.SignEvent(client.Event{EventID: id.Event(name), TraceID: "restore",
			ActorPrincipal: "drill", ActionKind: "tool_call", Tool: "acme.orders.read", Decision: id.Allow,
			Payload: map[string]any{"n": i}})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return w.client.Send(r.t.Context(), r.envelopes[name])
}

// want sends the events [begin, end) and wants the same status for all.
func (r *resender) want(status, main string, org foundedOrganization, begin, end int) {
	r.t.Helper()
	for i := begin; i < end; i++ {
		if got, err := r.send(main, org, i); err != nil || got.Status != status {
			r.t.Errorf("%s, event %d: got %v, %v, want %v", org.Slug, i, got.Status, err, status)
		}
	}
}
