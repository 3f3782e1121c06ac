package console

import (
	"strings"
	"time"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
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
	wanted := api.NewIngestKey{Name: r.Value("name"), Asks: r.Checked("asks"), Scopes: r.Form["scopes"]}
	for _, agent := range strings.Fields(r.Value("agents")) {
		wanted.Agents = append(wanted.Agents, id.Agent(agent))
	}
	if at := r.Value("expires_at"); at != "" {
		wanted.ExpiresAt = new(time.Time)
		if err := edge.ParseMember("expires_at", at+":00Z", wanted.ExpiresAt); err != nil {
			return page.Outcome{}, err
		}
	}
	v := visitOf(r)
	made, err := v.Console.CreateIngestKey(r.Context(), v.caller, wanted)
	if err != nil {
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

func (p *pages) changeIngestKey(r *page.Request) (page.Outcome, error) {
	v, name := visitOf(r), r.PathParameter("key")
	_, err := v.Console.ChangeIngestKey(r.Context(), v.caller, name,
		api.IngestKeyPatch{Name: new(r.Value("name")), Asks: new(r.Checked("asks"))})
	return page.GoTo(r.Address("/console/ingest-keys", name), "saved"), err
}

func (p *pages) revokeIngestKey(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	err := v.Console.RevokeIngestKey(r.Context(), v.caller, r.PathParameter("key"))
	return page.GoTo(r.Address("/console/ingest-keys"), "key-revoked"), err
}
