package console

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/web/page"
	"github.com/agentledger/agentledger/web/screen"
)

func (p *pages) approvalScreens() []screen.Screen {
	return []screen.Screen{
		{Pattern: "/console/approvals", Query: []string{"mine", "status", "agent_id", "tool", "after"},
			Views: p.views, Name: "inbox", Title: "Approvals", Show: p.showInbox,
			Script: page.LiveScript, Modules: page.LiveModules()},
		{Pattern: "/console/approvals/{approval}", Views: p.views, Name: "approval", Show: p.showApproval,
			Script: "approvalpage.js", Modules: []string{"approvalpage.js", "live.js", "passkey.js", "signing.js", "times.js"}, Forms: map[string]screen.Form{
				"approve": p.vote, "sign": p.signVote, "deny": p.vote, "revoke": p.revoke}},
	}
}

const approvalCalls = "/v1/console/approvals"

// approval is an approval as the interface shows it.
type approval struct {
	ID           string         `json:"approval_id"`
	Status       string         `json:"status"`
	Agent        string         `json:"agent_id"`
	Tool         string         `json:"tool_name"`
	Payload      jsontext.Value `json:"payload"`
	ActionDigest string         `json:"action_digest"`
	Trace        string         `json:"trace_id"`
	Principal    string         `json:"actor_principal"`
	IngestKey    string         `json:"ingest_key_id"`
	Policy       appliedPolicy  `json:"policy"`
	Quorum       int            `json:"quorum"`
	Signed       bool           `json:"signed"` // approving votes have to be signed
	Votes        []vote         `json:"votes"`
	CreatedAt    string         `json:"created_at"`
	ExpiresAt    string         `json:"expires_at"`
	EndedAt      string         `json:"ended_at"`
	ErasedAt     string         `json:"erased_at"`
	Comment      string         `json:"comment"`
	ReasonCode   string         `json:"reason_code"`
	MayVote      bool           `json:"may_vote"`
	WhyNot       string         `json:"why_not"`

	SignIns []signInChange `json:"sign_in_changes"`

	Left string `json:"-"` // the time until it ends, in words; "" when it is over
}

type appliedPolicy struct {
	ID      string `json:"policy_id"`
	Version uint64 `json:"policy_version"`
	Rule    string `json:"rule_id"`
	Reason  string `json:"reason"`
}

type vote struct {
	Account string `json:"account"`
	Email   string `json:"email"`
	Vote    string `json:"vote"`
	Comment string `json:"comment"`
	Code    string `json:"reason_code"`
	At      string `json:"at"`

	Signature *voteSignature `json:"signature"` // nil: only the operator claims that the account cast it
}

// voteSignature names the passkey that signed a vote.
type voteSignature struct {
	Thumbprint   string `json:"thumbprint"`
	RegisteredAt string `json:"key_registered_at"` // "" if it is not known here
}

// Registered returns the day on which the passkey that signed the vote was registered.
func (v vote) Registered() string {
	day, _, _ := strings.Cut(v.Signature.RegisteredAt, "T")
	return day
}

// SignedVotes returns the votes that the approvers' passkeys signed.
func (a *approval) SignedVotes() (signed []vote) {
	for _, v := range a.Votes {
		if v.Signature != nil {
			signed = append(signed, v)
		}
	}
	return signed
}

// Unsigned returns the number of votes that only the operator claims.
func (a *approval) Unsigned() int { return len(a.Votes) - len(a.SignedVotes()) }

// Open reports whether the approval waits, or was given and not used yet.
func (a *approval) Open() bool { return a.Status == "pending" || a.Status == "approved" }

// Agreed returns how many people said yes.
func (a *approval) Agreed() (n int) {
	for _, v := range a.Votes {
		if v.Vote == "approve" {
			n++
		}
	}
	return n
}

// findNewest returns the log index of the newest event, "" for a log without events.
func findNewest(r *screen.Request) (string, error) {
	var reach struct {
		IndexedTo uint64 `json:"indexed_to"`
	}
	query := r.ListQuery()
	query.Del("after")
	query.Set("limit", "1")
	if err := r.Read("/v1/console/events", query, &reach); err != nil || reach.IndexedTo == 0 {
		return "", err
	}
	return strconv.FormatUint(reach.IndexedTo-1, 10), nil
}

// follow returns the rules by which a page follows the events about approvals. It looks for the newest event before the
// page reads anything else, so that no change is missed. Times that are left are told anew each minute.
func follow(r *screen.Request) (*page.Live, error) {
	newest, err := findNewest(r)
	return &page.Live{Follow: r.Address("/v1/console/events?signer=system&action_kind=ledger_approval"), After: newest,
		Every: 60}, err
}
