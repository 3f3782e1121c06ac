package console

import (
	"net/http"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const (
	witnessesPage = settingsPage + "/witnesses"
	witnessCalls  = "/v1/console/witnesses"
)

func (p *pages) witnessScreens() []page.Screen {
	return []page.Screen{
		{Pattern: witnessesPage, Views: p.views, Name: "witnesses", Title: "Witnesses", Show: p.showWitnesses,
			Forms: map[string]page.Form{"ask": p.askWitnesses, "save": p.putWitnesses, "reset": p.deleteWitnesses}},
	}
}

// witnessesView is the content of the page of the log's witnesses.
type witnessesView struct {
	wire.WitnessReport
	Fails     []page.Option
	MayManage bool
}

func (p *pages) showWitnesses(r *page.Request) (any, error) {
	v := witnessesView{MayManage: r.Person.May("manage"), Fails: []page.Option{
		{Value: "open", Title: "open: the newest checkpoint with its quorum is shown, however old it is"},
		{Value: "closed", Title: "closed: no cosigned checkpoint is shown while the quorum is late"}}}
	var err error
	v.WitnessReport, err = visitOf(r).Console.ShowWitnesses(r.Context(), visitOf(r).caller)
	return v, err
}

func (p *pages) askWitnesses(r *page.Request) (page.Outcome, error) {
	return witnessOutcome(r, "witnesses-asked"), r.Change(http.MethodPost, witnessCalls+"/ask", nil, nil)
}

func (p *pages) putWitnesses(r *page.Request) (page.Outcome, error) {
	body := map[string]string{"policy": r.Form.Get("policy"), "fail": r.Value("fail")}
	return witnessOutcome(r, "saved"), r.Change(http.MethodPut, witnessCalls, body, nil)
}

func (p *pages) deleteWitnesses(r *page.Request) (page.Outcome, error) {
	return witnessOutcome(r, "witnesses-reset"), r.Change(http.MethodDelete, witnessCalls, nil, nil)
}

func witnessOutcome(r *page.Request, notice string) page.Outcome {
	return page.GoTo(r.Address(witnessesPage), notice)
}
