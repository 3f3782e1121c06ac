package console

import (
	"strings"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// reasons returns the reason codes, the most likely ones first.
func reasons() []page.Option {
	options := []page.Option{{Value: "", Title: "Choose a reason"}}
	for _, code := range []string{"data_subject_request", "consent_withdrawn", "no_longer_needed", "legal_obligation",
		"sent_by_mistake", "secret_disclosed", "test_data", "other"} {
		options = append(options, page.Option{Value: code, Title: strings.ReplaceAll(code, "_", " ")})
	}
	return options
}

// erasuresView is the content of the list.
type erasuresView struct {
	Erasures []wire.Erasure
	Next     string
	MayErase bool
	Reasons  []page.Option
	By       []page.Option
	Filter   filters // values by which another page fills in the form
}

func (p *pages) listErasures(r *page.Request) (any, error) {
	found, err := visitOf(r).Console.ListErasures(r.Context(), visitOf(r).caller, r.PageQuery())
	if err != nil {
		return nil, err
	}
	return &erasuresView{Erasures: found.Erasures, Next: r.NextPage(found.Next), MayErase: r.Person.May("own"),
		Reasons: reasons(), Filter: readFilters(r, "by", "name"), By: []page.Option{
			{Value: "agent_id", Title: "an agent"}, {Value: "trace_id", Title: "a trace"},
			{Value: "principal", Title: "a principal, as agents name it"},
			{Value: "on_behalf_of", Title: "a user or workload, on whose behalf agents act"}}}, nil
}

// checkSure refuses an erasure that the user did not confirm.
func checkSure(r *page.Request) error {
	if !r.Checked("sure") {
		return fault.New(fault.Invalid, "Confirm that the payloads are to be erased permanently")
	}
	return nil
}

func (p *pages) eraseMany(r *page.Request) (page.Outcome, error) {
	wanted := api.NewErasure{Reason: erasure.Reason(r.Value("reason"))}
	switch name := r.Value("name"); r.Value("by") {
	case "agent_id":
		wanted.Agent = id.Agent(name)
	case "trace_id":
		wanted.Trace = id.Trace(name)
	case "principal":
		wanted.Principal = name
	case "on_behalf_of":
		wanted.Subject = name
	default:
		return page.Outcome{}, fault.New(fault.Invalid, "The form can't be read")
	}
	if err := checkSure(r); err != nil {
		return page.Outcome{}, err
	}
	wanted.From, wanted.To = completeTime(r.Value("from")), completeTime(r.Value("to"))
	v := visitOf(r)
	begun, err := v.Console.EraseMany(r.Context(), v.caller, wanted)
	return followErasure(r, begun, err)
}

// erasureView is the content of an erasure's page.
type erasureView struct {
	wire.Erasure
	Live *page.Live
}

func (p *pages) showErasure(r *page.Request) (any, error) {
	v := &erasureView{Live: &page.Live{}}
	var err error
	v.Erasure, err = visitOf(r).Console.ShowErasure(r.Context(), visitOf(r).caller, r.PathParameter("erasure"))
	switch v.State {
	case "waiting", "running":
		v.Live.Every = 1
	case "held":
		v.Live.Every = 60
	}
	v.Live.News = "The erasure is " + v.State + "."
	return v, err
}
