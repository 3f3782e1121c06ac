package fakeservice

import (
	"net/http"
	"strconv"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// routeRequest calls f with the organization that match accepts, holding the lock, and answers with its result: 404 for
// nil.
func (s *Service) routeRequest(w http.ResponseWriter, match func(*Organization) bool, f func(*Organization) any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var v any
	if o := s.findOrganization(match); o != nil {
		v = f(o)
	}
	switch v := v.(type) {
	case nil:
		writeRefusal(w, http.StatusNotFound, "Not found", "")
	case []byte:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = w.Write(v)
	default:
		writeReply(w, answer{http.StatusOK, v})
	}
}

func withOrganization(r *http.Request) func(*Organization) bool {
	return func(o *Organization) bool { return string(o.Slug) == r.PathValue("slug") }
}

func (s *Service) getHead(w http.ResponseWriter, r *http.Request) {
	s.routeRequest(w, withOrganization(r), func(o *Organization) any {
		note, err := o.checkpointNote()
		if err != nil {
			panic(err)
		}
		var latest id.Hash
		if n := len(o.events); n > 0 {
			latest = o.events[n-1].leaf
		}
		return verify.NewHead(o.Slug, o.signCheckpoint(), note, latest, start+id.Instant(len(o.events)-1))
	})
}

func noteOfRequest(o *Organization) any {
	note, err := o.checkpointNote()
	if err != nil {
		panic(err)
	}
	return note
}

func (s *Service) getCheckpoint(w http.ResponseWriter, r *http.Request) {
	s.routeRequest(w, withOrganization(r), noteOfRequest)
}

func (s *Service) getTileCheckpoint(w http.ResponseWriter, r *http.Request) {
	s.routeRequest(w, func(o *Organization) bool { return o.ID.String() == r.PathValue("organization") }, noteOfRequest)
}

func parseIndex(r *http.Request, name string) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil {
		return -1
	}
	return n
}

func (s *Service) getInclusion(w http.ResponseWriter, r *http.Request) {
	index, size := parseIndex(r, "log_index"), parseIndex(r, "tree_size")
	s.routeRequest(w, withOrganization(r), func(o *Organization) any {
		if index < 0 || index >= size || size > len(o.events) {
			return nil
		}
		leaves := o.leafHashes(size)
		return verify.InclusionAnswer{
			LogIndex: id.Index(index), TreeSize: id.Index(size), LeafHash: leaves[index], RootHash: subtreeRoot(leaves),
			Hashes: inclusionPath(index, leaves),
		}
	})
}

func (s *Service) getConsistency(w http.ResponseWriter, r *http.Request) {
	from, to := parseIndex(r, "from"), parseIndex(r, "to")
	s.routeRequest(w, withOrganization(r), func(o *Organization) any {
		if from < 0 || from > to || to > len(o.events) {
			return nil
		}
		return verify.Consistency{
			From: id.Index(from), To: id.Index(to), FromRoot: subtreeRoot(o.leafHashes(from)),
			ToRoot: subtreeRoot(o.leafHashes(to)), Hashes: consistencyPath(from, o.leafHashes(to)),
		}
	})
}

func (s *Service) getKeys(w http.ResponseWriter, r *http.Request) {
	s.routeRequest(w, withOrganization(r), func(o *Organization) any {
		return object{"keys": []object{{"vkey": o.LogKey().String(), "use": "log", "from_size": 0, "to_size": nil}}}
	})
}

func (s *Service) getBundle(w http.ResponseWriter, r *http.Request) {
	s.routeRequest(w, withOrganization(r), func(o *Organization) any {
		index, ok := o.byID[id.Event(r.PathValue("event"))]
		if !ok {
			return nil
		}
		bundle, err := o.Bundle(index)
		if err != nil {
			panic(err)
		}
		return bundle
	})
}

func (s *Service) getAgentDID(w http.ResponseWriter, r *http.Request) {
	s.routeRequest(w, func(o *Organization) bool { return string(o.Agent) == r.PathValue("agent") }, keyDocument)
}

func (s *Service) getDID(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("did")
	isNamed := func(o *Organization) bool {
		return name == o.DID() || did.Equal(name, did.Web("log.example", o.Agent))
	}
	s.routeRequest(w, isNamed, func(o *Organization) any {
		if name == o.DID() {
			return keyDocument(o)
		}
		return did.WebDocument("log.example", o.Agent,
			[]did.Key{{Public: o.agent.Public().Bytes(), KeyID: o.Key, State: did.Active}})
	})
}

func keyDocument(o *Organization) any {
	document, err := did.KeyDocument(o.agent.Public().Bytes())
	if err != nil {
		panic(err)
	}
	return document
}

// DID returns the did:key identifier of the agent's key.
func (o *Organization) DID() string { return did.KeyDID(o.agent.Public().Bytes()) }
