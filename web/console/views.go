package console

import (
	"net/url"
	"slices"
	"strings"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const viewsPage = activityPage + "/views"

func (p *pages) viewScreens() []page.Screen {
	return []page.Screen{
		{Pattern: viewsPage, Query: []string{"q", "view"}, Views: p.views, Name: "views", Title: "Saved views", Show: p.listViews,
			Forms: map[string]page.Form{"save": p.saveView, "remove": p.removeView}},
	}
}

// viewsView is the content of the page of saved views.
type viewsView struct {
	Views        []savedView
	MaySave      bool
	Name, Search string // in the form
	Renames      string // the view that the form changes; "" for a new one
}

// savedView is a saved view with its addresses.
type savedView struct {
	wire.View
	URL, Change string
	Current     bool
}

// readViews reads the saved views. text is the search that the page shows.
func readViews(r *page.Request, text string) (all []savedView, err error) {
	found, err := visitOf(r).Console.ListViews(r.Context(), visitOf(r).caller)
	for _, v := range found.Views {
		all = append(all, savedView{View: v, Current: v.Search == text, URL: r.Address(activityPage) + "?" + url.Values{"q": {v.Search}}.Encode(),
			Change: r.Address(viewsPage) + "?" + url.Values{"view": {v.Name}}.Encode() + "#save"})
	}
	return all, err
}

func (p *pages) listViews(r *page.Request) (any, error) {
	all, err := readViews(r, "")
	v := viewsView{Views: all, MaySave: r.Person.May("save views"), Search: strings.TrimSpace(r.Query("q"))}
	if name := r.Query("view"); name != "" && err == nil {
		at := slices.IndexFunc(all, func(v savedView) bool { return v.Name == name })
		if at < 0 {
			return nil, fault.New(fault.NotFound, "Not found")
		}
		v.Name, v.Search, v.Renames = name, all[at].Search, name
	}
	return v, err
}

func (p *pages) saveView(r *page.Request) (page.Outcome, error) {
	wanted := api.NewView{Name: r.Value("name"), Search: r.Value("search"), Renames: r.Form.Get("renames")}
	if _, problems := parseSearch(wanted.Search); len(problems) > 0 {
		return page.Outcome{}, fault.New(fault.Invalid, "search: "+strings.Join(problems, " "))
	}
	v := visitOf(r)
	_, err := v.Console.PutView(r.Context(), v.caller, wanted)
	return page.GoTo(r.Address(viewsPage), "view-saved"), err
}

func (p *pages) removeView(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	err := v.Console.DeleteView(r.Context(), v.caller, r.Form.Get("view"))
	return page.GoTo(r.Address(viewsPage), "view-removed"), err
}
