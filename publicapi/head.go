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

// headSubject is the input of a response about a head, except the checkpoint.
type headSubject struct {
	slug          id.Slug
	state         *log.State
	before, after id.Origin // the previous and next log of the line, or ""
}

// nameNeighbours sets the previous and next log of the line.
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

// describeHead returns the document of the published checkpoint. The last entry of a detached ledger is
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

// renderHead renders the document of the published checkpoint.
func (of headSubject) renderHead(note []byte) (response, error) {
	made, err := newJSONResponse(of.describeHead(note), revalidate)
	made.tag, made.length = made.entityTag(), strconv.Itoa(len(made.body))
	return made, err
}

// maxHeads bounds the number of cached responses, of one to a few KiB each.
const maxHeads = 1024

// headEntry is a response with its input. It keeps the input alive, so that no later
// input can have the same address.
type headEntry struct {
	headSubject
	note []byte
	made response
}

func newHeadCache() *cache.Map[id.Tenant, *headEntry] {
	return cache.NewMap(cache.MapOptions[id.Tenant, *headEntry]{Limit: maxHeads})
}

// cachedHead returns the response about a head and its checkpoint, which the caller must not modify. It caches the latest
// response of each ledger, which is the same until the head changes.
func (s *Server) cachedHead(of headSubject, note []byte) (response, error) {
	t := of.state.Identity().Tenant
	if cached, found := s.heads.Get(t); found && cached.headSubject == of && sameMemory(cached.note, note) {
		return cached.made, nil
	}
	made, err := of.renderHead(note)
	if err == nil {
		s.heads.Put(t, &headEntry{of, note, made})
	}
	return made, err
}

// sameMemory reports whether two slices share their memory and length.
func sameMemory(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }
