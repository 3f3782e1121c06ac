package publicapi

import (
	"context"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/trust"
)

// answerCheckpoint serves transparency/checkpoint.
func (s *Server) answerCheckpoint(r *request) (response, error) {
	state, err := s.bySlug(r)
	if err != nil {
		return response{}, err
	}
	return s.newestCheckpoint(r, state)
}

// newestCheckpoint returns the latest checkpoint with its cosignatures or, with cosigned=1,
// the latest checkpoint with a quorum of cosignatures.
func (s *Server) newestCheckpoint(r *request, state *log.State) (response, error) {
	which := s.witnesses.Checkpoint
	switch r.query.Get("cosigned") {
	case "1":
		which = s.witnesses.Cosigned
	case "", "0":
	default:
		return response{}, fault.New(fault.Invalid, "cosigned must be 1 or 0")
	}
	note, err := which(r.Context(), state)
	return response{media: mediaText, cache: revalidate, body: note}, err
}

// keyList is the response of transparency/keys, newest key last.
type keyList struct {
	Keys []publicKey `json:"keys"`
}

// publicKey is a key that signs checkpoints or grants of an organization.
type publicKey struct {
	VerifierKey string    `json:"vkey"`
	Use         string    `json:"use"`
	FromSize    id.Index  `json:"from_size"`
	ToSize      *id.Index `json:"to_size"` // nil if the key is active
}

// answerKeys serves transparency/keys.
func (s *Server) answerKeys(r *request) (response, error) {
	state, err := s.bySlug(r)
	if err != nil {
		return response{}, err
	}
	var all []publicKey
	for _, k := range state.LogKeys() {
		key := publicKey{VerifierKey: k.Verifier.String(), Use: "log", FromSize: k.From}
		if k.To != log.NoEnd {
			key.ToSize = &k.To
		}
		all = append(all, key)
	}
	grants, from, ok, err := s.grantKeys.GrantKey(r.Context(), state.Identity().Tenant)
	if err != nil {
		return response{}, err
	}
	if ok {
		all = append(all, publicKey{VerifierKey: grants.String(), Use: "grant", FromSize: from})
	}
	return newJSONResponse(keyList{all}, revalidate)
}

// answerKeyStatement serves transparency/keys/:key: the bundle of the event that states a log key, under the first
// checkpoint that this key signed. The previous key signed that checkpoint too, so a reader who trusts the previous key
// can verify the new one. The parameter is the key ID in hex. No event states the first key of a log.
func (s *Server) answerKeyStatement(r *request) (response, error) {
	state, err := s.provableBySlug(r)
	if err != nil {
		return response{}, err
	}
	return s.keyStatement(r, state)
}

// answerKeyStatementByID is answerKeyStatement below a log's prefix, for readers that do not know the slug.
func (s *Server) answerKeyStatementByID(r *request) (response, error) {
	state, err := s.provableByID(r)
	if err != nil {
		return response{}, err
	}
	if r.slug, err = s.orgs.Slug(r.Context(), r.tenant); err != nil {
		return response{}, err
	}
	return s.keyStatement(r, state)
}

func (s *Server) keyStatement(r *request, state *log.State) (response, error) {
	keys, name := state.LogKeys(), edge.PathParameter(r.Request, "key")
	i := slices.IndexFunc(keys, func(k log.LogKey) bool { return k.Verifier.Hash().String() == name })
	if i < 1 || keys[i].From > state.Size() {
		return response{}, errNotFound()
	}
	size := keys[i].From // the tree whose last entry states the key
	checkpoint, note, err := s.ledgers.CheckpointAt(r.Context(), state, size)
	if err != nil {
		return response{}, err
	}
	parts, err := s.readPartsUnder(r.Context(), state, size-1, checkpoint, note)
	if err != nil {
		return response{}, err
	}
	parts.Slug = r.slug
	b, err := s.makeBundleOf(r.Context(), state, parts)
	if err != nil {
		return response{}, err
	}
	return newJSONResponse(b, never)
}

// answerPolicy serves transparency/policy, a C2SP tlog-policy: the log's keys, the URL of its tiles,
// the witnesses and the quorum. It omits the
// addresses of witnesses, because some are private and verification does not need them.
func (s *Server) answerPolicy(r *request) (response, error) {
	state, err := s.bySlug(r)
	if err != nil {
		return response{}, err
	}
	text, err := s.PolicyText(r.Context(), state)
	return response{media: mediaText, cache: revalidate, body: []byte(text)}, err
}

// PolicyText returns the tlog-policy of a log, as transparency/policy serves it.
func (s *Server) PolicyText(ctx context.Context, state *log.State) (string, error) {
	inForce, err := s.witnesses.Policy(ctx, state)
	if err != nil {
		return "", err
	}
	shown := trust.Policy{Groups: inForce.Groups, Quorum: inForce.Quorum}
	if shown.Logs, err = s.policyLogs(ctx, state); err != nil {
		return "", err
	}
	for _, w := range inForce.Witnesses {
		w.URL = ""
		shown.Witnesses = append(shown.Witnesses, w)
	}
	return shown.Text(), nil
}

// policyLogs returns the log lines of a policy: the keys that signed the latest checkpoint
// and the checkpoint of bundles. A policy contains no sizes, so a
// verifier trusts everything that its keys sign. Therefore earlier keys
// are omitted; transparency/keys lists them.
func (s *Server) policyLogs(ctx context.Context, state *log.State) ([]trust.Log, error) {
	covering, _, err := s.witnesses.Covering(ctx, state, 0)
	if err != nil {
		return nil, err
	}
	url := s.publicURL + "/o/" + state.Identity().Origin.Below(state.Identity().Organization)
	var logs []trust.Log
	for _, k := range state.LogKeys() {
		if k.Signs(state.Shown().Size) || k.Signs(covering.Size) {
			logs = append(logs, trust.Log{Key: k.Verifier, URL: url})
		}
	}
	return logs, nil
}
