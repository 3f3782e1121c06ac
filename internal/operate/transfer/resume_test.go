package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// town is a stopped service with two organizations.
func town(t testing.TB, acts int) (here *house, red, blue *resident) {
	t.Helper()
	here = newHouse(t, model(t), newKeyring(t))
	here.start()
	red, blue = here.found("red", "ann@example.com", 3), here.found("blue", "bob@example.com", 4)
	red.live(acts)
	blue.live(acts)
	here.stop()
	return here, red, blue
}

// cut cancels a context at a random step.
func cut(t testing.TB, random *rand.Rand, steps int) (ctx context.Context, report func(transfer.Progress)) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	left := random.IntN(steps)
	return ctx, func(p transfer.Progress) {
		if p.Step == "checking" && random.IntN(100) > 0 {
			return
		}
		if left--; left < 0 {
			cancel()
		}
	}
}

// An export that is interrupted again and again is equal to one that is not.
func TestResumedExport(t *testing.T) {
	here, _, _ := town(t, 45)
	whole := filepath.Join(t.TempDir(), "whole")
	here.export(whole, "")
	random := rand.New(rand.NewPCG(1, 1))
	for range 5 {
		dir := filepath.Join(t.TempDir(), "cut")
		cuts := 0
		for {
			ctx, report := cut(t, random, 12)
			anchors := here.openAnchors()
			x := here.exporter(dir, anchors)
			x.Report = report
			_, err := x.Run(ctx, "")
			anchors.Close()
			if err == nil {
				break
			}
			if cuts++; !errors.Is(err, context.Canceled) || cuts > 200 {
				t.Fatalf("after %d cuts: %v", cuts, err)
			}
			if _, err := here.checkExport(dir, ""); !errors.Is(err, transfer.ErrDamaged) {
				t.Fatalf("an export that is not whole: got %v", err)
			}
		}
		wantSameFiles(t, files(t, dir), files(t, whole))
	}
}

// wantSameFiles compares exports, except for the times at which they were made.
func wantSameFiles(t testing.TB, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("got %d files, want %d", len(got), len(want))
	}
	moment := regexp.MustCompile(`"exported_at":"[^"]*"|"(sha256|authenticator)":"[0-9a-f]*"`)
	for name, w := range want {
		g := got[name]
		if filepath.Base(name) == "manifest.ndjson" {
			g, w = moment.ReplaceAllString(g, ""), moment.ReplaceAllString(w, "")
		}
		if g != w {
			t.Errorf("%s differs", name)
		}
	}
}

// A complete export continues after the store did.
func TestExportAgain(t *testing.T) {
	here, red, _ := town(t, 20)
	dir := filepath.Join(t.TempDir(), "again")
	here.export(dir, "")
	before := files(t, dir)
	here.start()
	red.live(20)
	here.stop()
	here.export(dir, "")
	kept := 0
	for name, text := range files(t, dir) {
		if before[name] == text {
			kept++
		}
	}
	if kept < 3 {
		t.Errorf("%d files were kept", kept)
	}
	there := newHouse(t, model(t), here.keyring)
	there.imports(dir, "")
	same(t, there.engine, here.engine, red.Tenant)
}

// An import that is interrupted again and again, on either engine, ends with the same store. In between, the store
// serves none of it.
func TestResumedImport(t *testing.T) {
	here, red, blue := town(t, 100)
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "")
	for name, engine := range map[string]func(testing.TB) storagetest.Engine{"pebble": pebble, "postgres": postgres} {
		t.Run(name, func(t *testing.T) {
			there := newHouse(t, engine(t), here.keyring)
			there.now = here.now
			random := rand.New(rand.NewPCG(2, 2))
			for cuts := 0; ; cuts++ {
				ctx, report := cut(t, random, 6)
				i := transfer.Importer{Place: there.place(there.openAnchors()), Dir: dir, Report: report}
				_, err := i.Run(ctx, "")
				if err == nil {
					t.Logf("%d cuts", cuts)
					break
				}
				if !errors.Is(err, context.Canceled) || cuts > 200 {
					t.Fatalf("after %d cuts: %v", cuts, err)
				}
				there.hides(red, blue)
			}
			same(t, there.engine, here.engine, red.Tenant)
			same(t, there.engine, here.engine, blue.Tenant)
			sameService(t, there.engine, here.engine)
			there.fsck()
		})
	}
}

// hides starts a server on the current state and checks that it serves nothing that is not completely imported.
func (h *house) hides(all ...*resident) {
	h.t.Helper()
	if len(collect(h.t, h.engine.Tenants(h.t.Context()))) == 0 {
		return
	}
	h.fsck()
	h.start()
	defer h.stop()
	for _, r := range all {
		moved := r.at(h)
		t, err := h.orgs.BySlug(h.t.Context(), r.Slug)
		if err == nil {
			continue // already imported
		}
		if !fault.Is(err, fault.NotFound) || t != 0 {
			h.t.Errorf("%s: by slug: got %d, %v", r.Slug, t, err)
		}
		if _, err := h.orgs.ByID(h.t.Context(), r.State.Identity().Organization); !fault.Is(err, fault.NotFound) {
			h.t.Errorf("%s: by id: got %v", r.Slug, err)
		}
		if _, err := h.ledgers.State(h.t.Context(), r.Tenant); fault.Is(err, fault.NotFound) {
			continue
		}
		_, err = h.ledgers.Append(h.t.Context(), r.Tenant, moved.prepare(moved.envelope("early"), ""))
		wantCode(h.t, err, "importing")
	}
}

// While an organization is being imported, its names belong to it.
func TestNamesOfWhatIsOnItsWay(t *testing.T) {
	here, red, _ := town(t, 20)
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "red")
	there := newHouse(t, model(t), here.keyring)
	ctx, cancel := context.WithCancel(t.Context())
	i := transfer.Importer{Place: there.place(there.openAnchors()), Dir: dir, Report: func(p transfer.Progress) {
		if p.Step == "importing" {
			cancel()
		}
	}}
	if _, err := i.Run(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	there.now = here.now
	there.start()
	if _, err := there.orgs.Authenticate(t.Context(), red.Token.Reveal()); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("ingest key: got %v", err)
	}
	// Somebody still takes the slug: a claim without an organization can be taken over. Then the import is refused, and
	// nothing of the new organization is lost.
	other, err := there.founder.CreateOrganization(t.Context(), provision.Request{Name: "Other", Slug: "red", AdminEmail: "eve@example.com", AdminPassword: password})
	if err != nil {
		t.Fatal(err)
	}
	there.stop()
	if _, err := there.tryImport(dir, ""); !errors.Is(err, transfer.ErrRefused) {
		t.Errorf("got %v", err)
	}
	there.start()
	defer there.stop()
	if got, err := there.orgs.BySlug(t.Context(), "red"); err != nil || got != other.Tenant {
		t.Errorf("slug: got %d, %v", got, err)
	}
}

// If the store fails in the middle of an import, the import retries or ends; the result is the same in the end.
func TestImportIntoAFailingStore(t *testing.T) {
	here, red, blue := town(t, 45)
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "")
	random := rand.New(rand.NewPCG(3, 3))
	store := storagetest.NewModel()
	there := newHouse(t, store, here.keyring)
	store.Fail(func(storage.Batch) storagetest.Failure {
		if random.IntN(4) > 0 {
			return storagetest.NoFailure
		}
		return []storagetest.Failure{storagetest.Refused, storagetest.RequestLost, storagetest.AnswerLost}[random.IntN(3)]
	})
	failed := 0
	for ; ; failed++ {
		_, err := there.tryImport(dir, "")
		if err == nil {
			break
		}
		if failed > 100 {
			t.Fatal(err)
		}
	}
	t.Logf("%d imports failed", failed)
	store.Fail(nil)
	same(t, store, here.engine, red.Tenant)
	same(t, store, here.engine, blue.Tenant)
	sameService(t, store, here.engine)
	there.fsck()
}

// An import that is interrupted after its store answered late leaves no anchor for what is not completely imported.
func TestCutOffImportIsNotAnchored(t *testing.T) {
	here := newHouse(t, model(t), newKeyring(t))
	here.start()
	red := here.found("red", "ann@example.com", 3)
	for range 3 {
		red.send(2000) // more than is in flight at a time
	}
	here.stop()
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "red")
	store := storagetest.NewModel()
	there := newHouse(t, store, here.keyring)
	store.Fail(func(b storage.Batch) storagetest.Failure {
		if len(b.Events) > 0 {
			return storagetest.AnswerLost
		}
		return storagetest.NoFailure
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	i := transfer.Importer{Place: there.place(there.openAnchors()), Dir: dir, Report: func(p transfer.Progress) {
		if p.Step == "importing" && p.Events > 0 {
			cancel()
		}
	}}
	if _, err := i.Run(ctx, ""); err == nil {
		t.Fatal("it was not cut off")
	}
	if head, err := store.Head(t.Context(), red.Tenant); err != nil || head.Size == 0 || head.Size == 6000 {
		t.Fatalf("got %+v, %v", head, err)
	}
	there.anchorsWholeOnly(red)
}

// anchorsWholeOnly checks that no anchor covers a part of an unfinished import: it would remain if the import were
// dropped.
func (h *house) anchorsWholeOnly(all ...*resident) {
	h.t.Helper()
	journal, err := os.ReadFile(filepath.Join(h.anchors, "anchors.journal"))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, r := range all {
		origin := string(r.State.Identity().Origin)
		head, err := r.engine.Head(h.t.Context(), r.Tenant)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(regexp.QuoteMeta(origin)+`\n(\d+)\n`).FindAllSubmatch(journal, -1) {
			if string(found[1]) != fmt.Sprint(head.Size) {
				h.t.Errorf("%s: an anchor at size %s of %d", origin, found[1], head.Size)
			}
		}
	}
}
