package log

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// anchorEvery is how far the anchors may lie behind the published states.
const anchorEvery = time.Second

// Anchors remember the newest checkpoints that were shown, apart from the
// ledgers themselves, so that a store that was rolled back is noticed. They lie
// in one folder, in production on another volume than the store, as an
// append-only journal with a checksum on each note (see journal).
//
// Notes are written together, with one sync, at most once a second and at the
// end. Only the newest size and root of each origin stay in memory.
type Anchors struct {
	mu      sync.Mutex
	journal *journal
	known   map[anchorKey]anchor

	dirtyMu sync.Mutex
	dirty   map[*ledger]struct{}
	since   time.Time // when the first of dirty was touched
	writing time.Time // since of what is being written, zero when nothing is
}

type (
	anchorKey [16]byte // of SHA-256(origin)
	anchor    struct {
		size id.Index
		root id.Hash
	}
)

func keyOf(o id.Origin) anchorKey {
	h := sha256.Sum256([]byte(o))
	return anchorKey(h[:16])
}

// OpenAnchors opens or makes the anchors in dir. A damaged journal is an error;
// only an unfinished note at its very end, as a crash leaves it, is cut off.
func OpenAnchors(dir string) (*Anchors, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open anchors: %w", err)
	}
	a := &Anchors{known: make(map[anchorKey]anchor), dirty: make(map[*ledger]struct{})}
	j, err := openJournal(filepath.Join(dir, "anchors.journal"), func(note []byte) error {
		c, err := tlog.ReadCheckpoint(note)
		if err == nil {
			a.remember(c)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open anchors: %w", err)
	}
	a.journal = j
	if j.notes > 4*len(a.known)+1024 {
		err = j.compact(a.newest)
	}
	if err != nil {
		return nil, fmt.Errorf("open anchors: compact: %w", err)
	}
	return a, nil
}

// remember keeps the largest checkpoint of each origin: a ledger that was
// dropped from memory and read again may be written in either order.
func (a *Anchors) remember(c tlog.Checkpoint) {
	key := keyOf(c.Origin)
	if old, ok := a.known[key]; ok && old.size > c.Size {
		return
	}
	a.known[key] = anchor{size: c.Size, root: c.Root}
}

// newest reports whether a note is the newest one of its origin.
func (a *Anchors) newest(note []byte) bool {
	c, err := tlog.ReadCheckpoint(note)
	return err == nil && a.known[keyOf(c.Origin)] == anchor{size: c.Size, root: c.Root}
}

// Close closes anchors that were not handed to Open.
func (a *Anchors) Close() error { return a.close() }

// find returns the anchor of an origin.
func (a *Anchors) find(o id.Origin) (anchor, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, ok := a.known[keyOf(o)]
	return found, ok
}

// without returns the origins that have an anchor and are not among met, in the
// order in which they were first shown.
func (a *Anchors) without(met map[anchorKey]bool) (lost []id.Origin, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	told := make(map[anchorKey]bool)
	err = a.journal.each(func(note []byte) error {
		c, err := tlog.ReadCheckpoint(note)
		if key := keyOf(c.Origin); err == nil && !met[key] && !told[key] {
			told[key] = true
			lost = append(lost, c.Origin)
		}
		return err
	})
	return lost, err
}

// any reports whether there is an anchor at all.
func (a *Anchors) any() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.known) > 0
}

// put makes notes the anchors of their origins; they are durable at return.
func (a *Anchors) put(notes ...[]byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	checkpoints := make([]tlog.Checkpoint, len(notes))
	for i, n := range notes {
		var err error
		if checkpoints[i], err = tlog.ReadCheckpoint(n); err != nil {
			return fmt.Errorf("write anchors: %w", err)
		}
	}
	if err := a.journal.append(notes); err != nil {
		return fmt.Errorf("write anchors: %w", err)
	}
	for _, c := range checkpoints {
		a.remember(c)
	}
	return nil
}

// touch says that a ledger has a newer state than its anchor.
func (a *Anchors) touch(led *ledger) {
	a.dirtyMu.Lock()
	if len(a.dirty) == 0 {
		a.since = time.Now()
	}
	a.dirty[led] = struct{}{}
	a.dirtyMu.Unlock()
}

// lag returns for how long the oldest newer state has been waiting for its anchor.
func (a *Anchors) lag() time.Duration {
	a.dirtyMu.Lock()
	defer a.dirtyMu.Unlock()
	switch {
	case !a.writing.IsZero():
		return time.Since(a.writing)
	case len(a.dirty) > 0:
		return time.Since(a.since)
	}
	return 0
}

// flush writes the anchors of all touched ledgers.
func (a *Anchors) flush() error {
	a.dirtyMu.Lock()
	dirty := a.dirty
	if len(dirty) == 0 {
		a.dirtyMu.Unlock()
		return nil
	}
	a.dirty, a.writing = make(map[*ledger]struct{}), a.since
	a.dirtyMu.Unlock()
	notes := make([][]byte, 0, len(dirty))
	for led := range dirty {
		notes = append(notes, led.published.Load().Checkpoint())
	}
	err := a.put(notes...)
	a.written(dirty, err)
	return err
}

// written ends a flush. What could not be written is as old as it was.
func (a *Anchors) written(dirty map[*ledger]struct{}, err error) {
	a.dirtyMu.Lock()
	defer a.dirtyMu.Unlock()
	if err != nil {
		maps.Copy(a.dirty, dirty)
		a.since = a.writing
	}
	a.writing = time.Time{}
}

// run flushes until ctx ends.
func (a *Anchors) run(ctx context.Context, logger *slog.Logger) {
	tick := time.NewTicker(anchorEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := a.flush(); err != nil {
				logger.Error("anchors not written", "err", err)
			}
		}
	}
}

func (a *Anchors) close() error {
	err := a.flush()
	a.mu.Lock()
	defer a.mu.Unlock()
	if closeErr := a.journal.close(); err == nil {
		err = closeErr
	}
	return err
}

// confirm compares the head of s, which is not published yet, with its anchor:
// the head must extend it. If it does not, s is frozen, and signs what the anchor
// says and not its own head. A ledger without events gets its first anchor here;
// one with events and no anchor is read-only until an operator adopts a
// checkpoint.
func (l *Ledgers) confirm(ctx context.Context, s *State) error {
	now := id.InstantOf(l.clock())
	if _, shown := l.anchors.find(s.identity.Origin.Next()); shown {
		defer func() {
			s.fault = s.fault.or(Fault{Level: Frozen, Reason: "its successor was shown", At: now})
		}()
	}
	shown, ok := l.anchors.find(s.identity.Origin)
	if !ok && s.Size() == 0 {
		return l.anchors.put(s.Checkpoint())
	}
	if !ok {
		s.fault = Fault{Level: ReadOnly, Reason: "no anchor confirms the head", At: now}
		return nil
	}
	extends, err := extends(ctx, l, s, shown.size, shown.root)
	switch {
	case isDamage(err):
		s.fault = Fault{Level: Frozen, Reason: err.Error(), At: now}
	case err != nil:
		return err
	case !extends:
		s.fault = Fault{Level: Frozen, Reason: fmt.Sprintf("the head does not extend the checkpoint shown at size %d", shown.size), At: now}
	default:
		return nil
	}
	s.instead = &shown
	return nil
}

// extends reports whether the tree of s had this root at this size.
func extends(ctx context.Context, l *Ledgers, s *State, size id.Index, root id.Hash) (bool, error) {
	if size > s.Size() {
		return false, nil
	}
	was, err := l.Root(ctx, s, size)
	return was == root, err
}

// Adopt makes a checkpoint the anchor of its ledger, after an operator has
// decided that it is the newest one ever shown: it is signed by the log key and
// the stored head extends it. A ledger that was read-only takes events again.
func (l *Ledgers) Adopt(ctx context.Context, t id.Tenant, note []byte) error {
	s, err := l.State(ctx, t)
	if err != nil {
		return err
	}
	c, err := s.keys.open(note)
	if err != nil {
		return fmt.Errorf("adopt checkpoint: %w", err)
	}
	if s.fault.Level == Frozen {
		return fmt.Errorf("adopt checkpoint: the ledger is frozen: %s", s.fault.Reason)
	}
	ok, err := extends(ctx, l, s, c.Size, c.Root)
	if err != nil {
		return fmt.Errorf("adopt checkpoint: %w", err)
	}
	if !ok {
		return fmt.Errorf("adopt checkpoint: the stored ledger (size %d) does not extend it (size %d)", s.Size(), c.Size)
	}
	if err := l.anchors.put(note); err != nil {
		return err
	}
	led, err := l.ledger(ctx, t)
	if err != nil {
		return err
	}
	stored, err := l.storedFault(ctx, t)
	if err != nil {
		return err
	}
	led.publishMu.Lock()
	defer led.publishMu.Unlock()
	if s := led.published.Load(); s.fault.Level == ReadOnly {
		led.published.Store(s.withFault(stored))
	}
	return nil
}
