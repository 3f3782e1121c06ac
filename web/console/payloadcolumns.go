package console

import (
	"strings"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const columnsPage = settingsPage + "/columns"

func (p *pages) columnScreens() []page.Screen {
	return []page.Screen{
		{Pattern: columnsPage, Views: p.views, Name: "payloadcolumns", Title: "Columns", Show: p.showColumns,
			Forms: map[string]page.Form{"save": p.putColumns}},
	}
}

// columnsView is the content of the page of the columns of payloads.
type columnsView struct {
	wire.Columns
	Paths     string // one per line
	MayManage bool
}

func (p *pages) showColumns(r *page.Request) (any, error) {
	v := columnsView{MayManage: r.Person.May("manage")}
	var err error
	v.Columns, err = visitOf(r).Console.ShowColumns(r.Context(), visitOf(r).caller)
	paths := make([]string, len(v.Columns.Columns))
	for i, c := range v.Columns.Columns {
		paths[i] = c.Path
	}
	v.Paths = strings.Join(paths, "\n")
	return v, err
}

func (p *pages) putColumns(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	wanted := api.NewColumns{Columns: append([]string{}, strings.Fields(r.Form.Get("columns"))...), Backfill: r.Checked("backfill")}
	_, err := v.Console.PutColumns(r.Context(), v.caller, wanted)
	return page.GoTo(r.Address(columnsPage), "saved"), err
}
