package console

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// approvalView is an approval with all that people decide on. Payload is absent for roles that
// may not read it.
type approvalView struct {
	ApprovalID     approval.ID        `json:"approval_id"`
	Status         approval.Status    `json:"status"`
	AgentID        id.Agent           `json:"agent_id"`
	ToolName       id.Tool            `json:"tool_name"`
	Payload        jsontext.Value     `json:"payload,omitzero"`
	ActionDigest   id.Hash            `json:"action_digest"`
	TraceID        *id.Trace          `json:"trace_id"`
	ActorPrincipal *string            `json:"actor_principal"`
	IngestKeyID    string             `json:"ingest_key_id"`
	Policy         approvalPolicyView `json:"policy"`
	Quorum         int                `json:"quorum"`
	Signed         bool               `json:"signed"` // approving votes have to be signed
	Votes          []approval.Vote    `json:"votes"`
	CreatedAt      id.Instant         `json:"created_at"`
	ExpiresAt      id.Instant         `json:"expires_at"`
	EndedAt        *id.Instant        `json:"ended_at"`
	ErasedAt       *id.Instant        `json:"erased_at,omitzero"` // of the payload
	Comment        *string            `json:"comment"`            // as the agent gets it
	ReasonCode     *string            `json:"reason_code"`
	MayVote        bool               `json:"may_vote"` // the caller, now
	WhyNot         *approval.Obstacle `json:"why_not"`
}

type approvalPolicyView struct {
	PolicyID      string  `json:"policy_id"`
	PolicyVersion uint64  `json:"policy_version"`
	PolicyDigest  id.Hash `json:"policy_digest"`
	RuleID        string  `json:"rule_id"`
	Reason        string  `json:"reason"`
}

// obstacleInactive keeps all members of an organization from voting while the operator has made it
// inactive.
const obstacleInactive approval.Obstacle = "organization_inactive"

// obstacleToken keeps programs from voting for a person.
const obstacleToken approval.Obstacle = "token"

// describeApprovals tells about approvals, and whether the caller may vote on them.
func (s *Server) describeApprovals(r *request, list ...approval.Approval) ([]approvalView, error) {
	active, err := s.Orgs.Active(r.Context(), r.Who.Tenant)
	if err != nil {
		return nil, err
	}
	obstacles, err := s.Approvals.Obstacles(r.Context(), r.Who.Tenant, r.Who.Account, list)
	if err != nil {
		return nil, err
	}
	views := make([]approvalView, len(list))
	for i := range list {
		if obstacles[i] == "" && !active {
			obstacles[i] = obstacleInactive
		}
		if obstacles[i] == "" && r.ByToken {
			obstacles[i] = obstacleToken
		}
		views[i] = describeApproval(list[i], r.Who.Role)
		views[i].MayVote, views[i].WhyNot = obstacles[i] == "", orNull(obstacles[i])
	}
	return views, nil
}

func (s *Server) answerWithApproval(r *request, a approval.Approval) (answer, error) {
	views, err := s.describeApprovals(r, a)
	if err != nil {
		return answer{}, err
	}
	body := struct {
		approvalView `json:",inline"`
		SignIns      []signInChangedView `json:"sign_in_changes"`
	}{approvalView: views[0]}
	body.SignIns, err = s.signInsChanged(r)
	return jsonAnswer(http.StatusOK, body), err
}

func describeApproval(a approval.Approval, role account.Role) approvalView {
	if !role.May(account.ReadApprovalPayloads) {
		a.Payload = nil
	}
	return approvalView{
		ApprovalID: a.ID, Status: a.Status, AgentID: a.Agent, ToolName: a.Tool, Payload: a.Payload,
		ActionDigest: a.ActionDigest,
		TraceID:      orNull(a.Trace), ActorPrincipal: orNull(a.Principal), IngestKeyID: a.IngestKeyID,
		Policy: approvalPolicyView{a.PolicyID, a.PolicyVersion, a.PolicyDigest, a.RuleID, a.Reason},
		Signed: a.Signed, Quorum: a.Quorum, Votes: append([]approval.Vote{}, a.Votes...),
		CreatedAt: a.CreatedAt, ExpiresAt: a.ExpiresAt, EndedAt: orNull(a.EndedAt), ErasedAt: orNull(a.ErasedAt),
		Comment: orNull(a.Remark.Comment), ReasonCode: orNull(a.Remark.Code),
	}
}

// signInChangedView is a member who may vote and whose way to sign in was changed lately without one of the member's own
// factors.
type signInChangedView struct {
	AccountID account.ID         `json:"account_id"`
	Email     string             `json:"email"`
	Change    account.SignInKind `json:"change"`
	By        account.SignInBy   `json:"by"`
	ChangedAt id.Instant         `json:"changed_at"`
}

// signInsShown is for how long such a change is shown with approvals.
const signInsShown = 30 * 24 * time.Hour

func (s *Server) signInsChanged(r *request) ([]signInChangedView, error) {
	found, err := s.Members.SignInsChanged(r.Context(), r.Who.Tenant, signInsShown)
	views := make([]signInChangedView, len(found))
	for i, f := range found {
		views[i] = signInChangedView{f.Account, f.Email, f.Kind, f.By, f.At}
	}
	return views, err
}

// countView is how many items match on all pages of a list; more may, if it is not complete.
type countView struct {
	Matching int  `json:"matching"`
	Complete bool `json:"complete"`
}

// parseApprovalFilter reads which approvals are wanted. none says that the caller votes on nothing.
func (s *Server) parseApprovalFilter(r *request) (wanted approval.Filter, none bool, err error) {
	query := r.URL.Query()
	wanted = approval.Filter{Status: approval.Status(query.Get("status")), Agent: id.Agent(query.Get("agent_id")),
		Tool: query.Get("tool")}
	if wanted.Status != "" && !wanted.Status.Valid() {
		return wanted, false, fault.New(fault.Invalid, "status must be one of an approval's")
	}
	switch query.Get("may_vote") {
	case "":
		return wanted, false, nil
	case "true":
	default:
		return wanted, false, fault.New(fault.Invalid, "may_vote must be true or absent")
	}
	if wanted.Status != "" && wanted.Status != approval.Pending {
		return wanted, false, fault.New(fault.Invalid, "may_vote=true goes with status=pending alone")
	}
	wanted.Status, wanted.Voter = approval.Pending, r.Who.Account
	active, err := s.Orgs.Active(r.Context(), r.Who.Tenant)
	return wanted, r.ByToken || !active, err
}

func (s *Server) listApprovals(r *request) (answer, error) {
	p, err := r.ParsePage()
	if err != nil {
		return answer{}, err
	}
	wanted, none, err := s.parseApprovalFilter(r)
	if err != nil {
		return answer{}, err
	}
	found := approval.Page{Count: -1, Complete: true}
	if !none {
		found, err = s.Approvals.List(r.Context(), r.Who.Tenant, wanted, approval.ID(p.After), p.Limit)
		if err != nil {
			return answer{}, err
		}
	}
	body := struct {
		Approvals []approvalView      `json:"approvals"`
		Next      *approval.ID        `json:"next"`
		SignIns   []signInChangedView `json:"sign_in_changes"`
		Count     *countView          `json:"count"` // null but on the first page of a list without may_vote
	}{Next: orNull(found.Next)}
	if found.Count >= 0 {
		body.Count = &countView{found.Count, found.Complete}
	}
	if body.SignIns, err = s.signInsChanged(r); err != nil {
		return answer{}, err
	}
	body.Approvals, err = s.describeApprovals(r, found.Approvals...)
	return jsonAnswer(http.StatusOK, body), err
}

func (s *Server) answerApproval(r *request) (answer, error) {
	found, err := s.Approvals.Find(r.Context(), r.Who.Tenant, approval.ID(r.PathParameter("approval")))
	if err != nil {
		return answer{}, err
	}
	return s.answerWithApproval(r, found)
}

// ballotBody is a vote as it is sent.
type ballotBody struct {
	Vote         string                `json:"vote"`
	Comment      string                `json:"comment"`
	ReasonCode   string                `json:"reason_code"`
	ActionDigest id.Hash               `json:"action_digest"`
	Assertion    *signedvote.Assertion `json:"assertion"`
}

func (s *Server) readBallot(r *request) (approval.Ballot, error) {
	var body ballotBody
	if err := r.DecodeBody(&body); err != nil {
		return approval.Ballot{}, err
	}
	b := approval.Ballot{Account: r.Who.Account, Email: r.Who.Email, Vote: body.Vote, Action: body.ActionDigest,
		Remark: approval.Remark{Comment: body.Comment, Code: body.ReasonCode}, Assertion: body.Assertion,
		Visit: account.Visit{Program: r.UserAgent()}}
	return b, nil
}

// voteOnApproval counts a vote. A signed vote proves by itself that the person is there.
func (s *Server) voteOnApproval(r *request) (answer, error) {
	ballot, err := s.readBallot(r)
	if err == nil && ballot.Assertion == nil {
		err = r.Who.CheckFactor()
	}
	if err != nil {
		return answer{}, err
	}
	name := approval.ID(r.PathParameter("approval"))
	after, err := s.Approvals.Vote(r.Context(), r.Who.Tenant, name, ballot)
	if err != nil {
		return answer{}, err
	}
	return s.answerWithApproval(r, after)
}

func (s *Server) revokeApproval(r *request) (answer, error) {
	var why struct {
		Reason     string `json:"reason"`
		ReasonCode string `json:"reason_code"`
	}
	if err := r.DecodeOptionalBody(&why); err != nil {
		return answer{}, err
	}
	name := approval.ID(r.PathParameter("approval"))
	said := approval.Remark{Comment: why.Reason, Code: why.ReasonCode}
	if err := s.Approvals.Revoke(r.Context(), r.Who.Tenant, string(r.Who.Account), name, said); err != nil {
		return answer{}, err
	}
	return s.answerApproval(r)
}
