package console

import (
	"strings"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/slack"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/slacklink"
	"github.com/agentledger/agentledger/web/page"
)

const slackPage = "/account/slack"

// slackView is the content of the page of the user's links to Slack. If it was opened by a link from Slack, it asks whether to
// accept the offer. A link works only in a window that the user opened on the page before.
type slackView struct {
	Organization string
	Email        string
	Offer        slacklink.Offer
	Text         string     // of the offer; "" if there is none
	Closed       bool       // the offer was made while the user's window was closed
	Until        id.Instant // when the window closes; 0 if it is closed
	SlackLinks   []slacklink.Link
	MayVote      bool
}

func (p *pages) showSlack(r *page.Request) (any, error) {
	v := visitOf(r)
	links, err := v.Console.ListSlackLinks(r.Context(), v.caller, account.ID(r.Person.Account.ID))
	if err != nil {
		return nil, err
	}
	view := slackView{Organization: r.Person.Organization.Name, Email: r.Person.Account.Email, SlackLinks: links, MayVote: r.Person.May("vote")}
	if view.Until, err = v.Console.SlackWindow(r.Context(), v.caller); err != nil {
		return nil, err
	}
	if view.Text = r.URL.Query().Get("offer"); view.Text == "" {
		return view, nil
	}
	if view.Offer, err = v.Console.ShowSlackOffer(r.Context(), v.caller, view.Text); err == nil {
		return view, nil
	}
	view.Text = ""
	if fault.Of(err).Code == slacklink.CodeClosed {
		view.Closed = true
		return view, nil
	}
	return view, r.Correctable(err)
}

// openSlackWindow lets the user accept the offer of a link in this session, for a time.
func (p *pages) openSlackWindow(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	return page.GoTo(r.Address(slackPage), ""), v.changeOrganization(r, func() error { return v.Console.OpenSlackWindow(r.Context(), v.caller) })
}

func (p *pages) acceptSlackOffer(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	err := v.changeOrganization(r, func() error { return v.Console.AcceptSlackOffer(r.Context(), v.caller, r.Value("offer")) })
	return page.GoTo(r.Address(slackPage), "slack-linked"), err
}

// slackUser returns the user of Slack that a form names.
func slackUser(r *page.Request) slack.User {
	team, user, _ := strings.Cut(r.Value("slack_user"), "/")
	return slack.User{Team: team, ID: user}
}

func (p *pages) removeSlackLink(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	err := v.changeOrganization(r, func() error {
		return v.Console.RemoveSlackLink(r.Context(), v.caller, account.ID(r.Person.Account.ID), slackUser(r))
	})
	return page.GoTo(r.Address(slackPage), "slack-unlinked"), err
}

// removeSlackLinkOfMember removes a link of the member on the page.
func (p *pages) removeSlackLinkOfMember(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	m, err := findMember(r)
	if err != nil {
		return page.Outcome{}, err
	}
	err = v.Console.RemoveSlackLink(r.Context(), v.caller, account.ID(m.AccountID), slackUser(r))
	return page.GoTo(r.Address(membersPage, m.MembershipID), "slack-unlinked"), err
}

// setSlackSecret lets linked users of Slack vote in the messages of the endpoint on the page.
func (p *pages) setSlackSecret(r *page.Request) (page.Outcome, error) {
	return changeEndpoint(r, "saved", api.EndpointPatch{NewEndpoint: api.NewEndpoint{SlackSecret: new(r.Value("slack_signing_secret"))}})
}

func (p *pages) removeSlackSecret(r *page.Request) (page.Outcome, error) {
	return changeEndpoint(r, "saved", api.EndpointPatch{NewEndpoint: api.NewEndpoint{SlackSecret: new("")}})
}
