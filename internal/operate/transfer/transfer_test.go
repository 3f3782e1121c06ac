package transfer_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// Two organizations with random traffic move from Pebble to PostgreSQL, continue there, and move to another Pebble
// store.
func TestThereAndBack(t *testing.T) {
	first := newHouse(t, pebble(t), newKeyring(t))
	first.start()
	red, blue := first.found("red", "ann@example.com", 1), first.found("blue", "ann@example.com", 2)
	red.erases, blue.erases = true, true
	red.live(110)
	blue.live(70)
	first.stop()
	here := first
	for _, engine := range []storagetest.Engine{postgres(t), pebble(t)} {
		there := newHouse(t, engine, first.keyring)
		export := filepath.Join(t.TempDir(), "export")
		here.export(export, "")
		for _, a := range there.imports(export, "") {
			if a.There || a.Before != 0 || a.Size < 600 {
				t.Errorf("got %+v", a)
			}
		}
		same(t, there.engine, here.engine, red.Tenant)
		same(t, there.engine, here.engine, blue.Tenant)
		sameService(t, there.engine, here.engine)
		there.fsck()
		private(t, export)
		here.start()
		there.now = here.now
		there.start()
		red.sameShown(there)
		blue.sameShown(there)
		here.stop()
		here, red, blue = there, red.at(there), blue.at(there)
		red.works()
		blue.works()
		red.live(10)
		there.stop()
		there.fsck()
	}
}

// private checks that only the owner can access an export.
func private(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		info, infoErr := d.Info()
		if infoErr == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return errors.Join(err, infoErr)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// An export contains nothing of an organization that was not selected, and an import creates nothing of it.
func TestOneOrganization(t *testing.T) {
	here := newHouse(t, model(t), newKeyring(t))
	here.start()
	red, blue := here.found("red", "ann@example.com", 1), here.found("blue", "bob@example.com", 2)
	red.live(20)
	blue.live(20)
	here.stop()
	for _, name := range []string{"red", red.State.Identity().Organization.String()} {
		dir := filepath.Join(t.TempDir(), "export")
		here.export(dir, name)
		none := []string{"blue", "bob@", string(blue.Agent.Agent), blue.IngestKey.ID, blue.State.Identity().Organization.String(), string(blue.Membership.Account)}
		for path, text := range files(t, dir) {
			for _, n := range none {
				if strings.Contains(text, n) {
					t.Errorf("%s holds %s", path, n)
				}
			}
		}
		there := newHouse(t, model(t), here.keyring)
		there.imports(dir, "")
		same(t, there.engine, here.engine, red.Tenant)
		for _, r := range serviceRecords(t, there.engine) {
			if strings.Contains(r.Key+string(r.Value), "blue") || strings.Contains(r.Key+string(r.Value), "bob@") {
				t.Errorf("the service's partition has %v", r)
			}
		}
		if tenants := collect(t, there.engine.Tenants(t.Context())); len(tenants) != 1 || tenants[0] != red.Tenant {
			t.Errorf("got tenants %v", tenants)
		}
		if _, err := there.tryImport(dir, "blue"); !errors.Is(err, transfer.ErrRefused) {
			t.Errorf("import of one that is not in it: got %v", err)
		}
	}
	if err := here.tryExport(filepath.Join(t.TempDir(), "none"), "green"); !errors.Is(err, transfer.ErrRefused) {
		t.Errorf("export of one that is not there: got %v", err)
	}
	// First one organization of an export of both, then the other.
	dir := filepath.Join(t.TempDir(), "both")
	here.export(dir, "")
	there := newHouse(t, model(t), here.keyring)
	there.imports(dir, "blue")
	same(t, there.engine, here.engine, blue.Tenant)
	if _, err := there.engine.Head(t.Context(), red.Tenant); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("head of the other one: got %v", err)
	}
	there.imports(dir, "red")
	same(t, there.engine, here.engine, red.Tenant)
	sameService(t, there.engine, here.engine)
}

// files returns the files in a directory by path.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// An organization that has moved accepts nothing in its old place, also after a restart, and comes back after
// continuing elsewhere.
func TestRetire(t *testing.T) {
	here := newHouse(t, model(t), newKeyring(t))
	here.start()
	red, blue := here.found("red", "ann@example.com", 1), here.found("blue", "ann@example.com", 2)
	red.live(10)
	blue.send(5)
	here.stop()
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "red")
	for range 2 { // it can be retired again
		if err := here.retire(dir); err != nil {
			t.Fatal(err)
		}
	}
	here.start()
	_, err := here.ledgers.Append(t.Context(), red.Tenant, red.prepare(red.envelope("late"), ""))
	wantCode(t, err, "moved")
	if got := here.state(red.Tenant); got.Fault().Level != "moved" || got.Provable() != nil {
		t.Errorf("got %+v", got.Fault())
	}
	blue.send(1)
	here.stop()
	here.fsck()
	here.export(dir, "red") // a moved organization can be exported again

	there := newHouse(t, model(t), here.keyring)
	there.imports(dir, "")
	there.now = here.now
	there.start()
	moved := red.at(there)
	moved.works()
	for range 2 { // a new log key, then the first one no longer signs
		if err := moved.rotate(); err != nil {
			t.Fatal(err)
		}
		moved.send(2)
	}
	there.stop()

	back := filepath.Join(t.TempDir(), "back")
	if _, err := here.tryImport(dir, ""); !errors.Is(err, transfer.ErrRefused) || !strings.Contains(err.Error(), "--reopen") {
		t.Errorf("the old export: got %v", err)
	}
	there.export(back, "")
	here.imports(back, "")
	same(t, here.engine, there.engine, red.Tenant)
	here.start()
	moved.at(here).works()
	here.stop()
	here.fsck()
}

// --reopen revokes a retirement.
func TestReopen(t *testing.T) {
	here := newHouse(t, model(t), newKeyring(t))
	here.start()
	red := here.found("red", "ann@example.com", 1)
	red.live(5)
	here.stop()
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "")
	if err := here.retire(dir); err != nil {
		t.Fatal(err)
	}
	i := transfer.Importer{Place: here.place(here.openAnchors()), Dir: dir, Reopen: true}
	if _, err := i.Run(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	here.start()
	red.works()
	here.stop()
	if err := here.retire(dir); !errors.Is(err, transfer.ErrRefused) {
		t.Errorf("retire what was written since: got %v", err)
	}
}

func wantCode(t testing.TB, err error, code string) {
	t.Helper()
	var refused *fault.Error
	if !errors.As(err, &refused) || refused.Code != code {
		t.Errorf("got %v, want code %s", err, code)
	}
}

// Importing existing data again succeeds and changes nothing.
func TestImportTwice(t *testing.T) {
	here := newHouse(t, model(t), newKeyring(t))
	here.start()
	red := here.found("red", "ann@example.com", 1)
	empty := here.found("empty", "bob@example.com", 2)
	red.live(10)
	here.stop()
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "")
	there := newHouse(t, model(t), here.keyring)
	there.imports(dir, "")
	before := contentsOf(t, there.engine, red.Tenant)
	for _, a := range there.imports(dir, "") {
		if !a.There || a.Before != a.Size {
			t.Errorf("got %+v", a)
		}
	}
	if after := contentsOf(t, there.engine, red.Tenant); after.Head != before.Head {
		t.Errorf("the head moved: %+v", after.Head)
	}
	there.now = here.now
	there.start()
	red.at(there).send(1)
	empty.at(there).send(1)
	there.stop()
	if _, err := there.tryImport(dir, "red"); !errors.Is(err, transfer.ErrRefused) {
		t.Errorf("after it went on: got %v", err)
	}
	if got := contentsOf(t, there.engine, red.Tenant); got.Head.Size != before.Head.Size+1 {
		t.Errorf("got size %d", got.Head.Size)
	}
}
