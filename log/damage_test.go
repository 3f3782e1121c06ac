package log_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/tlog"
)

// Families of keys of package pebblestore.
const (
	headFamily = iota + 1
	entryFamily
	recordFamily // with the envelope after it, because these are short
	_
	tileFamily
	rootFamily
	eventFamily
	idempotencyFamily
	counterFamily
	storedFamily
)

const (
	damagedAt = 17
	redSize   = 259
)

// storeKey returns a key of the red organization.
func storeKey(family byte, rest ...byte) []byte {
	return append(append(binary.BigEndian.AppendUint64(nil, uint64(red)), family), rest...)
}

func at(family byte, i uint64) []byte { return binary.BigEndian.AppendUint64(storeKey(family), i) }

func tileAt(family, level byte, i uint64) []byte {
	return binary.BigEndian.AppendUint64(storeKey(family, level), i)
}

func nameAt(family byte, name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return storeKey(family, sum[:16]...)
}

func ownRecord(kind string) []byte { return storeKey(storedFamily, []byte(kind+"\x00")...) }

// Ways to damage a value.
type bend func(old []byte) []byte

func flipAt(i int) bend {
	return func(old []byte) []byte {
		old[(i+len(old))%len(old)] ^= 1
		return old
	}
}

func replace(old, new string) bend {
	return func(v []byte) []byte { return bytes.Replace(v, []byte(old), []byte(new), 1) }
}

func gone([]byte) []byte { return nil }

func short(old []byte) []byte { return old[:len(old)-1] }

// half is too short for a head.
func half(old []byte) []byte { return old[:len(old)/2] }

// bare is without the envelope, whose first member no record has.
func bare(old []byte) []byte { return old[:bytes.LastIndex(old, []byte(`{"action_kind"`))] }

func number(n uint64) bend {
	return func([]byte) []byte { return binary.BigEndian.AppendUint64(nil, n) }
}

// text is one of the ledgers' own records with this value.
func text(s string) bend {
	return func([]byte) []byte { return append([]byte{1, 1}, s...) }
}

// A value of each kind is replaced, below the store and its checksums. fsck and the re-verification find and name it
// with its consequence, nothing panics, and the other organization is not affected.
func TestDamagedValues(t *testing.T) {
	t.Parallel()
	tile := make([]byte, storage.TileSize)
	tests := []struct {
		name  string
		key   []byte
		bend  bend
		place string    // name of the place in fsck
		level log.Level // consequence, found by fsck
		known log.Level // consequence in the service; differs if loading finds it
	}{
		{"entry, of another record", at(entryFamily, damagedAt), flipAt(40), "tile 0/0", log.Frozen, log.Frozen},
		{"entry, behind another one", at(entryFamily, damagedAt), flipAt(3), "entry 17", log.Frozen, log.Frozen},
		{"entry, missing", at(entryFamily, damagedAt), gone, "entry 17", log.Frozen, log.Frozen},
		{"entry, short", at(entryFamily, damagedAt), short, "entry 17", log.Frozen, log.Frozen},
		{"last entry, of another record", at(entryFamily, redSize-1), flipAt(40), "head", log.Frozen, log.Frozen},
		{"last entry, missing", at(entryFamily, redSize-1), gone, "entry 258", log.Frozen, log.Frozen},
		{"record, changed", at(recordFamily, damagedAt), replace(`"custody"`, `"custodz"`), "record 17", log.Suspect, log.Suspect},
		{"record, missing", at(recordFamily, damagedAt), gone, "record 17", log.Suspect, log.Suspect},
		{"record, unreadable", at(recordFamily, damagedAt), func([]byte) []byte { return []byte{9} }, "record 17", log.Suspect, log.Suspect},
		{"last record, missing", at(recordFamily, redSize-1), gone, "record 258", log.Suspect, log.Suspect},
		{"columns, another kind", at(recordFamily, damagedAt), replace("tool_call", "tool_cell"), "envelope 17", log.Suspect, log.Suspect},
		{"columns, another agent", at(recordFamily, damagedAt), replace("agt_test", "agt_tesu"), "record 17", log.Suspect, log.Suspect},
		{"envelope, changed", at(recordFamily, damagedAt), flipAt(-99), "envelope 17", log.Suspect, log.Suspect},
		{"envelope, cut off", at(recordFamily, damagedAt), bare, "envelope 17", log.Suspect, log.Suspect},
		{"tile, changed", tileAt(tileFamily, 0, 0), flipAt(5000), "tile 0/0", log.Frozen, log.Frozen},
		{"tile, missing", tileAt(tileFamily, 0, 0), gone, "tile 0/0", log.Frozen, log.Frozen},
		{"tile, short", tileAt(tileFamily, 0, 0), short, "tile 0/0", log.Frozen, log.Frozen},
		{"tile, beyond the head", tileAt(tileFamily, 0, 1), func([]byte) []byte { return tile }, "tile 0/1", log.Frozen, log.Frozen},
		{"tile, above the tree", tileAt(tileFamily, 1, 0), func([]byte) []byte { return tile }, "tile 1/0", log.Frozen, log.Frozen},
		{"tile root, changed", tileAt(rootFamily, 0, 0), flipAt(7), "root of tile 0/0", log.Frozen, log.Frozen},
		{"tile root, missing", tileAt(rootFamily, 0, 0), gone, "root of tile 0/0", log.Frozen, log.Frozen},
		{"tile root, beyond the head", tileAt(rootFamily, 0, 1), func([]byte) []byte { return tile[:32] }, "tile 0/1", log.Frozen, log.Frozen},
		{"event id, of another event", nameAt(eventFamily, "base-17"), number(18), "event id of 17", log.Suspect, log.Suspect},
		{"event id, missing", nameAt(eventFamily, "base-17"), gone, "event id of 17", log.Suspect, log.Suspect},
		{"event id, unreadable", nameAt(eventFamily, "base-17"), short, "event id of 17", log.Suspect, log.Suspect},
		{"counter of the month", storeKey(headFamily), flipAt(-1 - len("events/2026-12")), "counter events/2026-12", log.Suspect, log.Suspect},
		{"counter of the month, of another one", storeKey(headFamily), short, "counter events/2026-12", log.Suspect, log.Suspect},
		{"counter of an earlier month", storeKey(counterFamily, []byte("events/2026-11")...), number(1), "counter events/2026-11", log.Suspect, log.Suspect},
		{"counter of an earlier month, unreadable", storeKey(counterFamily, []byte("events/2026-11")...), short, "counter events/2026-11", log.Suspect, log.Suspect},
		{"head, size", storeKey(headFamily), flipAt(8), "head", log.Frozen, log.Frozen},
		{"head, enormous", storeKey(headFamily), flipAt(1), "entry 259", log.Frozen, log.Frozen},
		{"head, root", storeKey(headFamily), flipAt(20), "head", log.Frozen, log.Frozen},
		{"head, last hash", storeKey(headFamily), flipAt(50), "head", log.Frozen, log.Frozen},
		{"head, last time", storeKey(headFamily), flipAt(80), "head", log.Frozen, log.Frozen},
		{"head, unreadable", storeKey(headFamily), half, "head", log.Frozen, log.Frozen},
		{"fault record, unreadable", ownRecord("ledger_fault"), text("{"), "fault record", log.Frozen, log.Frozen},
		{"fault record, of no level", ownRecord("ledger_fault"), text(`{"level":"odd"}`), "fault record", log.Frozen, log.Frozen},
		{"fault record, not even a record", ownRecord("ledger_fault"), number(9), "fault record", log.Frozen, log.Frozen},
		{"re-verification, unreadable", ownRecord("ledger_reverified"), text("{"), "re-verification record", log.Suspect, log.Healthy},
		{"re-verification, at another root", ownRecord("ledger_reverified"), text(`{"to":17,"since":"2026-12-24T12:00:00.000Z"}`), "", "", log.Healthy},
	}
	w, base := storedLedgers(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			after := w.damaged(t, base, tt.key, tt.bend)
			findings := after.fsck(after.store)
			if !found(findings, tt.place, tt.level) {
				t.Errorf("fsck: got %v, want %s at %q", findings, tt.level, tt.place)
			}
			unread := strings.HasPrefix(tt.place, "record") || strings.HasPrefix(tt.place, "envelope")
			for _, f := range findings {
				if f.Tenant != red {
					t.Errorf("fsck found a fault in the other organization: %v", f)
				}
				if unread && strings.HasPrefix(f.Place, "counter") {
					t.Errorf("fsck found a false fault: %v", f)
				}
			}
			if err := after.auditor.RunOnce(t.Context()); err != nil {
				t.Error(err)
			}
			after.readAll()
			after.judged(tt.known)
		})
	}
}

func found(findings []audit.Finding, place string, level log.Level) bool {
	for _, f := range findings {
		if strings.HasPrefix(f.Place, place) && f.Level == level {
			return true
		}
	}
	return place == "" && len(findings) == 0
}

// storedLedgers returns a disk with ledgers of two months: red has a full tile
// and three events.
func storedLedgers(t *testing.T) (*world, shot) {
	return installed(t, func(w *world) {
		w.fill(red, redSize-2)
		w.fill(blue, 5)
		w.Pass(31 * 24 * time.Hour)
		w.mustAppend(red, "december", "december-2")
	})
}

// damaged starts on a copy of the disk in which one value is replaced.
func (w *world) damaged(t *testing.T, base shot, key []byte, bend bend) *world {
	t.Helper()
	disk := base.disk.CrashClone(vfs.CrashCloneCfg{})
	db, err := pebble.Open("data", &pebble.Options{FS: disk, FormatMajorVersion: pebble.FormatNewest, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	var old []byte
	if v, closer, err := db.Get(key); err == nil {
		old = bytes.Clone(v)
		closer.Close()
	}
	if v := bend(old); v != nil {
		err = db.Set(key, v, pebble.Sync)
	} else {
		err = db.Delete(key, pebble.Sync)
	}
	if err := firstOf(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return w.boot(t, disk, base.anchors)
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// boot starts on a disk. Store and ledgers end with the test.
func (w *world) boot(t *testing.T, disk vfs.FS, journal []byte) *world {
	t.Helper()
	after := w.on(t, journal)
	engine := openPebble(t, disk, nil)
	after.store = engine
	t.Cleanup(func() { engine.Close() })
	after.open(log.Options{})
	return after
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(f string, a ...any) {
	panic(fmt.Sprintf(f, a...))
}

// readAll reads everything of the damaged ledger. It may fail, but it must not panic, and its proofs must be valid.
func (w *world) readAll() {
	w.t.Helper()
	ctx := w.t.Context()
	s, err := w.ledgers.State(ctx, red)
	if err != nil {
		w.t.Fatal(err)
	}
	if c, err := ledgertest.Signed(s); err != nil || c.Size > redSize {
		w.t.Errorf("checkpoint %+v, %v", c, err)
	}
	for i := range min(s.Size(), redSize) {
		_, _, _, _ = w.ledgers.Inclusion(ctx, s, i, s.Size())
	}
	for from := range min(s.Size(), redSize) {
		_, _, _, _ = w.ledgers.Consistency(ctx, s, from, s.Size())
	}
	for level := range uint8(3) {
		for index := range uint64(3) {
			_, _ = w.ledgers.Tile(ctx, s, tlog.Tile{Level: level, Index: index, Width: 256})
			_, _ = w.ledgers.Tile(ctx, s, tlog.Tile{Level: level, Index: index, Width: 3})
		}
	}
	for range w.ledgers.Events(ctx, s, 0, s.Size(), storage.FieldRecord|storage.FieldEnvelope) {
	}
	for i := range redSize {
		name := fmt.Sprint("base-", i)
		_, _ = w.ledgers.Find(ctx, s, id.Event(name))
	}
	_, _ = w.replayed(red, "base-17", "idem-base-17", id.Hash{})
}

// judged checks the service's reaction for the damaged ledger, and that the other one is unaffected.
func (w *world) judged(level log.Level) {
	w.t.Helper()
	s := w.state(red)
	if s.Fault().Level != level {
		w.t.Errorf("got fault %+v, want level %q", s.Fault(), level)
	}
	r, err := w.append(red, "after-damage")
	switch level {
	case log.Frozen:
		w.refuses(red, "frozen")
	case log.Suspect:
		if err != nil || r.ChainValid {
			w.t.Errorf("append to a suspect ledger: chain_valid %v, %v", r.ChainValid, err)
		}
	default:
		if err != nil || !r.ChainValid {
			w.t.Errorf("append: chain_valid %v, %v", r.ChainValid, err)
		}
	}
	if r, err := w.append(blue, "after-damage"); err != nil || !r.ChainValid {
		w.t.Errorf("the other organization: chain_valid %v, %v", r.ChainValid, err)
	}
}

// Without its identity there is no key to sign with: the ledger is missing, and the other ledgers are not affected.
func TestDamagedIdentity(t *testing.T) {
	t.Parallel()
	w, base := storedLedgers(t)
	for name, bend := range map[string]bend{
		"unreadable": text("{"), "without a key": text(`{}`), "another key": flipAt(-8), "gone": gone,
	} {
		after := w.damaged(t, base, ownRecord("ledger"), bend)
		if _, err := after.ledgers.State(t.Context(), red); err == nil {
			t.Errorf("%s: the ledger was opened", name)
		}
		if findings := after.fsck(after.store); !found(findings, "identity", log.Frozen) {
			t.Errorf("%s: fsck: got %v", name, findings)
		}
		if err := after.auditor.RunOnce(t.Context()); err != nil || after.reverified(blue).To != 5 {
			t.Errorf("%s: re-verification: %v, the other organization at %d", name, err, after.reverified(blue).To)
		}
		after.mustAppend(blue, "after")
	}
}

// The binding of an idempotency key is stored once. A wrong index rejects events; it never accepts one twice, and no
// caller waits forever.
func TestDamagedIdempotencyKey(t *testing.T) {
	t.Parallel()
	w, base := storedLedgers(t)
	for name, bend := range map[string]bend{"another event": number(18), "beyond the head": number(9999), "unreadable": short} {
		after := w.damaged(t, base, nameAt(idempotencyFamily, "ik_test\nidem-base-17"), bend)
		e := after.envelope(red, "base-17")
		if known, err := after.replayed(red, "base-17", "idem-base-17", e.Digest); name != "beyond the head" && err == nil {
			t.Errorf("%s: replayed: got %v, want an error", name, known)
		}
		fresh := after.envelope(red, "fresh")
		_, err := after.ledgers.Append(t.Context(), red, func(_ context.Context, s *log.State) (log.Submission, error) {
			d := after.draft(s, fresh, 0)
			d.IdempotencyKey = "ik_test\nidem-base-17"
			return log.Submission{Drafts: []log.Draft{d}}, nil
		})
		if err == nil {
			t.Errorf("%s: the key was bound again", name)
		}
		after.mustAppend(red, "other")
	}
}

// Damage before the current position of the re-verification is found by its next whole pass.
func TestDamageBehindThePosition(t *testing.T) {
	t.Parallel()
	w, base := installed(t, func(w *world) {
		w.fill(red, redSize)
		if err := w.auditor.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	for name, test := range map[string]struct {
		family byte
		bend   bend
		level  log.Level
	}{"envelope": {recordFamily, flipAt(-40), log.Suspect}, "entry": {entryFamily, flipAt(40), log.Frozen}} {
		after := w.damaged(t, base, at(test.family, damagedAt), test.bend)
		after.mustAppend(red, "after")
		for _, step := range []struct {
			pass time.Duration
			want log.Level
		}{{0, log.Healthy}, {audit.MaxPassAge + time.Minute, test.level}} {
			after.Pass(step.pass)
			if err := after.auditor.RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
			if f := after.state(red).Fault(); f.Level != step.want {
				t.Errorf("%s, %v later: got fault %+v, want level %q", name, step.pass, f, step.want)
			}
			if worst := after.auditor.WorstLedgers(); (len(worst) == 1 && worst[0] == red) != (step.want != log.Healthy) {
				t.Errorf("%s, %v later: the worst ledgers are %v", name, step.pass, worst)
			}
		}
	}
}

// headless cannot read red's head, nor its events from one index on.
type headless struct {
	*storagetest.Model
	readable id.Index
}

func (h headless) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	if t == red {
		return storage.Head{}, storage.ErrCorrupt
	}
	return h.Model.Head(ctx, t)
}

func (h headless) Events(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error] {
	if t == red && end > h.readable {
		return func(yield func(storage.Event, error) bool) { yield(storage.Event{}, storage.ErrCorrupt) }
	}
	return h.Model.Events(ctx, t, begin, end, parts)
}

// A frozen ledger shows its anchor, byte for byte, whatever is stored. It is detached if the store does not contain
// that tree.
func TestDetached(t *testing.T) {
	for _, tt := range []struct {
		name     string
		after    func(older, newer *storagetest.Model, fork func() log.Store) log.Store // the store that is restored
		detached bool
	}{
		{"older copy", func(older, _ *storagetest.Model, _ func() log.Store) log.Store { return older }, true},
		{"fork", func(_, _ *storagetest.Model, fork func() log.Store) log.Store { return fork() }, true},
		{"head unreadable", func(_, newer *storagetest.Model, _ func() log.Store) log.Store { return headless{newer, 3} }, false},
		{"head and last entry unreadable", func(_, newer *storagetest.Model, _ func() log.Store) log.Store { return headless{newer, 2} }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			model := storagetest.NewModel()
			w := newWorld(t, model)
			w.mustAppend(red, "a", "b")
			older := model.Reopen()
			w.mustAppend(red, "c")
			shown, note := w.checkpoint(red), bytes.Clone(w.state(red).Checkpoint())
			w.reopen(tt.after(older, model, func() log.Store { return w.forked(older) }))
			w.refuses(red, "frozen")
			s := w.state(red)
			if s.Detached() != tt.detached || s.Shown() != shown || !bytes.Equal(s.Checkpoint(), note) {
				t.Errorf("got detached %v, %+v, want %v, %+v", s.Detached(), s.Shown(), tt.detached, shown)
			}
			if err := s.Provable(); (err != nil) != tt.detached || err != nil && (!fault.Is(err, fault.Unavailable) || fault.Of(err).Code != "frozen") {
				t.Errorf("provable: got %v", err)
			}
			if !tt.detached {
				w.provesShown(red)
			}
			w.mustAppend(blue, "a")
			if s := w.state(blue); s.Detached() || s.Provable() != nil || s.Shown().Size != 1 {
				t.Errorf("the other organization: detached %v, %+v", s.Detached(), s.Shown())
			}
		})
	}
}

// forked returns an older copy that continued separately, past what was shown here.
func (w *world) forked(older *storagetest.Model) log.Store {
	w.t.Helper()
	fork := &world{t: w.t, store: older, keyring: w.keyring, anchors: w.t.TempDir(), agent: w.agent, fatal: w.fatal, Time: w.Time.Copy()}
	fork.open(log.Options{})
	if err := fork.ledgers.Adopt(w.t.Context(), red, fork.state(red).Checkpoint()); err != nil {
		w.t.Fatal(err)
	}
	fork.mustAppend(red, "other", "history")
	fork.ledgers.Close()
	return older
}

// provesShown checks that each entry is proved under the shown checkpoint.
func (w *world) provesShown(tenant id.Tenant) {
	w.t.Helper()
	s := w.state(tenant)
	for i := range s.Shown().Size {
		leaf, _, proof, err := w.ledgers.Inclusion(w.t.Context(), s, i, s.Size())
		if err != nil {
			w.t.Fatal(err)
		}
		if err := tlog.CheckInclusion(i, s.Shown().Size, leaf, proof, s.Shown().Root); err != nil {
			w.t.Error(err)
		}
	}
}

// One byte of each file of the store is flipped, at several places. Either the store does not open, or fsck names the
// damage, or the byte has no effect and everything is there. Nothing panics.
func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	var acknowledged []acked
	w, base := installed(t, func(w *world) {
		acknowledged = w.history()
	})
	kinds := map[string]int{}
	for _, name := range files(t, base.disk) {
		whole := readFile(t, base.disk, name)
		kinds[kindOf(name)]++
		for _, at := range places(len(whole)) {
			t.Run(fmt.Sprintf("%s at %d", name, at), func(t *testing.T) {
				disk := base.disk.CrashClone(vfs.CrashCloneCfg{})
				bent := bytes.Clone(whole)
				bent[at] ^= 0x20
				writeFile(t, disk, name, bent)
				w.diagnose(t, disk, base.anchors, acknowledged)
			})
		}
	}
	for _, kind := range []string{"sst", "log", "MANIFEST", "OPTIONS", "marker"} {
		if kinds[kind] == 0 {
			t.Errorf("no file of kind %s among %v", kind, kinds)
		}
	}
}

// history writes events to tables and to the write-ahead log.
func (w *world) history() (acknowledged []acked) {
	send := func(prefix string) {
		for i := range 12 {
			name := fmt.Sprint(prefix, i)
			r, err := w.append(red, name)
			if err != nil {
				w.t.Fatal(err)
			}
			acknowledged = append(acknowledged, acked{red, name, r, nil})
		}
	}
	send("table")
	w.ledgers.Close()
	if err := w.store.(*pebblestore.Engine).Close(); err != nil {
		w.t.Fatal(err)
	}
	w.store = openPebble(w.t, w.disk, nil) // which writes the log out to a table
	w.open(log.Options{})
	send("log")
	return acknowledged
}

// diagnose checks that damage is noticed.
func (w *world) diagnose(t *testing.T, disk *vfs.MemFS, journal []byte, acknowledged []acked) {
	t.Helper()
	ended := make(chan struct{})
	broken := func(error) {
		close(ended)
		select {} // the process ends
	}
	opened := make(chan *pebblestore.Engine, 1)
	go func() {
		e, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: disk, CacheBytes: 1 << 20, OnBroken: broken})
		if err != nil {
			e = nil
		}
		opened <- e
	}()
	var engine *pebblestore.Engine
	select {
	case engine = <-opened:
	case <-ended:
	}
	if engine == nil {
		return // found
	}
	defer engine.Close()
	after := w.on(t, journal)
	anchors, err := anchor.Open(after.anchors)
	if err != nil {
		t.Fatal(err)
	}
	findings := 0
	_, err = audit.Fsck(t.Context(), engine, w.keyring, anchors, func(audit.Finding) { findings++ })
	if firstOf(err, anchors.Close()) != nil || findings > 0 {
		return // found
	}
	after.store = engine
	after.open(log.Options{})
	after.keeps(acknowledged, nil)
	after.ledgers.Close()
}

func files(t *testing.T, fs vfs.FS) []string {
	t.Helper()
	names, err := fs.List("data")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func kindOf(name string) string {
	for _, kind := range []string{"MANIFEST", "OPTIONS", "marker"} {
		if strings.HasPrefix(name, kind) {
			return kind
		}
	}
	_, kind, _ := strings.Cut(name, ".")
	return kind
}

// places returns the offsets to damage in a file of the given length.
func places(length int) (at []int) {
	n := 6
	if drill() {
		n = 200
	}
	for i := range min(n, length) {
		at = append(at, i*length/n)
	}
	if length > 0 {
		at = append(at, length-1)
	}
	return at
}

func readFile(t *testing.T, fs vfs.FS, name string) []byte {
	t.Helper()
	f, err := fs.Open(fs.PathJoin("data", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeFile(t *testing.T, fs vfs.FS, name string, b []byte) {
	t.Helper()
	f, err := fs.Create(fs.PathJoin("data", name), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// The same for the anchors' journal: no flipped byte freezes a ledger whose store is intact.
func TestDamagedAnchors(t *testing.T) {
	t.Parallel()
	w, base := installed(t, func(w *world) { w.mustAppend(red, "a", "b"); w.mustAppend(blue, "a") })
	for at := range len(base.anchors) {
		if !drill() && at%13 != 0 {
			continue
		}
		bent := bytes.Clone(base.anchors)
		bent[at] ^= 1
		after := w.on(t, bent)
		anchors, err := anchor.Open(after.anchors)
		if err != nil {
			continue // found
		}
		anchors.Close()
		engine := openPebble(t, base.disk.CrashClone(vfs.CrashCloneCfg{}), nil)
		after.store = engine
		after.open(log.Options{})
		for _, tenant := range []id.Tenant{red, blue} {
			if f := after.state(tenant).Fault(); f.Level == log.Frozen {
				t.Errorf("byte %d: tenant %d: %+v", at, tenant, f)
			}
		}
		after.ledgers.Close()
		engine.Close()
	}
}
