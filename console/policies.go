package console

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/wire"
)

// describePolicy describes a version unless err is set.
func describePolicy(v policystore.Version, err error) (wire.Policy, error) {
	if err != nil {
		return wire.Policy{}, err
	}
	view := wire.Policy{
		State: string(v.State), Digest: v.Digest, WrittenAt: v.WrittenAt, WrittenBy: v.WrittenBy,
		ActivatedAt: wire.Time(v.ActivatedAt), ArchivedAt: wire.Time(v.ArchivedAt),
	}
	err = json.Unmarshal(v.Document, &view)
	return view, err
}

// policyAnswer answers with a version unless err is set.
func policyAnswer(status int, v policystore.Version, err error) (answer, error) {
	view, err := describePolicy(v, err)
	return jsonAnswer(status, view), err
}

func describeListedPolicy(l policystore.Listed) wire.ListedPolicy {
	return wire.ListedPolicy{PolicyID: l.PolicyID, Name: l.Name, Version: l.Version, State: string(l.State),
		ActiveVersion: wire.Number(l.Active), UpdatedAt: l.UpdatedAt, UpdatedBy: wire.Text(l.UpdatedBy)}
}

func (s *Server) listPolicies(r *request) (answer, error) {
	return okAnswer(s.ListPolicies(r.Context(), r.Caller, r.URL.Query()))
}

// ListPolicies returns a page of the policies.
func (s *Server) ListPolicies(ctx context.Context, c *Caller, query url.Values) (wire.Policies, error) {
	var body wire.Policies
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return body, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	found, err := s.Policies.List(ctx, c.Who.Tenant, p.After, p.Limit+1)
	if err != nil {
		return body, err
	}
	body.Policies, body.Next = edge.CutPage(p, found, func(l policystore.Listed) string { return l.PolicyID },
		describeListedPolicy)
	return body, nil
}

func (s *Server) listPolicyVersions(r *request) (answer, error) {
	return okAnswer(s.ListPolicyVersions(r.Context(), r.Caller, r.PathParameter("policy"), r.URL.Query()))
}

// ListPolicyVersions returns a page of the versions of a policy, latest first. A page of large documents has fewer
// items.
func (s *Server) ListPolicyVersions(ctx context.Context, c *Caller, policy string, query url.Values) (wire.PolicyVersions, error) {
	var body wire.PolicyVersions
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return body, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	below := uint64(0)
	if p.After != "" {
		if below, err = parseVersion("after", p.After); err != nil {
			return body, err
		}
	}
	found, err := s.Policies.Versions(ctx, c.Who.Tenant, policy, below, p.Limit)
	if err != nil {
		return body, err
	}
	body = wire.PolicyVersions{Versions: make([]wire.PolicyVersion, len(found))}
	for i, v := range found {
		body.Versions[i] = wire.PolicyVersion{Version: v.Version, State: string(v.State), Digest: v.Digest,
			WrittenAt: v.WrittenAt, WrittenBy: v.WrittenBy, ActivatedAt: wire.Time(v.ActivatedAt),
			ArchivedAt: wire.Time(v.ArchivedAt)}
		if err := json.Unmarshal(v.Document, &body.Versions[i]); err != nil {
			return body, err
		}
		if i == len(found)-1 && v.Version > 1 {
			body.Next = wire.Text(strconv.FormatUint(v.Version, 10))
		}
	}
	return body, nil
}

// parseVersion parses the version number in a parameter.
func parseVersion(parameter, value string) (uint64, error) {
	n, err := strconv.ParseUint(value, 10, 53)
	if err != nil || n == 0 {
		return 0, fault.New(fault.Invalid, parameter+" must be a whole number from 1")
	}
	return n, nil
}

func (s *Server) answerPolicy(r *request) (answer, error) {
	return okAnswer(s.ShowPolicy(r.Context(), r.Caller, r.PathParameter("policy"), r.URL.Query()))
}

// ShowPolicy returns the latest version of a policy, or the version in the parameter version.
func (s *Server) ShowPolicy(ctx context.Context, c *Caller, policy string, query url.Values) (wire.Policy, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.Policy{}, err
	}
	var version uint64
	if query.Has("version") {
		var err error
		if version, err = parseVersion("version", query.Get("version")); err != nil {
			return wire.Policy{}, err
		}
	}
	return describePolicy(s.Policies.Get(ctx, c.Who.Tenant, policy, version))
}

func (s *Server) createPolicy(r *request) (answer, error) {
	document, err := r.ReadBody()
	if err != nil {
		return answer{}, err
	}
	v, err := s.Policies.Create(r.Context(), r.Who.Tenant, string(r.Who.Account), document)
	return policyAnswer(http.StatusCreated, v, err)
}

// checkPolicy checks a document and stores nothing, so it also works in an inactive organization.
func (s *Server) checkPolicy(r *request) (answer, error) {
	document, err := r.ReadBody()
	if err != nil {
		return answer{}, err
	}
	c, err := s.Policies.Check(r.Context(), r.Who.Tenant, document)
	if err != nil {
		return answer{}, err
	}
	view := wire.CheckedPolicy{Rules: len(c.Policy.Rules), Tests: len(c.Policy.Tests), Failures: []wire.FailedTest{},
		PolicyID: wire.Text(c.Policy.ID), Quorum: wire.Text(c.Quorum)}
	for _, f := range c.Failures {
		view.Failures = append(view.Failures, wire.FailedTest{Test: f.Place, Name: f.Name, Why: f.Why})
	}
	return jsonAnswer(http.StatusOK, view), nil
}

func (s *Server) draftPolicy(r *request) (answer, error) {
	patch, err := r.ReadBody()
	if err != nil {
		return answer{}, err
	}
	v, err := s.Policies.Draft(r.Context(), r.Who.Tenant, string(r.Who.Account), r.PathParameter("policy"), patch)
	return policyAnswer(http.StatusOK, v, err)
}

// activatePolicy activates the draft, or the version in the body.
func (s *Server) activatePolicy(r *request) (answer, error) {
	var body struct {
		Version *uint64 `json:"version"`
		Digest  id.Hash `json:"policy_digest"`
	}
	if err := r.DecodeOptionalBody(&body); err != nil {
		return answer{}, err
	}
	wanted := policystore.Activation{PolicyID: r.PathParameter("policy"), Digest: body.Digest}
	if body.Version != nil {
		if wanted.Version = *body.Version; wanted.Version == 0 {
			return answer{}, fault.New(fault.Invalid, "version must be a whole number from 1")
		}
	}
	v, err := s.Policies.ActivateVersion(r.Context(), r.Who.Tenant, string(r.Who.Account), wanted)
	s.Approvals.PolicyChanged(r.Who.Tenant) // also on an error: the change may have been committed
	return policyAnswer(http.StatusOK, v, err)
}

func (s *Server) deactivatePolicy(r *request) (answer, error) {
	if err := r.DecodeOptionalBody(&struct{}{}); err != nil {
		return answer{}, err
	}
	v, err := s.Policies.Deactivate(r.Context(), r.Who.Tenant, string(r.Who.Account), r.PathParameter("policy"))
	s.Approvals.PolicyChanged(r.Who.Tenant) // also on an error: the change may have been committed
	return policyAnswer(http.StatusOK, v, err)
}

func (s *Server) deletePolicy(r *request) (answer, error) {
	return noContent(s.Policies.Delete(r.Context(), r.Who.Tenant, r.PathParameter("policy")))
}
