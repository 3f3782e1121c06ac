package console

import (
	"net/url"
	"strings"
	"time"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/tenant/share"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const sharesPage = "/console/evidence/shares"

func (p *pages) shareScreens() []page.Screen {
	return []page.Screen{
		{Pattern: sharesPage, Query: append(searchParameters(), "new", "after"), Views: p.views, Name: "shares", Title: "Shared views", Show: p.listShares,
			Forms: map[string]page.Form{"create": p.createShare, "revoke": p.revokeShare}},
		{Pattern: "/share/{secret}", Query: []string{"after"}, Views: p.views, Name: "sharedview", Title: "Shared view", Open: true, Shared: true,
			Show: p.showShared},
		{Pattern: "/share/{secret}/acts/{act}", Views: p.views, Name: "sharedact", Title: "Act", Open: true, Shared: true, Show: p.showSharedAct,
			Script: "act.js", Modules: []string{"act.js", "actcheck.js", "times.js"}},
	}
}

// usualShareDays is for how many days links are open unless another day is chosen.
const usualShareDays = 14

// sharesView is the content of the list of links, with the form of a new one.
type sharesView struct {
	Shares   []sharedLink
	Next     string // address of the next page
	New      bool   // the form of a new link is shown
	View     string // what the new link shows
	Problem  string // why it can't be shared; "" if it can
	Until    string // proposed last day
	Activity string
}

// sharedLink is a link in the list.
type sharedLink struct {
	wire.Share
	View string // in words
	By   page.Name
}

func (p *pages) listShares(r *page.Request) (any, error) {
	until := visitOf(r).Console.Shares.Clock().UTC().AddDate(0, 0, usualShareDays)
	v := &sharesView{New: r.Query("new") != "", Until: until.Format(time.DateOnly), Activity: r.Address(activityPage)}
	found, err := visitOf(r).Console.ListShares(r.Context(), visitOf(r).caller, r.PageQuery())
	if err != nil {
		return nil, err
	}
	v.Next = r.NextPage(found.Next)
	for _, l := range found.Shares {
		query, _ := url.ParseQuery(l.Query) // the service wrote it
		v.Shares = append(v.Shares, sharedLink{Share: l, View: namedView(r, query), By: nameOf(r, page.NamedPerson, l.CreatedBy)})
	}
	if !v.New {
		return v, nil
	}
	s, err := readSearch(r)
	if err != nil {
		return nil, err
	}
	v.Problem, v.View = shareProblem(s), namedView(r, s.query)
	return v, nil
}

// shareProblem says why a search cannot be shared, or returns "".
func shareProblem(s *search) string {
	if s.Line.Words != "" {
		return "A search for words can't be shared. Remove the words, and keep the filters."
	}
	return strings.Join(s.Problems, " ")
}

// namedView describes a query of acts, with the names of its agent and approver.
func namedView(r *page.Request, query url.Values) string {
	name := func(kind page.Kind, key string) string {
		if query.Get(key) == "" {
			return ""
		}
		return nameOf(r, kind, query.Get(key)).Text
	}
	return viewWords(query, name(page.NamedAgent, "agent_id"), name(page.NamedPerson, "approver"))
}

// shareURL returns the address of the form that shares a search.
func shareURL(r *page.Request, s *search) string {
	query := url.Values{"new": {"1"}}
	if text := s.Line.String(); text != "" {
		query.Set("q", text)
	}
	if log := r.Query("log"); log != "" {
		query.Set("log", log)
	}
	return r.Address(sharesPage) + "?" + query.Encode()
}

// newShareView is the content of the page with a new link.
type newShareView struct {
	wire.CreatedShare
	View string
}

func (p *pages) createShare(r *page.Request) (page.Outcome, error) {
	s, err := readSearch(r)
	if err != nil {
		return page.Outcome{}, err
	}
	if problem := shareProblem(s); problem != "" {
		return page.Outcome{}, fault.New(fault.Invalid, problem)
	}
	v := visitOf(r)
	until, err := parseLastDay(r.Value("until"), v.Console.Shares.Clock())
	if err != nil {
		return page.Outcome{}, err
	}
	made, err := v.Console.CreateShare(r.Context(), v.caller, api.NewShare{Note: r.Value("note"), Query: s.query.Encode(), ExpiresAt: until})
	if err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "newshare", "The new link", newShareView{made, namedView(r, s.query)}), nil
}

// parseLastDay returns the end of the last day of a link, in UTC, or the latest time that a link may have if that is earlier.
func parseLastDay(text string, now time.Time) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, fault.Wrap(fault.Invalid, "until must be a day, such as 2026-11-03", err)
	}
	end, longest := day.AddDate(0, 0, 1), now.Add(share.MaxLife)
	switch {
	case !end.After(now):
		return time.Time{}, fault.New(fault.Invalid, "until must not be in the past")
	case day.After(longest):
		return time.Time{}, fault.New(fault.Invalid, "until must be at most 90 days from now")
	case end.After(longest):
		end = longest
	}
	return end, nil
}

func (p *pages) revokeShare(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	err := v.Console.RevokeShare(r.Context(), v.caller, r.Value("share_id"))
	return page.GoTo(r.Address(sharesPage), "share-revoked"), err
}

// viewWords describes the query of a list of acts in words. agent and approver are names.
func viewWords(query url.Values, agent, approver string) string {
	words := "Acts"
	add := func(prefix, value string) {
		if value != "" {
			words += prefix + value
		}
	}
	decisions := map[string]string{"allow": "allow", "deny": "deny", "allow_with_obligation": "needs approval"}
	add(" of ", agent)
	add(" with ", query.Get("tool"))
	add(" ", map[string]string{"done": "that were done", "failed": "that failed", "refused": "that people refused", "denied": "that were denied",
		"expired": "whose approval expired", "cancelled": "that were cancelled", "unknown": "with an unknown result",
		"waiting": "that wait for an approval", "open": "without a result"}[query.Get("outcome")])
	add(", ", map[string]string{"yes": "confirmed by a tool", "no": "not confirmed by a tool"}[query.Get("confirmed")])
	add(" of the principal ", query.Get("principal"))
	if query.Has("on_behalf_of") { // readers of a link see nobody's subject
		words += " on behalf of one user"
	}
	add(", decided by ", approver)
	add(", with the decision ", decisions[query.Get("decision")])
	add(", said by the agent to be ", decisions[query.Get("declared")])
	add(", of the kind ", query.Get("action_kind"))
	add(", in the trace ", query.Get("trace_id"))
	add(", signed by ", map[string]string{"agent": "the agent", "bridge": "the service, for a tool"}[query.Get("signer")])
	var conditions []string
	for _, text := range query["column"] {
		if c, err := column.ParseCondition(text); err == nil { // the service has accepted it
			conditions = append(conditions, c.String())
		}
	}
	add(", where ", strings.Join(conditions, " and "))
	add(", from ", boundWords(query.Get("from"), false))
	add(", to ", boundWords(query.Get("to"), true))
	if words == "Acts" {
		return "All acts"
	}
	return words
}

// boundWords returns a bound of a query in words. The end of a range is the last day if it is a midnight.
func boundWords(bound string, end bool) string {
	at, err := time.Parse(time.RFC3339Nano, bound)
	switch {
	case bound == "":
		return ""
	case err != nil && end:
		return "below entry " + groupNumber(bound)
	case err != nil:
		return "entry " + groupNumber(bound)
	case at.Equal(at.Truncate(24*time.Hour)) && end:
		at = at.AddDate(0, 0, -1)
		fallthrough
	case at.Equal(at.Truncate(24 * time.Hour)):
		return at.Format("2 Jan 2006")
	}
	return at.Format("2 Jan 2006, 15:04:05") + " UTC"
}

// sharedClock returns a time of a shared view.
func sharedClock(at id.Instant) string { return at.Time().UTC().Format("15:04:05") }
