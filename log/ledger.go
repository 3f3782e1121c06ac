package log

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

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

// Records of a ledger in its own partition, each with one record under key "".
const (
	kindIdentity storage.Kind = "ledger"
	kindFault    storage.Kind = "ledger_fault"
)

// ledger is one organization's ledger in memory.
type ledger struct {
	identity *Identity
	keys     atomic.Pointer[logKeys] // replaced while no other append is in flight

	markMu    sync.Mutex // held while a fault is put on record
	publishMu sync.Mutex // held while published is moved
	published atomic.Pointer[State]
	witnessed atomic.Pointer[sync.Once] // of asking the witness, since the ledger was read

	tail    tail         // owned by the sequencer, or by a repair while the ledger is blocked
	pending pendingQueue // guarded by queue.mu

	outstanding takeover.Outstanding // written under queue.mu

	limits limitCounters // of limits

	retired atomic.Bool // dropped since it could not be repaired; it is still read

	failedMu sync.Mutex
	failed   []failedBatch // waiting for repair

	takenKeysMu sync.Mutex
	takenKeys   map[storage.DedupKey]struct{} // of events that are out; nil until the first
}

// Checkpoint implements anchor.Source.
func (led *ledger) Checkpoint() []byte { return led.published.Load().Checkpoint() }

// tail is the end of the ledger as it will be when all that is out has landed.
type tail struct {
	head storage.Head
	tree *tlog.Builder
	used usage
}

// identityRecord is the stored form of the identity and the log keys of a ledger.
type identityRecord struct {
	OrganizationID id.Organization `json:"organization_id"`
	Origin         id.Origin       `json:"origin"`
	CreatedAt      id.Instant      `json:"created_at"`
	SealedLogKey   []byte          `json:"sealed_log_key"`           // of the first key
	FirstTo        *id.Index       `json:"first_to_size,omitzero"`   // nil while it signs
	LaterKeys      []logKeyRecord  `json:"later_log_keys,omitempty"` // those that came by rotation, oldest first

	Predecessor *predecessorRecord `json:"predecessor,omitempty"` // nil for an organization's first ledger
}

// toIdentity returns the identity that the record holds, for the ledger of that handle.
func (r *identityRecord) toIdentity(t id.Tenant) *Identity {
	i := &Identity{Tenant: t, Organization: r.OrganizationID, Origin: r.Origin, CreatedAt: r.CreatedAt}
	if p := r.Predecessor; p != nil {
		i.Predecessor, i.carried = p.Tenant, usage{month: p.Month, count: p.Counted}
	}
	return i
}

// BeganAt returns when the ledger with that handle was created. isFirst reports whether it is the first ledger of its
// organization. BeganAt reads the store, so it works on every node, also on one that does not own the ledger.
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

// Genesis is the beginning of a new ledger.
type Genesis struct {
	Organization id.Organization
	Origin       id.Origin
	Slug         id.Slug          // kept beside the anchors, for ever; "": none
	Changes      []storage.Change // records that come to be with the ledger
}

// Create makes an empty ledger with a new log key, and the records of g, in one durable step. The tenant handle and
// the origin are the caller's claims. fault.Conflict: the handle has a ledger, the origin was shown before, or the
// slug is another organization's (SlugTaken). fault.Unavailable: the anchors take no writes or may have lost slugs, and
// nothing was made.
// When they take none after the step, the ledger is there all the same, and its first anchor is written before its
// first event. The process need not own the ledger, whose owner has its first anchor written.
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
	if err := l.keepGenesisSlug(g); err != nil { // a founding that came to nothing had taken it meanwhile
		l.logger.Error("slug not kept: the next start does it", "origin", g.Origin, "err", err)
	}
	return s, nil
}

// errSlugsDoubtful is for the operator: it must not reach the client.
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
		return nil, fault.New(fault.Conflict, "The origin was used before")
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
			l.logger.Error("a new ledger is not read yet", "origin", identity.Origin, "err", err)
		}
		return l.genesisState(identity.toIdentity(t), identity, batch.Head)
	}
	return led.published.Load(), nil
}

// genesisState returns the state of a ledger that was just made and is not published yet.
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

// loadLedger reads a ledger and checks that the stored values fit together.
func (l *Ledgers) loadLedger(ctx context.Context, t id.Tenant) (*ledger, error) {
	identity, keys, err := l.readIdentity(ctx, t)
	if err != nil {
		return nil, err
	}
	led := newLedger(identity, keys)
	if err := l.refreshState(ctx, led); err != nil {
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

// refreshState reads a ledger that has no append in flight, compares the stored values
// with each other and with the anchor, and publishes the state.
func (l *Ledgers) refreshState(ctx context.Context, led *ledger) error {
	known, err := l.storedFault(ctx, led.identity.Tenant)
	if err != nil {
		return err
	}
	s, err := l.takeOverAndRead(ctx, led, known)
	// The fault is read on both sides of the head: Retire moves the head together with
	// the mark, and an import moves it before the mark is gone.
	later, unread := l.storedFault(ctx, led.identity.Tenant)
	known = known.worseOf(later)
	switch {
	case unread != nil:
		return unread
	case err == nil && known.Level == Importing: // there is no anchor before it has arrived
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
	if err == nil {
		err = l.rereadCounters(ctx, led)
	}
	if err != nil {
		return storeError("load ledger", err)
	}
	led.publishMu.Lock()
	defer led.publishMu.Unlock()
	if before := led.published.Load(); before != nil {
		s.fault = s.fault.worseOf(before.fault)
	}
	if s.fault = s.fault.worseOf(known); s.fault.Level != Healthy {
		l.logger.Error("ledger has a fault", "origin", led.identity.Origin, "level", s.fault.Level, "reason", s.fault.Reason)
	}
	if s.Trusted() == nil {
		_ = l.noteIfAhead(led.identity, s.head.LastReceived, l.clockInstant()) // so that it is told and counted
	}
	led.forgetWitness()
	led.tail = tail{head: s.head, tree: s.tree.Clone(), used: s.used}
	led.published.Store(s)
	return nil
}

// readState reads head, tree and counters.
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

// recoverState returns a frozen state for reading a ledger whose head can't be relied on: the state at its anchor,
// which is the last thing known of the ledger. The state is detached when the store does not hold even that.
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
