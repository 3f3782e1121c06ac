package console

import (
	"cmp"
	"context"
	"html/template"
	"net/url"
	"strconv"
	"time"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// sharedView is the content of the page that the holder of a link reads.
type sharedView struct {
	*api.Shared
	Numbers       *numbers // nil on pages after the first, and if the acts can't be counted now
	Heads         []actHead
	Days          []actDay
	First, Older  string // addresses of other pages of the list
	CSV           string
	Found, IsPast bool   // IsPast: a page after the first
	IsLost        bool   // it selects by a column that was removed
	LogURL        string // of the public log
}

// sharedURL returns the address of a page of a link.
func sharedURL(r *page.Request, parts ...string) string {
	return r.Address("/share", append([]string{r.PathParameter("secret")}, parts...)...)
}

func (p *pages) showShared(r *page.Request) (content any, err error) {
	err = visitOf(r).Console.ReadShared(r.Request, r.PathParameter("secret"), func(ctx context.Context, of *api.Shared) error {
		content, err = readShared(ctx, r, of)
		return err
	})
	return content, err
}

func readShared(ctx context.Context, r *page.Request, of *api.Shared) (v *sharedView, err error) {
	v = &sharedView{Shared: of, CSV: sharedURL(r, "acts.csv"), LogURL: r.Address("/log", string(of.Slug)), IsPast: r.Query("after") != ""}
	r.Title = viewWords(of.Query, of.Agent, of.Approver)
	if v.IsLost, err = of.IsLost(ctx); v.IsLost || err != nil {
		return v, err
	}
	found, err := of.Acts(ctx, r.Query("after"), actsOnPage)
	if err = r.Correctable(err); err != nil {
		return nil, err
	}
	if v.IsPast {
		v.First = sharedURL(r)
	} else if v.Numbers, err = countShared(ctx, of); err != nil {
		return nil, err
	}
	v.Older, v.Found = r.NextPage(found.Next), len(found.Acts) > 0
	v.Heads = newHeads(found.Columns, found.Acts)
	v.Days = groupActs(found.Acts, time.Time{}, func(a *wire.Act) act { return describeShared(r, a, v.Heads) })
	return v, nil
}

// countShared returns the view in numbers, or nil if the acts can't be counted now.
func countShared(ctx context.Context, of *api.Shared) (*numbers, error) {
	counts, err := of.Count(ctx)
	if fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Invalid) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := &numbers{Acts: counts.Acts}
	for outcome, n := range counts.Outcomes.All() {
		if n > 0 {
			found.Parts = append(found.Parts, outcomePart{Outcome: outcome, Words: groupNumber(strconv.FormatUint(n, 10)) + " " + outcome})
		}
	}
	return found, nil
}

// describeShared returns an act as a row, without links into the console.
func describeShared(r *page.Request, of *wire.Act, heads []actHead) act {
	a := act{Act: *of, Clock: sharedClock(of.ReceivedAt), URL: sharedURL(r, "acts", string(of.ID)),
		AgentName: sharedAgent(of), Decider: decider(of, nil)}
	a.Cells = newCells(of, heads)
	return a
}

func sharedAgent(of *wire.Act) page.Name {
	return page.Name{Text: cmp.Or(string(of.AgentName), string(of.Agent))}
}

// sharedActView is the content of the page of an act of a shared view.
type sharedActView struct {
	actView
	Organization string
	ExpiresAt    id.Instant // of the link
	Members      []sharedMember
	Entry        string // address of the public page
}

// sharedMember is a column of an act.
type sharedMember struct{ Path, Text string }

func (p *pages) showSharedAct(r *page.Request) (content any, err error) {
	err = visitOf(r).Console.ReadShared(r.Request, r.PathParameter("secret"), func(ctx context.Context, of *api.Shared) error {
		found, err := of.Act(ctx, r.PathParameter("act"))
		if err != nil {
			return err
		}
		columns, err := of.Columns(ctx)
		content = describeSharedAct(r, of, found, columns)
		return err
	})
	return content, err
}

func describeSharedAct(r *page.Request, of *api.Shared, found wire.Act, columns []string) *sharedActView {
	v := &sharedActView{Organization: of.Organization, ExpiresAt: of.ExpiresAt, actView: actView{Act: found, AgentName: sharedAgent(&found), Origin: of.Origin,
		ListURL: sharedURL(r), Checks: page.EventChecks()}}
	v.PublicURL = r.Address("/v1/public/orgs", string(of.Slug), "verify", string(found.ID))
	v.Transparency = r.Address("/v1/public/orgs", string(of.Slug), "transparency")
	v.PublicQuery = template.URL(url.Values{"origin": {string(of.Origin)}}.Encode())
	v.Entry = v.PublicURL + "?" + string(v.PublicQuery)
	for _, path := range columns {
		c := newCell(&found, path)
		v.Members = append(v.Members, sharedMember{path, cmp.Or(c.Text, c.Exact, "–")})
	}
	v.tellShared()
	r.Title = v.addValues(v.title(), columns)
	return v
}

// tellShared tells what happened, from what the list knows: votes have no times and no comments.
func (v *sharedActView) tellShared() {
	asked := storyLine{At: v.ReceivedAt, Who: v.AgentName, Words: "asked to run", Object: string(v.Tool)}
	if v.Result == nil && v.Decision != id.AllowWithObligation && v.Outcome == "done" {
		asked.Words = "recorded a call of"
	}
	v.Story = append(v.Story, asked)
	if v.Version != 0 {
		decided := storyLine{At: v.ReceivedAt, Words: "The policy", Then: "required an approval", State: "is-wait"}
		if v.Rule != "" && v.Rule != "default" {
			decided.Words, decided.Object = "Rule", string(v.Rule)
		}
		switch v.Decision {
		case id.Deny:
			decided.Then, decided.State = "denied it", "is-bad"
		case id.Allow:
			decided.Then, decided.State = "allowed it", ""
		}
		v.Story = append(v.Story, decided)
	}
	for _, vote := range v.Votes {
		line := storyLine{Who: page.Name{Text: string(vote.Name)}, Words: "approved", State: "is-good"}
		if vote.Vote != "approve" {
			line.Words, line.State = "refused", "is-bad"
		}
		v.Story = append(v.Story, line)
	}
	ended := map[string]storyLine{
		"done":      {Who: v.AgentName, Words: "recorded that it is done", State: "is-good"},
		"failed":    {Who: v.AgentName, Words: "recorded that it failed", State: "is-bad"},
		"unknown":   {Who: v.AgentName, Words: "recorded a result that is not known"},
		"waiting":   {Words: "It waits for votes", State: "is-wait"},
		"expired":   {Words: "The approval expired"},
		"cancelled": {Words: "It was cancelled"},
	}[v.Outcome]
	if ended.Words != "" && !(v.Outcome == "done" && v.Result == nil) {
		v.Story = append(v.Story, ended)
	}
}
