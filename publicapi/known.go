package publicapi

import (
	"context"
	"net/http"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/tlog"
)

// Known returns states of ledgers that other nodes own.
type Known interface {
	// Shown returns a published state whose size within accepts, or nil if there is none.
	Shown(ctx context.Context, t id.Tenant, within func(id.Index) bool) (*log.State, error)
}

// findKnown finds a state for a tile of an organization that another node owns. A tile never changes, so this node serves
// it without the owner if it knows that the tile was published. Otherwise the owner answers.
func (s *Server) findKnown(r *request) bool {
	within := tileOfPath(r.Request)
	if s.known == nil || within == nil {
		return false
	}
	state, err := s.known.Shown(r.Context(), r.tenant, within)
	if err != nil || state == nil {
		return false
	}
	_, number := state.Identity().Origin.Split()
	if want, err := numberOfPath(r.Request); err != nil || want != number {
		return false
	}
	r.known = state
	return true
}

// tileOfPath returns a function that reports whether a tree of a size has the tile or entry bundle in a path. It is
// nil if the path names neither.
func tileOfPath(r *http.Request) (within func(id.Index) bool) {
	path := tilePath(r)
	if hasQuery(r) {
		return nil
	}
	if strings.HasPrefix(path, "tile/entries/") {
		b, err := tlog.ParseBundlePath(path)
		if err != nil {
			return nil
		}
		return b.Within
	}
	t, err := tlog.ParseTilePath(path)
	if err != nil {
		return nil
	}
	return t.Within
}
