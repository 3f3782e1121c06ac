package transfer_test

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// half imports a part of red's export and is interrupted.
func (h *house) half(dir string) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	i := &transfer.Importer{Place: h.place(h.openAnchors()), Dir: dir, Report: func(p transfer.Progress) {
		if p.Step == "importing" && p.Events > 0 {
			cancel()
		}
	}}
	if _, err := i.Run(ctx, "red"); err == nil {
		h.t.Fatal("it was not cut off")
	}
}

func (h *house) drop(name string) ([]id.Origin, error) {
	h.t.Helper()
	anchors := h.openAnchors()
	defer anchors.Close()
	return transfer.Drop(h.t.Context(), h.place(anchors), name)
}

// An unfinished import is dropped without a trace, on each engine. Then it can begin again, also from another export.
func TestDropImport(t *testing.T) {
	here := newHouse(t, model(t), newKeyring(t))
	here.start()
	red, blue := here.found("red", "ann@example.com", 5), here.found("blue", "bob@example.com", 6)
	red.live(20)
	red.send(2500) // more than is in flight at a time
	blue.live(10)
	here.stop()
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "")
	for name, engine := range map[string]func(testing.TB) storagetest.Engine{"pebble": pebble, "postgres": postgres} {
		t.Run(name, func(t *testing.T) {
			there := newHouse(t, engine(t), here.keyring)
			there.imports(dir, "blue")
			before := serviceRecords(t, there.engine)
			there.half(dir)
			if head, err := there.engine.Head(t.Context(), red.Tenant); err != nil || head.Size == 0 {
				t.Fatalf("got %+v, %v", head, err)
			}
			organization := red.State.Identity().Organization.String()
			dropped, err := there.drop(organization)
			if err != nil || len(dropped) != 1 || dropped[0] != red.State.Identity().Origin {
				t.Fatalf("got %v, %v", dropped, err)
			}
			if _, err := there.engine.Head(t.Context(), red.Tenant); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("head: got %v", err)
			}
			if left := collect(t, there.engine.Partition(t.Context(), red.Tenant)); len(left) > 0 {
				t.Errorf("%d records are left", len(left))
			}
			// The names stay claimed for its tenant, and go to whoever creates an organization under them.
			if after := serviceRecords(t, there.engine); len(after) != len(before)+2 {
				t.Errorf("%d records in the service's partition, %d before", len(after), len(before))
			}
			same(t, there.engine, here.engine, blue.Tenant)
			there.fsck()
			there.start()
			if _, err := there.orgs.BySlug(t.Context(), "red"); !fault.Is(err, fault.NotFound) {
				t.Errorf("by slug: got %v", err)
			}
			there.stop()
			there.imports(dir, "red")
			same(t, there.engine, here.engine, red.Tenant)
			sameService(t, there.engine, here.engine)
			there.now = here.now
			there.start()
			red.at(there).works()
			there.stop()
			there.fsck()
		})
	}
}

// After a drop, the organization can be imported from a newer export.
func TestDropAndComeFromAnotherExport(t *testing.T) {
	here := newHouse(t, model(t), newKeyring(t))
	here.start()
	red := here.found("red", "ann@example.com", 5)
	red.send(2500)
	here.stop()
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "red")
	there := newHouse(t, model(t), here.keyring)
	there.half(dir)
	// The same organization, with other events.
	fork := newHouse(t, model(t), here.keyring)
	longer := filepath.Join(t.TempDir(), "longer")
	fork.imports(dir, "")
	fork.now = here.now
	fork.start()
	forked := red.at(fork)
	forked.made += 10_000
	forked.send(30)
	fork.stop()
	fork.export(longer, "red")
	there.imports(longer, "red") // it continues with an export that extends it
	again := newHouse(t, model(t), here.keyring)
	again.half(dir)
	if _, err := again.drop("red"); !errors.Is(err, transfer.ErrRefused) || !strings.Contains(err.Error(), "organization's ID") {
		t.Errorf("by slug: got %v", err)
	}
	if _, err := again.drop(red.State.Identity().Organization.String()); err != nil {
		t.Fatal(err)
	}
	again.imports(longer, "red")
	same(t, again.engine, there.engine, red.Tenant)
	again.fsck()
}

// An organization that was imported completely, that was never imported, or that was here before is not dropped.
func TestDropRefuses(t *testing.T) {
	here := newHouse(t, model(t), newKeyring(t))
	here.start()
	red, blue := here.found("red", "ann@example.com", 5), here.found("blue", "bob@example.com", 6)
	red.send(2500)
	blue.send(3)
	here.stop()
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "")
	there := newHouse(t, model(t), here.keyring)
	there.imports(dir, "blue")
	there.half(dir)
	contents := contentsOf(t, there.engine, blue.Tenant)
	for name, c := range map[string]struct{ organization, want string }{
		"finished": {blue.State.Identity().Organization.String(), "unfinished imports: " + red.State.Identity().Organization.String()},
		"unknown":  {"8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11", "no unfinished import of"},
		"nothing":  {"", "organization's ID"},
	} {
		if _, err := there.drop(c.organization); !errors.Is(err, transfer.ErrRefused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := here.drop(red.State.Identity().Organization.String()); !errors.Is(err, transfer.ErrRefused) {
		t.Errorf("where it lives: got %v", err)
	}
	if got := contentsOf(t, there.engine, blue.Tenant); !reflect.DeepEqual(got, contents) {
		t.Error("the other organization changed")
	}
	// An organization that comes back still has its old events here.
	there.imports(dir, "red")
	if err := here.retire(dir); err != nil {
		t.Fatal(err)
	}
	there.now = here.now
	there.start()
	red.at(there).send(2500)
	there.stop()
	back := filepath.Join(t.TempDir(), "back")
	there.export(back, "red")
	here.half(back)
	if _, err := here.drop(red.State.Identity().Organization.String()); !errors.Is(err, transfer.ErrRefused) || !strings.Contains(err.Error(), "was here before") {
		t.Errorf("one that comes back: got %v", err)
	}
	here.imports(back, "red")
	here.fsck()
}
