package console

import (
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	api "github.com/agentledger/agentledger/console"
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
	Rule      *appliedRule  // the rule in the policy; nil if the policy is gone
	Asked     *page.Payload // nil if it is erased or the reader may not see it
	HidesIt   bool          // the reader's role may not see payloads
	MayRevoke bool
	HasKey    bool   // one of the reader's passkeys signs votes in this organization
	KeysURL   string // page that registers one and returns here

	AgentEvents, TraceEvents []wire.Event // the latest ones
	AgentURL, TraceURL       string       // the complete lists
	OwnURL                   string       // the events about this approval
}

// appliedRule is a rule of a policy.
type appliedRule struct {
	ID          string   `json:"rule_id"`
	Tool        string   `json:"tool"`
	Agents      []string `json:"agents"`
	When        string   `json:"when"`
	Obligations []struct {
		Approvals  int `json:"approvals"`
		TTLSeconds int `json:"ttl_seconds"`
	} `json:"obligations"`
	PolicyName string `json:"-"`
}

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
	v.Approval, v.SignIns = found.Approval, describeSignIns(found.SignIns)
	r.Title = "Approval of " + string(v.Tool)
	if v.Open() {
		v.Left = leftWords(v.ExpiresAt, time.Now())
		v.MayRevoke = r.Person.May("vote")
	} else {
		v.Live.Every = 0
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
	v.Asked = page.NewPayload(v.Payload)
	v.HidesIt = v.Asked == nil && v.ErasedAt == 0 && !r.Person.May("read approvals' payloads")
	if v.Rule, err = readRule(r, v.Policy); err != nil {
		return nil, err
	}
	return v, v.readHistory(r)
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

func readEvents(r *page.Request, name, value string) ([]wire.Event, error) {
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
		return page.Outcome{}, fault.New(fault.Invalid, "Your vote was not sent, because no passkey signed it. "+
			"That needs JavaScript and a browser with passkeys")
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

func (p *pages) revoke(r *page.Request) (page.Outcome, error) {
	v, name := visitOf(r), r.PathParameter("approval")
	_, err := v.Console.RevokeApproval(r.Context(), v.caller, name,
		api.Revocation{Reason: r.Value("reason"), ReasonCode: r.Value("revoke_code")})
	return page.GoTo(r.Address("/console/approvals", name), "approval-revoked"), err
}
