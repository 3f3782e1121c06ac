package transfer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/log"
)

// besideServer returns the service of a server that is not running, and the same service as seen from another
// machine: on the same database, with connections of its own and a copy of the anchors.
func besideServer(t *testing.T, found ...id.Slug) (server, beside *house, all []*resident) {
	t.Helper()
	url := freshPostgres(t)
	server = newHouse(t, openPostgres(t, url), newKeyring(t))
	server.start()
	for i, slug := range found {
		r := server.found(slug, string(slug)+"@example.com", uint64(i))
		r.send(40)
		all = append(all, r)
	}
	server.stop()
	beside = newHouse(t, openPostgres(t, url), server.keyring)
	if err := os.CopyFS(beside.anchors, os.DirFS(server.anchors)); err != nil {
		t.Fatal(err)
	}
	return server, beside, all
}

// tryOne sends one event and returns the server's answer.
func (r *resident) tryOne() error {
	e := r.envelope(r.name("event"))
	_, err := r.ledgers.Append(r.t.Context(), r.Tenant, r.prepare(e, ""))
	if err == nil {
		r.events, r.keys = append(r.events, e), append(r.keys, "")
	}
	return err
}

// An export from another machine beside a running server, both on one database, contains a state that nobody changed
// meanwhile, or fails. Once the organization is retired, the server accepts nothing of it any more: everything that it
// acknowledged is in the export.
func TestRetireBesideAServer(t *testing.T) {
	server, beside, all := besideServer(t, "red", "blue")
	red, blue := all[0], all[1]
	server.start()

	anchors := beside.openAnchors()
	busy := beside.exporter(filepath.Join(t.TempDir(), "busy"), anchors)
	busy.Report = func(transfer.Progress) {
		if err := red.tryOne(); err != nil {
			t.Error(err)
		}
	}
	_, refused := busy.Run(t.Context(), "red")
	if err := anchors.Close(); err != nil {
		t.Fatal(err)
	}
	if refused == nil || !strings.Contains(refused.Error(), "stop the server") {
		t.Errorf("an export while events come in: got %v", refused)
	}

	dir, done := "", false
	for try := 0; !done; try++ {
		dir = filepath.Join(t.TempDir(), fmt.Sprint("export", try))
		beside.export(dir, "red")
		sent := make(chan error, 1)
		go func() {
			if try < 20 { // later nothing interferes
				time.Sleep(time.Duration(try) * 500 * time.Microsecond)
				sent <- red.tryOne()
				return
			}
			sent <- nil
		}()
		err := beside.retire(dir)
		late := <-sent
		switch {
		case err == nil && late != nil:
			wantCode(t, late, "moved")
			done = true
		case err == nil && try == 20:
			done = true
		case err == nil:
			t.Fatal("what was retired went on")
		case late != nil:
			t.Fatalf("retired: %v; and an event was refused: %v", err, late)
		case !strings.Contains(err.Error(), "changed after") && !strings.Contains(err.Error(), "was written"):
			t.Fatalf("got %v", err)
		}
	}
	wantCode(t, red.tryOne(), "moved")
	if got := server.state(red.Tenant).Fault().Level; got != log.Moved {
		t.Errorf("got fault %q", got)
	}
	blue.send(3)
	server.stop()
	server.fsck()

	there := newHouse(t, model(t), server.keyring)
	there.imports(dir, "")
	there.now = server.now
	there.start()
	moved := red.at(there)
	state, err := there.ledgers.State(t.Context(), red.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range red.events {
		queries := []log.Query{{Event: e.EventID, Digest: e.Digest}}
		if got := there.ledgers.Replays(t.Context(), state, queries); !got[0].Known || got[0].Err != nil {
			t.Fatalf("event %s was acknowledged and is not there: %+v", e.EventID, got[0])
		}
	}
	moved.send(1)
	there.stop()
}

// An import from another machine beside a running server disturbs none of its organizations. The imported ones are not
// written there before that server has restarted with the import's anchors.
func TestImportBesideAServer(t *testing.T) {
	server, beside, all := besideServer(t, "blue")
	blue := all[0]
	elsewhere := newHouse(t, model(t), server.keyring)
	elsewhere.start()
	red := elsewhere.found("red", "red@example.com", 9)
	red.send(300)
	elsewhere.stop()
	dir := filepath.Join(t.TempDir(), "export")
	elsewhere.export(dir, "red")

	server.start()
	stop, stopped := make(chan struct{}), make(chan error, 1)
	here := red.at(server)
	go func() {
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			if err := blue.tryOne(); err != nil {
				stopped <- err
				return
			}
			if err := here.tryOne(); err == nil {
				stopped <- fmt.Errorf("an event was taken before the server has started anew")
				return
			}
		}
	}()
	beside.imports(dir, "")
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	err := here.tryOne()
	t.Logf("after the import: %v", err)
	if err == nil || fault.Of(err).Kind != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	blue.send(3)
	server.stop()

	beside.now = server.now
	beside.start() // reads the anchors of the import
	red.at(beside).works()
	blue.at(beside).works()
	beside.stop()
	beside.fsck()
}
