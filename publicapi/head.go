package publicapi

import (
	"context"
	"strconv"
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/verify"
)

// head serves transparency/head.
func (s *Server) head(r request) (representation, error) {
	state, err := s.bySlug(r)
	if err != nil {
		return representation{}, err
	}
	note, err := s.witnesses.Checkpoint(r.Context(), state)
	if err != nil {
		return representation{}, err
	}
	of := subject{slug: r.slug, state: state}
	if err := s.relate(r.Context(), &of); err != nil {
		return representation{}, err
	}
	return s.heads.of(of, note)
}

// subject is what an answer about a head follows from, beside the checkpoint.
type subject struct {
	slug          id.Slug
	state         *log.State
	before, after id.Origin // the logs before and after in the line; empty for none
}

// relate names the logs before and after in the line.
func (s *Server) relate(ctx context.Context, of *subject) error {
	before, err := s.ledgers.Predecessor(ctx, of.state)
	if err != nil {
		return err
	}
	if before != nil {
		of.before = before.Identity().Origin
	}
	after, err := s.ledgers.Successor(ctx, of.state)
	if after != nil {
		of.after = after.Identity().Origin
	}
	return err
}

// render is of the checkpoint that is shown. Of a detached ledger nobody knows the
// entry it ends with.
func (of subject) render(note []byte) (representation, error) {
	state := of.state
	h := verify.NewHead(of.slug, state.Shown(), note, state.Last(), state.LastReceived())
	h.Fault, h.Predecessor, h.Successor = string(state.Fault().Level), of.before, of.after
	if state.Detached() {
		h.LatestLeafHash, h.LatestPublishedAt = nil, nil
	}
	made, err := jsonOf(h, revalidate)
	made.tag, made.length = made.etag(), strconv.Itoa(len(made.body))
	return made, err
}

// heads keeps the newest answer about the head of each of a number of ledgers: until
// the head is another one it is always the same.
type heads struct {
	mu   sync.RWMutex
	kept map[id.Tenant]*keptHead
}

// maxHeads is of how many ledgers answers are kept, of one to a few KiB each.
const maxHeads = 1024

// keptHead is an answer and what it was made of. It keeps both in memory, so that
// nothing newer can lie where they do.
type keptHead struct {
	subject
	note []byte
	made representation
}

func newHeads() *heads { return &heads{kept: make(map[id.Tenant]*keptHead)} }

// of returns the answer about a head with its checkpoint, which is not written to.
func (k *heads) of(of subject, note []byte) (representation, error) {
	t := of.state.Identity().Tenant
	k.mu.RLock()
	found := k.kept[t]
	k.mu.RUnlock()
	if found != nil && found.subject == of && same(found.note, note) {
		return found.made, nil
	}
	made, err := of.render(note)
	if err == nil {
		k.keep(t, &keptHead{of, note, made})
	}
	return made, err
}

// same reports whether two slices are one piece of memory.
func same(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// keep takes the place of what was kept of the ledger, or of any other if there is no
// room.
func (k *heads) keep(t id.Tenant, made *keptHead) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.kept[t] == nil && len(k.kept) >= maxHeads {
		for other := range k.kept {
			delete(k.kept, other)
			break
		}
	}
	k.kept[t] = made
}
