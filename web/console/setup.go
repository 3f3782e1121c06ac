package console

import (
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/web/page"
)

// setUp creates the first organization, and shows its secrets once. Its owner is signed in.
func (p *pages) setUp(r *page.Request) (page.Outcome, error) {
	passkey, err := newPasskey(r, "First passkey")
	if err != nil {
		return page.Outcome{}, err
	}
	made, err := visitOf(r).Identity.SetUp(r.Context(), visitOf(r).person, identity.Founder{Token: r.Value("token"),
		Organization: newOrganization(r), Email: r.Value("email"), Password: r.Form.Get("password"), Passkey: passkey})
	if err != nil {
		return page.Outcome{}, err
	}
	return p.showFounded(made), nil
}
