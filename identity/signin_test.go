package identity_test

import (
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// requires makes an organization require a method of signing in, as its owner.
func (w *world) requires(slug, method string) {
	w.t.Helper()
	tenant, err := w.orgs.BySlug(w.t.Context(), id.Slug(slug))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.orgs.Change(w.t.Context(), tenant, "acc_owner", org.Patch{SignIn: &method}); err != nil {
		w.t.Fatal(err)
	}
}

const needsCompany = `{"error":"The organization requires signing in with the provider company","code":"sign_in_required"}`

// If an organization requires a provider, sessions opened in other ways can neither act in it nor enter it on request.
// The other organization is unaffected.
func TestRequiredProvider(t *testing.T) {
	w := newOpenIDWorld(t) // ann owns red
	w.link()
	w.Pass(time.Minute)
	blue := w.organization("blue")
	var red signedIn
	ann := w.signedInBrowser(1, email)
	w.decode(ann.ask("GET", me, ""), 200, &red)
	redID := red.Organization.OrganizationID
	byProvider := w.browser(2)
	w.provider.Claims = func(c map[string]any) { c["email"] = email }
	cookie, query := w.begin("")
	byProvider.keep(w.session(w.finish(cookie, query)))

	w.requires("red", "oidc:company")
	members := "/v1/id/orgs/" + redID + "/members"
	answers(t, "acts by password", ann.ask("GET", members, ""), 403, needsCompany)
	if g := byProvider.ask("GET", members, ""); g.Code != 200 {
		t.Errorf("by the provider: got %d %s", g.Code, g.Body)
	}
	w.decode(ann.ask("GET", me, ""), 200, &signedIn{}) // the account belongs to the person
	w.decode(ann.ask("POST", "/v1/id/orgs/switch", `{"organization_id":"`+blue.OrganizationID+`"}`), 200, &signedIn{})
	answers(t, "switch", ann.ask("POST", "/v1/id/orgs/switch", `{"organization_id":"`+redID+`"}`), 403, needsCompany)
	answers(t, "login", w.browser(3).ask("POST", login, `{"email":"`+email+`","password":"`+password+`","organization_id":"`+redID+`"}`), 403, needsCompany)
	var got signedIn
	w.decode(w.browser(4).ask("POST", login, `{"email":"`+email+`","password":"`+password+`"}`), 200, &got)
	if got.Organization.Slug != "blue" {
		t.Errorf("without a requested organization: got %+v", got.Organization)
	}
	if g := ann.ask("GET", "/v1/id/orgs/"+blue.OrganizationID+"/members", ""); g.Code != 200 {
		t.Errorf("blue: got %d %s", g.Code, g.Body)
	}

	// The method of a session survives a switch and a change of the account's factors.
	w.decode(byProvider.ask("POST", "/v1/id/orgs/switch", `{"organization_id":"`+blue.OrganizationID+`"}`), 200, &signedIn{})
	key := byProvider.register("laptop")
	w.decode(byProvider.ask("POST", stepUp, `{"passkey":`+key.Use(byProvider.options(passkeyBegin, ""))+`}`), 200, &signedIn{})
	w.decode(byProvider.ask("POST", "/v1/id/orgs/switch", `{"organization_id":"`+redID+`"}`), 200, &signedIn{})
	byPasskey := w.browser(5)
	w.decode(byPasskey.use(key), 200, &got)
	if got.Organization.Slug != "blue" {
		t.Errorf("by a passkey: got %+v", got.Organization)
	}

	w.requires("blue", "passkey")
	const needsPasskey = `{"error":"The organization requires signing in with a passkey","code":"sign_in_required"}`
	if g := byPasskey.ask("GET", "/v1/id/orgs/"+blue.OrganizationID+"/members", ""); g.Code != 200 {
		t.Errorf("blue by a passkey: got %d %s", g.Code, g.Body)
	}
	answers(t, "blue by the provider", byProvider.ask("POST", "/v1/id/orgs/switch", `{"organization_id":"`+blue.OrganizationID+`"}`), 403, needsPasskey)

	// The operator removes the requirement of an organization whose members cannot sign in any more.
	answers(t, "the operator sets none", w.platform("PATCH", organizations+"/"+redID, `{"sign_in":{}}`), 422,
		refusal("sign_in must be null: only an owner requires a way to sign in"))
	w.decode(w.platform("PATCH", organizations+"/"+redID, `{"sign_in":null}`), 200, &map[string]any{})
	if g := byPasskey.ask("POST", "/v1/id/orgs/switch", `{"organization_id":"`+redID+`"}`); g.Code != 200 {
		t.Errorf("red after that: got %d %s", g.Code, g.Body)
	}
}

// keep reads a session from a Cookie header.
func (b *browser) keep(header string) {
	for i := range header {
		if header[i] == '=' {
			b.jar[header[:i]] = header[i+1:]
			return
		}
	}
}
