package console

import (
	"strconv"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
	"time"
)

func (p *pages) approvalScreens() []page.Screen {
	return []page.Screen{
		{Pattern: "/console/approvals", Query: []string{"mine", "status", "agent_id", "tool", "after"},
			Views: p.views, Name: "inbox", Title: "Approvals", Show: p.showInbox,
			Script: page.LiveScript, Modules: page.LiveModules()},
		{Pattern: "/console/approvals/{approval}", Views: p.views, Name: "approval", Show: p.showApproval,
			Script: "approvalpage.js", Modules: []string{"approvalpage.js", "live.js", "passkey.js", "signing.js", "times.js"}, Forms: map[string]page.Form{
				"approve": p.vote, "sign": p.signVote, "deny": p.vote, "revoke": p.revoke}},
	}
}

// approval is an approval on a page.
type approval struct {
	wire.Approval
	Left string // time until it expires, in words; "" if it has expired
}

// describeApprovals returns approvals with the time until they expire.
func describeApprovals(list []wire.Approval) []approval {
	now, shown := time.Now(), make([]approval, len(list))
	for i := range list {
		if shown[i].Approval = list[i]; list[i].Open() {
			shown[i].Left = leftWords(list[i].ExpiresAt, now)
		}
	}
	return shown
}

// SignedVotes returns the votes that are signed by the approvers' passkeys.
func (a *approval) SignedVotes() (signed []vote) {
	for _, v := range a.Votes {
		if v.Signature != nil {
			signed = append(signed, vote{v})
		}
	}
	return signed
}

// vote is a signed vote on a page.
type vote struct{ wire.Vote }

// Registered returns the day on which the passkey that signed the vote was registered.
func (v vote) Registered() string {
	if v.Signature.RegisteredAt == 0 {
		return ""
	}
	return v.Signature.RegisteredAt.Time().Format(time.DateOnly)
}

// findNewest returns the log index of the latest event, or "" if the log is empty.
func findNewest(r *page.Request) (string, error) {
	query := r.ListQuery()
	query.Del("after")
	query.Set("limit", "1")
	reach, err := visitOf(r).Console.ListEvents(r.Context(), visitOf(r).caller, query)
	if err != nil || reach.IndexedTo == 0 {
		return "", err
	}
	return strconv.FormatUint(uint64(reach.IndexedTo-1), 10), nil
}

// follow returns the rules by which a page follows the events about approvals. It looks up the latest event before the
// page reads anything else, so that no change is missed. Remaining times are updated every minute.
func follow(r *page.Request) (*page.Live, error) {
	newest, err := findNewest(r)
	return &page.Live{Follow: r.Address("/v1/console/events?signer=system&action_kind=ledger_approval"), After: newest,
		Every: 60}, err
}
