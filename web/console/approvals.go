package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/web/page"
)

func (p *pages) approvalScreens() []page.Screen {
	return []page.Screen{
		{Pattern: "/console/approvals", Query: []string{"list", "status", "agent_id", "tool", "after"},
			Views: p.views, Name: "inbox", Title: "Approvals", Show: p.showInbox,
			Script: "inbox.js", Modules: []string{"inbox.js", "live.js", "times.js"}},
		{Pattern: "/console/approvals/{approval}", Views: p.views, Name: "approval", Show: p.showApproval,
			Script: "approvalpage.js", Modules: []string{"approvalpage.js", "live.js", "passkey.js", "signing.js", "times.js"}, Forms: map[string]page.Form{
				"approve": p.vote, "sign": p.signVote, "deny": p.vote, "revoke": p.revoke, "take-back": p.takeBack}},
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

// Amount returns the amount of money that the first column shows, or "".
func (a *approval) Amount() string {
	if len(a.Shown) > 0 && a.Shown[0].Amount {
		return a.Shown[0].Text
	}
	return ""
}

// Because returns the reason of the rule, or "" if its author wrote none.
func (a *approval) Because() string { return policy.WrittenReason(a.Policy.Rule, a.Policy.Reason) }

// Lead returns the value of the first column in words, or "" if there is none.
func (a *approval) Lead() string {
	if len(a.Shown) == 0 {
		return ""
	}
	return strings.TrimSpace(a.Shown[0].Label + " " + a.Shown[0].Text)
}

// Others returns the values of the next two columns.
func (a *approval) Others() []wire.Shown {
	if len(a.Shown) == 0 {
		return nil
	}
	return a.Shown[1:min(3, len(a.Shown))]
}

// Needs returns how many approving votes are still needed, in words.
func (a *approval) Needs() string {
	switch missing := a.Quorum - a.Agreed(); {
	case missing == 1 && a.Quorum > 1:
		return "1 more approval needed"
	case a.Agreed() > 0:
		return fmt.Sprintf("%d more approvals needed", missing)
	case missing == 1:
		return "1 approval needed"
	default:
		return fmt.Sprintf("%d approvals needed", missing)
	}
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
