package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/storage/archive/objects/objectstest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// A service archives the texts of two organizations, and is killed in between. Bundles of proofs and exports stay
// identical, fsck finds no fault, and an erasure is complete only when no object contains its envelope.
func TestArchive(t *testing.T) {
	t.Parallel()
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	for name, storage := range map[string][]string{"embedded": nil, "postgresql": {"--storage", server.URL()}} {
		t.Run(name, func(t *testing.T) { archiveAll(t, storage) })
	}
}

func archiveAll(t *testing.T, storage []string) {
	m := &mover{t: t, random: rand.New(rand.NewPCG(1, 1))}
	data, kept := t.TempDir(), filepath.Join(t.TempDir(), "archive")
	at := append([]string{"--data", data}, storage...)
	archived := append([]string{"--archive", "file://" + kept}, at...)
	serve := append([]string{"tuning.archive_after_days=0", "--archive", "file://" + kept}, storage...)

	p := startProcess(t, data, storage...)
	m.orgs = append(m.orgs, p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil))
	m.fill(p, m.orgs[0], 1500) // five full objects
	m.fill(p, m.orgs[1], 1000) // three
	bundles := m.bundles(p)
	p.terminate()
	before := filepath.Join(t.TempDir(), "before")
	m.once(append([]string{"export", "--to", before}, at...)...)

	for n := range 3 { // killed in between
		p = startProcess(t, data, serve...)
		awaitObjects(t, kept, 2*n+1)
		p.kill()
	}
	p = startProcess(t, data, serve...)
	awaitObjects(t, kept, 1500/256+1000/256)
	wantSameBundles(t, m.bundles(p), bundles)
	p.terminate()
	if out, exit := command(t, "agentledger", append([]string{"fsck"}, at...)...); exit != 2 ||
		!strings.Contains(out, "set --archive") {
		t.Errorf("fsck without the archive: status %d, %s", exit, out)
	}
	if out, exit := command(t, "agentledger", append([]string{"fsck"}, archived...)...); exit != 0 ||
		!strings.Contains(out, " 0 faults") {
		t.Errorf("fsck: status %d, %s", exit, out)
	}
	after := filepath.Join(t.TempDir(), "after")
	m.once(append([]string{"export", "--to", after}, archived...)...)
	wantSamePieces(t, after, before)

	p = startProcess(t, data, serve...)
	was := objectsIn(t, kept)
	environment := []string{"APS_URL=" + p.main, "APS_ID_URL=" + p.identity, "APS_EMAIL=ops@red.example", "APS_PASSWORD=" + testPassword}
	if out, exit := commandWith(t, environment, "aps", "erase", string(m.name(m.orgs[0], 300)), "--reason", "test_data", "--wait"); exit != 0 ||
		!strings.Contains(out, "done     test_data") {
		t.Errorf("erase: status %d, %s", exit, out)
	}
	changed := 0
	for name, object := range objectsIn(t, kept) {
		if !bytes.Equal(was[name], object) && was[name] != nil {
			changed++
		}
	}
	if changed != 1 {
		t.Errorf("the erasure changed %d objects, want 1", changed)
	}
	p.terminate()
	if out, exit := command(t, "agentledger", append([]string{"fsck"}, archived...)...); exit != 0 {
		t.Errorf("fsck after the erasure: status %d, %s", exit, out)
	}

	if storage == nil {
		backupArchived(t, m, archived)
	}

	// A lost object is a fault of its events, and of no others.
	name := fmt.Sprint(strings.Repeat("0", 15), 3)
	p = startProcess(t, data, serve...)
	for path := range maps.Keys(objectsIn(t, kept)) {
		if filepath.Base(path) == name {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	p.terminate()
	if out, exit := command(t, "agentledger", append([]string{"fsck"}, archived...)...); exit != 1 {
		t.Errorf("fsck without an object: status %d, %s", exit, out)
	}
}

// objectsIn reads the objects of a folder.
func objectsIn(t *testing.T, folder string) map[string][]byte {
	t.Helper()
	found := make(map[string][]byte)
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") || len(d.Name()) != 16 {
			return err
		}
		found[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func awaitObjects(t *testing.T, folder string, n int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(folder, "store")); err == nil && len(objectsIn(t, folder)) >= n {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("got %d objects, want %d", len(objectsIn(t, folder)), n)
		}
	}
}

func wantSameBundles[K comparable](t *testing.T, got, want map[K][]byte) {
	t.Helper()
	for name, bundle := range want {
		if !bytes.Equal(got[name], bundle) {
			t.Errorf("bundle of %v: got\n%s\nwant\n%s", name, got[name], bundle)
		}
	}
}

// backupArchived makes a backup, verifies it, and reads it again with the archive and without.
func backupArchived(t *testing.T, m *mover, archived []string) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "backup.tar")
	out, exit := command(t, "agentledger", append([]string{"backup", to, "--verify"}, archived...)...)
	if exit != 0 || !strings.Contains(out, " 0 faults") {
		t.Errorf("backup: status %d, %s", exit, out)
	}
	m.once(append([]string{"restore", to, "--check"}, archived...)...)
	m.once(append([]string{"compact"}, archived...)...)
	out, exit = command(t, "agentledger", "restore", to, "--check", "--data", archived[len(archived)-1])
	if exit != 2 || !strings.Contains(out, "set --archive") {
		t.Errorf("restore without the archive: status %d, %s", exit, out)
	}
}

// A service starts while its object store is unavailable, and accepts events.
func TestArchiveUnavailableAtStart(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", objectstest.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	bucket := httptest.NewServer(&objectstest.Server{})
	archive := "s3://bucket?endpoint=" + url.QueryEscape(bucket.URL)
	data := t.TempDir()
	start := func() *server {
		t.Helper()
		c := testSettings(data)
		c.MetricsListen, c.Archive = "127.0.0.1:0", archive
		s, err := startServer(t.Context(), c, config.Logging{LogLevel: "warn"}.NewLogger(t.Output()))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := start()
	red, blue := foundHere(t, first, "red"), foundHere(t, first, "blue")
	for range 257 {
		sendOne(t, red)
	}
	if err := first.stopServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	for step, away := range []bool{false, true} {
		if away {
			bucket.Close()
		}
		s := start()
		for end := time.Now().Add(time.Minute); !away && !strings.Contains(getText(t, s.listeners.URL(metricsListener)+"/metrics"),
			"agentledger_archive_bundles_moved_total 1"); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("nothing was archived")
			}
		}
		for _, w := range []*worker{red, blue} {
			again, err := newWorker(s.mainURL(), w.org, client.Retry{Attempts: 1})
			if err != nil {
				t.Fatal(err)
			}
			sendOne(t, again)
			head, err := again.log.fetchHead(t.Context())
			if want := map[*worker]id.Index{red: 258, blue: 1}[w] + id.Index(step); err != nil || head.Size < want {
				t.Errorf("step %d: got %+v, %v, want %d events or more", step, head, err, want)
			}
		}
		if err := s.stopServer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A damaged or missing object makes every read of its texts a 503 with a code. Other reads, other organizations and new
// events are not affected.
func TestArchiveDamaged(t *testing.T) {
	m := &mover{t: t, random: rand.New(rand.NewPCG(2, 2))}
	data, kept := t.TempDir(), filepath.Join(t.TempDir(), "archive")
	serve := []string{"tuning.archive_after_days=0", "--archive", "file://" + kept}
	p := startProcess(t, data)
	m.orgs = append(m.orgs, p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil))
	m.fill(p, m.orgs[0], 500)
	blue, err := newWorker(p.main, m.orgs[1], client.Retry{})
	if err != nil {
		t.Fatal(err)
	}
	sendOne(t, blue) // too few for an object
	p.terminate()
	p = startProcess(t, data, append(slices.Clone(serve), "--metrics-listen", "127.0.0.1:0")...)
	awaitObjects(t, kept, 1)
	for end := time.Now().Add(time.Minute); !strings.Contains(p.read("/metrics"), "\nagentledger_archive_bundles_moved_total 1\n"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) { // the store still has the texts
			t.Fatal("the bundle was not moved")
		}
	}
	p.terminate()
	objects := objectsIn(t, kept)
	name := slices.Collect(maps.Keys(objects))[0]
	damaged := bytes.Clone(objects[name])
	damaged[len(damaged)/2] ^= 1
	for kind, damage := range map[string]func() error{
		"damaged": func() error { return os.WriteFile(name, damaged, 0o600) },
		"cut off": func() error { return os.WriteFile(name, damaged[:len(damaged)/2], 0o600) },
		"missing": func() error { return os.Remove(name) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		p := startProcess(t, data, serve...)
		person := newColleague(t, p)
		person.call("POST", "/v1/id/auth/login", object{"email": "ops@red.example", "password": testPassword}, 200)
		old := string(m.name(m.orgs[0], 100))
		for _, path := range []string{
			"/v1/public/orgs/red/verify/" + old, "/v1/public/orgs/red/verify/" + old + "?verify=1",
			"/v1/console/events/" + old, "/v1/console/traces/move", "/v1/console/events?after=200",
		} {
			if got := person.call("GET", path, nil, 503); got.text("code") != "archive_damaged" {
				t.Errorf("%s: %s: got code %q", kind, path, got.text("code"))
			}
		}
		for _, path := range []string{
			"/v1/public/orgs/red/transparency/head", "/v1/public/orgs/red/verify/" + string(m.name(m.orgs[0], 400)),
			"/v1/public/orgs/blue/transparency/head",
		} {
			person.call("GET", path, nil, 200)
		}
		w, err := newWorker(p.main, m.orgs[0], client.Retry{Attempts: 1})
		if err != nil {
			t.Fatal(err)
		}
		sendOne(t, w)
		p.terminate()
	}
}
