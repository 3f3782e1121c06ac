package console

import (
	"strings"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const toolKeysPage = settingsPage + "/tool-keys"

func (p *pages) toolKeyScreens() []page.Screen {
	return []page.Screen{
		{Pattern: toolKeysPage, Views: p.views, Name: "toolkeys", Title: "Tool keys", Show: p.showToolKeys,
			Forms: map[string]page.Form{"save": p.putToolKeys}},
	}
}

// toolKeysView is the content of the page of the keys of tools.
type toolKeysView struct {
	Keys      []toolKeyRow
	Lines     string // the keys, one per line
	MayManage bool
}

// toolKeyRow is a key in the table.
type toolKeyRow struct {
	wire.ToolKey
	By page.Name
}

func (p *pages) showToolKeys(r *page.Request) (any, error) {
	v := toolKeysView{MayManage: r.Person.May("manage")}
	found, err := visitOf(r).Console.ListToolKeys(r.Context(), visitOf(r).caller)
	if err != nil {
		return nil, err
	}
	lines := make([]string, len(found.Keys))
	for i, k := range found.Keys {
		lines[i] = k.Key
		v.Keys = append(v.Keys, toolKeyRow{ToolKey: k, By: nameOf(r, page.NamedPerson, k.RegisteredBy)})
	}
	v.Lines = strings.Join(lines, "\n")
	return v, nil
}

func (p *pages) putToolKeys(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	_, err := v.Console.PutToolKeys(r.Context(), v.caller, api.NewToolKeys{Keys: append([]string{}, strings.Fields(r.Form.Get("keys"))...)})
	return page.GoTo(r.Address(toolKeysPage), "saved"), err
}
