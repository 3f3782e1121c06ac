package identity

import (
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/http/header"
	"github.com/agentledger/agentledger/internal/oidc"
	"github.com/agentledger/agentledger/internal/ratelimit"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

// Limits on unsuccessful sign-ins from one network: a burst, then one per interval. Each one that comes back from a
// provider costs a request to that provider; starting one does not.
const (
	flowBurst   = 30
	flowEvery   = 3 * time.Second
	flowTracked = 1 << 15 // networks
)

// flowAttempts limits sign-ins at providers, or guesses of tokens, by network. Its methods may be called concurrently.
type flowAttempts struct {
	mu       sync.Mutex
	networks *ratelimit.Attempts
}

func newFlowAttempts(nodes func() int) *flowAttempts {
	return &flowAttempts{
		networks: ratelimit.New(ratelimit.Limit{Burst: flowBurst, Every: flowEvery, Tracked: flowTracked,
			Nodes: nodes})}
}

// countAttempt counts an attempt from an address; undo revokes it. It returns fault.RateLimited after too many.
func (f *flowAttempts) countAttempt(from netip.Addr, now time.Time) (undo func(), err error) {
	network := ratelimit.NetworkOf(from)
	f.mu.Lock()
	defer f.mu.Unlock()
	if wait := f.networks.Wait(network, now); wait > 0 {
		return nil, &fault.Error{Kind: fault.RateLimited, Code: "rate_limited",
			Message: "Too many attempts, try again later", RetryAfter: wait}
	}
	f.networks.Add(network, now)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.networks.Remove(network, now)
	}, nil
}

const openIDPath = "/v1/id/auth/oidc"

// CallbackFor returns the function that maps a provider to the URL to which it redirects browsers.
func CallbackFor(publicURL string) func(provider string) string {
	return func(provider string) string { return publicURL + openIDPath + "/" + provider + "/callback" }
}

func (s *Server) answerProviders(w http.ResponseWriter, _ *request) error {
	return edge.WriteJSON(w, http.StatusOK, s.ListProviders())
}

// ListProviders returns the OpenID providers of the service.
func (s *Server) ListProviders() wire.Providers {
	var shown wire.Providers
	if s.OpenID != nil {
		for _, name := range s.OpenID.Names() {
			shown.Providers = append(shown.Providers,
				wire.Provider{Name: name, Start: openIDPath + "/" + name + "/start"})
		}
	}
	return shown
}

// startOpenID sends a browser to a provider. The query parameter return is the path to continue at after the sign-in.
// With fresh=1 the provider authenticates the person again: the step-up of a person without a password.
func (s *Server) startOpenID(w http.ResponseWriter, r *request) error {
	if s.OpenID == nil {
		return fault.New(fault.NotFound, "Not found")
	}
	query := r.URL.Query()
	started, err := s.OpenID.Start(r.Context(), chi.URLParam(r.Request, "provider"), query.Get("return"),
		query.Get("fresh") == "1")
	if err != nil {
		return s.refuseBrowser(w, r, "", err)
	}
	r.caller.setCookie(s.flowCookie(openIDCookie, started.Cookie, int(oidc.FlowTime.Seconds())))
	redirectBrowser(w, started.URL)
	return nil
}

// finishOpenID completes a sign-in at a provider: it opens a session and redirects the browser.
func (s *Server) finishOpenID(w http.ResponseWriter, r *request) error {
	if s.OpenID == nil {
		return fault.New(fault.NotFound, "Not found")
	}
	undo, err := s.flowAttempts.countAttempt(s.Address(r.Request), s.Now())
	if err != nil {
		return s.refuseBrowser(w, r, "", err)
	}
	path, err := s.signInSubject(r)
	s.logins.countAttempt(err)
	if err == nil || fault.Is(err, fault.Unauthorized) || fault.Is(err, fault.Forbidden) {
		r.caller.setCookie(s.flowCookie(openIDCookie, "", -1)) // this sign-in cannot be continued
	}
	if err != nil {
		return s.refuseBrowser(w, r, path, err)
	}
	undo()
	redirectBrowser(w, path)
	return nil
}

// refuseBrowser redirects a browser whose sign-in was refused to the sign-in page, which shows the reason. Programs get
// the error itself, as do browsers if the person can do nothing about it. returnTo is the path to continue at after a
// sign-in that links the provider.
func (s *Server) refuseBrowser(w http.ResponseWriter, r *request, returnTo string, refused error) error {
	s.logRefusal("sign-in at a provider refused", r.caller, refused)
	reason := refusalReason(refused)
	if reason == "" || header.PreferredMedia(r.Header["Accept"], edge.MediaJSON, mediaHTML) != mediaHTML {
		return refused
	}
	if kind := fault.Of(refused).Kind; kind == fault.Unavailable || kind == fault.RateLimited {
		s.attemptLog.Warn("sign-in at a provider failed", "err", refused)
	}
	to := url.Values{"refused": {reason}}
	if reason == "link" {
		to.Set("return", returnTo)
	}
	redirectBrowser(w, s.base+"/signin?"+to.Encode())
	return nil
}

const mediaHTML = "text/html"

// refusalReason returns the name by which the sign-in page knows the reason for a refusal, or "" if it knows none.
func refusalReason(refused error) string {
	switch fault.Of(refused).Code {
	case linkRequired:
		return "link"
	case "no_verified_address":
		return "no-address"
	}
	switch fault.Of(refused).Kind {
	case fault.Unauthorized:
		return "failed"
	case fault.Forbidden:
		return "no-account"
	case fault.RateLimited:
		return "too-many"
	case fault.Unavailable:
		return "unavailable"
	}
	return ""
}

// signInSubject opens a session for the person whom a provider authenticated, in the default organization, and returns
// the path to continue at.
func (s *Server) signInSubject(r *request) (path string, err error) {
	ctx, c := r.Context(), r.caller
	person, path, err := s.OpenID.Finish(ctx, chi.URLParam(r.Request, "provider"),
		s.readCookie(c, openIDCookie), r.URL.Query())
	if err != nil {
		return "", err
	}
	who, err := s.findSubject(ctx, c, person)
	if err != nil {
		return path, err
	}
	by := account.ByProvider + account.Method(person.Provider)
	if who, by, err = s.finishLink(ctx, c, who, by); err != nil {
		return "", err
	}
	tenant, err := s.chooseOrganization(ctx, who.ID, id.Organization{}, by)
	if err != nil {
		return "", err
	}
	visit := s.describeVisit(c)
	visit.SignIn = by
	visit.FactorAt = account.NoProof
	if at := person.AuthenticatedAt; !at.IsZero() {
		visit.FactorAt = id.InstantOf(at)
	}
	_, err = s.openSessionFrom(ctx, c, who, tenant, visit)
	return path, err
}

// openIDCookie names the cookie of a pending sign-in at a provider.
const openIDCookie = "oidc"

// flowCookieName returns the name of a cookie, with the prefix by which browsers bind it to this host.
func (s *Server) flowCookieName(use string) string {
	if s.secure {
		return "__Host-agentledger_" + use
	}
	return "agentledger_" + use
}

// flowCookie holds a pending sign-in for so many seconds; a negative number deletes the cookie. SameSite must be Lax,
// not Strict: the browser comes back from the provider's site.
func (s *Server) flowCookie(use, value string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: s.flowCookieName(use), Value: value, Path: "/", MaxAge: seconds,
		HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode,
	}
}

// redirectBrowser answers 303 without a body. The service made or checked the URL.
func redirectBrowser(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer") // the query of the callback contains a code
	w.WriteHeader(http.StatusSeeOther)
}
