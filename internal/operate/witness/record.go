package witness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// kindWitnessed is the record of the cosigned checkpoints of a ledger, in its partition
// under key "".
const kindWitnessed storage.Kind = "witnessed"

// storedRecord is the stored form.
type storedRecord struct {
	Quorum string           `json:"quorum,omitzero"` // latest note with a quorum
	Newest string           `json:"newest,omitzero"` // latest note with a cosignature; "" if it is Quorum
	Hints  map[string]*hint `json:"hints,omitzero"`  // by WitnessKey.Identity
	Under  string           `json:"under,omitzero"`  // digest of the policy of the rejections; "" if there are none
}

// ledgerRecord is the parsed record of a ledger.
type ledgerRecord struct {
	version        uint64 // 0 if there is none
	hints          map[string]*hint
	under          string              // see storedRecord
	quorum, newest *cosignedCheckpoint // nil if there is none
}

// cosignedCheckpoint is a checkpoint with cosignatures.
type cosignedCheckpoint struct {
	checkpoint tlog.Checkpoint
	note       tlog.Note
	bytes      []byte // of note; immutable
}

func parseCosigned(note []byte) (*cosignedCheckpoint, error) {
	n, err := tlog.ParseNote(note)
	if err != nil {
		return nil, err
	}
	c, err := tlog.ReadCheckpoint(note)
	return &cosignedCheckpoint{checkpoint: c, note: n, bytes: note}, err
}

// isCosignedBy reports whether the note has a cosignature of the key. Cosignatures are verified before they are stored.
func (v *cosignedCheckpoint) isCosignedBy(k tlog.WitnessKey) bool {
	return v != nil && slices.ContainsFunc(v.note.Signatures, k.Matches)
}

// isOfCheckpoint reports whether the checkpoint is c.
func (v *cosignedCheckpoint) isOfCheckpoint(c tlog.Checkpoint) bool {
	return v != nil && v.checkpoint == c
}

// treeSize returns the size of the checkpoint, or 0 if v is nil.
func (v *cosignedCheckpoint) treeSize() id.Index {
	if v == nil {
		return 0
	}
	return v.checkpoint.Size
}

// readRecord returns the record of a ledger.
func (w *Witnesses) readRecord(ctx context.Context, t id.Tenant) (*ledgerRecord, error) {
	r, err := w.Store.Get(ctx, t, kindWitnessed, "")
	if errors.Is(err, storage.ErrNotFound) {
		return &ledgerRecord{hints: map[string]*hint{}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read cosignatures: %w", err)
	}
	p := w.recordIn(t, r.Value)
	p.version = r.Version
	return p, nil
}

// recordIn parses a record. If value is nil or can't be parsed, it returns an empty record, because the witnesses can
// be asked again.
func (w *Witnesses) recordIn(t id.Tenant, value []byte) *ledgerRecord {
	if value != nil {
		p, err := parseRecord(value)
		if err == nil {
			return p
		}
		w.Logger.Error("stored cosignatures can't be read", "tenant", t, "err", err)
	}
	return &ledgerRecord{hints: map[string]*hint{}}
}

func parseRecord(value []byte) (*ledgerRecord, error) {
	var stored storedRecord
	if err := json.Unmarshal(value, &stored); err != nil {
		return nil, err
	}
	p := &ledgerRecord{hints: stored.Hints, under: stored.Under}
	if p.hints == nil {
		p.hints = map[string]*hint{}
	}
	maps.DeleteFunc(p.hints, func(_ string, h *hint) bool { return h == nil })
	var err error
	if stored.Quorum != "" {
		if p.quorum, err = parseCosigned([]byte(stored.Quorum)); err != nil {
			return nil, err
		}
	}
	p.newest = p.quorum
	if stored.Newest != "" {
		p.newest, err = parseCosigned([]byte(stored.Newest))
	}
	return p, err
}

func (p *ledgerRecord) marshalRecord() ([]byte, error) {
	stored := storedRecord{Hints: p.hints, Under: p.under}
	if p.quorum != nil {
		stored.Quorum = string(p.quorum.bytes)
	}
	if p.newest != nil && p.newest != p.quorum {
		stored.Newest = string(p.newest.bytes)
	}
	return json.Marshal(stored)
}

// addCosignature adds a cosignature of the latest checkpoint, of a newer one, or of the checkpoint with a quorum. It
// drops other cosignatures, because the stored state only grows; a newer cosignature of the same key replaces the
// older one. signed is the checkpoint's note with the log's signature.
func (p *ledgerRecord) addCosignature(signed []byte, s tlog.Signature, f *activePolicy, now id.Instant) error {
	fresh, err := parseCosigned(signed)
	if err != nil {
		return err
	}
	on := fresh
	switch c := fresh.checkpoint; {
	case p.newest.isOfCheckpoint(c):
		on = p.newest
	case p.quorum.isOfCheckpoint(c):
		on = p.quorum
	case c.Size <= p.newest.treeSize():
		return nil // older than the stored ones
	}
	note, err := on.withoutOlder(s, now).Add(s)
	if err != nil {
		return nil // the note already has a line of that key
	}
	more := &cosignedCheckpoint{checkpoint: on.checkpoint, note: note, bytes: note.Bytes()}
	if more.checkpoint.Size >= p.newest.treeSize() {
		p.newest = more
	}
	if p.quorum.isOfCheckpoint(more.checkpoint) || f.policy.Quorate(more.isCosignedBy) {
		p.quorum = more
	}
	return nil
}

// withoutOlder returns the note without an older cosignature of the key that made s. A cosignature from the future
// counts as older, because its time proves nothing.
func (v *cosignedCheckpoint) withoutOlder(s tlog.Signature, now id.Instant) tlog.Note {
	n := v.note
	n.Signatures = slices.DeleteFunc(slices.Clone(n.Signatures), func(known tlog.Signature) bool {
		at := cosignatureTime(known)
		return known.Name == s.Name && known.KeyHash == s.KeyHash && (at < cosignatureTime(s) || trust.IsAhead(at, now))
	})
	return n
}

// maxRewrites bounds how often a change is repeated after concurrent writes.
const maxRewrites = 8

// changeRecord applies update to the record of a ledger and writes it. When it returns, the record is durable and
// visible in views.
func (w *Witnesses) changeRecord(ctx context.Context, t id.Tenant, update func(*ledgerRecord) error) error {
	leave, err := w.writing.Lock(ctx, t)
	if err != nil {
		return fmt.Errorf("change cosignatures: %w", err)
	}
	defer leave()
	for range maxRewrites {
		p, err := w.readRecord(ctx, t)
		if err != nil {
			return err
		}
		if err := update(p); err != nil {
			return fmt.Errorf("change cosignatures: %w", err)
		}
		value, err := p.marshalRecord()
		if err != nil {
			return fmt.Errorf("change cosignatures: %w", err)
		}
		err = w.Store.Write(ctx, t, []storage.Change{{Kind: kindWitnessed, Value: value, If: p.version}})
		w.views.Expire(t)
		if !errors.Is(err, storage.ErrStale) {
			return err
		}
	}
	return fmt.Errorf("change cosignatures: %w", storage.ErrStale)
}

// OfLog reports whether records of a kind belong to one log. Such records are not copied to a successor.
func OfLog(kind storage.Kind) bool { return kind == kindWitnessed }

// RecordChecks returns a function for each kind of record of this package that reports whether such a record can be
// decoded. An import calls it before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindWitnessed: checkWitnessed,
	}
}

func checkWitnessed(r storage.Record) error {
	if _, err := parseRecord(r.Value); err != nil {
		return fmt.Errorf("cosignatures: %w: %w", storage.ErrCorrupt, err)
	}
	return nil
}
