package console

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/slack"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/slacklink"
)

// OpenSlackWindow lets the caller accept the offer of a link in this session, for a time.
func (s *Server) OpenSlackWindow(ctx context.Context, c *Caller) error {
	if err := s.surface.check(ctx, c, account.Vote); err != nil {
		return err
	}
	return s.SlackLinks.Open(ctx, c.Who.Tenant, c.Who)
}

// SlackWindow returns until when the caller may accept the offer of a link, or 0 for never.
func (s *Server) SlackWindow(ctx context.Context, c *Caller) (id.Instant, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return 0, err
	}
	return s.SlackLinks.OpenUntil(ctx, c.Who.Tenant, c.Who)
}

// ShowSlackOffer returns the offer of a link to a user of Slack that the caller may accept. It returns fault.Conflict with
// slacklink.CodeClosed if it was made before the caller opened a window.
func (s *Server) ShowSlackOffer(ctx context.Context, c *Caller, offer string) (slacklink.Offer, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return slacklink.Offer{}, err
	}
	organization, err := s.organizationID(ctx, c)
	if err != nil {
		return slacklink.Offer{}, err
	}
	return s.SlackLinks.ShowOffer(ctx, c.Who.Tenant, organization, c.Who, offer)
}

// AcceptSlackOffer links the caller to a user of Slack, whose votes count as the caller's from now on.
func (s *Server) AcceptSlackOffer(ctx context.Context, c *Caller, offer string) error {
	if err := s.surface.check(ctx, c, account.Vote); err != nil {
		return err
	}
	return s.SlackLinks.Accept(ctx, c.Who.Tenant, c.Who, offer)
}

// ListSlackLinks returns the users of Slack that a member is linked to. Members see their own, and those who may change
// members see all.
func (s *Server) ListSlackLinks(ctx context.Context, c *Caller, who account.ID) ([]slacklink.Link, error) {
	if err := s.checkSlackLinks(ctx, c, who); err != nil {
		return nil, err
	}
	return s.SlackLinks.List(ctx, c.Who.Tenant, who)
}

// RemoveSlackLink removes the link of a member to a user of Slack: the caller's own, or any if the caller may change members.
func (s *Server) RemoveSlackLink(ctx context.Context, c *Caller, who account.ID, u slack.User) error {
	if err := s.checkSlackLinks(ctx, c, who); err != nil {
		return err
	}
	return s.SlackLinks.Remove(ctx, c.Who.Tenant, c.Who.Account, who, u)
}

func (s *Server) checkSlackLinks(ctx context.Context, c *Caller, who account.ID) error {
	right := account.Read
	if who != c.Who.Account {
		right = account.ChangeMembers
	}
	if c.ByToken {
		return fault.New(fault.Forbidden, "Tokens can't do this: sign in")
	}
	return s.surface.check(ctx, c, right)
}
