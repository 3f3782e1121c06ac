package console

import (
	"context"
	"net/url"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/wire"
)

func (s *Server) listDeputies(r *request) (answer, error) {
	return okAnswer(s.ListDeputies(r.Context(), r.Caller, r.URL.Query()))
}

// ListDeputies returns a page of the deputies that vote in place of members now, will do so, or could but for their state.
func (s *Server) ListDeputies(ctx context.Context, c *Caller, query url.Values) (wire.Deputies, error) {
	var body wire.Deputies
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return body, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	all, err := s.Members.Deputies(ctx, c.Who.Tenant)
	if err != nil {
		return body, err
	}
	found := make([]wire.Deputy, 0, min(len(all), p.Limit+1))
	for i := range all {
		if string(all[i].Person) <= p.After || len(found) > p.Limit {
			continue
		}
		one, err := s.describeDeputy(ctx, c, &all[i])
		if err != nil {
			return body, err
		}
		found = append(found, one)
	}
	body.Deputies, body.Next = edge.CutPage(p, found, func(d wire.Deputy) string { return d.AccountID },
		func(d wire.Deputy) wire.Deputy { return d })
	return body, nil
}

func (s *Server) describeDeputy(ctx context.Context, c *Caller, d *member.Deputyship) (wire.Deputy, error) {
	of, err := s.Members.Accounts.Membership(ctx, c.Who.Tenant, d.Person)
	if err != nil {
		return wire.Deputy{}, err
	}
	person, err := s.Members.Accounts.ByID(ctx, d.Person)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return wire.Deputy{}, err
	}
	deputy, err := s.Members.Accounts.ByID(ctx, d.Deputy)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return wire.Deputy{}, err
	}
	return wire.Deputy{MembershipID: of.ID, AccountID: string(d.Person), Email: person.Email, DeputyAccountID: string(d.Deputy),
		DeputyEmail: deputy.Email, From: d.From, Until: d.Until, State: string(d.State)}, nil
}

// NewDeputy is the wish for a deputy, who is a member with another membership. From is now if it is zero.
type NewDeputy struct {
	Deputy string    `json:"deputy_membership_id"`
	From   time.Time `json:"from"`
	Until  time.Time `json:"until"`
}

func (s *Server) putDeputy(r *request) (answer, error) {
	var wanted NewDeputy
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	return okAnswer(s.NameDeputy(r.Context(), r.Caller, r.PathParameter("membership"), wanted))
}

// NameDeputy gives the caller, whose membership it must be, a deputy in place of an earlier one.
func (s *Server) NameDeputy(ctx context.Context, c *Caller, membership string, wanted NewDeputy) (wire.Deputy, error) {
	if err := s.surface.check(ctx, c, account.Vote); err != nil {
		return wire.Deputy{}, err
	}
	if membership != c.Who.MembershipID {
		return wire.Deputy{}, fault.New(fault.Invalid, "The membership must be yours: you can name only your own deputy")
	}
	if err := s.Approvals.CheckHold(ctx, c.Who.Tenant, c.Who.Account); err != nil { // a deputy must not evade the hold
		return wire.Deputy{}, err
	}
	deputy := member.NewDeputy{Membership: wanted.Deputy, Until: id.InstantOf(wanted.Until)}
	if !wanted.From.IsZero() {
		deputy.From = id.InstantOf(wanted.From)
	}
	named, err := s.Members.NameDeputy(ctx, c.Who.Tenant, c.Who, deputy)
	if err != nil {
		return wire.Deputy{}, err
	}
	return s.describeDeputy(ctx, c, &named)
}

func (s *Server) deleteDeputy(r *request) (answer, error) {
	return noContent(s.EndDeputy(r.Context(), r.Caller, r.PathParameter("membership")))
}

// EndDeputy ends the deputy of a member: the caller, the member whose deputy the caller is, or any member if the caller may
// change members. It needs no role that votes, because a deputy has none, and nobody but a deputy whose period runs has the
// permissions of one. Console tokens may not.
func (s *Server) EndDeputy(ctx context.Context, c *Caller, membership string) error {
	if err := s.surface.check(ctx, c, account.Leave); err != nil {
		return err
	}
	return s.Members.EndDeputy(ctx, c.Who.Tenant, c.Who, membership)
}
