package log

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// LogKey is a log key of a ledger. It signs trees of the sizes [From, To).
type LogKey struct {
	Verifier tlog.VerifierKey
	From, To id.Index // To is NoEnd until it is retired
}

// Signs reports whether the key signs trees of the given size.
func (k LogKey) Signs(size id.Index) bool { return k.From <= size && size < k.To }

// NoEnd is the LogKey.To of a key that is not retired.
const NoEnd = tlog.MaxSize + 1

// logKeyRecord is the stored form of a log key, except the first.
type logKeyRecord struct {
	Sealed []byte    `json:"sealed"`
	From   id.Index  `json:"from_size"`
	To     *id.Index `json:"to_size"` // nil while it signs
}

// logKeys are the keys of one ledger, oldest first. One key signs each size, or two during a rotation. A logKeys is
// immutable. Retired keys are kept, so that the checkpoint of a size is always the same.
type logKeys struct{ all []heldKey }

type heldKey struct {
	LogKey
	signer tlog.SignerKey
}

// openLogKeys opens the sealed keys of a stored identity.
func openLogKeys(keyring *seal.Keyring, stored identityRecord) (*logKeys, error) {
	keys := new(logKeys)
	for _, r := range stored.listLogKeys() {
		signer, err := openLogKey(keyring, stored.Origin, r.Sealed)
		if err != nil {
			return nil, err
		}
		to := NoEnd
		if r.To != nil {
			to = *r.To
		}
		keys.all = append(keys.all, heldKey{LogKey{Verifier: signer.Verifier(), From: r.From, To: to}, signer})
	}
	return keys, nil
}

// listLogKeys returns all stored keys. Before the first rotation there is only one, which signs every size.
func (r identityRecord) listLogKeys() []logKeyRecord {
	return append([]logKeyRecord{{Sealed: r.SealedLogKey, To: r.FirstTo}}, r.LaterKeys...)
}

func openLogKey(keyring *seal.Keyring, origin id.Origin, sealed []byte) (tlog.SignerKey, error) {
	seed, err := keyring.Open(sealContext(origin), sealed)
	if err != nil {
		return tlog.SignerKey{}, err
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		return tlog.SignerKey{}, err
	}
	return tlog.NewSignerKey(string(origin), private)
}

// SealedLogKeys returns the kind of record that holds the log keys.
func SealedLogKeys() seal.Record {
	context := func(o seal.Owner) string { return sealContext(o.Origin) }
	return seal.RecordOf(kindIdentity, "log keys", context, func(r *identityRecord) []*[]byte {
		keys := []*[]byte{&r.SealedLogKey}
		for i := range r.LaterKeys {
			keys = append(keys, &r.LaterKeys[i].Sealed)
		}
		return keys
	})
}

// signCheckpoint returns the note of a checkpoint with a signature line of each key that signs its size, oldest first.
func (k *logKeys) signCheckpoint(c tlog.Checkpoint) ([]byte, error) {
	var note tlog.Note
	for _, key := range k.all {
		if !key.Signs(c.Size) {
			continue
		}
		signed, err := key.signer.Sign(c)
		if err != nil {
			return nil, err
		}
		one, err := tlog.ParseNote(signed)
		if err != nil {
			return nil, err
		}
		note = tlog.Note{Text: one.Text, Signatures: append(note.Signatures, one.Signatures...)}
	}
	if len(note.Signatures) == 0 {
		return nil, errors.New("no log key signs this size")
	}
	return note.Bytes(), nil
}

// signReceipt returns a receipt that is signed by the key with that public half.
func (k *logKeys) signReceipt(by tlog.VerifierKey, c tlog.Checkpoint, at id.Index, proof []id.Hash) (tlog.Receipt, error) {
	i := slices.IndexFunc(k.all, func(key heldKey) bool { return key.Verifier == by && key.Signs(c.Size) })
	if i < 0 {
		return tlog.Receipt{}, errors.New("no log key signs this size")
	}
	return k.all[i].signer.SignReceipt(c, at, proof)
}

// primaryKey returns the key to show for a size. If two keys sign, it is the older one, because auditors have pinned it.
func (k *logKeys) primaryKey(size id.Index) tlog.VerifierKey {
	for _, key := range k.all {
		if key.Signs(size) {
			return key.Verifier
		}
	}
	return k.all[len(k.all)-1].Verifier
}

// openCheckpoint opens a checkpoint that is signed by a key of its size.
func (k *logKeys) openCheckpoint(note []byte) (c tlog.Checkpoint, err error) {
	for _, key := range k.all {
		if c, err = tlog.OpenCheckpoint(note, key.Verifier); err == nil && key.Signs(c.Size) {
			return c, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("the key does not sign trees of that size: %w", tlog.ErrSignature)
	}
	return tlog.Checkpoint{}, err
}

// LogKeys returns the keys of the ledger including retired ones, oldest first.
func (s *State) LogKeys() []LogKey {
	all := make([]LogKey, len(s.keys.all))
	for i, k := range s.keys.all {
		all[i] = k.LogKey
	}
	return all
}

// KeyChange is a change of a ledger's log keys that is stored with its submission. The sequencer adds the size of the tree
// with that submission, because others may append until then.
type KeyChange struct {
	Verifier tlog.VerifierKey // the key that is added or retired
	From     id.Index         // LogKey.From of a retired key

	stored  identityRecord
	version uint64 // of the stored record
	apply   func(r *identityRecord, size id.Index)
}

// changeAt returns the change of the stored keys if the tree has the given size with the submission. It may be called
// again with another size.
func (k *KeyChange) changeAt(size id.Index) (storage.Change, error) {
	r := k.stored
	r.LaterKeys = slices.Clone(r.LaterKeys)
	k.apply(&r, size)
	value, err := json.Marshal(r)
	if err != nil {
		return storage.Change{}, fmt.Errorf("change log keys: %w", err)
	}
	return storage.Change{Kind: kindIdentity, Value: value, If: k.version}, nil
}

// RotateLogKey returns the change that adds a log key. The new and the current key both sign the tree that includes the
// change, and all larger ones. The submission must have an event that states the change (package sysevent). It returns
// fault.Conflict while two keys sign.
func (l *Ledgers) RotateLogKey(ctx context.Context, s *State) (*KeyChange, error) {
	if signing := s.signingKeys(); len(signing) > 1 {
		return nil, fault.New(fault.Conflict, fmt.Sprintf("Two log keys already sign, the newer is %s: retire the older one first", signing[1].Verifier))
	}
	seed := edkey.NewPrivate().Seed()
	sealed, err := l.keyring.Seal(sealContext(s.identity.Origin), seed[:])
	if err != nil {
		return nil, fmt.Errorf("generate log key: %w", err)
	}
	signer, err := openLogKey(l.keyring, s.identity.Origin, sealed)
	if err != nil {
		return nil, fmt.Errorf("generate log key: %w", err)
	}
	return l.changeKeys(ctx, s, LogKey{Verifier: signer.Verifier()}, func(r *identityRecord, size id.Index) {
		r.LaterKeys = append(r.LaterKeys, logKeyRecord{Sealed: sealed, From: size})
	})
}

// RetireLogKey returns the change that ends a rotation: the older key signs neither the tree that includes the change nor
// a larger one (see RotateLogKey). It returns fault.Conflict if only one key signs.
func (l *Ledgers) RetireLogKey(ctx context.Context, s *State) (*KeyChange, error) {
	signing := s.signingKeys()
	if len(signing) < 2 {
		return nil, fault.New(fault.Conflict, fmt.Sprintf("Only the log key %s signs: there is no key to retire", signing[0].Verifier))
	}
	return l.changeKeys(ctx, s, signing[0].LogKey, func(r *identityRecord, size id.Index) {
		if n := len(r.LaterKeys); n == 1 {
			r.FirstTo = &size
		} else {
			r.LaterKeys[n-2].To = &size
		}
	})
}

// signingKeys returns the keys that sign the next size, oldest first.
func (s *State) signingKeys() []heldKey {
	return slices.DeleteFunc(slices.Clone(s.keys.all), func(k heldKey) bool { return !k.Signs(s.Size() + 1) })
}

// changeKeys returns a change that applies apply to the stored keys.
func (l *Ledgers) changeKeys(ctx context.Context, s *State, key LogKey, apply func(*identityRecord, id.Index)) (*KeyChange, error) {
	stored, err := l.store.Get(ctx, s.identity.Tenant, kindIdentity, "")
	if err != nil {
		return nil, storeError("read log keys", err)
	}
	k := &KeyChange{Verifier: key.Verifier, From: key.From, version: stored.Version, apply: apply}
	if err := json.Unmarshal(stored.Value, &k.stored); err != nil {
		return nil, storeError("read log keys", fmt.Errorf("%w: %w", storage.ErrCorrupt, err))
	}
	return k, nil
}

// findNewKeys returns the log keys that a durable batch stores, or nil.
func (l *Ledgers) findNewKeys(p *ledgerBatch) *logKeys {
	i := slices.IndexFunc(p.batch.Changes, func(c storage.Change) bool { return c.Kind == kindIdentity })
	if i < 0 {
		return nil
	}
	var r identityRecord
	keys, err := (*logKeys)(nil), json.Unmarshal(p.batch.Changes[i].Value, &r)
	if err == nil {
		keys, err = openLogKeys(l.keyring, r)
	}
	if err != nil { // RotateLogKey opened the same keys, so this is not expected
		l.logger.Error("new log keys can't be read", "origin", p.ledger.identity.Origin, "err", err)
		return nil
	}
	return keys
}

// refreshKeys reads the keys of a ledger again, because a failed batch with new keys may have been applied after all. The
// ledger must have no append in flight.
func (l *Ledgers) refreshKeys(ctx context.Context, led *ledger) error {
	_, keys, err := l.readIdentity(ctx, led.identity.Tenant)
	if err == nil {
		led.keys.Store(keys)
	}
	return err
}
