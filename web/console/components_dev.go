//go:build dev

package console

import (
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// componentViews are the templates that only development builds have.
var componentViews = []string{"components"}

// componentScreens returns the page that shows every component in both schemes.
func (p *pages) componentScreens() []page.Screen {
	return []page.Screen{{Pattern: "/console/components", Views: p.views, Name: "components", Title: "Components", Show: showComponents, Open: true}}
}

// componentsView is the content of the page of components.
type componentsView struct {
	Name, Hidden            string
	At                      id.Instant
	Agent                   page.Name
	Outcomes, States, Icons []string
	Chart                   *outcomeChart
}

func showComponents(r *page.Request) (any, error) {
	chart := &outcomeChart{Width: 3 * barStep, Top: 20, Half: 10, Labels: []string{"Mon", "Tue", "Wed"}, Label: "Acts by day"}
	for i, height := range []string{"20", "34", "28"} {
		chart.Bars = append(chart.Bars, outcomeBar{X: i * barStep, When: "a day", Parts: []barPart{
			{Class: "f-done", X: float64(i * barStep), Y: "14", Height: height}, {Class: "f-bad", X: float64(i * barStep), Y: "8", Height: "4"}}})
	}
	return componentsView{Name: "Ada Okafor", Hidden: "refund\u202e", At: id.InstantOf(time.Now()), Agent: page.Name{Text: "Refund bot", ID: "agt_1", URL: r.Address(agentsPage)},
		Outcomes: wire.Outcomes(), States: []string{"ok", "fail", "gone", "none", "wait"}, Chart: chart,
		Icons: []string{"menu", "fold", "remove", "leave", "overview", "approvals", "activity", "evidence", "policies", "agents", "people", "settings", "error", "search", "key"}}, nil
}
