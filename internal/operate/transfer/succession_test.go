package transfer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/verify"
)

// succession runs the succeed command.
func (h *house) succession(name, reason string, note []byte) (transfer.Successor, error) {
	h.t.Helper()
	s := transfer.Succession{Place: h.place(h.openAnchors()), Organization: name, Reason: reason, Checkpoint: note, Clock: h.clock}
	return s.Run(h.t.Context())
}

// freeze marks an organization's ledger of a running server as frozen.
func (h *house) freeze(r *resident) {
	h.t.Helper()
	if err := h.ledgers.Freeze(h.t.Context(), r.Tenant, "a test"); err != nil {
		h.t.Fatal(err)
	}
}

// succeeded returns the same organization with its newest ledger, on a running server.
func (r *resident) succeeded() *resident {
	r.t.Helper()
	t, err := r.orgs.BySlug(r.t.Context(), r.Slug)
	if err != nil {
		r.t.Fatal(err)
	}
	successor, made := *r, *r.Result
	made.Tenant, made.State = t, r.state(t)
	successor.Result, successor.rotating = &made, false
	return &successor
}

// An organization whose ledger is frozen continues with another one, on each engine: with everything that it has, and
// without recording anything twice.
func TestSucceed(t *testing.T) {
	for name, engine := range map[string]func(testing.TB) storagetest.Engine{"pebble": pebble, "postgres": postgres} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, engine(t), newKeyring(t))
			h.start()
			red, blue := h.found("red", "ann@example.com", 5), h.found("blue", "ann@example.com", 6)
			red.live(60)
			blue.live(30)
			if err := red.activate(); err != nil {
				t.Fatal(err)
			}
			if err := red.ask(); err != nil {
				t.Fatal(err)
			}
			token := red.token()
			old := h.state(red.Tenant)
			used, open := old.Used(id.InstantOf(h.now)), red.open()
			h.freeze(red)
			h.stop()
			before := contentsOf(t, h.engine, blue.Tenant)
			successor, err := h.succession("red", "a test of it", nil)
			if err != nil {
				t.Fatal(err)
			}
			if successor.Origin != old.Identity().Origin+"/2" || successor.Predecessor != old.Identity().Origin || successor.LastSize != old.Size() || successor.Organization != old.Identity().Organization {
				t.Errorf("got %+v", successor)
			}
			h.fsck()
			h.start()
			now := red.succeeded()
			if got := h.state(now.Tenant); got.Size() != 1 || got.Used(id.InstantOf(h.now)) != used || got.VerifierKey().String() != successor.LogKey || got.Fault().Level != log.Healthy {
				t.Errorf("got size %d, %d used of %d, %v", got.Size(), got.Used(id.InstantOf(h.now)), used, got.Fault())
			}
			now.saysWhatItSucceeds(old)
			if _, err := h.accounts.Session(t.Context(), token); err == nil {
				t.Error("a session in the old ledger's organization is still good")
			}
			if got := now.open(); len(open) == 0 || !reflect.DeepEqual(got, open) {
				t.Errorf("got open approvals %v, want %v", got, open)
			}
			if _, _, there, err := h.approvals.GrantKey(t.Context(), now.Tenant); there || err != nil {
				t.Errorf("it has a grant key of another name: %v, %v", there, err)
			}
			h.lists(now, blue)
			now.works()
			now.live(25)
			if err := func() error {
				_, err := h.ledgers.Append(t.Context(), red.Tenant, red.prepare(red.envelope("late"), ""))
				return err
			}(); fault.Of(err).Code != "frozen" {
				t.Errorf("the frozen ledger: got %v", err)
			}
			h.stop()
			h.fsck()
			if after := contentsOf(t, h.engine, blue.Tenant); !reflect.DeepEqual(after, before) {
				t.Error("the other organization changed")
			}
			h.start()
			blue.at(h).works()
			h.stop()
		})
	}
}

// lists checks that exactly the logs of these residents are listed for witnesses.
func (h *house) lists(residents ...*resident) {
	h.t.Helper()
	var got, want []string
	for _, t := range collect(h.t, h.engine.Tenants(h.t.Context())) {
		listing, ok, err := h.ledgers.Listing(h.t.Context(), t)
		if err != nil {
			h.t.Fatal(err)
		}
		if ok {
			got = append(got, listing.Key.String())
		}
	}
	for _, r := range residents {
		want = append(want, h.state(r.Tenant).VerifierKey().String())
	}
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		h.t.Errorf("got %q, want %q", got, want)
	}
}

// token opens a session of the owner and returns its token.
func (r *resident) token() string {
	r.t.Helper()
	who, err := r.accounts.Authenticate(r.t.Context(), r.owner, password, netip.MustParseAddr("192.0.2.1"))
	if err != nil {
		r.t.Fatal(err)
	}
	token, _, err := r.accounts.Open(r.t.Context(), who, r.Tenant)
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

// open returns the waiting approvals.
func (r *resident) open() (all []approval.ID) {
	r.t.Helper()
	found, err := r.approvals.List(r.t.Context(), r.Tenant, approval.Filter{Status: approval.Pending}, "", 100)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, a := range found.Approvals {
		all = append(all, a.ID)
	}
	return all
}

// saysWhatItSucceeds checks the first event.
func (r *resident) saysWhatItSucceeds(old *log.State) {
	r.t.Helper()
	s := r.state(r.Tenant)
	e, err := r.ledgers.Event(r.t.Context(), s, 0, storage.FieldRecord|storage.FieldEnvelope)
	if err != nil {
		r.t.Fatal(err)
	}
	statement, err := verify.ReadSuccession(s.Identity().Origin, log.EntryOf(e), e.Record, e.Envelope)
	if err != nil || statement.Predecessor != old.Identity().Origin || statement.Checkpoint != string(old.Checkpoint()) || statement.Reason != "a test of it" || e.Disclosure != id.DiscloseFull {
		r.t.Errorf("got %+v, %v, %v", statement, e.Disclosure, err)
	}
}

// A second successor follows the first one, and knows what was recorded in both.
func TestSucceedAgain(t *testing.T) {
	h := newHouse(t, model(t), newKeyring(t))
	h.start()
	red := h.found("red", "ann@example.com", 5)
	red.live(10)
	red.send(3)
	for _, origin := range []id.Origin{"/2", "/3"} {
		h.freeze(red)
		h.stop()
		successor, err := h.succession(red.State.Identity().Organization.String(), "a test of it", nil)
		if err != nil || !strings.HasSuffix(string(successor.Origin), string(origin)) {
			t.Fatalf("got %+v, %v", successor, err)
		}
		h.fsck()
		h.start()
		red = red.succeeded()
		red.send(5)
		red.works()
	}
	h.stop()
	h.fsck()
}

// counting fails every write of a store from a certain one on.
type counting struct {
	*storagetest.Model
	left int
}

func (c *counting) spend() error {
	if c.left--; c.left < 0 {
		return storage.ErrUnavailable
	}
	return nil
}

func (c *counting) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	if err := c.spend(); err != nil {
		return err
	}
	return c.Model.Write(ctx, t, changes)
}

func (c *counting) Append(batches []storage.Batch) storage.Pending {
	if err := c.spend(); err != nil {
		return refusing{err, len(batches)}
	}
	return c.Model.Append(batches)
}

// refusing is an append that failed without an effect.
type refusing struct {
	err error
	n   int
}

func (r refusing) Wait() []error {
	all := make([]error, r.n)
	for i := range all {
		all[i] = r.err
	}
	return all
}

// A succession that was interrupted at any step can be continued. In the meantime nothing is acknowledged that would be
// lost, and the organization is found exactly once.
func TestSuccessionCutOff(t *testing.T) {
	for step := 0; ; step++ {
		h := newHouse(t, model(t), newKeyring(t))
		h.start()
		red, blue := h.found("red", "ann@example.com", 5), h.found("blue", "bob@example.com", 6)
		red.live(6)
		red.send(2)
		blue.send(2)
		h.freeze(red)
		h.stop()
		whole := h.engine.(*storagetest.Model)
		h.engine = &counting{Model: whole, left: step}
		_, err := h.succession("red", "a test of it", nil)
		h.engine = whole
		if err == nil {
			if step < 5 {
				t.Errorf("it took %d writes", step)
			}
			return
		}
		h.start()
		if tenant, err := h.orgs.BySlug(t.Context(), "red"); err != nil || tenant != red.Tenant {
			t.Errorf("step %d: the slug leads to %d, %v", step, tenant, err)
		}
		if caller, err := h.orgs.Authenticate(t.Context(), red.Token.Reveal()); err != nil || caller.Tenant == blue.Tenant {
			t.Errorf("step %d: ingest key: %+v, %v", step, caller, err)
		}
		h.stop()
		if _, err := h.succession("red", "a test of it", nil); err != nil {
			t.Fatalf("step %d: again: %v", step, err)
		}
		h.fsck()
		h.start()
		now := red.succeeded()
		now.saysWhatItSucceeds(h.state(red.Tenant))
		now.works()
		blue.works()
		h.stop()
		h.fsck()
	}
}

func TestSucceedRefuses(t *testing.T) {
	h := newHouse(t, model(t), newKeyring(t))
	h.start()
	red, blue := h.found("red", "ann@example.com", 5), h.found("blue", "bob@example.com", 6)
	red.send(3)
	early := string(h.state(red.Tenant).Checkpoint())
	red.send(3)
	foreign := string(h.state(blue.Tenant).Checkpoint())
	h.stop()
	refuse := func(name, organization, reason, note, want string) {
		t.Helper()
		_, err := h.succession(organization, reason, []byte(note)[:len(note):len(note)])
		if note == "" {
			_, err = h.succession(organization, reason, nil)
		}
		if !errors.Is(err, transfer.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to say %q", name, err, want)
		}
	}
	refuse("healthy", "red", "x", "", "not frozen")
	h.start()
	h.freeze(red)
	h.stop()
	refuse("unknown", "green", "x", "", "no organization green")
	refuse("unknown id", "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11", "x", "", "no organization")
	refuse("no reason", "red", "", "", "the reason must")
	refuse("long reason", "red", strings.Repeat("x", 1025), "", "the reason must")
	refuse("reason with a line end", "red", "a\nb", "", "control characters")
	refuse("reason that is no text", "red", "a\xff", "", "the reason must")
	refuse("another log's checkpoint", "red", "x", foreign, "not belong to this log")
	refuse("no checkpoint", "red", "x", "hello", "not belong to this log")
	refuse("older checkpoint", "red", "x", early, "omit it")
	if tenants := collect(t, h.engine.Tenants(t.Context())); len(tenants) != 2 {
		t.Errorf("got %d ledgers", len(tenants))
	}
	refuse("the other one", "blue", "x", "", "not frozen")
}

// If somebody saw more than the frozen ledger has, that is what is named, and the frozen ledger never shows less again.
// The neighbour is unchanged.
func TestSucceedFromANewerCheckpoint(t *testing.T) {
	for name, c := range map[string]struct {
		lost   bool
		others int // events accepted in place of the lost ones
	}{"the newer events are lost": {lost: true}, "others are in their place": {lost: true, others: 2}, "they are all there": {}} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, model(t), newKeyring(t))
			h.start()
			red, blue := h.found("red", "ann@example.com", 5), h.found("blue", "bob@example.com", 6)
			red.send(3)
			blue.send(2)
			older := h.engine.(*storagetest.Model).Reopen()
			red.send(4)
			shown, note := h.state(red.Tenant).Shown(), []byte(string(h.state(red.Tenant).Checkpoint()))
			neighbour := h.state(blue.Tenant).Shown()
			h.stop()
			if c.lost {
				h.engine = older
				red.events, red.keys = red.events[:3], red.keys[:3]
			}
			h.anchors = t.TempDir()
			h.start()
			for _, r := range []*resident{red, blue} {
				if level := h.state(r.Tenant).Fault().Level; level != log.ReadOnly {
					t.Fatalf("got %v", level)
				}
				if err := h.ledgers.Adopt(t.Context(), r.Tenant, h.state(r.Tenant).Checkpoint()); err != nil {
					t.Fatal(err)
				}
			}
			red.at(h).send(c.others)
			h.freeze(red) // as a witness does that has seen the newer one
			before := h.state(red.Tenant).Shown()
			h.stop()
			successor, err := h.succession("red", "a test", note)
			if err != nil || successor.LastSize != 7 {
				t.Fatalf("got %+v, %v", successor, err)
			}
			h.start()
			old := h.state(red.Tenant)
			if got := old.Shown(); got != shown || old.Detached() != c.lost {
				t.Errorf("got %+v, detached %v; want %+v; before it was of size %d", got, old.Detached(), shown, before.Size)
			}
			if next, err := h.ledgers.Successor(t.Context(), old); err != nil || next == nil || next.Identity().Origin != successor.Origin {
				t.Errorf("successor: got %v, %v", next, err)
			}
			red.succeeded().works()
			if got := h.state(blue.Tenant).Shown(); got != neighbour {
				t.Errorf("the neighbour shows %+v, want %+v", got, neighbour)
			}
			h.stop()
			h.fsck()
		})
	}
}

// A store that is restored to a state before a succession does not use the old ledger again.
func TestSuccessionIsNotForgotten(t *testing.T) {
	h := newHouse(t, model(t), newKeyring(t))
	h.start()
	red := h.found("red", "ann@example.com", 5)
	red.send(3)
	h.stop()
	older := h.engine.(*storagetest.Model).Reopen()
	h.start()
	h.freeze(red)
	h.stop()
	if _, err := h.succession("red", "a test", nil); err != nil {
		t.Fatal(err)
	}
	h.engine = older
	h.start()
	if s := h.state(red.Tenant); s.Fault().Level != log.Frozen || s.Detached() {
		t.Errorf("got %v, detached %v", s.Fault(), s.Detached())
	}
	h.stop()
	if _, err := h.succession("red", "a test", nil); !errors.Is(err, transfer.ErrRefused) || !strings.Contains(err.Error(), "was shown before") {
		t.Errorf("got %v", err)
	}
	// It had no effect.
	if tenants := collect(t, h.engine.Tenants(t.Context())); len(tenants) != 1 {
		t.Errorf("got %d ledgers", len(tenants))
	}
}

// A chain of logs moves completely: from engine to engine and back, sound logs and one that lost its end, and it
// continues where it arrived.
func TestLineMoves(t *testing.T) {
	keyring := newKeyring(t)
	here := newHouse(t, model(t), keyring)
	here.start()
	red, blue := here.found("red", "ann@example.com", 5), here.found("blue", "bob@example.com", 6)
	red.live(25)
	red.send(5)
	blue.live(10)
	older := here.engine.(*storagetest.Model).Reopen()
	red.send(2) // published, then lost
	red.events, red.keys = red.events[:len(red.events)-2], red.keys[:len(red.keys)-2]
	here.stop()
	here.engine = older
	for range 2 {
		if _, err := here.succession("red", "a test of it", nil); err != nil {
			t.Fatal(err)
		}
		here.start()
		red = red.succeeded()
		red.live(4)
		red.send(3)
		here.freeze(red)
		here.stop()
	}
	if _, err := here.succession("red", "a test of it", nil); err != nil {
		t.Fatal(err)
	}
	here.start()
	red = red.succeeded()
	red.send(2)
	here.stop()
	for _, engine := range []storagetest.Engine{postgres(t), pebble(t)} {
		there := newHouse(t, engine, keyring)
		dir := filepath.Join(t.TempDir(), "export")
		here.export(dir, "")
		if err := here.retire(dir); err != nil {
			t.Fatal(err)
		}
		if got := len(there.imports(dir, "")); got != 5 {
			t.Errorf("%d ledgers arrived, want 5", got)
		}
		for _, a := range there.imports(dir, "") {
			if !a.There {
				t.Errorf("again: got %+v", a)
			}
		}
		there.fsck()
		line := tenantsOfLine(t, here.engine, red.Tenant)
		if len(line) != 4 {
			t.Fatalf("got a line of %d", len(line))
		}
		for _, tenant := range line {
			same(t, there.engine, here.engine, tenant)
		}
		sameService(t, there.engine, here.engine)
		here.start()
		there.now = here.now
		there.start()
		for _, tenant := range line[1:] {
			got, want := there.state(tenant), here.state(tenant)
			if string(got.Checkpoint()) != string(want.Checkpoint()) || got.Detached() != want.Detached() || got.Fault().Level != log.Frozen {
				t.Errorf("%s: got %s, %+v, want %s", want.Identity().Origin, got.Checkpoint(), got.Fault(), want.Checkpoint())
			}
		}
		here.stop()
		red = red.at(there)
		red.works()
		red.live(3)
		there.stop()
		there.fsck()
		here = there
	}
}

// tenantsOfLine returns the tenants of a chain, newest first.
func tenantsOfLine(t testing.TB, e storagetest.Engine, newest id.Tenant) (all []id.Tenant) {
	t.Helper()
	for newest != 0 {
		all = append(all, newest)
		r, err := e.Get(t.Context(), newest, "ledger", "")
		if err != nil {
			t.Fatal(err)
		}
		var identity struct {
			Predecessor struct {
				Tenant id.Tenant `json:"tenant"`
			} `json:"predecessor"`
		}
		if err := json.Unmarshal(r.Value, &identity); err != nil {
			t.Fatal(err)
		}
		newest = identity.Predecessor.Tenant
	}
	return all
}

// If the newest log of a chain cannot be imported, none is.
func TestLineIsRefusedWhole(t *testing.T) {
	here := newHouse(t, model(t), newKeyring(t))
	here.start()
	red := here.found("red", "ann@example.com", 5)
	red.send(3)
	here.freeze(red)
	here.stop()
	if _, err := here.succession("red", "a test of it", nil); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "export")
	here.export(dir, "red")
	there := newHouse(t, model(t), here.keyring)
	there.start()
	there.found("red", "eve@example.com", 9)
	there.stop()
	if _, err := there.tryImport(dir, ""); !errors.Is(err, transfer.ErrRefused) {
		t.Errorf("got %v", err)
	}
	if tenants := collect(t, there.engine.Tenants(t.Context())); len(tenants) != 1 {
		t.Errorf("got %d ledgers", len(tenants))
	}
	if done, err := here.checkExport(dir, "red"); err != nil || len(done) != 2 {
		t.Errorf("check: got %v, %v", done, err)
	}
}

// Records about one log stay with it; the organization's records go over unchanged.
func TestWhatGoesOver(t *testing.T) {
	h := newHouse(t, model(t), newKeyring(t))
	h.start()
	red := h.found("red", "ann@example.com", 5)
	red.live(10)
	red.send(2)
	h.freeze(red)
	h.stop()
	stay := []storage.Kind{"directory_listed", "witnessed", "grant_key", "run_step", "run_list", "run_late", "run_newest", "run_tally", "run_external"}
	for _, kind := range stay {
		if err := h.engine.Write(t.Context(), red.Tenant, []storage.Change{{Kind: kind, Key: "k", Value: []byte("{}"), If: storage.AnyVersion}}); err != nil {
			t.Fatal(err)
		}
	}
	before := collect(t, h.engine.Partition(t.Context(), red.Tenant))
	if _, err := h.succession("red", "a test of it", nil); err != nil {
		t.Fatal(err)
	}
	h.start()
	now := red.succeeded()
	h.stop()
	has := map[string]storage.Record{}
	for _, r := range collect(t, h.engine.Partition(t.Context(), now.Tenant)) {
		has[string(r.Kind)+"/"+r.Key] = r
	}
	own := append(stay, "ledger", "ledger_fault", "ledger_reverified", "ledger_successor")
	for _, r := range before {
		got, there := has[string(r.Kind)+"/"+r.Key]
		delete(has, string(r.Kind)+"/"+r.Key)
		if slices.Contains(own, r.Kind) {
			if there && r.Kind != "ledger" {
				t.Errorf("%s %q went over", r.Kind, r.Key)
			}
			continue
		}
		if !there || !reflect.DeepEqual(got, r) {
			t.Errorf("%s %q: got %v, want %v", r.Kind, r.Key, got, r)
		}
	}
	for name := range has {
		if strings.HasPrefix(name, "event_source/ledger_successor:") {
			continue // written by the first event of the new log
		}
		t.Errorf("%s came from nowhere", name)
	}
	for _, r := range serviceRecords(t, h.engine) {
		if strings.Contains(string(r.Value), fmt.Sprintf(`"tenant":%d`, red.Tenant)) {
			t.Errorf("%s %q leads to the old ledger", r.Kind, r.Key)
		}
	}
}
