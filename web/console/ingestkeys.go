package console

import (
	"cmp"
	"strings"
	"time"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const ingestKeysPage = "/console/ingest-keys"

func (p *pages) ingestKeyScreens() []page.Screen {
	return []page.Screen{
		{Pattern: ingestKeysPage, Query: tableQuery(), Views: p.views, Name: "ingestkeys", Title: "Ingest keys",
			Show: p.listIngestKeys, Forms: map[string]page.Form{"create": p.createIngestKey}},
		{Pattern: ingestKeysPage + "/{key}", Views: p.views, Name: "ingestkey", Show: p.showIngestKey,
			Forms: map[string]page.Form{"change": p.changeIngestKey, "issuer": p.changeSubjectIssuer, "revoke": p.revokeIngestKey}},
	}
}

// ingestKeysView is the content of the list, or the form for a new key.
type ingestKeysView struct {
	Table  *table
	Keys   []*ingestKeyRow
	New    bool // show the form
	Scopes []string
	MayAdd bool
}

// ingestKeyRow is a key in the list.
type ingestKeyRow struct{ wire.IngestKey }

// State reports whether the key is accepted.
func (k *ingestKeyRow) State() string {
	switch {
	case k.RevokedAt != 0:
		return "revoked"
	case k.ExpiresAt != 0 && id.Instant(k.ExpiresAt) <= id.InstantOf(time.Now()):
		return "expired"
	}
	return "active"
}

func (p *pages) listIngestKeys(r *page.Request) (any, error) {
	v := ingestKeysView{MayAdd: r.Person.May("manage"), Scopes: []string{"events", "evaluate", "approvals", "workflows"}}
	if v.New = v.MayAdd && isNew(r, "create"); v.New {
		r.Title = "New ingest key"
		return v, nil
	}
	file, err := asFile(r)
	if err != nil {
		return nil, err
	}
	found, err := visitOf(r).Console.ListIngestKeys(r.Context(), visitOf(r).caller, entriesQuery(r))
	if err != nil {
		return nil, err
	}
	var all []*ingestKeyRow
	for _, k := range found.Keys {
		all = append(all, &ingestKeyRow{k})
	}
	v.Keys, v.Table, err = newTable(r, all,
		func(k *ingestKeyRow) string {
			return k.Name + " " + k.KeyPrefix + " " + strings.Join(k.Scopes, " ") + " " + k.State()
		},
		[]sortable[*ingestKeyRow]{
			{"name", func(a, b *ingestKeyRow) int { return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) }},
			{"used", func(a, b *ingestKeyRow) int { return cmp.Compare(a.LastUsedAt, b.LastUsedAt) }},
			{"state", func(a, b *ingestKeyRow) int { return strings.Compare(a.State(), b.State()) }},
		})
	v.Table.Label, v.Table.Hint, v.Table.Further = "Search ingest keys", "Name, scope or state", furtherEntries(r, found.Next)
	switch {
	case err != nil:
		return v, r.Correctable(err)
	case file:
		return csvFile("ingest-keys", []string{"key_id", "name", "begins_with", "scopes", "state", "last_used_at", "expires_at", "revoked_at"},
			v.Keys, func(k *ingestKeyRow) []api.Cell {
				return []api.Cell{api.TextCell(k.KeyID), api.TextCell(k.Name), api.TextCell(k.KeyPrefix), api.TextCell(strings.Join(k.Scopes, " ")),
					api.TextCell(k.State()), timeCell(k.LastUsedAt), timeCell(k.ExpiresAt), timeCell(k.RevokedAt)}
			}), nil
	}
	return v, nil
}

// timeCell returns the cell of a time, empty if there is none.
func timeCell(t wire.Time) api.Cell {
	if t == 0 {
		return ""
	}
	return api.TextCell(t.String())
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
	Issuer               wire.SubjectIssuer // zero if there is none
}

func (p *pages) showIngestKey(r *page.Request) (any, error) {
	v := ingestKeyView{MayChange: r.Person.May("manage"), MayRevoke: r.Person.May("revoke keys")}
	var err error
	v.IngestKey, err = visitOf(r).Console.ShowIngestKey(r.Context(), visitOf(r).caller, r.PathParameter("key"))
	if v.Subjects != nil {
		v.Issuer = *v.Subjects
	}
	r.Title = v.Name
	return v, err
}

func (p *pages) changeIngestKey(r *page.Request) (page.Outcome, error) {
	v, name := visitOf(r), r.PathParameter("key")
	_, err := v.Console.ChangeIngestKey(r.Context(), v.caller, name,
		api.IngestKeyPatch{Name: new(r.Value("name")), Asks: new(r.Checked("asks"))})
	return page.GoTo(r.Address(ingestKeysPage, name), "saved"), err
}

// changeSubjectIssuer sets the issuer whose tokens prove on whose behalf events are. Empty texts remove it.
func (p *pages) changeSubjectIssuer(r *page.Request) (page.Outcome, error) {
	v, name := visitOf(r), r.PathParameter("key")
	wanted := wire.SubjectIssuer{Issuer: r.Value("issuer"), Audience: r.Value("audience"), Required: r.Checked("required")}
	if wanted.Issuer == "" && wanted.Audience == "" {
		wanted.Required = false
	}
	_, err := v.Console.ChangeIngestKey(r.Context(), v.caller, name, api.IngestKeyPatch{Subjects: &wanted})
	return page.GoTo(r.Address(ingestKeysPage, name), "saved"), err
}

func (p *pages) revokeIngestKey(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	err := v.Console.RevokeIngestKey(r.Context(), v.caller, r.PathParameter("key"))
	return page.GoTo(r.Address(ingestKeysPage), "key-revoked"), err
}
