package log

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log/takeover"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// Kinds of records in a ledger's partition, each with one record under key "".
const (
	kindIdentity storage.Kind = "ledger"
	kindFault    storage.Kind = "ledger_fault"
)

// identityRecord is the stored form of the identity and the log keys of a ledger.
type identityRecord struct {
	OrganizationID id.Organization `json:"organization_id"`
	Origin         id.Origin       `json:"origin"`
	CreatedAt      id.Instant      `json:"created_at"`
	SealedLogKey   []byte          `json:"sealed_log_key"`           // of the first key
	FirstTo        *id.Index       `json:"first_to_size,omitzero"`   // nil while it signs
	LaterKeys      []logKeyRecord  `json:"later_log_keys,omitempty"` // from rotations, oldest first

	Predecessor *predecessorRecord `json:"predecessor,omitempty"` // nil for an organization's first ledger
}

// toIdentity returns the identity of ledger t from its record.
func (r *identityRecord) toIdentity(t id.Tenant) *Identity {
	i := &Identity{Tenant: t, Organization: r.OrganizationID, Origin: r.Origin, CreatedAt: r.CreatedAt}
	if p := r.Predecessor; p != nil {
		i.Predecessor, i.carried = p.Tenant, usage{month: p.Month, count: p.Counted}
	}
	return i
}

// BeganAt returns when ledger t was created, and whether it is the first ledger of its organization. It reads the store, so
// it works on nodes that do not own the ledger too.
func BeganAt(ctx context.Context, store storage.RecordStore, t id.Tenant) (at id.Instant, isFirst bool, err error) {
	stored, err := store.Get(ctx, t, kindIdentity, "")
	if err != nil {
		return 0, false, fmt.Errorf("read identity: %w", err)
	}
	var r identityRecord
	if err := json.Unmarshal(stored.Value, &r); err != nil {
		return 0, false, fmt.Errorf("read identity: %w", storage.ErrCorrupt)
	}
	return r.CreatedAt, r.Predecessor == nil, nil
}

// sealContext binds a sealed log key to its origin.
func sealContext(o id.Origin) string { return "log-key\n" + string(o) }

// Genesis describes a new ledger.
type Genesis struct {
	Organization id.Organization
	Origin       id.Origin
	Slug         id.Slug          // stored permanently next to the anchors; "": none
	Changes      []storage.Change // records to write together with the ledger
}

// Create durably stores an empty ledger with a new log key and the records of g, in one step. The process need not own the
// ledger: the owner writes its first anchor, before its first event.
//
// It returns fault.Conflict if the tenant has a ledger already, the origin was shown before, or the slug belongs to another
// organization (SlugTaken). It returns fault.Unavailable, and nothing was stored, if the anchors can't be written or may
// have lost slugs.
func (l *Ledgers) Create(ctx context.Context, t id.Tenant, g Genesis) (*State, error) {
	if g.Slug != "" && l.SlugTaken(g.Slug, g.Origin) {
		return nil, fault.New(fault.Conflict, "slug is taken")
	}
	if g.Slug != "" && l.SlugsDoubtful() {
		return nil, &fault.Error{Kind: fault.Unavailable, Code: "unavailable",
			Message: "No organization can be founded at the moment: the log of the service has the reason", Err: errSlugsDoubtful}
	}
	if err := l.keepGenesisSlug(g); err != nil {
		return nil, fmt.Errorf("create ledger: %w", unanchored(err))
	}
	s, err := l.createLedger(ctx, t, identityRecord{OrganizationID: g.Organization, Origin: g.Origin}, 1, g.Changes)
	if err != nil {
		return nil, err
	}
	if err := l.keepGenesisSlug(g); err != nil { // a failed creation had taken it in the meantime
		l.logger.Error("slug not stored: the next start retries", "origin", g.Origin, "err", err)
	}
	return s, nil
}

// errSlugsDoubtful is for the log of the operator and must not reach the client.
var errSlugsDoubtful = errors.New("names.journal of the anchors is damaged or was missing, so a slug that seems to be free " +
	"may belong to an organization that the store lost; wait for the comparison after the start, or run " +
	"agentledger adopt --all-heads --reason TEXT")

// keepGenesisSlug keeps the slug of a genesis.
func (l *Ledgers) keepGenesisSlug(g Genesis) error {
	if g.Slug == "" {
		return nil
	}
	return l.anchors.KeepSlug(g.Slug, g.Origin)
}

func (l *Ledgers) createLedger(ctx context.Context, t id.Tenant, identity identityRecord, configVersion uint64, changes []storage.Change) (*State, error) {
	if err := l.checkWritable(); err != nil {
		return nil, err
	}
	if _, known := l.anchors.Find(identity.Origin); known {
		return nil, fault.New(fault.Conflict, "The origin was already used")
	}
	identity.CreatedAt = id.InstantOf(l.clock())
	seed := edkey.NewPrivate().Seed()
	var err error
	if identity.SealedLogKey, err = l.keyring.Seal(sealContext(identity.Origin), seed[:]); err != nil {
		return nil, fmt.Errorf("create ledger: seal log key: %w", err)
	}
	value, err := json.Marshal(identity)
	if err != nil {
		return nil, fmt.Errorf("create ledger: %w", err)
	}
	batch := storage.Batch{
		Tenant:   t,
		Head:     storage.Head{Root: tlog.EmptyRoot(), Last: event.Genesis(identity.Origin), ConfigVersion: configVersion},
		Counters: identity.toIdentity(t).initialCounters(),
		Changes:  append([]storage.Change{{Kind: kindIdentity, Value: value}}, changes...),
	}
	if err := takeover.Await(ctx, l.store.Append([]storage.Batch{batch})); err != nil {
		return nil, createError(err)
	}
	l.fences.Note(t, batch.Head.Epoch)
	l.anchors.MarkNew(identity.Origin)
	led, err := l.residentLedger(ctx, t)
	l.relisted.Tell(t)
	if err != nil {
		if !errors.Is(err, ErrNotOwner) {
			l.logger.Error("new ledger could not be read yet", "origin", identity.Origin, "err", err)
		}
		return l.genesisState(identity.toIdentity(t), identity, batch.Head)
	}
	return led.published.Load(), nil
}

// genesisState returns the state of a ledger that was created but is not loaded.
func (l *Ledgers) genesisState(i *Identity, stored identityRecord, head storage.Head) (*State, error) {
	keys, err := openLogKeys(l.keyring, stored)
	if err != nil {
		return nil, fmt.Errorf("create ledger: log key: %w", err)
	}
	return &State{identity: i, keys: keys, head: head, tree: new(tlog.Builder), used: i.carried}, nil
}

func createError(err error) error {
	err = fmt.Errorf("create ledger: %w", err)
	switch {
	case errors.Is(err, storage.ErrConflict), errors.Is(err, storage.ErrStale):
		return fault.Wrap(fault.Conflict, "The organization exists already", err)
	case errors.Is(err, storage.ErrUnknown), errors.Is(err, storage.ErrBroken):
		return outcomeUnknown(err)
	}
	return storeError("create ledger", err)
}

// ledger is one organization's ledger in memory.
type ledger struct {
	identity *Identity
	keys     atomic.Pointer[logKeys] // replaced while no other append is in flight

	markMu    sync.Mutex // held while a fault is put on record
	publishMu sync.Mutex // held while published is moved
	published atomic.Pointer[State]
	witnessed atomic.Pointer[sync.Once] // consults the witness, once after each take-over

	tail    tail         // owned by the sequencer, or by the repair of a blocked ledger
	pending pendingQueue // guarded by queue.mu

	outstanding takeover.Outstanding // written under queue.mu

	limits limitCounters

	retired atomic.Bool // could not be repaired or was given up: it accepts nothing, but is read until it is loaded again

	failedMu sync.Mutex
	failed   []failedBatch // waiting for repair

	takenKeysMu sync.Mutex
	takenKeys   map[storage.DedupKey]struct{} // of events in flight; nil until the first
}

// Checkpoint implements anchor.Source.
func (led *ledger) Checkpoint() []byte { return led.published.Load().Checkpoint() }

// tail is the end of the ledger after all appends in flight.
type tail struct {
	head storage.Head
	tree *tlog.Builder
	used usage
}

// ErrNotOwner is wrapped by the error for a ledger that the process does not own (Options.Owned). Nothing was done.
var ErrNotOwner = takeover.ErrNotOwner

// cacheSlot is the slot of a ledger in memory. The first caller loads the ledger, the others wait.
type cacheSlot struct {
	ready  chan struct{} // closed when led or err is set
	led    *ledger
	err    error
	recent atomic.Bool // used since evictIdleLedgers last examined it
	ended  bool        // released, maybe while it was being loaded; guarded by slotsMu
	next   *cacheSlot  // its replacement, while that is being loaded; guarded by slotsMu
}

// loadTime bounds the loading of a ledger, which continues if its caller no longer waits.
const loadTime = 30 * time.Second

// ledgerOf returns the ledger that published s, so that a request finds its ledger once. It looks the ledger up again
// if it has left memory in the meantime.
func (l *Ledgers) ledgerOf(ctx context.Context, s *State) (*ledger, error) {
	if led := s.ledger; led != nil && !led.pending.evicted.Load() {
		return led, l.fences.Check(s.identity.Tenant)
	}
	return l.residentLedger(ctx, s.identity.Tenant)
}

// residentLedger returns a ledger, loading it if it is not in memory. It may return a retired ledger, because readers may
// still see its published state. It returns ErrNotOwner if the process does not own the ledger now.
func (l *Ledgers) residentLedger(ctx context.Context, t id.Tenant) (*ledger, error) {
	if err := l.fences.Check(t); err != nil {
		return nil, err
	}
	return l.readLedger(ctx, t)
}

// readLedger is residentLedger without the check for ownership. It takes the ledger over unless it is frozen.
func (l *Ledgers) readLedger(ctx context.Context, t id.Tenant) (*ledger, error) {
	r, first := l.findOrAddSlot(t)
	if first {
		go func() {
			if l.fillSlot(ctx, t, r); r.err != nil {
				l.forgetSlot(t, r)
			}
			l.openSlot(t, r)
		}()
	}
	led, err := r.awaitLedger(ctx)
	if err == nil && led.retired.Load() {
		return l.renewLedger(ctx, t, led), nil
	}
	return led, err
}

func (l *Ledgers) findOrAddSlot(t id.Tenant) (r *cacheSlot, first bool) {
	l.slotsMu.RLock()
	r = l.slots[t]
	l.slotsMu.RUnlock()
	if r != nil {
		return r, false
	}
	l.slotsMu.Lock()
	defer l.slotsMu.Unlock()
	if r := l.slots[t]; r != nil {
		return r, false
	}
	l.evictIdleLedgers()
	r = &cacheSlot{ready: make(chan struct{})}
	l.slots[t] = r
	return r, true
}

// fillSlot loads the ledger of a slot for all callers that wait.
func (l *Ledgers) fillSlot(ctx context.Context, t id.Tenant, r *cacheSlot) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTime)
	defer cancel()
	r.led, r.err = l.loadLedger(ctx, t)
}

// openSlot wakes the callers that wait for a slot. It notifies the followers of listings if loading found a fault.
func (l *Ledgers) openSlot(t id.Tenant, r *cacheSlot) {
	l.refuseEnded(r)
	close(r.ready)
	if r.led != nil && r.led.published.Load().fault.Level != Healthy {
		l.relisted.Tell(t)
	}
}

// forgetSlot drops a slot, so that the next caller loads the ledger again.
func (l *Ledgers) forgetSlot(t id.Tenant, r *cacheSlot) {
	l.slotsMu.Lock()
	defer l.slotsMu.Unlock()
	if l.slots[t] == r {
		delete(l.slots, t)
	}
}

func (r *cacheSlot) awaitLedger(ctx context.Context) (*ledger, error) {
	select {
	case <-r.ready: // the usual case does not start the context's timer
	default:
		select {
		case <-r.ready:
		case <-ctx.Done():
			return nil, storeError("load ledger", ctx.Err())
		}
	}
	if !r.recent.Load() {
		r.recent.Store(true)
	}
	return r.led, r.err
}

func (r *cacheSlot) isReady() bool {
	select {
	case <-r.ready:
		return true
	default:
		return false
	}
}

// renewLedger loads a retired ledger again. If that takes too long, it returns the retired one, whose published state is
// still durable.
func (l *Ledgers) renewLedger(ctx context.Context, t id.Tenant, old *ledger) *ledger {
	r, first := l.addSuccessorSlot(t, old)
	if !first {
		return old
	}
	l.fillSuccessorSlot(ctx, t, r)
	ctx, cancel := context.WithTimeout(ctx, l.renewal)
	defer cancel()
	if led, err := r.awaitLedger(ctx); err == nil {
		return led
	}
	return old
}

// replaceLedger waits until a retired ledger has been loaded again. Readers see old until then. It returns at once if old
// has no slot any more.
func (l *Ledgers) replaceLedger(ctx context.Context, t id.Tenant, old *ledger) error {
	r, first := l.addSuccessorSlot(t, old)
	if r == nil {
		return nil
	}
	if first {
		l.fillSuccessorSlot(ctx, t, r)
	}
	_, err := r.awaitLedger(ctx)
	return err
}

// addSuccessorSlot returns the slot that will replace the slot of old, or nil if old no longer has one.
func (l *Ledgers) addSuccessorSlot(t id.Tenant, old *ledger) (r *cacheSlot, first bool) {
	l.slotsMu.Lock()
	defer l.slotsMu.Unlock()
	now := l.slots[t]
	if now == nil || now.led != old {
		return nil, false
	}
	if now.next != nil {
		return now.next, false
	}
	now.next = &cacheSlot{ready: make(chan struct{})}
	return now.next, true
}

// fillSuccessorSlot starts loading the ledger of a slot of addSuccessorSlot.
func (l *Ledgers) fillSuccessorSlot(ctx context.Context, t id.Tenant, r *cacheSlot) {
	go func() {
		l.fillSlot(ctx, t, r)
		l.settleSuccessorSlot(t, r)
		l.openSlot(t, r)
	}()
}

// settleSuccessorSlot replaces the slot of a retired ledger if the ledger was loaded again.
func (l *Ledgers) settleSuccessorSlot(t id.Tenant, r *cacheSlot) {
	l.slotsMu.Lock()
	defer l.slotsMu.Unlock()
	now := l.slots[t]
	if now == nil || now.next != r { // the slot was evicted while the ledger was read
		if r.led != nil {
			l.queue.evictLedger(r.led)
		}
		return
	}
	if now.next = nil; r.err == nil {
		l.slots[t] = r
	}
}

// evictionLook is the number of ledgers that one eviction examines.
const evictionLook = 16

// evictIdleLedgers drops idle ledgers that were not used recently. It examines only a few, so that no request waits for a
// sweep; the number of ledgers may exceed the bound for a while.
func (l *Ledgers) evictIdleLedgers() {
	if len(l.slots) < l.maxResident {
		return
	}
	looked := 0
	for t, r := range l.slots {
		if looked++; looked > evictionLook {
			return
		}
		select {
		case <-r.ready:
		default:
			continue
		}
		if !r.recent.Swap(false) && r.led != nil && l.queue.evictLedger(r.led) {
			delete(l.slots, t)
		}
	}
}

// loadLedger brings a ledger into memory. The caller has checked that the process owns the ledger.
func (l *Ledgers) loadLedger(ctx context.Context, t id.Tenant) (*ledger, error) {
	// Is work from before its release still in flight?
	if err := l.checkEnded(t); err != nil {
		return nil, err
	}
	// Which log is it, and with which keys does it sign?
	identity, keys, err := l.readIdentity(ctx, t)
	if err != nil {
		return nil, err
	}
	led := newLedger(identity, keys)
	// From which state does it continue, and may it?
	if err := l.takeOver(ctx, led); err != nil {
		return nil, err
	}
	return led, nil
}

func newLedger(identity *Identity, keys *logKeys) *ledger {
	led := &ledger{identity: identity}
	led.keys.Store(keys)
	return led
}

func (l *Ledgers) readIdentity(ctx context.Context, t id.Tenant) (*Identity, *logKeys, error) {
	var stored identityRecord
	if err := l.readOwnRecord(ctx, t, kindIdentity, &stored); err != nil {
		return nil, nil, storeError("load ledger: identity", err)
	}
	keys, err := openLogKeys(l.keyring, stored)
	if err != nil {
		return nil, nil, fmt.Errorf("load ledger: log key: %w", err)
	}
	return stored.toIdentity(t), keys, nil
}

// takeOver makes this process the only writer of a ledger, decides from the store and the anchors which state the
// ledger has, and publishes that state. The ledger must have no append in flight: it is being loaded, or repaired.
//
// The questions are asked in this order because each answer can outdate the ones before it, and never those after it.
func (l *Ledgers) takeOver(ctx context.Context, led *ledger) error {
	t := led.identity.Tenant

	// Is a fault on record that stops the ledger?
	known, err := l.storedFault(ctx, t)
	if err != nil {
		return err
	}

	// Which head does the ledger have? If processes share the store, raise its epoch first, so that no earlier owner can
	// append after the head is read. A ledger that is stopped by its fault is only read, because nobody writes to it.
	var head storage.Head
	if shared := l.fences != nil && !l.readOnly && !l.importing; shared && Importing.isWorseThan(known.Level) {
		head, err = l.fences.TakeOver(ctx, t)
	} else if head, err = l.store.Head(ctx, t); err != nil {
		err = fmt.Errorf("head: %w", err)
	}

	// Do the stored tree and counters fit the head?
	var s *State
	if err == nil {
		s, err = l.readStateAt(ctx, led, head)
	}

	// Was the ledger stopped in the meantime? Retire moves the head together with the fault record, and an import moves
	// the head before it removes the record. So a head that was moved by either is never used without its fault.
	later, unread := l.storedFault(ctx, t)
	if unread != nil {
		return unread
	}
	known = known.worseOf(later)

	// Which state may readers see? It must extend the anchor, which is the latest checkpoint that anyone was shown.
	switch {
	case err == nil && known.Level == Importing: // it has no anchor until the import ends
		if l.importing {
			known = Fault{}
		}
	case err == nil:
		if err = l.confirmHead(ctx, s); err == nil {
			s, err = l.anchorLoaded(ctx, s, known)
		}
	case IsDamage(err):
		s, err = l.recoverState(ctx, led, err), nil
	}

	// What do the counters of limits contain that are in memory already?
	if err == nil {
		err = l.rereadCounters(ctx, led)
	}
	if err != nil {
		return storeError("load ledger", err)
	}

	led.publishMu.Lock()
	defer led.publishMu.Unlock()
	s.fault = s.fault.worseOf(known)
	if before := led.published.Load(); before != nil {
		s.fault = s.fault.worseOf(before.fault)
	}
	if s.fault.Level != Healthy {
		l.logger.Error("ledger has a fault", "origin", led.identity.Origin, "level", s.fault.Level, "reason", s.fault.Reason)
	}
	if s.Trusted() == nil {
		_ = l.noteIfAhead(led.identity, s.head.LastReceived, l.clockInstant()) // logs and counts a ledger that is ahead
	}
	s.ledger = led
	led.forgetWitness()
	led.tail = tail{head: s.head, tree: s.tree.Clone(), used: s.used}
	led.published.Store(s)
	return nil
}

// readState reads the head, the tree and the month's counter.
func (l *Ledgers) readState(ctx context.Context, led *ledger) (*State, error) {
	head, err := l.store.Head(ctx, led.identity.Tenant)
	if err != nil {
		return nil, fmt.Errorf("head: %w", err)
	}
	return l.readStateAt(ctx, led, head)
}

func (l *Ledgers) readStateAt(ctx context.Context, led *ledger, head storage.Head) (*State, error) {
	s := &State{identity: led.identity, keys: led.keys.Load(), head: head}
	err := syncs.RunAll(func() (err error) {
		s.tree, err = RestoreTree(ctx, l.store, led.identity.Tenant, head)
		return err
	}, func() (err error) {
		s.used, err = l.readUsage(ctx, led.identity, head)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("tree and counters: %w", err)
	}
	return s, nil
}

func (l *Ledgers) readUsage(ctx context.Context, identity *Identity, head storage.Head) (usage, error) {
	if head.Size == 0 {
		return identity.carried, nil
	}
	m := MonthOf(head.LastReceived)
	values, err := l.store.Counters(ctx, identity.Tenant, []string{m.CounterName()})
	if err != nil {
		return usage{}, err
	}
	return usage{month: m, count: values[0]}, nil
}

// recoverState returns a frozen state of a ledger whose head is damaged: the state at its anchor. The state is detached if
// the store does not have that tree either.
func (l *Ledgers) recoverState(ctx context.Context, led *ledger, damage error) *State {
	shown, ok := l.anchors.Find(led.identity.Origin)
	if !ok {
		shown.Root = tlog.EmptyRoot()
	}
	s := &State{
		identity: led.identity, keys: led.keys.Load(), tree: new(tlog.Builder),
		head:  storage.Head{Size: shown.Size, Root: shown.Root, Last: event.Genesis(led.identity.Origin)},
		fault: Fault{Level: Frozen, Reason: damage.Error(), At: id.InstantOf(l.clock())},
	}
	head, tree, err := RestoreTreeAt(ctx, l.store, led.identity.Tenant, shown.Size, shown.Root)
	if err != nil {
		s.anchoredView = &shown
		return s
	}
	s.head, s.tree = head, tree
	return s
}

// confirmHead checks that the head of s, which is not published yet, extends the anchor. If it does not, s becomes frozen
// and signs the anchor in place of its own head.
//
// An empty ledger gets its first anchor here. A ledger with events is read-only until an operator adopts a checkpoint if
// no process has its anchor, or if its latest anchor may have been in damaged bytes of the journal. In the second case
// the same applies to an empty ledger.
func (l *Ledgers) confirmHead(ctx context.Context, s *State) error {
	now := id.InstantOf(l.clock())
	if _, shown := l.anchors.Find(s.identity.Origin.Next()); shown {
		defer func() {
			s.fault = s.fault.worseOf(Fault{Level: Frozen, Reason: "its successor was shown", At: now})
		}()
	}
	shown, ok := l.anchors.Find(s.identity.Origin)
	if !ok && s.Size() > 0 && l.fetchAnchors != nil {
		if err := l.fetchAnchors(ctx); err != nil {
			return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The anchors of other nodes can't be read", Err: err}
		}
		shown, ok = l.anchors.Find(s.identity.Origin)
	}
	if !ok && s.Size() == 0 && l.anchors.ReadOnly() {
		return nil // the store is read-only too, so no later head will be shown
	}
	doubtful := l.anchors.Doubtful(s.identity.Origin)
	if doubtful && (!ok || s.Size() == 0 && shown.Size == 0) {
		s.fault = Fault{Level: ReadOnly, Reason: lostAnchor, At: now}
		return nil
	}
	if s.Size() == 0 && shown.Size == 0 {
		err := error(nil)
		if !ok {
			err = l.anchors.Put(s.Checkpoint())
		}
		if err == nil && l.firstAnchor != nil {
			err = l.firstAnchor(ctx, s.Checkpoint())
		}
		return unanchored(err)
	}
	if !ok {
		s.fault = Fault{Level: ReadOnly, Reason: "no anchor confirms the head", At: now}
		return nil
	}
	extends, err := extendsTree(ctx, l, s, shown.Size, shown.Root)
	switch {
	case IsDamage(err):
		s.fault = Fault{Level: Frozen, Reason: err.Error(), At: now}
	case err != nil:
		return err
	case !extends:
		s.fault = Fault{Level: Frozen, Reason: fmt.Sprintf("the head does not extend the checkpoint shown at size %d", shown.Size), At: now}
	case doubtful:
		s.fault = Fault{Level: ReadOnly, Reason: lostAnchor, At: now}
		return nil
	default:
		return nil
	}
	s.anchoredView = &shown
	return nil
}

// lostAnchor is the reason of a ledger that is read-only because its latest anchor may have been in damaged bytes.
const lostAnchor = "its latest anchor may be lost, because anchors.journal is damaged: adopt its latest checkpoint, or all heads with adopt --all-heads"

// unanchored wraps the error of writing an anchor for the client. It returns nil if err is nil.
func unanchored(err error) error {
	if err == nil {
		return nil
	}
	return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The anchors can't be written", Err: err}
}

// extendsTree reports whether the tree of s had the given root at the given size.
func extendsTree(ctx context.Context, l *Ledgers, s *State, size id.Index, root id.Hash) (bool, error) {
	if size > s.Size() {
		return false, nil
	}
	was, err := l.Root(ctx, s, size)
	return was == root, err
}

// anchorLoaded returns the state that readers may see after s was read from the store: s, after its anchor was written if
// Options.AnchorFirst is true, or the state at the anchor with Options.Anchored. known is the fault on record.
func (l *Ledgers) anchorLoaded(ctx context.Context, s *State, known Fault) (*State, error) {
	if l.anchored {
		return l.stateAtAnchor(ctx, s)
	}
	if l.importing || l.anchors.ReadOnly() || s.fault.worseOf(known).Level != Healthy || !l.anchorsFirst() {
		return s, nil
	}
	if shown, ok := l.anchors.Find(s.identity.Origin); ok && shown.Size >= s.Size() {
		return s, nil
	}
	if err := l.anchors.Put(s.Checkpoint()); err != nil {
		return nil, fmt.Errorf("%w: %w: %w", storage.ErrUnavailable, errNotAnchored, err)
	}
	return s, nil
}

// stateAtAnchor returns the state of a healthy ledger as of its anchor.
func (l *Ledgers) stateAtAnchor(ctx context.Context, s *State) (*State, error) {
	shown, ok := l.anchors.Find(s.identity.Origin)
	if !ok || s.fault.Level != Healthy || shown.Size >= s.Size() {
		return s, nil
	}
	head, tree := storage.Head{Root: tlog.EmptyRoot(), Last: event.Genesis(s.identity.Origin)}, new(tlog.Builder)
	if shown.Size > 0 {
		var err error
		if head, tree, err = RestoreTreeAt(ctx, l.store, s.identity.Tenant, shown.Size, shown.Root); err != nil {
			return nil, fmt.Errorf("state at the anchor: %w", err)
		}
	}
	head.Epoch, head.ConfigVersion = s.head.Epoch, s.head.ConfigVersion
	return &State{identity: s.identity, keys: s.keys, head: head, tree: tree, used: s.used}, nil
}

// ErrInconsistent is wrapped by errors about a ledger whose stored parts contradict each other.
var ErrInconsistent = errors.New("stored ledger is inconsistent")

// RestoreTree rebuilds the right edge of a ledger's tree from the tile roots and the last entries in the store. It returns
// an error that wraps ErrInconsistent if the tree does not have the head's root or the last entry is not the head's.
func RestoreTree(ctx context.Context, store storage.Ledgers, t id.Tenant, head storage.Head) (*tlog.Builder, error) {
	partials := tlog.Partials(head.Size)
	hashes, err := allHashes(ctx, store, t, partials)
	if err != nil {
		return new(tlog.Builder), err
	}
	tree, err := tlog.NewBuilder(head.Size, hashes...)
	if err != nil {
		return new(tlog.Builder), err
	}
	if tree.Root() != head.Root {
		return tree, fmt.Errorf("%w: the tree's root is not the head's", ErrInconsistent)
	}
	last, err := lastEntry(ctx, store, t, head, partials, hashes)
	if err == nil && last != head.Last && head.Size > 0 {
		err = fmt.Errorf("%w: the last entry is not the head's", ErrInconsistent)
	}
	return tree, err
}

// RestoreTreeAt is like RestoreTree for an earlier head of which only size and root are known. It returns the complete head
// too.
func RestoreTreeAt(
	ctx context.Context, store storage.Ledgers, t id.Tenant, size id.Index, root id.Hash,
) (storage.Head, *tlog.Builder, error) {
	head := storage.Head{Size: size, Root: root}
	if size == 0 {
		return head, nil, ErrInconsistent
	}
	last, err := ReadEvent(ctx, store, t, size-1, storage.FieldColumns)
	if err != nil {
		return head, nil, err
	}
	head.Last, head.LastReceived = EntryOf(last).Hash(), last.ReceivedAt
	tree, err := RestoreTree(ctx, store, t, head)
	return head, tree, err
}

// allHashes returns the hashes of partial tiles. It reads them concurrently, because each read may be a round trip.
func allHashes(ctx context.Context, store storage.Ledgers, t id.Tenant, partials []tlog.Tile) ([][]id.Hash, error) {
	hashes, reads := make([][]id.Hash, len(partials)), make([]func() error, len(partials))
	for i, p := range partials {
		reads[i] = func() (err error) {
			hashes[i], err = partialHashes(ctx, store, t, p)
			return err
		}
	}
	return hashes, syncs.RunAll(reads...)
}

// partialHashes returns the hashes of a partial tile: leaf hashes at level 0, roots of full tiles above.
func partialHashes(ctx context.Context, store storage.Ledgers, t id.Tenant, p tlog.Tile) ([]id.Hash, error) {
	begin := p.Index * tlog.TileWidth
	end := begin + uint64(p.Width)
	if p.Level > 0 {
		return store.TileRoots(ctx, t, p.Level-1, begin, end)
	}
	hashes := make([]id.Hash, 0, p.Width)
	for e, err := range store.Events(ctx, t, id.Index(begin), id.Index(end), 0) {
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, EntryOf(e).Hash())
	}
	if len(hashes) != int(p.Width) {
		return nil, fmt.Errorf("%w: entries are missing", ErrInconsistent)
	}
	return hashes, nil
}

// lastEntry returns the leaf hash of the last entry, or the zero hash if the ledger is empty. A partial tile of level 0
// ends with this hash.
func lastEntry(ctx context.Context, store storage.Ledgers, t id.Tenant, head storage.Head, partials []tlog.Tile,
	hashes [][]id.Hash) (id.Hash, error) {
	if len(partials) > 0 && partials[0].Level == 0 {
		return hashes[0][len(hashes[0])-1], nil
	}
	if head.Size == 0 {
		return id.Hash{}, nil
	}
	last, err := ReadEvent(ctx, store, t, head.Size-1, 0)
	return EntryOf(last).Hash(), err
}

// ReadEvent reads one event from a store. It returns storage.ErrNotFound if the store does not have the event.
func ReadEvent(
	ctx context.Context, store storage.Ledgers, t id.Tenant, at id.Index, parts storage.Fields,
) (storage.Event, error) {
	for e, err := range store.Events(ctx, t, at, at+1, parts) {
		return e, err
	}
	return storage.Event{}, storage.ErrNotFound
}

// EntryOf returns the public entry of a stored event.
func EntryOf(e storage.Event) event.Entry {
	return event.Entry{Prev: e.Entry.Prev, Record: e.Entry.Record, Seq: e.Index.Sequence()}
}

// Witness knows which checkpoints other parties were shown.
type Witness interface {
	// Confirm asks other parties about the head of s. It returns within a bounded time, and freezes the ledger first if
	// one of them knows a tree that the head does not extend.
	Confirm(ctx context.Context, s *State)
}

// confirmByWitness consults the witness before the first append to a ledger after it was loaded, and returns the state
// after that. Concurrent callers wait too. This detects anchors that were lost, or rolled back together with the store.
func (l *Ledgers) confirmByWitness(ctx context.Context, led *ledger) *State {
	s := led.published.Load()
	if l.witness == nil || s.Trusted() != nil || s.Size() == 0 {
		return s
	}
	led.witnessed.Load().Do(func() { l.witness.Confirm(context.WithoutCancel(ctx), led.published.Load()) })
	return led.published.Load()
}

// forgetWitness makes the next append consult the witness.
func (led *ledger) forgetWitness() { led.witnessed.Store(new(sync.Once)) }
