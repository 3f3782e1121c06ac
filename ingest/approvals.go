package ingest

import (
	"encoding/base64"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/policy"
)

// maxClaim bounds the bodies of consume and cancel, in bytes.
const maxClaim = 4 << 10

// postApproval serves POST /v1/ingest/approvals.
func (s *Server) postApproval(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	q, err := parseQuestion(body)
	if err != nil {
		return err
	}
	q.token = s.openSubjectToken(r.Context(), c, r.Header)
	in, err := q.policyInput(c)
	if err != nil {
		return err
	}
	ask, err := q.parseApprovalQuestion(c, in)
	if err != nil {
		return err
	}
	asked, made, err := s.approvals.Ask(r.Context(), c.Tenant, ask)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if made {
		status = http.StatusCreated
	}
	return s.writeDocument(w, status, newApprovalView(asked))
}

// approvalQuestion returns the approval that an evaluation requests, or nil.
func (q *question) approvalQuestion(c caller, in policy.Input) (*approval.Question, error) {
	asks := c.Asks
	switch string(q.requestApproval) {
	case "", "false":
	case "true":
		asks = true
	default:
		return nil, fault.New(fault.Invalid, "request_approval must be true or false")
	}
	if !asks {
		return nil, nil
	}
	if !c.Scopes.Has(org.ScopeApprovals) {
		return nil, errScope(org.ScopeApprovals)
	}
	ask, err := q.parseApprovalQuestion(c, in)
	return &ask, err
}

// parseApprovalQuestion checks the members that only approvals have.
func (q *question) parseApprovalQuestion(c caller, in policy.Input) (approval.Question, error) {
	ask := newQuestion(c, in)
	if q.trace != nil {
		if ask.Trace = id.Trace(decodeText(q.trace)); !event.ValidEvent(string(ask.Trace)) {
			return ask, fault.New(fault.Invalid, "trace_id must match [A-Za-z0-9._:-]{1,128}, not . or ..")
		}
	}
	if q.principal != nil {
		if ask.Principal = decodeText(q.principal); !textcheck.Plain(ask.Principal, 1, 256) {
			return ask, fault.New(fault.Invalid,
				"actor_principal must have 1 to 256 characters, none of them a control character")
		}
	}
	if q.callback != nil {
		if ask.CallbackURL = decodeText(q.callback); ask.CallbackURL == "" {
			return ask, fault.New(fault.Invalid, "callback_url must be a string")
		}
	}
	return ask, nil
}

// newQuestion returns the question of an input. The approval is for its subject.
func newQuestion(c caller, in policy.Input) approval.Question {
	q := approval.Question{Agent: in.Agent, Tool: in.Tool, Payload: in.Payload, OnBehalfOf: in.OnBehalfOf, IngestKeyID: c.KeyID}
	if in.Verified {
		q.Standing = event.Verified
	}
	return q
}

func approvalOfPath(r *http.Request) approval.ID { return approval.ID(chi.URLParam(r, "approval")) }

// consumeApproval serves POST /v1/ingest/approvals/:id/consume.
func (s *Server) consumeApproval(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	var claim struct {
		ActionDigest id.Hash `json:"action_digest"`
		Proof        string  `json:"proof_b64"`
	}
	if err := edge.DecodeStrict(body, &claim); err != nil {
		return err
	}
	proof, err := parseProof("proof_b64", claim.Proof)
	if err != nil {
		return err
	}
	note, err := s.approvals.Consume(r.Context(), c.Tenant, approvalOfPath(r), approval.Claim{
		IngestKeyID: c.KeyID, Action: claim.ActionDigest, Proof: proof,
	})
	if err != nil {
		return err
	}
	return s.writeDocument(w, http.StatusOK, struct {
		Status approval.Status `json:"status"`
		Grant  string          `json:"grant"`
	}{approval.Consumed, note})
}

// parseProof parses an agent's proof. name is for the error.
func parseProof(name, text string) ([]byte, error) {
	proof, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(proof) != edkey.SignatureSize || len(text) != base64.StdEncoding.EncodedLen(edkey.SignatureSize) {
		return nil, fault.New(fault.Invalid, name+" must be the base64 of 64 bytes")
	}
	return proof, nil
}

// cancelApproval serves POST /v1/ingest/approvals/:id/cancel, whose body is optional.
func (s *Server) cancelApproval(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	if len(body) > 0 {
		if err := edge.DecodeStrict(body, &struct{}{}); err != nil {
			return err
		}
	}
	if err := s.approvals.Cancel(r.Context(), c.Tenant, c.KeyID, approvalOfPath(r)); err != nil {
		return err
	}
	s.writeJSON(w, answer{http.StatusOK, []byte(`{"status":"cancelled"}`)})
	return nil
}

// approvalView is an approval as its requester sees it.
type approvalView struct {
	ID           approval.ID     `json:"approval_id"`
	Status       approval.Status `json:"status"`
	ActionDigest id.Hash         `json:"action_digest"`
	ExpiresAt    id.Instant      `json:"expires_at"`
	Quorum       int             `json:"quorum"`
	Approvals    int             `json:"approvals"`
	Comment      wire.Text       `json:"comment"`
	ReasonCode   wire.Text       `json:"reason_code"`
}

func newApprovalView(a approval.Approval) approvalView {
	return approvalView{ID: a.ID, Status: a.Status, ActionDigest: a.ActionDigest, ExpiresAt: a.ExpiresAt, Quorum: a.Quorum,
		Approvals: countApprovals(a), Comment: wire.Text(a.Remark.Comment), ReasonCode: wire.Text(a.Remark.Code)}
}

func countApprovals(a approval.Approval) (n int) {
	for _, v := range a.Votes {
		if v.Vote == approval.Approve {
			n++
		}
	}
	return n
}
