package console

import (
	"net/url"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// deputyship is a deputy of a member.
type deputyship struct{ wire.Deputy }

// Active reports whether the deputy votes now.
func (d deputyship) Active() bool { return d.State == "active" }

// Rests explains why the deputyship has no effect, or returns "".
func (d deputyship) Rests() string { return deputyWords(d.State) }

// readDeputies returns all deputies of the reader's organization. There are at most as many as members.
func readDeputies(r *page.Request) ([]deputyship, error) {
	found, err := visitOf(r).Console.ListDeputies(r.Context(), visitOf(r).caller, url.Values{"limit": {mostMembers}})
	all := make([]deputyship, len(found.Deputies))
	for i, d := range found.Deputies {
		all[i] = deputyship{d}
	}
	return all, err
}

// ownDeputies are the deputy of the reader, and the members in whose place the reader votes, now or later.
type ownDeputies struct {
	May        bool // the reader's role votes, and so the reader may name a deputy
	Deputy     *deputyship
	Represents []deputyship
	Others     []page.Option // who can be the deputy
}

// readOwnDeputies reads what the account page shows of deputies.
func readOwnDeputies(r *page.Request) (v ownDeputies, err error) {
	own := r.Person.User.MembershipID
	v.May = account.Role(r.Person.User.Role).May(account.Vote)
	all, err := readDeputies(r)
	if fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Unavailable) { // an account can be changed without its organization
		return ownDeputies{}, nil
	}
	if err != nil {
		return v, err
	}
	for i := range all {
		if all[i].MembershipID == own {
			v.Deputy = &all[i]
		}
		if all[i].DeputyAccountID == r.Person.Account.ID {
			v.Represents = append(v.Represents, all[i])
		}
	}
	if !v.May {
		return v, nil
	}
	found, err := visitOf(r).Identity.ListMembers(r.Context(), visitOf(r).person, url.Values{"limit": {mostMembers}})
	for _, m := range found.Members {
		if m.MembershipID != own && !m.Suspended && !m.Offered && !account.Role(m.Role).May(account.Vote) {
			v.Others = append(v.Others, page.Option{Value: m.MembershipID, Title: member{m}.Name()})
		}
	}
	return v, err
}

func (p *pages) nameDeputy(r *page.Request) (page.Outcome, error) {
	wanted := api.NewDeputy{Deputy: r.Value("deputy")}
	if at := r.Value("from"); at != "" {
		if err := edge.ParseMember("from", at+":00Z", &wanted.From); err != nil {
			return page.Outcome{}, err
		}
	}
	if err := edge.ParseMember("until", r.Value("until")+":00Z", &wanted.Until); err != nil {
		return page.Outcome{}, err
	}
	_, err := visitOf(r).Console.NameDeputy(r.Context(), visitOf(r).caller, r.Person.User.MembershipID, wanted)
	return page.GoTo(r.Address("/account"), "deputy-named"), err
}

// endDeputy ends the deputy of the member with the membership in the form.
func (p *pages) endDeputy(r *page.Request) (page.Outcome, error) {
	err := visitOf(r).Console.EndDeputy(r.Context(), visitOf(r).caller, r.Value("membership"))
	return page.GoTo(r.Address("/account"), "deputy-ended"), err
}

// endDeputyOfMember ends the deputy of the member on the page.
func (p *pages) endDeputyOfMember(r *page.Request) (page.Outcome, error) {
	name := r.PathParameter("membership")
	err := visitOf(r).Console.EndDeputy(r.Context(), visitOf(r).caller, name)
	return page.GoTo(r.Address(membersPage, name), "deputy-ended"), err
}
