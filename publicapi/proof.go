package publicapi

import (
	"context"
	"net/url"
	"strconv"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// answerInclusion serves transparency/inclusion.
func (s *Server) answerInclusion(r *request) (response, error) {
	state, err := s.provableBySlug(r)
	if err != nil {
		return response{}, err
	}
	at, size, err := s.wantedLeaf(r, state)
	if err != nil {
		return response{}, err
	}
	leaf, root, hashes, err := s.ledgers.Inclusion(r.Context(), state, at, size)
	if err != nil {
		return response{}, err
	}
	return renderInclusion(&verify.InclusionAnswer{LogIndex: at, TreeSize: size, LeafHash: leaf, RootHash: root,
		Hashes: hashes}), nil
}

// wantedLeaf returns the leaf and the tree size of an inclusion proof: at < size <= state.Size().
func (s *Server) wantedLeaf(r *request, state *log.State) (at, size id.Index, err error) {
	if size, err = indexParameter(r.query, "tree_size", state.Size()); err != nil {
		return 0, 0, err
	}
	if at, err = s.wantedIndex(r.Context(), state, r.query); err != nil {
		return 0, 0, err
	}
	if at >= size {
		return 0, 0, fault.New(fault.Invalid, "log_index must be below tree_size")
	}
	if size > state.Size() {
		return 0, 0, errNotFound()
	}
	return at, size, nil
}

// indexParameter returns a log index or tree size: decimal digits without leading zeros. It returns absent if the query
// does not have the parameter.
func indexParameter(q url.Values, name string, absent id.Index) (id.Index, error) {
	if !q.Has(name) {
		return absent, nil
	}
	text := q.Get(name)
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id.Index(n) > tlog.MaxSize || len(text) > 1 && text[0] == '0' {
		return 0, fault.New(fault.Invalid, name+" must be a whole number in decimal digits")
	}
	return id.Index(n), nil
}

// wantedIndex returns the index in a query, or the index of the event that it names.
func (s *Server) wantedIndex(ctx context.Context, state *log.State, q url.Values) (id.Index, error) {
	if q.Has("event_id") == q.Has("log_index") {
		return 0, fault.New(fault.Invalid, "Give either log_index or event_id")
	}
	if q.Has("log_index") {
		return indexParameter(q, "log_index", 0)
	}
	name := q.Get("event_id")
	if !event.ValidEvent(name) {
		return 0, fault.New(fault.Invalid, "event_id must match [A-Za-z0-9._:-]{1,128} and not be . or ..")
	}
	return s.ledgers.Find(ctx, state, id.Event(name))
}

// answerConsistency serves transparency/consistency.
func (s *Server) answerConsistency(r *request) (response, error) {
	state, err := s.provableBySlug(r)
	if err != nil {
		return response{}, err
	}
	from, to, err := wantedSizes(r, state.Size())
	if err != nil {
		return response{}, err
	}
	fromRoot, toRoot, hashes, err := s.ledgers.Consistency(r.Context(), state, from, to)
	if err != nil {
		return response{}, err
	}
	return renderConsistency(&verify.Consistency{From: from, To: to, FromRoot: fromRoot, ToRoot: toRoot,
		Hashes: hashes}), nil
}

// wantedSizes returns the two sizes of a consistency proof: from <= to <= head.
func wantedSizes(r *request, head id.Index) (from, to id.Index, err error) {
	if !r.query.Has("from") {
		return 0, 0, fault.New(fault.Invalid, "from is required")
	}
	if from, err = indexParameter(r.query, "from", 0); err != nil {
		return 0, 0, err
	}
	if to, err = indexParameter(r.query, "to", head); err != nil {
		return 0, 0, err
	}
	if from > to {
		return 0, 0, fault.New(fault.Invalid, "from must not be above to")
	}
	if to > head {
		return 0, 0, errNotFound()
	}
	return from, to, nil
}
