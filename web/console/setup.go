package console

import (
	"net/http"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// setUp creates the first organization, and shows its secrets once. Its owner is signed in.
func (p *pages) setUp(r *page.Request) (page.Outcome, error) {
	passkey, err := r.Passkey("First passkey")
	if err != nil {
		return page.Outcome{}, err
	}
	body := struct {
		Token        string            `json:"token"`
		Organization map[string]string `json:"organization"`
		Email        string            `json:"email"`
		Password     string            `json:"password,omitzero"`
		Passkey      *page.Passkey     `json:"passkey,omitzero"`
	}{r.Value("token"), map[string]string{"name": r.Value("name"), "slug": r.Value("slug")}, r.Value("email"),
		r.Form.Get("password"), passkey}
	var made wire.Founded
	if err := r.Change(http.MethodPost, "/v1/id/setup", body, &made); err != nil {
		return page.Outcome{}, err
	}
	return p.showFounded(made), nil
}
