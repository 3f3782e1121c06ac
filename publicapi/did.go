package publicapi

import (
	"context"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/log"
)

// answerKeyDocument serves agents/:agentId/did: the did:key document of the
// agent's newest active key.
func (s *Server) answerKeyDocument(r *request) (response, error) {
	return s.agentDocument(r, newestKey, id.Agent(edge.PathParameter(r.Request, "agent")))
}

// answerWebDocument serves agents/:agentId/did.json.
func (s *Server) answerWebDocument(r *request) (response, error) {
	return s.agentDocument(r, allKeys, id.Agent(edge.PathParameter(r.Request, "agent")))
}

// answerDocument serves did/:did. A did:web with a port contains an escape
// (%3A or %3a). It is also found if that was not escaped again for the path.
func (s *Server) answerDocument(r *request) (response, error) {
	name := edge.PathParameter(r.Request, "did")
	if public, err := did.ParseKey(name); err == nil {
		return s.knownKeyDocument(r, public)
	}
	agent, err := did.ParseWeb(s.host, name)
	if err != nil {
		agent, err = did.ParseWeb(s.host, chi.URLParam(r.Request, "did"))
	}
	if err != nil {
		return response{}, errNotFound()
	}
	return s.agentDocument(r, allKeys, agent)
}

func (s *Server) knownKeyDocument(r *request, public [32]byte) (response, error) {
	refused, elsewhere := errNotFound(), error(nil)
	for holder, err := range s.agents.KeyHolders(r.Context(), public) {
		if err == nil {
			_, err = s.trustedState(r, holder)
		}
		if err == nil {
			return s.cachedDocument(r, documentName{form: oneKey, public: public},
				func(context.Context) (did.Document, error) {
					return did.KeyDocument(public)
				})
		}
		if isElsewhere(err) {
			elsewhere = err
		} else {
			refused = err
		}
	}
	if elsewhere != nil {
		return response{}, elsewhere
	}
	return response{}, refused
}

// agentDocument returns a document of an agent, or an error if the records of its organization cannot be
// trusted.
func (s *Server) agentDocument(r *request, form documentForm, agent id.Agent) (response, error) {
	owner, err := s.agents.Owner(r.Context(), agent)
	if err != nil {
		return response{}, err
	}
	state, err := s.trustedState(r, owner)
	if err != nil {
		return response{}, err
	}
	name := documentName{form: form, agent: agent, version: state.ConfigVersion()}
	return s.cachedDocument(r, name, func(ctx context.Context) (did.Document, error) {
		keys, err := s.agents.DIDKeys(ctx, owner, agent)
		if err != nil {
			return did.Document{}, err
		}
		if form == allKeys {
			return did.WebDocument(s.host, agent, keys), nil
		}
		return newestDocument(keys)
	})
}

// newestDocument returns the did:key document of the newest active key.
func newestDocument(keys []did.Key) (did.Document, error) {
	for i := len(keys) - 1; i >= 0; i-- {
		if keys[i].State == did.Active {
			return did.KeyDocument(keys[i].Public)
		}
	}
	return did.Document{}, errNotFound()
}

// trustedState returns the state of an organization's ledger. It returns the error of
// log.State.Trusted if the records of the organization cannot be trusted.
func (s *Server) trustedState(r *request, t id.Tenant) (*log.State, error) {
	if r.tenant == id.Service { // the DID names the organization, not the path
		if err := s.edge.CheckReader(r.Context(), t); err != nil {
			return nil, err
		}
	}
	state, err := s.ledgers.State(r.Context(), t)
	if err != nil {
		return nil, err
	}
	return state, state.Trusted()
}
