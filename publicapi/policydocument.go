package publicapi

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/log"
)

// Policies gives the policy documents that organizations publish; fault.NotFound for all others.
type Policies interface {
	Published(ctx context.Context, s *log.State, digest id.Hash) ([]byte, error)
}

// answerPolicyDocument serves policies/:digest: the document that a record names by its
// policy_digest, as the bytes of that digest. A reader decides again with it. A document of a frozen
// ledger is right as well, because its digest says so.
func (s *Server) answerPolicyDocument(r *request) (response, error) {
	digest, err := id.ParseHash(edge.PathParameter(r.Request, "digest"))
	if err != nil || s.policies == nil {
		return response{}, errNotFound()
	}
	state, err := s.bySlug(r)
	if err != nil {
		return response{}, err
	}
	document, err := s.policies.Published(r.Context(), state, digest)
	if err != nil {
		return response{}, err
	}
	return response{media: edge.MediaJSON, cache: revalidate, body: document}, nil
}
