package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

func (p *pages) ingestKeyScreens() []page.Screen {
	return []page.Screen{
		{Pattern: "/console/ingest-keys", Query: []string{"after"}, Views: p.views, Name: "ingestkeys", Title: "Ingest keys",
			Show: p.listIngestKeys, Forms: map[string]page.Form{"create": p.createIngestKey}},
		{Pattern: "/console/ingest-keys/{key}", Views: p.views, Name: "ingestkey", Show: p.showIngestKey,
			Forms: map[string]page.Form{"change": p.changeIngestKey, "revoke": p.revokeIngestKey}},
	}
}

const ingestKeyCalls = "/v1/console/ingest-keys"

// ingestKeysView is the content of the list.
type ingestKeysView struct {
	Keys   []wire.IngestKey
	Next   string // address of the next page
	Scopes []string
	MayAdd bool
}

func (p *pages) listIngestKeys(r *page.Request) (any, error) {
	found, err := visitOf(r).Console.ListIngestKeys(r.Context(), visitOf(r).caller, r.PageQuery())
	if err != nil {
		return nil, err
	}
	return ingestKeysView{Keys: found.Keys, Next: r.NextPage(found.Next), MayAdd: r.Person.May("manage"),
		Scopes: []string{"events", "evaluate", "approvals", "workflows"}}, nil
}

func (p *pages) createIngestKey(r *page.Request) (page.Outcome, error) {
	body := map[string]any{"name": r.Value("name"), "asks": r.Checked("asks")}
	if scopes := r.Form["scopes"]; len(scopes) > 0 {
		body["scopes"] = scopes
	}
	if agents := strings.Fields(r.Value("agents")); len(agents) > 0 {
		body["agents"] = agents
	}
	if at := r.Value("expires_at"); at != "" {
		body["expires_at"] = at + ":00Z"
	}
	var made wire.CreatedIngestKey
	if err := r.Change(http.MethodPost, ingestKeyCalls, body, &made); err != nil {
		return page.Outcome{}, err
	}
	return page.ShowOnce(p.views, "newingestkey", "The new ingest key", made), nil
}

// ingestKeyView is the content of the page of a key.
type ingestKeyView struct {
	wire.IngestKey
	MayChange, MayRevoke bool
}

func (p *pages) showIngestKey(r *page.Request) (any, error) {
	v := ingestKeyView{MayChange: r.Person.May("manage"), MayRevoke: r.Person.May("revoke keys")}
	var err error
	v.IngestKey, err = visitOf(r).Console.ShowIngestKey(r.Context(), visitOf(r).caller, r.PathParameter("key"))
	r.Title = "Ingest key " + v.Name
	return v, err
}

func ingestKeyCall(r *page.Request) string {
	return ingestKeyCalls + "/" + url.PathEscape(r.PathParameter("key"))
}

func (p *pages) changeIngestKey(r *page.Request) (page.Outcome, error) {
	body := map[string]any{"name": r.Value("name"), "asks": r.Checked("asks")}
	err := r.Change(http.MethodPatch, ingestKeyCall(r), body, nil)
	return page.GoTo(r.Address("/console/ingest-keys", r.PathParameter("key")), "saved"), err
}

func (p *pages) revokeIngestKey(r *page.Request) (page.Outcome, error) {
	err := r.Change(http.MethodDelete, ingestKeyCall(r), nil, nil)
	return page.GoTo(r.Address("/console/ingest-keys"), "key-revoked"), err
}
