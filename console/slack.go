package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/slack"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/ratelimit"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// slackPath is the path of requests of an organization's Slack app.
const slackPath = "/v1/slack/interactions/"

// slackAnswerTime bounds how long an answer to Slack is sent. Slack waits three seconds for the response to its request, which
// follows.
const slackAnswerTime = 2 * time.Second

// slackBodyTime bounds how long a body may take to arrive, because a request holds a slot of its organization until then. Slack
// itself waits three seconds for the response. Networks with too many wrong requests have slackHurriedTime: enough for a body
// that is sent with its header, as Slack's are.
const (
	slackBodyTime    = 3 * time.Second
	slackHurriedTime = 250 * time.Millisecond
)

// Limits on requests of Slack. Those that are not authentic count by network. All apps share Slack's addresses, and anybody can
// let Slack send wrong requests. So that limit refuses only requests that are not authentic, and shortens the time for the
// bodies of the others. Presses count by user of Slack in an organization.
const (
	slackBurst   = 60
	slackEvery   = time.Second
	slackTracked = 1 << 14

	maxSlackInFlight             = 64
	maxSlackInFlightOrganization = 16
)

// slackLimits are the limits on requests of Slack. Its methods may be called concurrently.
type slackLimits struct {
	inFlight *admission.Limit

	mu             sync.Mutex
	wrong, presses *ratelimit.Attempts
}

func newSlackLimits() *slackLimits {
	limit := ratelimit.Limit{Burst: slackBurst, Every: slackEvery, Tracked: slackTracked}
	return &slackLimits{inFlight: admission.NewLimit(maxSlackInFlight, maxSlackInFlightOrganization),
		wrong: ratelimit.New(limit), presses: ratelimit.New(limit)}
}

// isOver reports whether a subject made too many attempts.
func (l *slackLimits) isOver(a *ratelimit.Attempts, subject string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return a.Wait(subject, now) > 0
}

// count counts an attempt of a subject. It counts nothing and returns fault.RateLimited if there were too many.
func (l *slackLimits) count(a *ratelimit.Attempts, subject string, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait := a.Wait(subject, now); wait > 0 {
		return &fault.Error{Kind: fault.RateLimited, Code: "rate_limited", RetryAfter: wait,
			Message: "Too many requests: try again later"}
	}
	a.Add(subject, now)
	return nil
}

// errNotSlack is the answer to every request that is not authentic, whatever the reason.
func errNotSlack() error {
	return fault.New(fault.Unauthorized, "The request is not signed by a Slack app of this organization")
}

// addSlackRoute adds the route of requests of Slack to r.
func (s *Server) addSlackRoute(r *edge.Router) {
	var table edge.Table[struct{}]
	body := edge.Body{Media: "application/x-www-form-urlencoded", Max: slack.MaxBody}
	table.Add("POST", slackPath+"{organization}", edge.Permission{}, body, struct{}{})
	edge.Mount(r, edge.Surface[struct{}]{Edge: s.Edge, Serve: s.serveSlack}, table)
}

func (s *Server) serveSlack(route *edge.Route[struct{}]) edge.Handler {
	class := &admission.Class{Control: s.surface.Control, Limit: s.slack.inFlight, MaxBody: route.Body.Max, Yields: true}
	return func(w http.ResponseWriter, r *http.Request) error {
		call := &slackCall{Request: r, server: s, bounds: route.Body, w: w}
		var ok bool
		if call.signature, ok = slack.ReadSignature(r.Header, s.SlackLinks.Clock()); !ok {
			return call.refuse(errNotSlack())
		}
		err := class.Serve(r, call)
		if err != nil && !call.authentic {
			return call.refuse(err)
		}
		return err
	}
}

// slackCall is one request of Slack.
type slackCall struct {
	*http.Request
	server       *Server
	signature    slack.Signature
	bounds       edge.Body
	w            http.ResponseWriter
	tenant       id.Tenant
	organization id.Organization
	complete     bool // the body was read
	authentic    bool // the signature was verified
	press        slack.Press
	answer       []byte // for the press; nil if there is none
}

// network returns the subject of the limit on wrong requests.
func (c *slackCall) network() string { return ratelimit.NetworkOf(c.server.surface.Address(c.Request)) }

// refuse counts a request that is not authentic, and returns err or, if there were too many, fault.RateLimited. Errors of the
// service itself do not count. The response does not wait for the rest of the body. refuse ignores writers without deadlines.
func (c *slackCall) refuse(err error) error {
	if !c.complete {
		_ = http.NewResponseController(c.w).SetReadDeadline(time.Now())
	}
	switch fault.Of(err).Kind {
	case fault.Unauthorized, fault.Invalid, fault.TooLarge, fault.TooSlow, fault.UnsupportedMedia:
		if limited := c.server.slack.count(c.server.slack.wrong, c.network(), c.server.SlackLinks.Clock()); limited != nil {
			return limited
		}
	}
	return err
}

// Identify implements admission.Call. It only finds the organization, whose secrets verify the request later.
func (c *slackCall) Identify() (t admission.Tenant, err error) {
	text := edge.PathParameter(c.Request, "organization")
	if c.organization, err = id.ParseOrganization(text); err != nil || c.organization.String() != text {
		return t, errNotSlack()
	}
	c.tenant, err = c.server.Orgs.ByID(c.Context(), c.organization)
	switch {
	case fault.Is(err, fault.NotFound):
		return t, errNotSlack()
	case err != nil:
		return t, err
	}
	return admission.TenantOf(c.tenant), c.server.Edge.CheckOwner(c.Context(), c.tenant)
}

// Handle implements admission.Call.
func (c *slackCall) Handle() error {
	body := c.server.Edge.KeepBody(c.Request)
	ctx, check := sysevent.WithOutcome(c.Context())
	err := check(c.handle(ctx))
	return c.server.Edge.CheckLost(err, c.tenant, body())
}

func (c *slackCall) handle(ctx context.Context) error {
	s := c.server
	secrets, err := s.Webhooks.SlackSecrets(ctx, c.tenant, c.organization)
	if err != nil {
		return err
	}
	if len(secrets) == 0 { // nobody waits for the body, and the organization answers like an unknown one
		return errNotSlack()
	}
	body, err := c.readBody()
	if err != nil {
		return err
	}
	for _, secret := range secrets {
		c.authentic = c.signature.Verify(secret, body) || c.authentic
	}
	if !c.authentic {
		return errNotSlack()
	}
	press, ok, err := slack.ParsePress(body)
	if err != nil || !ok {
		return err
	}
	if err := s.slack.count(s.slack.presses, c.organization.String()+" "+press.User.Team+"/"+press.User.ID, s.SlackLinks.Clock()); err != nil {
		return err
	}
	c.press = press
	c.answer, err = s.answerPress(ctx, c.tenant, c.organization, press)
	return err
}

// readBody reads the body within slackBodyTime or slackHurriedTime. It ignores writers without deadlines.
func (c *slackCall) readBody() ([]byte, error) {
	limits, within := c.server.slack, slackBodyTime
	if limits.isOver(limits.wrong, c.network(), c.server.SlackLinks.Clock()) {
		within = slackHurriedTime
	}
	connection := http.NewResponseController(c.w)
	_ = connection.SetReadDeadline(time.Now().Add(within))
	body, err := edge.ReadBody(c.Request, c.bounds)
	if c.complete = err == nil; c.complete {
		_ = connection.SetReadDeadline(time.Time{})
	}
	return body, err
}

// Send implements admission.Sender. It sends the answer to Slack before the response, in which Slack accepts no message. If
// that fails, the next press of the button gets the answer.
func (c *slackCall) Send() error {
	if c.answer != nil && slack.AllowsResponse(c.press.ResponseURL) {
		ctx, stop := context.WithTimeout(c.Context(), slackAnswerTime)
		defer stop()
		header := http.Header{"Content-Type": {edge.MediaJSON}}
		_, _ = c.server.Callouts.Post(ctx, c.press.ResponseURL, header, c.answer)
	}
	c.w.Header().Set("Cache-Control", "no-store")
	c.w.WriteHeader(http.StatusOK)
	return nil
}

// answerPress votes for the member that a user of Slack is linked to, and returns what Slack shows. A vote is checked and
// recorded like one on the page.
func (s *Server) answerPress(ctx context.Context, t id.Tenant, organization id.Organization, p slack.Press) ([]byte, error) {
	name, action, err := approval.ParseBallot(p.Value)
	if err != nil || p.Action != webhook.SlackApprove && p.Action != webhook.SlackDeny { // a button of another program of the app
		return nil, nil
	}
	page := slack.Link(s.pageURL("/console/approvals/"+string(name)), "Open the question")
	member, err := s.SlackLinks.Find(ctx, t, p.User)
	if fault.Is(err, fault.NotFound) {
		return s.offerLink(ctx, t, organization, p)
	}
	if err != nil {
		return nil, err
	}
	after, err := s.voteBySlack(ctx, t, member, p, name, action)
	if err == nil {
		return s.describeVote(ctx, t, &after, page)
	}
	failure := fault.Of(err)
	switch failure.Code {
	case "sign_in_required", "signature_required":
		return slack.Whisper(slack.Escape(failure.Message) + ". Votes from Slack don't count here. " + page), nil
	}
	switch failure.Kind {
	case fault.Conflict: // decided in the meantime, perhaps
		found, err := s.Approvals.Find(ctx, t, name)
		if err != nil {
			return nil, err
		}
		if found.Status != approval.Pending {
			return s.describeVote(ctx, t, &found, page)
		}
	case fault.Forbidden, fault.Invalid, fault.NotFound, fault.RateLimited:
	default:
		return nil, err
	}
	return slack.Whisper("Your vote does not count: " + slack.Escape(failure.Message) + ". " + page), nil
}

// voteBySlack votes for a member, with the checks that a call of the member passes. Only the recent proof of a factor is not
// required, which an owner has waived by the signing secret: the user of Slack was linked with such a proof.
func (s *Server) voteBySlack(ctx context.Context, t id.Tenant, m account.Membership, p slack.Press, name approval.ID, action id.Hash) (
	approval.Approval, error) {
	who, err := s.People.ByID(ctx, m.Account)
	if err != nil {
		return approval.Approval{}, err
	}
	c := NewCaller(&account.Session{Account: m.Account, Email: who.Email, Tenant: t, MembershipID: m.ID, Role: m.Role}, "Slack")
	if !m.Role.May(account.SignedVote) {
		return approval.Approval{}, fault.New(fault.Forbidden, "Your role does not allow this")
	}
	if err := s.surface.checkSignedIn(ctx, c.Who); err != nil {
		return approval.Approval{}, err
	}
	if err := s.surface.checkActive(ctx, t); err != nil {
		return approval.Approval{}, err
	}
	ctx = sysevent.WithSource(ctx, sysevent.Source{Credential: sysevent.BySlack, ID: p.User.Team + "/" + p.User.ID})
	ballot := Ballot{Vote: p.Action, ActionDigest: action}
	cast := ballot.cast(c)
	cast.Via = approval.ViaSlack
	return s.Approvals.Vote(ctx, t, name, cast)
}

// offerLink returns the message with the link by which a user of Slack is linked to a member.
func (s *Server) offerLink(ctx context.Context, t id.Tenant, organization id.Organization, p slack.Press) ([]byte, error) {
	settings, err := s.Orgs.CurrentSettings(ctx, t)
	if err != nil {
		return nil, err
	}
	offer, err := s.SlackLinks.NewOffer(organization, p.User, p.Name)
	if err != nil {
		return nil, err
	}
	return slack.Whisper("Your Slack user is not linked to an account of " + slack.WithoutMarks(slack.Escape(settings.Name)) +
		" yet, so your vote does not count. To link it, choose _Link a Slack user_ on " + slack.Link(s.pageURL("/account/slack"), "your account's page") +
		", press the button here again, and then " + slack.Link(s.pageURL("/account/slack?offer="+offer), "confirm the link") +
		" within 10 minutes. Don't give the link to others."), nil
}

func (s *Server) pageURL(path string) string { return strings.TrimSuffix(s.PublicURL, "/") + path }

// describeVote returns the message after a vote: the question with who decided it, or how many approvals it has.
func (s *Server) describeVote(ctx context.Context, t id.Tenant, a *approval.Approval, page string) ([]byte, error) {
	if a.Status == approval.Pending {
		agreed, err := s.Approvals.Agreed(ctx, t, a.ID)
		if err != nil {
			return nil, err
		}
		return slack.Whisper(fmt.Sprintf("Your vote counts: %d of %s. %s", agreed,
			textcheck.Count(a.Quorum, "approval", "approvals"), page)), nil
	}
	settings, err := s.Orgs.CurrentSettings(ctx, t)
	if err != nil {
		return nil, err
	}
	what := webhook.SafeTool(string(a.Tool))
	if shown := a.Shown(settings.Columns); len(shown) > 0 && shown[0].Amount {
		what = shown[0].Text + " · " + what
	}
	result := map[approval.Status]string{approval.Approved: "Approved", approval.Consumed: "Approved and used", approval.Denied: "Denied",
		approval.Expired: "Expired without a decision", approval.Cancelled: "Cancelled by the agent", approval.Revoked: "Approved, and revoked before use",
		approval.Invalidated: "Void, because the policy changed"}[a.Status]
	var people []string
	for _, v := range a.Votes {
		if a.Status == approval.Denied && v.Vote != approval.Deny {
			continue
		}
		name := v.Email
		if who, err := s.People.ByID(ctx, v.Account); err == nil && who.DisplayName != "" {
			name = who.DisplayName
		}
		people = append(people, slack.WithoutMarks(slack.Escape(name)))
	}
	if len(people) > 0 && (a.Status == approval.Approved || a.Status == approval.Consumed || a.Status == approval.Denied) {
		result += " by " + strings.Join(people, ", ")
	}
	return slack.Replacement(fmt.Sprintf("*%s*, asked by *%s*: %s. %s", slack.WithoutMarks(slack.Escape(what)),
		slack.WithoutMarks(slack.Escape(a.AgentName)), result, page)), nil
}

// checkSlackSecret refuses a caller who may not let users of Slack vote. That relaxes the rules of votes.
func (s *Server) checkSlackSecret(ctx context.Context, c *Caller, secret *string) error {
	if secret == nil || *secret == "" {
		return nil
	}
	if err := checkOwner(c); err != nil {
		return err
	}
	return s.Approvals.CheckHold(ctx, c.Who.Tenant, c.Who.Account)
}
