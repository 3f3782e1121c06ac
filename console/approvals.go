package console

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// obstacleInactive means that the operator has deactivated the organization, so no member can vote.
const obstacleInactive approval.Obstacle = "organization_inactive"

// obstacleToken means that the caller is a program with a token, which cannot vote for its user.
const obstacleToken approval.Obstacle = "token"

// describeApprovals describes approvals, and whether the caller may vote on them.
func (s *Server) describeApprovals(ctx context.Context, c *Caller, list ...approval.Approval) ([]wire.Approval, error) {
	active, err := s.Orgs.Active(ctx, c.Who.Tenant)
	if err != nil {
		return nil, err
	}
	obstacles, err := s.Approvals.Obstacles(ctx, c.Who.Tenant, c.Who.Account, list)
	if err != nil {
		return nil, err
	}
	settings, err := s.Orgs.CurrentSettings(ctx, c.Who.Tenant)
	if err != nil {
		return nil, err
	}
	reads, err := s.surface.may(ctx, c, account.ReadApprovalPayloads)
	if err != nil {
		return nil, err
	}
	votes, err := s.surface.may(ctx, c, account.Vote)
	if err != nil {
		return nil, err
	}
	views := make([]wire.Approval, len(list))
	for i := range list {
		if obstacles[i] == "" && !active {
			obstacles[i] = obstacleInactive
		}
		if obstacles[i] == "" && c.ByToken {
			obstacles[i] = obstacleToken
		}
		views[i] = describeApproval(list[i], reads)
		views[i].MayVote, views[i].WhyNot = obstacles[i] == "", wire.Text(obstacles[i])
		if reads {
			for _, v := range list[i].Shown(settings.Columns) {
				views[i].Shown = append(views[i].Shown, wire.Shown(v))
			}
		}
		if active && !c.ByToken && votes {
			views[i].TakeBack = wire.Time(s.Approvals.TakeBackUntil(&list[i], c.Who.Account))
		}
	}
	return views, nil
}

func (s *Server) describeDetail(ctx context.Context, c *Caller, a approval.Approval) (wire.ApprovalDetail, error) {
	views, err := s.describeApprovals(ctx, c, a)
	if err != nil {
		return wire.ApprovalDetail{}, err
	}
	body := wire.ApprovalDetail{Approval: views[0]}
	act, err := s.Events.Index.ActOfApproval(ctx, c.Who.Tenant, string(a.ID))
	if err != nil && !fault.Is(err, fault.Unavailable) { // approvers decide without the index too
		return wire.ApprovalDetail{}, err
	}
	body.Act = eventlist.DescribeLink(act)
	body.SignIns, err = s.signInsChanged(ctx, c)
	return body, err
}

func describeApproval(a approval.Approval, payload bool) wire.Approval {
	if !payload {
		a.Payload = nil
	}
	votes := make([]wire.Vote, len(a.Votes))
	for i, v := range a.Votes {
		votes[i] = wire.Vote{Account: string(v.Account), Email: v.Email, Vote: v.Vote, Comment: v.Comment, Code: v.Code, Via: v.Via,
			At: v.At, DeputyFor: string(v.DeputyFor)}
		if s := v.Signature; s != nil {
			votes[i].Signature = &wire.VoteSignature{CredentialID: s.CredentialID, Thumbprint: s.Thumbprint,
				RegisteredAt: s.KeyRegisteredAt}
		}
	}
	var subject *wire.OnBehalfOf
	if a.OnBehalfOf != nil {
		subject = &wire.OnBehalfOf{OnBehalfOf: *a.OnBehalfOf, Verified: a.Standing == event.Verified}
	}
	return wire.Approval{
		ID: string(a.ID), Status: string(a.Status), Agent: a.Agent, Tool: a.Tool, Payload: a.Payload,
		ActionDigest: a.ActionDigest,
		Trace:        wire.Text(a.Trace), Principal: wire.Text(a.Principal), OnBehalfOf: subject, IngestKey: a.IngestKeyID, Intent: wire.Text(a.Intent),
		Policy: wire.AppliedPolicy{ID: a.PolicyID, Version: a.PolicyVersion, Digest: a.PolicyDigest, Rule: a.RuleID,
			Reason: a.Reason},
		Signed: a.Signed, Quorum: a.Quorum, Votes: votes,
		CreatedAt: a.CreatedAt, ExpiresAt: a.ExpiresAt, EndedAt: wire.Time(a.EndedAt), ErasedAt: wire.Time(a.ErasedAt),
		Comment: wire.Text(a.Remark.Comment), ReasonCode: wire.Text(a.Remark.Code),
	}
}

// signInsShown is how long approvals show a change of a voter's sign-in.
const signInsShown = 30 * 24 * time.Hour

func (s *Server) signInsChanged(ctx context.Context, c *Caller) ([]wire.SignInChange, error) {
	found, err := s.Members.SignInsChanged(ctx, c.Who.Tenant, signInsShown)
	views := make([]wire.SignInChange, len(found))
	for i, f := range found {
		views[i] = wire.SignInChange{AccountID: string(f.Account), Email: f.Email, Change: string(f.Kind), By: string(f.By),
			ChangedAt: f.At}
	}
	return views, err
}

// parseApprovalFilter parses the filter of a list. none reports that the caller cannot vote on any approval.
func (s *Server) parseApprovalFilter(ctx context.Context, c *Caller, query url.Values) (
	wanted approval.Filter, none bool, err error,
) {
	wanted = approval.Filter{Status: approval.Status(query.Get("status")), Agent: id.Agent(query.Get("agent_id")),
		Tool: query.Get("tool")}
	if wanted.Decided = wanted.Status == "decided"; wanted.Decided {
		wanted.Status = ""
	}
	if wanted.Status != "" && !wanted.Status.Valid() {
		return wanted, false, fault.New(fault.Invalid,
			"status must be pending, approved, consumed, denied, expired, cancelled, revoked, invalidated or decided")
	}
	switch query.Get("order") {
	case "", "newest":
	case "oldest":
		wanted.Oldest = true
	default:
		return wanted, false, fault.New(fault.Invalid, "order must be newest or oldest")
	}
	switch query.Get("may_vote") {
	case "":
		if wanted.Oldest && wanted.Status != approval.Pending {
			return wanted, false, fault.New(fault.Invalid, "order=oldest requires status=pending or may_vote=true")
		}
		return wanted, false, nil
	case "true":
	default:
		return wanted, false, fault.New(fault.Invalid, "may_vote must be true or absent")
	}
	if wanted.Decided || wanted.Status != "" && wanted.Status != approval.Pending {
		return wanted, false, fault.New(fault.Invalid, "may_vote=true requires status=pending")
	}
	wanted.Status, wanted.Voter = approval.Pending, c.Who.Account
	active, err := s.Orgs.Active(ctx, c.Who.Tenant)
	return wanted, c.ByToken || !active, err
}

func (s *Server) listApprovals(r *request) (answer, error) {
	return okAnswer(s.ListApprovals(r.Context(), r.Caller, r.URL.Query()))
}

// ListApprovals returns a page of the approvals that the parameters select.
func (s *Server) ListApprovals(ctx context.Context, c *Caller, query url.Values) (wire.Approvals, error) {
	var body wire.Approvals
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return body, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	wanted, none, err := s.parseApprovalFilter(ctx, c, query)
	if err != nil {
		return body, err
	}
	found := approval.Page{Count: -1, Complete: true}
	if !none {
		found, err = s.Approvals.List(ctx, c.Who.Tenant, wanted, approval.ID(p.After), p.Limit)
		if err != nil {
			return body, err
		}
	}
	body = wire.Approvals{Next: wire.Text(found.Next)}
	if found.Count >= 0 {
		body.Count = &wire.Count{Matching: found.Count, Complete: found.Complete}
	}
	if body.SignIns, err = s.signInsChanged(ctx, c); err != nil {
		return body, err
	}
	body.Approvals, err = s.describeApprovals(ctx, c, found.Approvals...)
	return body, err
}

// CountVotes returns how many approvals wait for the caller's vote, at most limit.
func (s *Server) CountVotes(ctx context.Context, c *Caller, limit int) (int, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return 0, err
	}
	wanted, none, err := s.parseApprovalFilter(ctx, c, url.Values{"may_vote": {"true"}, "order": {"oldest"}})
	if err != nil || none {
		return 0, err
	}
	found, err := s.Approvals.List(ctx, c.Who.Tenant, wanted, "", limit)
	return len(found.Approvals), err
}

// ListVoters returns the accounts that may vote on an approval now, at most limit.
func (s *Server) ListVoters(ctx context.Context, c *Caller, name string, limit int) ([]account.ID, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return nil, err
	}
	members, err := s.Members.Accounts.Members(ctx, c.Who.Tenant)
	if err != nil {
		return nil, err
	}
	represented, err := s.Members.Represented(ctx, c.Who.Tenant)
	if err != nil {
		return nil, err
	}
	var users []account.ID
	for i := range members {
		if m := &members[i]; m.IsEffective() && (approval.MayVote(m.Role) || represented[m.Account] != "") {
			users = append(users, m.Account)
		}
	}
	return s.Approvals.Voters(ctx, c.Who.Tenant, approval.ID(name), slices.Values(users), limit)
}

func (s *Server) answerApproval(r *request) (answer, error) {
	return okAnswer(s.ShowApproval(r.Context(), r.Caller, r.PathParameter("approval")))
}

// ShowApproval returns an approval.
func (s *Server) ShowApproval(ctx context.Context, c *Caller, name string) (wire.ApprovalDetail, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.ApprovalDetail{}, err
	}
	return s.findApproval(ctx, c, name)
}

func (s *Server) findApproval(ctx context.Context, c *Caller, name string) (wire.ApprovalDetail, error) {
	found, err := s.Approvals.Find(ctx, c.Who.Tenant, approval.ID(name))
	if err != nil {
		return wire.ApprovalDetail{}, err
	}
	return s.describeDetail(ctx, c, found)
}

// Ballot is a vote on an approval. A signed vote has an assertion.
type Ballot struct {
	Vote         string                `json:"vote"`
	Comment      string                `json:"comment"`
	ReasonCode   string                `json:"reason_code"`
	ActionDigest id.Hash               `json:"action_digest"`
	Assertion    *signedvote.Assertion `json:"assertion"`
}

// cast returns the ballot of a caller.
func (b *Ballot) cast(c *Caller) approval.Ballot {
	return approval.Ballot{Account: c.Who.Account, Email: c.Who.Email, Vote: b.Vote, Action: b.ActionDigest,
		Remark: approval.Remark{Comment: b.Comment, Code: b.ReasonCode}, Assertion: b.Assertion,
		Visit: account.Visit{Program: c.Program}}
}

func (s *Server) voteOnApproval(r *request) (answer, error) {
	var ballot Ballot
	if err := r.DecodeBody(&ballot); err != nil {
		return answer{}, err
	}
	return okAnswer(s.Vote(r.Context(), r.Caller, r.PathParameter("approval"), ballot))
}

// Vote counts a vote on an approval and returns the approval. A signed vote itself proves that the user is present.
func (s *Server) Vote(ctx context.Context, c *Caller, name string, ballot Ballot) (wire.ApprovalDetail, error) {
	if err := s.surface.check(ctx, c, account.SignedVote); err != nil {
		return wire.ApprovalDetail{}, err
	}
	if ballot.Assertion == nil {
		if err := c.Who.CheckFactor(); err != nil {
			return wire.ApprovalDetail{}, err
		}
	}
	after, err := s.Approvals.Vote(ctx, c.Who.Tenant, approval.ID(name), ballot.cast(c))
	if err != nil {
		return wire.ApprovalDetail{}, err
	}
	return s.describeDetail(ctx, c, after)
}

// Revocation explains why an approval is revoked.
type Revocation struct {
	Reason     string `json:"reason"`
	ReasonCode string `json:"reason_code"`
}

func (s *Server) revokeApproval(r *request) (answer, error) {
	var why Revocation
	if err := r.DecodeOptionalBody(&why); err != nil {
		return answer{}, err
	}
	return okAnswer(s.RevokeApproval(r.Context(), r.Caller, r.PathParameter("approval"), why))
}

// RevokeApproval revokes an approval and returns it.
func (s *Server) RevokeApproval(
	ctx context.Context, c *Caller, name string, why Revocation,
) (wire.ApprovalDetail, error) {
	if err := s.surface.check(ctx, c, account.Vote); err != nil {
		return wire.ApprovalDetail{}, err
	}
	err := s.Approvals.Revoke(ctx, c.Who.Tenant, c.Who.Account, approval.ID(name),
		approval.Remark{Comment: why.Reason, Code: why.ReasonCode})
	if err != nil {
		return wire.ApprovalDetail{}, err
	}
	return s.findApproval(ctx, c, name)
}
