package publicapi

import (
	"context"
	"strconv"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/verify"
)

// answerHead serves transparency/head.
func (s *Server) answerHead(r *request) (response, error) {
	state, err := s.bySlug(r)
	if err != nil {
		return response{}, err
	}
	note, err := s.witnesses.Checkpoint(r.Context(), state)
	if err != nil {
		return response{}, err
	}
	of := headSubject{slug: r.slug, state: state}
	if err := s.nameNeighbours(r.Context(), &of); err != nil {
		return response{}, err
	}
	return s.cachedHead(of, note)
}

// headSubject is the input of an answer about a head, beside the checkpoint.
type headSubject struct {
	slug          id.Slug
	state         *log.State
	before, after id.Origin // the logs before and after in the line; empty for none
}

// nameNeighbours names the logs before and after in the line.
func (s *Server) nameNeighbours(ctx context.Context, of *headSubject) error {
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

// describeHead describes the checkpoint that is shown. The last entry of a detached ledger is
// unknown.
func (of headSubject) describeHead(note []byte) verify.Head {
	state := of.state
	h := verify.NewHead(of.slug, state.Shown(), note, state.Last(), state.LastReceived())
	h.Fault, h.Predecessor, h.Successor = string(state.Fault().Level), of.before, of.after
	if state.Detached() {
		h.LatestLeafHash, h.LatestPublishedAt = nil, nil
	}
	return h
}

// renderHead renders the checkpoint that is shown.
func (of headSubject) renderHead(note []byte) (response, error) {
	made, err := newJSONResponse(of.describeHead(note), revalidate)
	made.tag, made.length = made.entityTag(), strconv.Itoa(len(made.body))
	return made, err
}

// maxHeads is of how many ledgers answers are kept, of one to a few KiB each.
const maxHeads = 1024

// keptHead is an answer with its input. It keeps the input in memory, so that no newer
// input can have the same address.
type keptHead struct {
	headSubject
	note []byte
	made response
}

func newHeadCache() *cache.Map[id.Tenant, *keptHead] {
	return cache.NewMap(cache.MapOptions[id.Tenant, *keptHead]{Limit: maxHeads})
}

// cachedHead returns the answer about a head with its checkpoint, which is not written
// to. The newest answer about each ledger is kept: until the head is another one it is
// always the same.
func (s *Server) cachedHead(of headSubject, note []byte) (response, error) {
	t := of.state.Identity().Tenant
	if kept, found := s.heads.Get(t); found && kept.headSubject == of && sameMemory(kept.note, note) {
		return kept.made, nil
	}
	made, err := of.renderHead(note)
	if err == nil {
		s.heads.Put(t, &keptHead{of, note, made})
	}
	return made, err
}

// sameMemory reports whether two slices are one piece of memory.
func sameMemory(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }
