package publicapi

import (
	"net/http"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/verify"
)

// head serves transparency/head.
func (s *Server) head(r *http.Request) (representation, error) {
	slug, state, err := s.bySlug(r)
	if err != nil {
		return representation{}, err
	}
	return jsonOf(headOf(slug, state), revalidate)
}

// headOf is of the checkpoint that is shown. Of a detached ledger nobody knows
// the entry it ends with.
func headOf(slug id.Slug, state *log.State) verify.Head {
	h := verify.NewHead(slug, state.Shown(), state.Checkpoint(), state.Last(), state.LastReceived())
	h.Fault = string(state.Fault().Level)
	if state.Detached() {
		h.LatestLeafHash, h.LatestPublishedAt = nil, nil
	}
	return h
}

// checkpoint serves transparency/checkpoint.
func (s *Server) checkpoint(r *http.Request) (representation, error) {
	_, state, err := s.bySlug(r)
	if err != nil {
		return representation{}, err
	}
	return noteOf(state), nil
}

func noteOf(state *log.State) representation {
	return representation{media: mediaText, cache: revalidate, body: state.Checkpoint()}
}

// keyList is the answer to transparency/keys, newest last.
type keyList struct {
	Keys []publicKey `json:"keys"`
}

// publicKey is a key that signs something about an organization's log.
type publicKey struct {
	VerifierKey string    `json:"vkey"`
	Use         string    `json:"use"`
	FromSize    id.Index  `json:"from_size"`
	ToSize      *id.Index `json:"to_size"` // nil while it signs
}

// keys serves transparency/keys.
func (s *Server) keys(r *http.Request) (representation, error) {
	_, state, err := s.bySlug(r)
	if err != nil {
		return representation{}, err
	}
	all := []publicKey{{VerifierKey: state.VerifierKey().String(), Use: "log"}}
	grants, from, ok, err := s.grantKeys.GrantKey(r.Context(), state.Identity().Tenant)
	if err != nil {
		return representation{}, err
	}
	if ok {
		all = append(all, publicKey{VerifierKey: grants.String(), Use: "grant", FromSize: from})
	}
	return jsonOf(keyList{all}, revalidate)
}

// policy serves transparency/policy, a C2SP tlog-policy: the log's key and where
// its tiles are. No witness is known, so none is asked for.
func (s *Server) policy(r *http.Request) (representation, error) {
	_, state, err := s.bySlug(r)
	if err != nil {
		return representation{}, err
	}
	text := "log " + state.VerifierKey().String() + " " + s.publicURL + "/o/" + state.Identity().Organization.String() + "\nquorum none\n"
	return representation{media: mediaText, cache: revalidate, body: []byte(text)}, nil
}
