package console

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// approvalView is the content of an approval's page.
type approvalView struct {
	approval
	SignIns   []signInChange
	Live      *page.Live
	Queue     queue
	Rule      *appliedRule  // the rule in the policy; nil if the policy is gone
	Asked     *page.Payload // nil if it is erased or the reader may not see it
	Facts     []page.Member // the first members of the payload that no column shows
	HidesIt   bool          // the reader's role may not see payloads
	Past      *past         // nil if the acts cannot be counted now
	MayRevoke bool
	Mine      string   // the reader's vote; "" if there is none
	Voters    []string // accounts that may vote, if the reader may not; at most maxVotersShown
	Stuck     bool     // nobody may vote
	HasKey    bool     // one of the reader's passkeys signs votes in this organization
	KeysURL   string   // page that registers one and returns here

	AgentEvents, TraceEvents []wire.ListedEvent // the latest ones
	AgentURL, TraceURL       string             // the complete lists
	OwnURL                   string             // the events about this approval
}

// appliedRule is a rule of a policy.
type appliedRule struct {
	ID          string       `json:"rule_id"`
	Tool        string       `json:"tool"`
	Agents      []string     `json:"agents"`
	OnBehalfOf  *ruleSubject `json:"on_behalf_of"`
	When        string       `json:"when"`
	Obligations []struct {
		Approvals  int `json:"approvals"`
		TTLSeconds int `json:"ttl_seconds"`
	} `json:"obligations"`
	PolicyName string `json:"-"`
}

// queue is the approvals that wait for the reader's vote, oldest first.
type queue struct {
	At    int    // place of the approval, from 1; 0 if it does not wait for the reader or its place is not known
	Count string // how many wait, such as "3" or "25+"; "" if none does
	Next  string // address of the one to continue with; "" if no other waits
}

// past is what became of the latest acts of an agent with a tool.
type past struct {
	Acts     uint64
	Outcomes []outcomeCount // without empty ones
	URL      string         // the list

	// Amounts are the acts whose amount is known, and Higher those with a higher amount than the one that is asked for. Amounts
	// is 0 if fewer than two are known, or no amount is asked for.
	Amounts, Higher uint64
}

// outcomeCount is the number of acts with an outcome. X and Width are of its bar, in hundredths of all.
type outcomeCount struct {
	Outcome, Fill string
	Acts          uint64
	X, Width      string
}

// Bounds of what the page shows at once.
const (
	pastDays       = 30
	maxFacts       = 6
	maxFactText    = 160 // code points
	maxVotersShown = 4
)

// maxHistory is the number of events shown for the agent and for the trace.
const maxHistory = "8"

func (p *pages) showApproval(r *page.Request) (any, error) {
	v := &approvalView{}
	var err error
	if v.Live, err = follow(r); err != nil {
		return nil, err
	}
	found, err := visitOf(r).Console.ShowApproval(r.Context(), visitOf(r).caller, r.PathParameter("approval"))
	if err != nil {
		return nil, err
	}
	v.approval, v.SignIns = describeApprovals([]wire.Approval{found.Approval})[0], describeSignIns(found.SignIns)
	r.Title = "Approval of " + string(v.Tool)
	if v.Status == "pending" && v.Amount() != "" {
		r.Title = "Approve " + v.Amount() + "?"
	}
	if v.Open() {
		v.MayRevoke = r.Person.May("vote")
	} else {
		v.Live.Every = 0
	}
	if err := v.readVotes(r); err != nil {
		return nil, err
	}
	if v.MayVote {
		keys, err := readVoterKeys(r, r.Person.Account.ID)
		if err != nil {
			return nil, err
		}
		v.HasKey = len(keys) > 0
		back := url.Values{"return": {r.Address("/console/approvals", v.ID)}}
		v.KeysURL = r.Address(factorsPath) + "?" + back.Encode()
	}
	v.Live.News = "The approval is " + v.Words() + "."
	v.readPayload()
	v.readPast(r)
	v.HidesIt = v.Asked == nil && v.ErasedAt == 0 && !r.Person.May("read approvals' payloads")
	if v.Rule, err = readRule(r, v.Policy); err != nil {
		return nil, err
	}
	return v, v.readHistory(r)
}

// readVotes reads what else waits for the reader, and who may vote if the reader may not.
func (v *approvalView) readVotes(r *page.Request) (err error) {
	for _, cast := range v.Votes {
		if cast.Account == r.Person.Account.ID {
			v.Mine = cast.Vote
		}
	}
	if v.Status == "pending" && !v.MayVote && v.Mine == "" && v.WhyNot != "organization_inactive" {
		found, err := visitOf(r).Console.ListVoters(r.Context(), visitOf(r).caller, v.ID, maxVotersShown)
		if err != nil {
			return err
		}
		for _, who := range found {
			v.Voters = append(v.Voters, string(who))
		}
		v.Stuck = len(found) == 0
	}
	if !r.Person.May("vote") {
		return nil
	}
	v.Queue, err = readQueue(r, v.ID)
	return err
}

// readQueue reads the approvals that wait for the reader, and the place of the given one. After the first maxCounted of
// them, the place is not known.
func readQueue(r *page.Request, name string) (queue, error) {
	list := func(after string, limit int) ([]wire.Approval, error) {
		query := url.Values{"may_vote": {"true"}, "order": {"oldest"}, "limit": {strconv.Itoa(limit)}}
		if after != "" {
			query.Set("after", after)
		}
		found, err := visitOf(r).Console.ListApprovals(r.Context(), visitOf(r).caller, query)
		return found.Approvals, err
	}
	first, err := list("", maxCounted+1)
	if err != nil || len(first) == 0 {
		return queue{}, err
	}
	q := queue{Count: votesText(len(first))}
	visitOf(r).votes = new(len(first))
	next := slices.IndexFunc(first, func(a wire.Approval) bool { return a.ID > name })
	switch {
	case next >= 0:
	case len(first) > maxCounted: // it is after the first ones
		following, err := list(name, 1)
		if err != nil {
			return q, err
		}
		first, next = append(first, following...), 0
		if len(following) > 0 {
			next = len(first) - 1
		}
	default:
		next = 0
	}
	if first[next].ID != name {
		q.Next = r.Address("/console/approvals", first[next].ID)
	}
	q.At = slices.IndexFunc(first[:min(len(first), maxCounted)], func(a wire.Approval) bool { return a.ID == name }) + 1
	return q, nil
}

// readPayload selects the members that are shown at once. Those of a guard tell approvers nothing.
func (v *approvalView) readPayload() {
	if v.Asked = page.NewPayload(v.Payload); v.Asked == nil {
		return
	}
	for _, m := range v.Asked.Members {
		if slices.Contains(event.GuardMembers(), m.Column()) {
			continue
		}
		isShown := slices.ContainsFunc(v.Shown, func(s wire.Shown) bool { return s.Path == m.Column() })
		if len(v.Facts) < maxFacts && !isShown {
			v.Facts = append(v.Facts, m.Shorten(maxFactText))
		}
	}
}

// readPast counts the acts of the agent with the tool. Approvers decide without the counts too.
func (v *approvalView) readPast(r *page.Request) {
	query := url.Values{"agent_id": {string(v.Agent)}, "tool": {string(v.Tool)}, "from": {daysBefore(time.Now().UTC(), pastDays)}}
	found, err := visitOf(r).Console.CountActs(r.Context(), visitOf(r).caller, query)
	if err != nil {
		return
	}
	v.Past = newPast(found)
	v.Past.rank(r, query, v.amount())
	query.Del("agent_id")
	query.Set("agent", string(v.Agent)) // as the page of acts names it
	v.Past.URL = r.Address(activityPage) + "?" + query.Encode()
}

// amount returns the member with the amount that is asked for: the first column that is one. It returns nil if there is none.
func (v *approvalView) amount() *page.Member {
	at := slices.IndexFunc(v.Shown, func(s wire.Shown) bool { return s.Amount })
	if at < 0 || v.Asked == nil {
		return nil
	}
	for i := range v.Asked.Members {
		if m := &v.Asked.Members[i]; m.Column() == v.Shown[at].Path {
			return m
		}
	}
	return nil
}

// rank compares an amount with those of the counted acts, which the query selects. They cannot be compared if the reader's role does not
// read payloads, or the latest values are not indexed yet.
func (p *past) rank(r *page.Request, query url.Values, amount *page.Member) {
	if amount == nil {
		return
	}
	count := func(operator string) (uint64, error) {
		compared := maps.Clone(query)
		compared.Set("column", amount.Column()+operator+amount.Value)
		found, err := visitOf(r).Console.CountActs(r.Context(), visitOf(r).caller, compared)
		return found.Acts, err
	}
	higher, err := count(">")
	if err != nil {
		return
	}
	if others, err := count("<="); err == nil && higher+others > 1 { // one may be the act that asks
		p.Amounts, p.Higher = higher+others, higher
	}
}

// newPast returns the counts with their bars.
func newPast(found wire.Stats) *past {
	drawn := &past{Acts: found.Acts}
	before := uint64(0)
	for outcome, n := range found.Outcomes.All() {
		if n == 0 {
			continue
		}
		o := outcomeCount{Outcome: outcome, Fill: fillOf(outcome), Acts: n}
		share := 100 / float64(found.Acts)
		o.X, o.Width = fmt.Sprintf("%.1f", float64(before)*share), fmt.Sprintf("%.1f", max(0.2, float64(o.Acts)*share-0.4))
		before += o.Acts
		drawn.Outcomes = append(drawn.Outcomes, o)
	}
	return drawn
}

// readRule returns the rule that required the approval, in its version of the policy, or nil if it is gone.
func readRule(r *page.Request, p wire.AppliedPolicy) (*appliedRule, error) {
	var rules []appliedRule
	query := url.Values{"version": {strconv.FormatUint(p.Version, 10)}}
	found, err := visitOf(r).Console.ShowPolicy(r.Context(), visitOf(r).caller, p.ID, query)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := decode(found.Rules, &rules); err != nil {
		return nil, err
	}
	for i := range rules {
		if rules[i].ID == p.Rule {
			rules[i].PolicyName = found.Name
			return &rules[i], nil
		}
	}
	return nil, nil
}

// readHistory reads the latest events of the agent and of the trace.
func (v *approvalView) readHistory(r *page.Request) (err error) {
	own := url.Values{"q": {v.ID}, "action_kind": {"ledger_approval"}, "from": {v.CreatedAt.String()}}
	v.OwnURL = r.Address("/console/events") + "?" + own.Encode()
	v.AgentURL = eventsOf(r, "agent_id", string(v.Agent))
	if v.AgentEvents, err = readEvents(r, "agent_id", string(v.Agent)); err != nil || v.Trace == "" {
		return err
	}
	if v.TraceEvents, err = readEvents(r, "trace_id", string(v.Trace)); len(v.TraceEvents) > 0 {
		v.TraceURL = r.Address("/console/traces", string(v.Trace)) // a trace without events has no page
	}
	return err
}

func readEvents(r *page.Request, name, value string) ([]wire.ListedEvent, error) {
	list, err := visitOf(r).Console.ListEvents(r.Context(), visitOf(r).caller, url.Values{name: {value}, "limit": {maxHistory}})
	return list.Events, err
}

// vote casts an unsigned vote. The name of the button is the vote.
func (p *pages) vote(r *page.Request) (page.Outcome, error) {
	return castVote(r, api.Ballot{Vote: r.Value("do")})
}

// signVote casts an approving vote with the signature that the page's script put into the form.
func (p *pages) signVote(r *page.Request) (page.Outcome, error) {
	text := r.Value("assertion")
	if text == "" {
		return page.Outcome{}, fault.New(fault.Invalid, "Your vote was not sent, because no passkey signed it: "+
			"signing needs JavaScript and a browser with passkeys")
	}
	if !jsontext.Value(text).IsValid() {
		return page.Outcome{}, fault.New(fault.Invalid, "The signature can't be read")
	}
	ballot := api.Ballot{Vote: "approve"}
	if err := edge.DecodeStrict([]byte(`{"assertion":`+text+`}`), &ballot); err != nil {
		return page.Outcome{}, err
	}
	return castVote(r, ballot)
}

func castVote(r *page.Request, ballot api.Ballot) (page.Outcome, error) {
	ballot.Comment, ballot.ReasonCode = r.Value("comment"), r.Value("reason_code")
	if err := edge.ParseMember("action_digest", r.Value("action_digest"), &ballot.ActionDigest); err != nil {
		return page.Outcome{}, err
	}
	v, name := visitOf(r), r.PathParameter("approval")
	_, err := v.Console.Vote(r.Context(), v.caller, name, ballot)
	return page.GoTo(r.Address("/console/approvals", name), "voted"), err
}

// takeBack revokes an approval that the reader has just approved. The statement says so, so nobody else may make it.
func (p *pages) takeBack(r *page.Request) (page.Outcome, error) {
	v, name := visitOf(r), r.PathParameter("approval")
	shown, err := v.Console.ShowApproval(r.Context(), v.caller, name)
	if err == nil && shown.TakeBack == 0 {
		err = fault.New(fault.Conflict, "You can no longer take your vote back: revoke the approval if it was not used")
	}
	if err == nil {
		_, err = v.Console.RevokeApproval(r.Context(), v.caller, name, api.Revocation{ReasonCode: "taken_back"})
	}
	return page.GoTo(r.Address("/console/approvals", name), "taken-back"), err
}

func (p *pages) revoke(r *page.Request) (page.Outcome, error) {
	v, name := visitOf(r), r.PathParameter("approval")
	_, err := v.Console.RevokeApproval(r.Context(), v.caller, name,
		api.Revocation{Reason: r.Value("reason"), ReasonCode: r.Value("revoke_code")})
	return page.GoTo(r.Address("/console/approvals", name), "approval-revoked"), err
}
