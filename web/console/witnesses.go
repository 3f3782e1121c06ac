package console

import (
	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const witnessesPage = settingsPage + "/witnesses"

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
	v := visitOf(r)
	_, err := v.Console.AskWitnesses(r.Context(), v.caller)
	return page.GoTo(r.Address(witnessesPage), "witnesses-asked"), err
}

func (p *pages) putWitnesses(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	_, err := v.Console.PutWitnesses(r.Context(), v.caller,
		api.Witnessing{Policy: r.Form.Get("policy"), Fail: new(r.Value("fail"))})
	return page.GoTo(r.Address(witnessesPage), "saved"), err
}

func (p *pages) deleteWitnesses(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	err := v.Console.DeleteWitnesses(r.Context(), v.caller)
	return page.GoTo(r.Address(witnessesPage), "witnesses-reset"), err
}
