package ingest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/jcs"
)

// requestsPath is the endpoint of the AuthZEN Access Request and Approval Profile. A task of the profile is an approval,
// and its path has the approval's ID.
const requestsPath = accessPath + "requests"

// denialLife is how long after a denial its approval may be requested.
const denialLife = 10 * time.Minute

// bindingPurpose is the purpose of the codes in binding tokens (package seal).
const bindingPurpose = "denial of an access evaluation"

// problem is an error that has one of the profile's problem types. Its cause is a *fault.Error.
type problem struct {
	name   string // of the problem type, after its prefix
	title  string
	status int
	cause  error
}

const problemPrefix = "urn:openid:authzen:access-request:error:"

// Error implements error.
func (p *problem) Error() string { return p.cause.Error() }

// Unwrap returns the cause.
func (p *problem) Unwrap() error { return p.cause }

// write writes the response of RFC 9457, which has the member error of every error here in addition.
func (p *problem) write(w http.ResponseWriter) error {
	message := fault.Of(p.cause).Message
	body, err := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
		Error  string `json:"error"`
	}{problemPrefix + p.name, p.title, p.status, message, message})
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.status)
	_, _ = w.Write(body) // an error means that the client has disconnected
	return nil
}

func errBinding(message string) error {
	return &problem{"invalid_denial_binding", "The request is not bound to a denial", http.StatusBadRequest, fault.New(fault.Invalid, message)}
}

func errUnknownTask(err error) error {
	return &problem{"unknown_task", "The task is unknown", http.StatusNotFound, fault.Wrap(fault.NotFound, "Not found", err)}
}

// bindingText is the text of which a binding token has a code: the denial is of this organization, ingest key and
// action, and may be followed by a request until it expires.
func bindingText(c caller, action id.Hash, expires id.Instant) []byte {
	return fmt.Appendf(nil, "%s\n%s\n%s\n%d\n", c.Organization, c.KeyID, action, expires)
}

// bindingSize is the number of bytes in a binding token: the expiry, and the code.
const bindingSize = 8 + 32

// bindDenial returns the binding token of a denial. Nothing is stored.
func (s *Server) bindDenial(c caller, action id.Hash, expires id.Instant) string {
	code := s.keyring.Authenticate(bindingPurpose, bindingText(c, action, expires))
	token := binary.BigEndian.AppendUint64(make([]byte, 0, bindingSize), uint64(expires))
	return base64.RawURLEncoding.EncodeToString(append(token, code[:]...))
}

// denialOf are the members with which a request names the denial that it follows. The reason is an echo, and not read.
type denialOf struct {
	Token     string `json:"binding_token"`
	ExpiresAt string `json:"expires_at"`
	Reason    string `json:"reason"`
}

// check returns an error unless the service denied this action to the caller, and the denial has not expired.
func (d *denialOf) check(s *Server, c caller, action id.Hash) error {
	token, err := base64.RawURLEncoding.Strict().DecodeString(d.Token)
	if err != nil || len(token) != bindingSize {
		return errBinding("denial.binding_token is not one of this service")
	}
	expires := id.Instant(binary.BigEndian.Uint64(token))
	switch {
	case !s.keyring.IsAuthentic(bindingPurpose, bindingText(c, action, expires), token[8:]):
		return errBinding("denial.binding_token is of another denial: subject, action, resource and context must be those that were denied " +
			"to this ingest key")
	case d.ExpiresAt != expires.String():
		return errBinding("denial.expires_at is not the one of the denial")
	case id.InstantOf(s.clock()) >= expires:
		return &problem{"expired_denial", "The denial has expired", http.StatusGone,
			fault.New(fault.Gone, "The denial has expired: evaluate again")}
	}
	return nil
}

// accessRequest names the members of a request. parseAccess parses the values.
type accessRequest struct {
	Subject  entity `json:"subject"`
	Resource entity `json:"resource"`
	Action   struct {
		Name       jsontext.Value `json:"name"`
		Properties jsontext.Value `json:"properties"`
	} `json:"action"`
	Context jsontext.Value `json:"context"`
	Denial  denialOf       `json:"denial"`

	OnBehalfOf jsontext.Value `json:"on_behalf_of"`
}

type entity struct {
	Type       jsontext.Value `json:"type"`
	ID         jsontext.Value `json:"id"`
	Properties jsontext.Value `json:"properties"`
}

// parseAccessRequest reads a body, in which no member may be unknown, and checks that it follows a denial. token is of the request.
func (s *Server) parseAccessRequest(body []byte, c caller, token *subjectToken) (q approval.Question, err error) {
	var r accessRequest
	if err := edge.DecodeStrict(body, &r); err != nil {
		return q, err
	}
	access, _, err := parseAccess(body)
	if err != nil {
		return q, err
	}
	access.token = token
	asked, action, err := access.bound(c)
	if err != nil {
		return q, err
	}
	in, err := asked.policyInput(c)
	if err != nil {
		return q, err
	}
	return newQuestion(c, in), r.Denial.check(s, c, action)
}

// requestAccess serves POST /access/v1/requests.
func (s *Server) requestAccess(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	var q approval.Question
	token := s.openSubjectToken(r.Context(), c, r.Header)
	err := s.compute(r.Context(), c, func() (err error) {
		q, err = s.parseAccessRequest(body, c, token)
		return err
	})
	if err != nil {
		return err
	}
	asked, _, err := s.approvals.Ask(r.Context(), c.Tenant, q)
	if fault.Is(err, fault.Invalid) {
		return &problem{"not_requestable", "Access is not requestable", http.StatusBadRequest, err}
	}
	if err != nil {
		return err
	}
	status := http.StatusAccepted
	if asked.Status != approval.Pending { // the open one of this question is approved
		status = http.StatusCreated
	}
	w.Header().Set("Location", s.taskURL(asked.ID))
	return s.writeDocument(w, status, s.newTaskView(asked))
}

// answerTask serves GET /access/v1/requests/:task.
func (s *Server) answerTask(w http.ResponseWriter, r *http.Request, c caller, _ []byte) error {
	found, err := s.awaitApproval(w, r, c)
	if fault.Is(err, fault.NotFound) {
		return errUnknownTask(err)
	}
	if err != nil {
		return err
	}
	return s.writeDocument(w, http.StatusOK, s.newTaskView(found))
}

// cancelTask serves POST /access/v1/requests/:task/cancel, whose body is optional.
func (s *Server) cancelTask(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	if len(body) > 0 {
		if err := edge.DecodeStrict(body, &struct{}{}); err != nil {
			return err
		}
	}
	found, err := s.approvals.Get(r.Context(), c.Tenant, c.KeyID, approvalOfPath(r), 0)
	if err == nil && found.Status != approval.Pending {
		err = fault.New(fault.Conflict, "The task is not pending")
	}
	if err == nil {
		err = s.approvals.Cancel(r.Context(), c.Tenant, c.KeyID, found.ID)
	}
	switch {
	case fault.Is(err, fault.NotFound):
		return errUnknownTask(err)
	case fault.Is(err, fault.Conflict):
		return &problem{"invalid_task_state", "The task has another state", http.StatusConflict, err}
	case err != nil:
		return err
	}
	found.Status = approval.Cancelled
	return s.writeDocument(w, http.StatusOK, s.newTaskView(found))
}

// taskView is an approval as a task of the profile.
type taskView struct {
	Task struct {
		ID             approval.ID `json:"id"`
		Status         string      `json:"status"`
		StatusEndpoint string      `json:"status_endpoint"`
		ExpiresAt      id.Instant  `json:"expires_at,omitzero"`
		Links          *taskLinks  `json:"links,omitzero"`
		Display        *display    `json:"display,omitzero"`
	} `json:"task"`
	Result *taskResult `json:"result,omitzero"`
}

type taskLinks struct {
	Cancel string `json:"cancel"`
}

type display struct {
	Description string `json:"description"`
}

type taskResult struct {
	Mode     string         `json:"mode"`
	Approval approvalOfTask `json:"approval"`
}

type approvalOfTask struct {
	ID            approval.ID `json:"id"`
	ApprovedUntil id.Instant  `json:"approved_until"`
}

func (s *Server) taskURL(name approval.ID) string {
	return s.publicURL + requestsPath + "/" + string(name)
}

func (s *Server) newTaskView(a approval.Approval) (v taskView) {
	v.Task.ID, v.Task.Status, v.Task.StatusEndpoint = a.ID, taskStatus(a.Status), s.taskURL(a.ID)
	switch a.Status {
	case approval.Pending:
		v.Task.ExpiresAt, v.Task.Links = a.ExpiresAt, &taskLinks{s.taskURL(a.ID) + "/cancel"}
	case approval.Approved, approval.Consumed:
		v.Result = &taskResult{"reevaluate", approvalOfTask{a.ID, a.ExpiresAt}}
	}
	if a.Remark.Comment != "" {
		v.Task.Display = &display{a.Remark.Comment}
	}
	return v
}

// taskStatus returns the status of the task. A consumed approval was approved: the next evaluation states that it is
// used.
func taskStatus(s approval.Status) string {
	switch s {
	case approval.Consumed:
		return string(approval.Approved)
	case approval.Revoked, approval.Invalidated:
		return string(approval.Cancelled)
	}
	return string(s)
}

// reference is the approval with which an access question is asked again, and the agent's proof.
type reference struct {
	name  approval.ID
	proof []byte // nil if absent
}

// Members of the context that are not part of the act. Of these, the policy sees only the time.
const (
	approvalMember = "approval"
	proofMember    = "approval_proof_b64"
	timeMember     = "time"
)

// takeReference removes the approval from the context and returns it, or nil if there is none.
func (q *accessQuestion) takeReference() (*reference, error) {
	if q.context == nil || q.context[0] != '{' || !bytes.Contains(q.context, []byte(`"`+approvalMember)) {
		return nil, nil
	}
	values, err := objectMembers("context", q.context, approvalMember, proofMember)
	if err != nil || values[0] == nil && values[1] == nil {
		return nil, err
	}
	if values[0] == nil {
		return nil, fault.New(fault.Invalid, "context.approval_proof_b64 requires context.approval")
	}
	var a struct {
		ID         approval.ID    `json:"id"`
		ApprovedAt jsontext.Value `json:"approved_at"`
		Until      jsontext.Value `json:"approved_until"`
	}
	if err := edge.DecodeStrict(values[0], &a); err != nil {
		return nil, fault.Wrap(fault.Invalid, "context.approval must be the approval of a task: "+fault.Of(err).Message, err)
	}
	if a.ID == "" {
		return nil, fault.New(fault.Invalid, "context.approval.id is missing")
	}
	ref := &reference{name: a.ID}
	if values[1] != nil {
		if ref.proof, err = parseProof("context.approval_proof_b64", decodeText(values[1])); err != nil {
			return nil, err
		}
	}
	q.context, err = withoutMembers(q.context, approvalMember, proofMember)
	return ref, err
}

// withoutMembers returns a canonical object without some members.
func withoutMembers(object []byte, names ...string) ([]byte, error) {
	var buffer [8]jcs.Member
	canonical, members, err := jcs.ParseObject(buffer[:0], object, jcs.MaxDepth)
	if err != nil {
		return nil, err
	}
	b := []byte{'{'}
next:
	for _, m := range members {
		for _, name := range names {
			if string(m.Name(canonical)) == name {
				continue next
			}
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, canonical[m.Start:m.End]...)
	}
	return append(b, '}'), nil
}

// bound returns the question that an approval decides, and the digest of its action. It does not have the time of the
// request, which is another one when the approval is used.
func (q *accessQuestion) bound(c caller) (asked question, action id.Hash, err error) {
	act := *q
	if act.context != nil && act.context[0] == '{' && bytes.Contains(act.context, []byte(`"`+timeMember+`"`)) {
		if act.context, err = withoutMembers(act.context, timeMember); err != nil {
			return asked, action, err
		}
	}
	if asked, err = act.question(c.Organization); err != nil {
		return asked, action, err
	}
	of := grant.Action{Organization: c.Organization, Agent: id.Agent(decodeText(asked.agent)), Tool: id.Tool(decodeText(asked.tool)),
		OnBehalfOf: asked.onBehalfOf, Payload: asked.payload}
	return asked, of.Digest(), nil
}

// evaluateAgain answers an access question that is asked with an approval. If the policy still requires the approval, the
// answer uses it, once, and is an access.
func (s *Server) evaluateAgain(ctx context.Context, w http.ResponseWriter, c caller, q *accessQuestion, with *reference) error {
	if !c.Scopes.Has(approvalsScope) {
		return errScope(approvalsScope)
	}
	v, err := s.decideAccess(ctx, c, q)
	var b []byte
	switch {
	case err != nil:
		if b = appendInactive(nil, err); b == nil {
			return err
		}
	case v.out.Decision == id.Allow:
		b = appendAllowed(nil)
	case v.out.Decision == id.Deny:
		b = s.appendDenied(nil, c, &v, redecision{reason: "policy_denied", next: "none"})
	default:
		used, why, err := s.useApproval(ctx, c, &v, with)
		if err != nil {
			return err
		}
		if b = used; used == nil {
			b = s.appendDenied(nil, c, &v, why)
		}
	}
	s.writeJSON(w, answer{http.StatusOK, b})
	return nil
}

// redecision is why an approval did not help, and what the client should do next: request, retry or none.
type redecision struct {
	reason, next string
	prove        bool // tell which action the proof is of
}

// useApproval consumes the approval and returns the answer that is an access, or why it was not consumed.
func (s *Server) useApproval(ctx context.Context, c caller, v *verdict, with *reference) (b []byte, why redecision, err error) {
	found, err := s.approvals.Get(ctx, c.Tenant, c.KeyID, with.name, 0)
	if fault.Is(err, fault.NotFound) {
		return nil, redecision{reason: "approval_unverifiable", next: "none"}, nil
	}
	if err != nil {
		return nil, why, err
	}
	switch {
	case found.ActionDigest != v.action:
		return nil, redecision{reason: "out_of_scope", next: "request"}, nil
	case found.Status != approval.Approved:
		return nil, redecisionFor(found.Status), nil
	case with.proof == nil:
		return nil, redecision{reason: "approval_proof_required", next: "none", prove: true}, nil
	}
	until := id.InstantOf(s.clock()) + grant.Life // the grant ends then, or a moment later
	note, err := s.approvals.Consume(ctx, c.Tenant, found.ID,
		approval.Claim{IngestKeyID: c.KeyID, Action: v.action, Proof: with.proof, Once: true})
	switch {
	case err == nil:
		return appendUsed(nil, approvalOfTask{found.ID, until}, note), why, nil
	case fault.Is(err, fault.Invalid):
		return nil, redecision{reason: "approval_unverifiable", next: "none", prove: true}, nil
	case fault.Is(err, fault.Conflict) || fault.Is(err, fault.Gone): // it was used or ended, or has lost a vote, in the meantime
		if found, err = s.approvals.Get(ctx, c.Tenant, c.KeyID, with.name, 0); err == nil {
			return nil, redecisionFor(found.Status), nil
		}
	}
	return nil, why, err
}

func redecisionFor(s approval.Status) redecision {
	switch s {
	case approval.Pending, approval.Approved:
		return redecision{reason: "approval_pending", next: "retry"}
	case approval.Denied:
		return redecision{reason: "approval_denied", next: "none"}
	case approval.Consumed:
		return redecision{reason: "approval_used", next: "request"}
	}
	return redecision{reason: "approval_expired", next: "request"}
}

// appendUsed appends the answer to a question whose approval was consumed for it.
func appendUsed(b []byte, a approvalOfTask, note string) []byte {
	b = jcs.AppendString(append(b, `{"decision":true,"context":{"approval":{"id":`...), string(a.ID))
	b = jcs.AppendString(append(b, `,"approved_until":`...), a.ApprovedUntil.String())
	return append(jcs.AppendString(append(b, `},"grant":`...), note), "}}"...)
}

// appendRequestable appends the member with which a denial may be followed by a request.
func (s *Server) appendRequestable(b []byte, c caller, v *verdict) []byte {
	expires := id.InstantOf(s.clock().Add(denialLife))
	b = jcs.AppendString(append(b, `,"access_request":{"endpoint":`...), s.publicURL+requestsPath)
	b = jcs.AppendString(append(b, `,"expires_at":`...), expires.String())
	b = jcs.AppendString(append(b, `,"binding_token":`...), s.bindDenial(c, v.action, expires))
	if v.out.Reason != "" {
		b = append(jcs.AppendString(append(b, `,"display":{"description":`...), v.out.Reason), '}')
	}
	return append(b, '}')
}

// problemOf returns the problem in an error, or nil.
func problemOf(err error) (p *problem) {
	errors.As(err, &p)
	return p
}
