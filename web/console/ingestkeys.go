package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/web/screen"
)

// ingestKey is an ingest key as the interface shows it.
type ingestKey struct {
	KeyID      string   `json:"key_id"`
	Name       string   `json:"name"`
	KeyPrefix  string   `json:"key_prefix"`
	Scopes     []string `json:"scopes"`
	Agents     []string `json:"agents"`
	CreatedAt  string   `json:"created_at"`
	CreatedBy  string   `json:"created_by"`
	ExpiresAt  string   `json:"expires_at"`
	RevokedAt  string   `json:"revoked_at"`
	Asks       bool     `json:"asks"`
	LastUsedAt string   `json:"last_used_at"`
}

func (p *pages) ingestKeyScreens() []screen.Screen {
	return []screen.Screen{
		{Pattern: "/console/ingest-keys", Query: []string{"after"}, Views: p.views, Name: "ingestkeys", Title: "Ingest keys",
			Show: p.listIngestKeys, Forms: map[string]screen.Form{"create": p.createIngestKey}},
		{Pattern: "/console/ingest-keys/{key}", Views: p.views, Name: "ingestkey", Show: p.showIngestKey,
			Forms: map[string]screen.Form{"change": p.changeIngestKey, "revoke": p.revokeIngestKey}},
	}
}

const ingestKeyCalls = "/v1/console/ingest-keys"

// ingestKeysView is the content of the list.
type ingestKeysView struct {
	Keys   []ingestKey
	Next   string // address of the next page
	Scopes []string
	MayAdd bool
}

func (p *pages) listIngestKeys(r *screen.Request) (any, error) {
	var found struct {
		Keys []ingestKey `json:"keys"`
		Next string      `json:"next"`
	}
	if err := r.Read(ingestKeyCalls, r.PageQuery(), &found); err != nil {
		return nil, err
	}
	return ingestKeysView{Keys: found.Keys, Next: r.NextPage(found.Next), MayAdd: r.Person.May("manage"),
		Scopes: []string{"events", "evaluate", "approvals", "workflows"}}, nil
}

// madeIngestKey is the answer to a new key, with its secret.
type madeIngestKey struct {
	Key    ingestKey `json:"key"`
	Secret string    `json:"secret"`
}

func (p *pages) createIngestKey(r *screen.Request) (screen.Outcome, error) {
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
	var made madeIngestKey
	if err := r.Change(http.MethodPost, ingestKeyCalls, body, &made); err != nil {
		return screen.Outcome{}, err
	}
	return screen.ShowOnce(p.views, "newingestkey", "The new ingest key", made), nil
}

// ingestKeyView is the content of the page of a key.
type ingestKeyView struct {
	ingestKey
	MayChange, MayRevoke bool
}

func (p *pages) showIngestKey(r *screen.Request) (any, error) {
	v := ingestKeyView{MayChange: r.Person.May("manage"), MayRevoke: r.Person.May("revoke keys")}
	err := r.Read(ingestKeyCall(r), nil, &v.ingestKey)
	r.Title = "Ingest key " + v.Name
	return v, err
}

func ingestKeyCall(r *screen.Request) string {
	return ingestKeyCalls + "/" + url.PathEscape(r.PathParameter("key"))
}

func (p *pages) changeIngestKey(r *screen.Request) (screen.Outcome, error) {
	body := map[string]any{"name": r.Value("name"), "asks": r.Checked("asks")}
	err := r.Change(http.MethodPatch, ingestKeyCall(r), body, nil)
	return screen.GoTo(r.Address("/console/ingest-keys", r.PathParameter("key")), "saved"), err
}

func (p *pages) revokeIngestKey(r *screen.Request) (screen.Outcome, error) {
	err := r.Change(http.MethodDelete, ingestKeyCall(r), nil, nil)
	return screen.GoTo(r.Address("/console/ingest-keys"), "key-revoked"), err
}

// Has reports whether a key has a scope.
func (k ingestKey) Has(scope string) bool { return slices.Contains(k.Scopes, scope) }
