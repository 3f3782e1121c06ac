package console

import (
	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const tokensPage = settingsPage + "/tokens"

func (p *pages) tokenScreens() []page.Screen {
	return []page.Screen{
		{Pattern: tokensPage, Query: []string{"after"},
			Views: p.views, Name: "tokens", Title: "Your tokens", Show: p.listTokens,
			Forms: map[string]page.Form{"create": p.createToken, "delete": p.deleteToken}},
	}
}

// tokensView is the content of the list.
type tokensView struct {
	Tokens []wire.Token
	Next   string // address of the next page
	Roles  []page.Option
}

func (p *pages) listTokens(r *page.Request) (any, error) {
	var found wire.Tokens
	found, err := visitOf(r).Console.ListTokens(r.Context(), visitOf(r).caller, r.PageQuery())
	return tokensView{found.Tokens, r.NextPage(found.Next), tokenRoles(r.Person.User.Role)}, err
}

// tokenRoles returns the roles that a user may give to a token, the role with the fewest permissions first.
func tokenRoles(own string) []page.Option {
	roles := []page.Option{{Value: "member", Title: "member"}, {Value: "auditor", Title: "auditor"},
		{Value: "approver", Title: "approver"}, {Value: "policy_editor", Title: "policy editor"},
		{Value: "admin", Title: "admin"}}
	if own == "owner" || own == "admin" {
		return roles
	}
	may := roles[:1:1]
	for _, role := range roles[1:] {
		if role.Value == own {
			may = append(may, role)
		}
	}
	return may
}

// madeToken is the content of the page that follows the creation of a token.
type madeToken struct {
	wire.CreatedToken
	PublicURL string
}

func (p *pages) createToken(r *page.Request) (page.Outcome, error) {
	wanted := api.NewToken{Name: r.Value("name"), Role: account.Role(r.Value("role"))}
	if err := edge.ParseMember("expires_at", r.Value("expires_at")+":00Z", &wanted.ExpiresAt); err != nil {
		return page.Outcome{}, err
	}
	v := visitOf(r)
	made, err := v.Console.CreateToken(r.Context(), v.caller, wanted)
	if err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "newtoken", "The new token", madeToken{made, r.Kit.Public}), nil
}

func (p *pages) deleteToken(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	err := v.Console.DeleteToken(r.Context(), v.caller, r.Value("token_id"))
	return page.GoTo(r.Address(tokensPage), "token-deleted"), err
}
