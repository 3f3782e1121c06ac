package witness

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// kindWitnessed is the record of what was cosigned of a ledger, in its partition
// under key "".
const kindWitnessed storage.Kind = "witnessed"

// record is the stored form.
type record struct {
	Quorum string           `json:"quorum,omitzero"` // the newest note that had a quorum
	Newest string           `json:"newest,omitzero"` // the newest with a cosignature; "" when it is Quorum
	Hints  map[string]*hint `json:"hints,omitzero"`  // by WitnessKey.Identity
	Under  string           `json:"under,omitzero"`  // digest of the policy under which the hints were refused; "" when none was
}

// page is a record that was read.
type page struct {
	version        uint64 // 0: there is none
	hints          map[string]*hint
	under          string   // see record
	quorum, newest *vouched // nil for none
}

// vouched is a checkpoint with cosignatures.
type vouched struct {
	checkpoint tlog.Checkpoint
	note       tlog.Note
	bytes      []byte // of note; never changed
}

func newVouched(note []byte) (*vouched, error) {
	n, err := tlog.ParseNote(note)
	if err != nil {
		return nil, err
	}
	c, err := tlog.ReadCheckpoint(note)
	return &vouched{checkpoint: c, note: n, bytes: note}, err
}

// by reports whether there is a cosignature of the key. It was verified before it
// was stored.
func (v *vouched) by(k tlog.WitnessKey) bool {
	return v != nil && slices.ContainsFunc(v.note.Signatures, k.Made)
}

// of reports whether the checkpoint is c.
func (v *vouched) of(c tlog.Checkpoint) bool { return v != nil && v.checkpoint == c }

// size is that of the checkpoint, 0 for none.
func (v *vouched) size() id.Index {
	if v == nil {
		return 0
	}
	return v.checkpoint.Size
}

// read returns what is stored of a ledger. What can't be understood counts as
// absent: it is asked for again.
func (w *Witnesses) read(ctx context.Context, t id.Tenant) (*page, error) {
	r, err := w.Store.Get(ctx, t, kindWitnessed, "")
	if errors.Is(err, storage.ErrNotFound) {
		return &page{hints: map[string]*hint{}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read cosignatures: %w", err)
	}
	p, err := parsePage(r.Value)
	if err != nil {
		w.Logger.Error("stored cosignatures can't be read", "tenant", t, "err", err)
		p = &page{hints: map[string]*hint{}}
	}
	p.version = r.Version
	return p, nil
}

func parsePage(value []byte) (*page, error) {
	var stored record
	if err := json.Unmarshal(value, &stored); err != nil {
		return nil, err
	}
	p := &page{hints: stored.Hints, under: stored.Under}
	if p.hints == nil {
		p.hints = map[string]*hint{}
	}
	for key, h := range p.hints {
		if h == nil {
			delete(p.hints, key)
		}
	}
	var err error
	if stored.Quorum != "" {
		if p.quorum, err = newVouched([]byte(stored.Quorum)); err != nil {
			return nil, err
		}
	}
	p.newest = p.quorum
	if stored.Newest != "" {
		p.newest, err = newVouched([]byte(stored.Newest))
	}
	return p, err
}

func (p *page) marshal() ([]byte, error) {
	stored := record{Hints: p.hints, Under: p.under}
	if p.quorum != nil {
		stored.Quorum = string(p.quorum.bytes)
	}
	if p.newest != nil && p.newest != p.quorum {
		stored.Newest = string(p.newest.bytes)
	}
	return json.Marshal(stored)
}

// add puts a cosignature to what is stored, if it is of the newest checkpoint, of
// a newer one, or of the one with a quorum: what is kept only grows. signed is
// the checkpoint's note with the log's signature.
func (p *page) add(signed []byte, s tlog.Signature, f *force) error {
	fresh, err := newVouched(signed)
	if err != nil {
		return err
	}
	on := fresh
	switch c := fresh.checkpoint; {
	case p.newest.of(c):
		on = p.newest
	case p.quorum.of(c):
		on = p.quorum
	case c.Size <= p.newest.size():
		return nil // older than what is kept
	}
	note, err := on.note.Add(s)
	if err != nil {
		return nil // a line of that key is there
	}
	more := &vouched{checkpoint: on.checkpoint, note: note, bytes: note.Bytes()}
	if more.checkpoint.Size >= p.newest.size() {
		p.newest = more
	}
	if p.quorum.of(more.checkpoint) || f.policy.Quorate(more.by) {
		p.quorum = more
	}
	return nil
}

// maxRewrites is how often a change is made anew since somebody else was faster.
const maxRewrites = 8

// change writes what update makes of a ledger's record. The record is durable at
// return, and shown from then on.
func (w *Witnesses) change(ctx context.Context, t id.Tenant, update func(*page) error) error {
	leave, err := w.writing.Enter(ctx, t)
	if err != nil {
		return fmt.Errorf("change cosignatures: %w", err)
	}
	defer leave()
	for range maxRewrites {
		p, err := w.read(ctx, t)
		if err != nil {
			return err
		}
		if err := update(p); err != nil {
			return fmt.Errorf("change cosignatures: %w", err)
		}
		value, err := p.marshal()
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

// OfLog reports whether records of a kind are about one log: they don't go over to
// the one that succeeds it.
func OfLog(kind storage.Kind) bool { return kind == kindWitnessed }
