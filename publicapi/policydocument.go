package publicapi

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/log"
)

// Policies returns the policy documents that organizations publish. It returns fault.NotFound for all others.
type Policies interface {
	Published(ctx context.Context, s *log.State, digest id.Hash) ([]byte, error)
}

// answerPolicyDocument serves policies/:digest: the exact bytes of the document that a record names by its
// policy_digest. Readers evaluate decisions again with it. It is served for a frozen ledger too,
// because the digest proves the document.
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
