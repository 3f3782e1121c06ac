package publicapi

import (
	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/id"
)

// agentKeyDocument serves agents/:agentId/did: the did:key document of the
// active key that was registered last.
func (s *Server) agentKeyDocument(r request) (representation, error) {
	keys, err := s.didKeys(r, id.Agent(param(r.Request, "agent")))
	if err != nil {
		return representation{}, err
	}
	for i := len(keys) - 1; i >= 0; i-- {
		if keys[i].State == did.Active {
			return keyDocument(r, keys[i].Public)
		}
	}
	return representation{}, notFound()
}

// agentWebDocument serves agents/:agentId/did.json.
func (s *Server) agentWebDocument(r request) (representation, error) {
	return s.webDocument(r, id.Agent(param(r.Request, "agent")))
}

// didDocument serves did/:did. A did:web with a port holds an escape of its own
// (%3A): it is also found when that was not escaped again for the path.
func (s *Server) didDocument(r request) (representation, error) {
	name := param(r.Request, "did")
	if public, err := did.ParseKey(name); err == nil {
		return s.knownKeyDocument(r, public)
	}
	agent, err := did.ParseWeb(s.host, name)
	if err != nil {
		agent, err = did.ParseWeb(s.host, chi.URLParam(r.Request, "did"))
	}
	if err != nil {
		return representation{}, notFound()
	}
	return s.webDocument(r, agent)
}

func (s *Server) knownKeyDocument(r request, public [32]byte) (representation, error) {
	refused := notFound()
	for holder, err := range s.agents.KeyHolders(r.Context(), public) {
		if err == nil {
			err = s.trusted(r, holder)
		}
		if err == nil {
			return keyDocument(r, public)
		}
		refused = err
	}
	return representation{}, refused
}

func (s *Server) webDocument(r request, agent id.Agent) (representation, error) {
	keys, err := s.didKeys(r, agent)
	if err != nil {
		return representation{}, err
	}
	return document(r, did.WebDocument(s.host, agent, keys))
}

// didKeys returns the keys of an agent whose organization can be trusted to know them.
func (s *Server) didKeys(r request, agent id.Agent) ([]did.Key, error) {
	owner, keys, err := s.agents.DIDKeys(r.Context(), agent)
	if err == nil {
		err = s.trusted(r, owner)
	}
	return keys, err
}

// trusted is log.State.Trusted of an organization's ledger.
func (s *Server) trusted(r request, t id.Tenant) error {
	state, err := s.ledgers.State(r.Context(), t)
	if err != nil {
		return err
	}
	return state.Trusted()
}

func keyDocument(r request, public [32]byte) (representation, error) {
	d, err := did.KeyDocument(public)
	if err != nil {
		return representation{}, err
	}
	return document(r, d)
}

// document renders d in the form that Accept names.
func document(r request, d did.Document) (representation, error) {
	media := preferred(r.Header["Accept"], did.MediaJSON, did.MediaDID, did.MediaDIDJSON, did.MediaDIDLDJSON, did.MediaResolution)
	var content any = d
	if media == did.MediaResolution {
		content = did.Resolved(d)
	}
	body, err := json.Marshal(content)
	return representation{media: media, cache: revalidate, vary: "Accept", body: body}, err
}
