package console

import (
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
	"strconv"
)

// runsView is the content of the list of runs.
type runsView struct {
	Runs     []wire.Run
	Next     string
	Filter   filters
	Filtered bool
	Statuses []page.Option
}

func (p *pages) listRuns(r *page.Request) (any, error) {
	found, err := visitOf(r).Console.ListRuns(r.Context(), visitOf(r).caller, r.ListQuery("status", "agent_id"))
	if err = r.Correctable(err); err != nil {
		return nil, err
	}
	v := &runsView{Runs: found.Runs, Next: r.NextPage(found.Next), Filter: readFilters(r, "status", "agent_id"),
		Statuses: []page.Option{{Value: "", Title: "any"}}}
	v.Filtered = len(v.Filter) > 0
	for _, s := range []string{"running", "succeeded", "failed", "aborted", "abandoned"} {
		v.Statuses = append(v.Statuses, page.Option{Value: s, Title: s})
	}
	return v, nil
}

// runView is the content of the page of a run.
type runView struct {
	wire.Run
	Of   []wire.RunEvent
	Next string
}

func (p *pages) showRun(r *page.Request) (any, error) {
	found, err := visitOf(r).Console.ShowRun(r.Context(), visitOf(r).caller, r.PathParameter("run"), r.PageQuery())
	if err = r.Correctable(err); err != nil {
		return nil, err
	}
	v := &runView{Run: found.Run, Of: found.Events}
	if found.Next != 0 {
		v.Next = r.NextPage(wire.Text(strconv.FormatUint(uint64(found.Next), 10)))
	}
	r.Title = "Run of " + v.Workflow.Name
	return v, nil
}
