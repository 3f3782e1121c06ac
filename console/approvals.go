package console

import (
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
)

// approvalView is an approval with all that people decide on.
type approvalView struct {
	ApprovalID     approval.ID        `json:"approval_id"`
	Status         approval.Status    `json:"status"`
	AgentID        id.Agent           `json:"agent_id"`
	ToolName       id.Tool            `json:"tool_name"`
	Payload        jsontext.Value     `json:"payload"`
	ActionDigest   id.Hash            `json:"action_digest"`
	TraceID        *id.Trace          `json:"trace_id"`
	ActorPrincipal *string            `json:"actor_principal"`
	IngestKeyID    string             `json:"ingest_key_id"`
	Policy         approvalPolicyView `json:"policy"`
	Quorum         int                `json:"quorum"`
	Votes          []approval.Vote    `json:"votes"`
	CreatedAt      id.Instant         `json:"created_at"`
	ExpiresAt      id.Instant         `json:"expires_at"`
	EndedAt        *id.Instant        `json:"ended_at"`
}

type approvalPolicyView struct {
	PolicyID      string  `json:"policy_id"`
	PolicyVersion uint64  `json:"policy_version"`
	PolicyDigest  id.Hash `json:"policy_digest"`
	RuleID        string  `json:"rule_id"`
	Reason        string  `json:"reason"`
}

func describeApproval(a approval.Approval) approvalView {
	return approvalView{
		ApprovalID: a.ID, Status: a.Status, AgentID: a.Agent, ToolName: a.Tool, Payload: a.Payload,
		ActionDigest: a.ActionDigest,
		TraceID:      orNull(a.Trace), ActorPrincipal: orNull(a.Principal), IngestKeyID: a.IngestKeyID,
		Policy: approvalPolicyView{a.PolicyID, a.PolicyVersion, a.PolicyDigest, a.RuleID, a.Reason},
		Quorum: a.Quorum, Votes: append([]approval.Vote{}, a.Votes...),
		CreatedAt: a.CreatedAt, ExpiresAt: a.ExpiresAt, EndedAt: orNull(a.EndedAt),
	}
}

func (s *Server) listApprovals(r *request) (answer, error) {
	p, err := r.parsePage()
	if err != nil {
		return answer{}, err
	}
	status := approval.Status(r.URL.Query().Get("status"))
	if status != "" && !status.Valid() {
		return answer{}, fault.New(fault.Invalid, "status must be one of an approval's")
	}
	found, next, err := s.Approvals.List(r.Context(), r.who.Tenant, status, approval.ID(p.after), p.limit)
	if err != nil {
		return answer{}, err
	}
	body := struct {
		Approvals []approvalView `json:"approvals"`
		Next      *approval.ID   `json:"next"`
	}{make([]approvalView, len(found)), orNull(next)}
	for i := range found {
		body.Approvals[i] = describeApproval(found[i])
	}
	return answer{http.StatusOK, body}, nil
}

func (s *Server) answerApproval(r *request) (answer, error) {
	found, err := s.Approvals.Find(r.Context(), r.who.Tenant, approval.ID(r.pathParameter("approval")))
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, describeApproval(found)}, nil
}

func (s *Server) voteOnApproval(r *request) (answer, error) {
	var ballot struct {
		Vote         string  `json:"vote"`
		Comment      string  `json:"comment"`
		ActionDigest id.Hash `json:"action_digest"`
	}
	if err := r.decodeBody(&ballot); err != nil {
		return answer{}, err
	}
	after, err := s.Approvals.Vote(r.Context(), r.who.Tenant, approval.ID(r.pathParameter("approval")), approval.Ballot{
		Account: r.who.Account, Email: r.who.Email, Vote: ballot.Vote, Comment: ballot.Comment,
		Action: ballot.ActionDigest,
	})
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusOK, describeApproval(after)}, nil
}

func (s *Server) revokeApproval(r *request) (answer, error) {
	var why struct {
		Reason string `json:"reason"`
	}
	if err := r.decodeOptionalBody(&why); err != nil {
		return answer{}, err
	}
	name := approval.ID(r.pathParameter("approval"))
	if err := s.Approvals.Revoke(r.Context(), r.who.Tenant, string(r.who.Account), name, why.Reason); err != nil {
		return answer{}, err
	}
	return s.answerApproval(r)
}
