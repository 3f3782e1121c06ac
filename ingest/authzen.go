package ingest

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/policy"
)

// Bounds of an AuthZEN request with several evaluations. Together with their defaults the evaluations have at most
// maxMerged times the bytes that a body may have.
const (
	maxEvaluations = 100
	maxMerged      = 4
)

// agentInactive is the code of the refusal to evaluate for an agent that is switched off (package agent).
const agentInactive = "agent_inactive"

// maxRequestID bounds the X-Request-ID of an AuthZEN request, in bytes.
const maxRequestID = 256

// approvalsScope is the scope of keys that may request access and use approvals.
const approvalsScope = org.ScopeApprovals

// routesOfAuthZEN adds the routes of the OpenID AuthZEN Authorization API 1.0 and of its Access Request and Approval
// Profile (docs/guides/authzen.md, docs/guides/access-requests.md).
func (s *Server) routesOfAuthZEN(r *edge.Router) {
	body, evaluate := edge.JSONBody(int64(s.maxBytes)), permitScope(org.ScopeEvaluate)
	var table edge.Table[handler]
	table.Add("POST", accessPath+"evaluation", evaluate, body, s.evaluateAccess, edge.InPlace)
	table.Add("POST", accessPath+"evaluations", evaluate, body, s.evaluateAccesses, edge.InPlace)
	if s.publicURL != "" {
		approvals, claim := permitScope(approvalsScope), edge.JSONBody(maxClaim)
		table.Add("POST", requestsPath, approvals, body, s.requestAccess)
		table.Add("GET", requestsPath+"/{approval}", approvals, edge.Body{}, s.answerTask, edge.LongPoll).Takes("wait")
		table.Add("POST", requestsPath+"/{approval}/cancel", approvals, claim, s.cancelTask)
	}
	edge.Mount(r, edge.Surface[handler]{Edge: &s.edge, Serve: s.serveAuthZEN, ReadsQuery: true, Wait: edge.LongestWait}, table)
	if s.publicURL == "" {
		return
	}
	var open edge.Table[edge.Handler]
	open.Add("GET", "/.well-known/authzen-configuration", edge.Permission{}, edge.Body{}, s.answerConfiguration,
		edge.InPlace).TakesAnyQuery()
	edge.Mount(r, edge.PlainSurface(&s.edge), open)
}

const accessPath = "/access/v1/"

// answerConfiguration serves GET /.well-known/authzen-configuration. The absence of the search endpoints states that
// there are none.
func (s *Server) answerConfiguration(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Cache-Control", "public, max-age=3600")
	return edge.WriteJSON(w, http.StatusOK, struct {
		Point        string   `json:"policy_decision_point"`
		Evaluation   string   `json:"access_evaluation_endpoint"`
		Evaluations  string   `json:"access_evaluations_endpoint"`
		Requests     string   `json:"access_request_endpoint"`
		Capabilities []string `json:"capabilities"`
	}{s.publicURL, s.publicURL + accessPath + "evaluation", s.publicURL + accessPath + "evaluations", s.publicURL + requestsPath,
		[]string{"urn:openid:authzen:capability:access-request"}})
}

// serveAuthZEN is serveRoute, with what the protocol demands in addition: the client's X-Request-ID in the response,
// whatever its status, and status 400 for invalid requests.
func (s *Server) serveAuthZEN(route *edge.Route[handler]) edge.Handler {
	serve := s.serveRoute(route)
	return func(w http.ResponseWriter, r *http.Request) error {
		err := echoRequestID(w, r)
		if err == nil {
			_, err = route.ReadQuery(r)
		}
		if err == nil {
			err = serve(w, r)
		}
		if p := problemOf(err); p != nil {
			if err := p.write(w); err != nil {
				return err
			}
			return &edge.Answered{Cause: err}
		}
		if !fault.Is(err, fault.Invalid) {
			return err
		}
		if err := edge.WriteJSON(w, http.StatusBadRequest, edge.DescribeError(err)); err != nil {
			return err
		}
		return &edge.Answered{Cause: err}
	}
}

// echoRequestID replaces the request ID in the header of the response by the one of the request, if it has one. The log
// line, and the body of a 5xx response, keep the generated ID.
func echoRequestID(w http.ResponseWriter, r *http.Request) error {
	values := r.Header[edge.RequestIDHeader]
	switch {
	case len(values) == 0:
		return nil
	case len(values) > 1 || values[0] == "" || len(values[0]) > maxRequestID:
		return fault.New(fault.Invalid, "X-Request-ID must be one value of 1 to "+strconv.Itoa(maxRequestID)+" bytes")
	}
	w.Header()[edge.RequestIDHeader] = values
	return nil
}

// evaluateAccess serves POST /access/v1/evaluation. It changes nothing, unless it uses an approval.
func (s *Server) evaluateAccess(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	var one accessQuestion
	err := s.compute(r.Context(), c, func() (err error) {
		one, _, err = parseAccess(body)
		return err
	})
	if err != nil {
		return err
	}
	one.token = s.openSubjectToken(r.Context(), c, r.Header)
	return s.answerOne(r.Context(), w, c, &one)
}

// evaluateAccesses serves POST /access/v1/evaluations. It changes nothing.
func (s *Server) evaluateAccesses(w http.ResponseWriter, r *http.Request, c caller, body []byte) error {
	var defaults accessQuestion
	var several accessList
	err := s.compute(r.Context(), c, func() (err error) {
		if defaults, several.values, err = parseAccess(body); err == nil {
			err = several.parse(maxMerged*s.maxBytes, &defaults)
		}
		return err
	})
	if err != nil {
		return err
	}
	defaults.token = s.openSubjectToken(r.Context(), c, r.Header)
	if len(several.items) == 0 {
		return s.answerOne(r.Context(), w, c, &defaults)
	}
	b := append(make([]byte, 0, 1024), `{"evaluations":[`...)
	for i := range several.items {
		several.items[i].token = defaults.token
		if i > 0 {
			b = append(b, ',')
		}
		var allowed bool
		if b, allowed, err = s.appendAccess(r.Context(), b, c, &several.items[i], true); err != nil {
			return err
		}
		if several.ends(allowed) {
			break
		}
	}
	s.writeJSON(w, answer{http.StatusOK, append(b, "]}"...)})
	return nil
}

// answerOne answers a single evaluation.
func (s *Server) answerOne(ctx context.Context, w http.ResponseWriter, c caller, q *accessQuestion) error {
	with, err := q.takeReference()
	if err != nil {
		return err
	}
	if with != nil {
		return s.evaluateAgain(ctx, w, c, q, with)
	}
	b, _, err := s.appendAccess(ctx, nil, c, q, false)
	if err != nil {
		return err
	}
	s.writeJSON(w, answer{http.StatusOK, b})
	return nil
}

// verdict is what the policy says about an access question.
type verdict struct {
	out    policy.Outcome
	input  id.Hash // input_digest
	action id.Hash // of the action that an approval would decide; zero if the denial is not requestable
}

// decideAccess evaluates an access question.
func (s *Server) decideAccess(ctx context.Context, c caller, access *accessQuestion) (v verdict, err error) {
	err = s.compute(ctx, c, func() error {
		q, err := access.question(c.Organization)
		if err != nil {
			return err
		}
		var in policy.Input
		if v.out, in, _, err = s.decide(ctx, c, &q); err != nil {
			return err
		}
		v.input = policy.InputDigest(in)
		if v.out.Decision == id.AllowWithObligation && s.publicURL != "" && c.Scopes.Has(approvalsScope) {
			_, v.action, err = access.bound(c)
		}
		return err
	})
	return v, err
}

// appendAccess appends the decision on a question. Only an unconditional allow is access. An error that concerns this
// question alone is appended as a denial if it is one of several. An agent that is switched off is denied.
func (s *Server) appendAccess(ctx context.Context, b []byte, c caller, access *accessQuestion,
	several bool) (appended []byte, allowed bool, err error) {
	if several {
		if with, err := access.takeReference(); with != nil || err != nil {
			return appendRefused(b, http.StatusBadRequest,
				"context.approval is for a single evaluation: it is used by the decision"), false, nil
		}
	}
	v, err := s.decideAccess(ctx, c, access)
	f := fault.Of(err)
	switch {
	case err == nil && v.out.Decision == id.Allow:
		return appendAllowed(b), true, nil
	case err == nil:
		return s.appendDenied(b, c, &v, redecision{}), false, nil
	case f.Code == agentInactive:
		return appendInactive(b, err), false, nil
	case several && f.Kind == fault.Invalid:
		return appendRefused(b, http.StatusBadRequest, f.Message), false, nil
	case several && f.Kind == fault.Forbidden:
		return appendRefused(b, http.StatusForbidden, f.Message), false, nil
	}
	return nil, false, err
}

func appendAllowed(b []byte) []byte { return append(b, `{"decision":true}`...) }

// appendInactive appends the denial for an agent that is switched off. It returns nil for any other error.
func appendInactive(b []byte, err error) []byte {
	f := fault.Of(err)
	if f.Code != agentInactive {
		return nil
	}
	b = jcs.AppendString(append(b, `{"decision":false,"context":{"reason":`...), f.Message)
	b = jcs.AppendString(append(b, `,"code":`...), f.Code)
	return append(b, "}}"...)
}

// appendRefused appends the denial that represents the error of one of several questions.
func appendRefused(b []byte, status int, message string) []byte {
	b = fmt.Appendf(b, `{"decision":false,"context":{"error":{"status":%d,"message":`, status)
	return append(jcs.AppendString(b, message), "}}}"...)
}

// appendDenied appends a denial. why is zero unless the question was asked with an approval.
func (s *Server) appendDenied(b []byte, c caller, v *verdict, why redecision) []byte {
	requestable := v.action != id.Hash{} && (why.next == "" || why.next == "request")
	reason := v.out.Reason
	switch {
	case why.reason != "":
		reason = why.reason
	case requestable:
		reason = "approval_required"
	}
	b = jcs.AppendString(append(b, `{"decision":false,"context":{"reason":`...), reason)
	if why.next != "" {
		b = jcs.AppendString(append(b, `,"next_action":`...), why.next)
	}
	if why.next == "retry" {
		b = fmt.Appendf(b, `,"retry_after":%d`, int(pollRetry.Seconds()))
	}
	if why.prove {
		b = jcs.AppendString(append(b, `,"action_digest":`...), v.action.String())
	}
	b = append(append(b, `,"evaluation":`...), renderDecision(v.out, v.input).body...)
	if requestable {
		b = s.appendRequestable(b, c, v)
	}
	return append(b, "}}"...)
}
