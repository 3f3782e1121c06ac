package console

import (
	"cmp"
	"context"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/policy"
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

// checkSize returns fault.TooLarge if a document is longer than the body of a call may be.
func checkSize(document []byte, most int) error {
	if len(document) > most {
		return fault.New(fault.TooLarge, "The body is too large")
	}
	return nil
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
func (s *Server) ListPolicyVersions(
	ctx context.Context, c *Caller, name string, query url.Values,
) (wire.PolicyVersions, error) {
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
	found, err := s.Policies.Versions(ctx, c.Who.Tenant, name, below, p.Limit)
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
func (s *Server) ShowPolicy(ctx context.Context, c *Caller, name string, query url.Values) (wire.Policy, error) {
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
	return describePolicy(s.Policies.Get(ctx, c.Who.Tenant, name, version))
}

func (s *Server) createPolicy(r *request) (answer, error) {
	document, err := r.ReadBody()
	if err != nil {
		return answer{}, err
	}
	return createdAnswer(s.CreatePolicy(r.Context(), r.Caller, document))
}

// CreatePolicy creates a policy, as a draft.
func (s *Server) CreatePolicy(ctx context.Context, c *Caller, document []byte) (wire.Policy, error) {
	if err := s.surface.check(ctx, c, account.EditPolicies); err != nil {
		return wire.Policy{}, err
	}
	if err := checkSize(document, policy.MaxBytes); err != nil {
		return wire.Policy{}, err
	}
	return describePolicy(s.Policies.Create(ctx, c.Who.Tenant, string(c.Who.Account), document))
}

func (s *Server) checkPolicy(r *request) (answer, error) {
	document, err := r.ReadBody()
	if err != nil {
		return answer{}, err
	}
	return okAnswer(s.CheckPolicy(r.Context(), r.Caller, document))
}

// CheckPolicy checks a document and stores nothing, so it also works in an inactive organization.
func (s *Server) CheckPolicy(ctx context.Context, c *Caller, document []byte) (wire.CheckedPolicy, error) {
	found, err := s.PreviewPolicy(ctx, c, document, nil)
	return found.CheckedPolicy, err
}

// Preview is a document with its tests, and with what it would have done.
type Preview struct {
	wire.CheckedPolicy
	Past *simulate.Report // nil if no events were decided again
}

// PreviewPolicy is CheckPolicy that also decides stored events again, unless of is nil. If other simulations occupy all
// slots, it decides none.
func (s *Server) PreviewPolicy(ctx context.Context, c *Caller, document []byte, of *simulate.Range) (Preview, error) {
	if err := s.surface.check(ctx, c, account.TryPolicies); err != nil {
		return Preview{}, err
	}
	if err := checkSize(document, policy.MaxBytes); err != nil {
		return Preview{}, err
	}
	found, err := s.Policies.Check(ctx, c.Who.Tenant, document)
	if err != nil {
		return Preview{}, err
	}
	p := found.Policy
	view := Preview{CheckedPolicy: wire.CheckedPolicy{Rules: len(p.Rules), Tests: len(p.Tests), Failures: []wire.FailedTest{},
		PolicyID: wire.Text(p.ID), Quorum: wire.Text(found.Quorum), Document: p.Document()}}
	for _, f := range found.Failures {
		view.Failures = append(view.Failures, wire.FailedTest{Test: f.Place, Name: f.Name, Why: f.Why})
	}
	if of == nil {
		return view, nil
	}
	p.ID, p.Version = cmp.Or(p.ID, "document"), 1
	report, err := s.Simulator.SimulateEvents(ctx, c.Who.Tenant, p, *of)
	if err == nil {
		view.Past = &report
	} else if fault.Is(err, fault.Overloaded) || fault.Is(err, fault.Unavailable) {
		err = nil
	}
	return view, err
}

// ForeseeApprovals returns what would become of the open approvals if a version of a policy were activated, or if no policy
// were active, with name "". It changes nothing.
func (s *Server) ForeseeApprovals(ctx context.Context, c *Caller, name string, version uint64) (approval.Forecast, error) {
	if err := s.surface.check(ctx, c, account.TryPolicies); err != nil {
		return approval.Forecast{}, err
	}
	var next *policy.Compiled
	if name != "" {
		_, p, err := s.findVersion(ctx, c, name, version)
		if err == nil {
			next, err = policy.CompileWithin(ctx, p)
		}
		if err != nil {
			return approval.Forecast{}, err
		}
	}
	return s.Approvals.Foresee(ctx, c.Who.Tenant, next)
}

func (s *Server) draftPolicy(r *request) (answer, error) {
	patch, err := r.ReadBody()
	if err != nil {
		return answer{}, err
	}
	return okAnswer(s.DraftPolicy(r.Context(), r.Caller, r.PathParameter("policy"), patch))
}

// DraftPolicy changes the draft of a policy, or begins one.
func (s *Server) DraftPolicy(ctx context.Context, c *Caller, name string, patch []byte) (wire.Policy, error) {
	if err := s.surface.check(ctx, c, account.EditPolicies); err != nil {
		return wire.Policy{}, err
	}
	if err := checkSize(patch, policy.MaxBytes); err != nil {
		return wire.Policy{}, err
	}
	return describePolicy(s.Policies.Draft(ctx, c.Who.Tenant, string(c.Who.Account), name, patch))
}

// Activation names the version of a policy to activate. If Version is nil, it is the draft. If Digest is not zero, the
// version must have it.
type Activation struct {
	Version *uint64 `json:"version"`
	Digest  id.Hash `json:"policy_digest"`
}

func (s *Server) activatePolicy(r *request) (answer, error) {
	var wanted Activation
	if err := r.DecodeOptionalBody(&wanted); err != nil {
		return answer{}, err
	}
	return okAnswer(s.ActivatePolicy(r.Context(), r.Caller, r.PathParameter("policy"), wanted))
}

// ActivatePolicy activates a version of a policy.
func (s *Server) ActivatePolicy(ctx context.Context, c *Caller, name string, wanted Activation) (wire.Policy, error) {
	if err := s.surface.check(ctx, c, account.EditPolicies); err != nil {
		return wire.Policy{}, err
	}
	activation := policystore.Activation{PolicyID: name, Digest: wanted.Digest}
	if wanted.Version != nil {
		if activation.Version = *wanted.Version; activation.Version == 0 {
			return wire.Policy{}, fault.New(fault.Invalid, "version must be a whole number from 1")
		}
	}
	v, err := s.Policies.ActivateVersion(ctx, c.Who.Tenant, string(c.Who.Account), activation)
	s.Approvals.PolicyChanged(c.Who.Tenant) // also on an error: the change may have been committed
	return describePolicy(v, err)
}

func (s *Server) deactivatePolicy(r *request) (answer, error) {
	if err := r.DecodeOptionalBody(&struct{}{}); err != nil {
		return answer{}, err
	}
	return okAnswer(s.DeactivatePolicy(r.Context(), r.Caller, r.PathParameter("policy")))
}

// DeactivatePolicy deactivates a policy.
func (s *Server) DeactivatePolicy(ctx context.Context, c *Caller, name string) (wire.Policy, error) {
	if err := s.surface.check(ctx, c, account.EditPolicies); err != nil {
		return wire.Policy{}, err
	}
	v, err := s.Policies.Deactivate(ctx, c.Who.Tenant, string(c.Who.Account), name)
	s.Approvals.PolicyChanged(c.Who.Tenant) // also on an error: the change may have been committed
	return describePolicy(v, err)
}

func (s *Server) deletePolicy(r *request) (answer, error) {
	return noContent(s.DeletePolicy(r.Context(), r.Caller, r.PathParameter("policy")))
}

// DeletePolicy deletes the draft of a policy, and the policy if it has no other version.
func (s *Server) DeletePolicy(ctx context.Context, c *Caller, name string) error {
	if err := s.surface.check(ctx, c, account.EditPolicies); err != nil {
		return err
	}
	return s.Policies.Delete(ctx, c.Who.Tenant, name)
}
