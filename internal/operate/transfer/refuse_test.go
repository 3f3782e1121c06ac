package transfer_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// Obstacles to an import are found before any of it is written.
func TestImportRefuses(t *testing.T) {
	here, red, _ := town(t, 15)
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "red")
	older := filepath.Join(t.TempDir(), "older")
	here.export(older, "red")
	here.start()
	red.send(2)
	here.stop()
	newer := filepath.Join(t.TempDir(), "newer")
	here.export(newer, "red")
	mixed := filepath.Join(t.TempDir(), "mixed")
	foreign, err := sysevent.NewSystemKey(newKeyring(t), red.State.Identity().Organization)
	if err != nil {
		t.Fatal(err)
	}
	foreign.If = storage.AnyVersion
	if err := here.engine.Write(t.Context(), red.Tenant, []storage.Change{foreign}); err != nil {
		t.Fatal(err)
	}
	here.export(mixed, "red")
	founded := func(r provision.Request) func(*house) {
		return func(h *house) {
			h.start()
			if _, err := h.founder.CreateOrganization(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			h.stop()
		}
	}
	put := func(tenant id.Tenant, kind storage.Kind, key, value string) func(*house) {
		return func(h *house) {
			if err := h.engine.Write(t.Context(), tenant, []storage.Change{{Kind: kind, Key: key, Value: []byte(value)}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	organization := red.State.Identity().Organization
	tests := []struct {
		name   string
		before func(*house)
		from   string
		want   string
	}{
		{"another master key", func(h *house) { h.keyring = newKeyring(t) }, dir, "another master key"},
		{"another master key for one of the keys", func(*house) {}, mixed, "a master key that this service does not have"},
		{"slug", founded(provision.Request{Name: "x", Slug: "red", AdminEmail: "eve@example.com"}), dir, `org_slug "red"`},
		{"organization", founded(provision.Request{Name: "x", Slug: "green", Organization: organization, AdminEmail: "eve@example.com"}), dir, "org_id"},
		{"address of a member", founded(provision.Request{Name: "x", Slug: "green", AdminEmail: "ann@example.com"}), dir, "a member's address belongs to another account"},
		{"agent", put(id.Service, "agent_claim", string(red.Agent.Agent), `{"tenant":5}`), dir, "agent_claim"},
		{"account with another address", put(id.Service, "account", string(red.Membership.Account), `{"email":"x@example.com","generation":0,"created_at":"2026-10-20T12:00:00.000Z"}`), dir, "another address"},
		{"an older export than what was shown", func(h *house) { h.anchors = here.anchors }, older, "a newer export is needed"},
		{"open and going on", func(h *house) { h.imports(dir, "") }, newer, "it is already here and open"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			there := newHouse(t, model(t), here.keyring)
			there.t = t
			tt.before(there)
			before := serviceRecords(t, there.engine)
			head, _ := there.engine.Head(t.Context(), red.Tenant)
			_, err := there.tryImport(tt.from, "")
			if !errors.Is(err, transfer.ErrRefused) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to say %s", err, tt.want)
			}
			if strings.Contains(err.Error(), "@") {
				t.Errorf("the error contains an address: %v", err)
			}
			if after := serviceRecords(t, there.engine); len(after) != len(before) {
				t.Errorf("%d records of the service's partition, %d before", len(after), len(before))
			}
			if now, _ := there.engine.Head(t.Context(), red.Tenant); now != head {
				t.Errorf("the head moved to %+v", now)
			}
		})
	}
}

// An unfinished import is rejected if its events in the store differ from the export.
func TestForkIsRefused(t *testing.T) {
	here, red, _ := town(t, 15)
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "red")
	if err := here.retire(dir); err != nil {
		t.Fatal(err)
	}
	// The organization continues in two places, which must not happen.
	var exports []string
	for _, name := range []string{"one", "two"} {
		there := newHouse(t, model(t), here.keyring)
		there.now = here.now
		there.imports(dir, "")
		there.start()
		moved := red.at(there)
		moved.made += len(name) + int(name[0])
		moved.send(3)
		there.stop()
		export := filepath.Join(t.TempDir(), name)
		there.export(export, "")
		exports = append(exports, export)
	}
	here.imports(exports[0], "")
	if err := here.tryExport(filepath.Join(t.TempDir(), "x"), ""); err != nil {
		t.Fatal(err)
	}
	_, err := here.tryImport(exports[1], "")
	if !errors.Is(err, transfer.ErrRefused) || !strings.Contains(err.Error(), "in the store differ") {
		t.Errorf("got %v", err)
	}
}

// Directories that are not an export, or that others can access, are left unchanged.
func TestExportRefusesFolders(t *testing.T) {
	here, _, _ := town(t, 3)
	other := t.TempDir()
	if err := os.Chmod(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "letter.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	inside := filepath.Join(t.TempDir(), "inside")
	here.export(inside, "red")
	organizations, err := filepath.Glob(filepath.Join(inside, "*-*"))
	if err == nil {
		err = os.WriteFile(filepath.Join(organizations[0], "letter.txt"), []byte("x"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"with something else": other, "open to others": open, "with something else inside": inside} {
		if err := here.tryExport(dir, ""); !errors.Is(err, transfer.ErrRefused) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// An export of another store in the same directory.
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "red")
	fork := newHouse(t, model(t), here.keyring)
	fork.imports(dir, "")
	fork.now = here.now
	fork.start()
	tenant, err := fork.orgs.BySlug(t.Context(), "red")
	if err == nil {
		name := "Other"
		_, err = fork.orgs.Change(t.Context(), tenant, "acc_x", org.Patch{Name: &name})
	}
	if err != nil {
		t.Fatal(err)
	}
	fork.stop()
	fork.export(dir, "red")
	if err := here.tryExport(dir, "red"); !errors.Is(err, transfer.ErrDamaged) {
		t.Errorf("a folder with more than the store has: got %v", err)
	}
}
