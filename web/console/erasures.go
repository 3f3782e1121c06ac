package console

import (
	"net/url"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/web/page"
	"github.com/agentledger/agentledger/web/screen"
)

const erasureCalls = "/v1/console/erasures"

// erasure is an erasure as the interface shows it.
type erasure struct {
	ID        string `json:"erasure_id"`
	State     string `json:"state"`
	Reason    string `json:"reason"`
	AskedBy   string `json:"asked_by"`
	AskedAt   string `json:"asked_at"`
	EndedAt   string `json:"ended_at"`
	By        string `json:"by"`
	Event     string `json:"event_id"`
	Approval  string `json:"approval_id"`
	Agent     string `json:"agent_id"`
	Trace     string `json:"trace_id"`
	Principal string `json:"principal"`
	From      string `json:"from"`
	To        string `json:"to"`
	TreeSize  uint64 `json:"tree_size"`
	Counts    struct {
		Matched    uint64 `json:"matched"`
		Erased     uint64 `json:"erased"`
		Already    uint64 `json:"already"`
		Unexamined uint64 `json:"unexamined"`
		Approvals  uint64 `json:"approvals"`
		Deliveries uint64 `json:"deliveries"`
	} `json:"counts"`
	Remains []struct {
		What  string `json:"what"`
		Until string `json:"until"`
	} `json:"remains"`
}

// Ended reports whether nothing more comes of the erasure.
func (e erasure) Ended() bool { return e.State == "done" }

// reasons returns the codes of reasons, in the order in which people look for them.
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
	Erasures []erasure
	Next     string
	MayErase bool
	Reasons  []page.Option
	By       []page.Option
	Filter   filters // values by which another page fills in the form
}

func (p *pages) listErasures(r *screen.Request) (any, error) {
	var found struct {
		Erasures []erasure `json:"erasures"`
		Next     string    `json:"next"`
	}
	if err := r.Read(erasureCalls, r.PageQuery(), &found); err != nil {
		return nil, err
	}
	return &erasuresView{Erasures: found.Erasures, Next: r.NextPage(found.Next), MayErase: r.Person.May("own"),
		Reasons: reasons(), Filter: readFilters(r, "by", "name"), By: []page.Option{
			{Value: "agent_id", Title: "an agent"}, {Value: "trace_id", Title: "a trace"},
			{Value: "principal", Title: "a principal, for whom agents act"}}}, nil
}

// checkSure refuses an erasure that the person did not confirm.
func checkSure(r *screen.Request) error {
	if !r.Checked("sure") {
		return fault.New(fault.Invalid, "Confirm that the payloads are to be taken away for good")
	}
	return nil
}

func (p *pages) eraseMany(r *screen.Request) (screen.Outcome, error) {
	body := map[string]string{"reason": r.Value("reason")}
	switch by := r.Value("by"); by {
	case "agent_id", "trace_id", "principal":
		body[by] = r.Value("name")
	default:
		return screen.Outcome{}, fault.New(fault.Invalid, "The form can't be read")
	}
	for _, name := range []string{"from", "to"} {
		if text := r.Value(name); text != "" {
			body[name] = completeTime(text)
		}
	}
	return beginErasure(r, erasureCalls, body)
}

// erasureView is the content of the page of an erasure.
type erasureView struct {
	erasure
	Live *page.Live
}

func (p *pages) showErasure(r *screen.Request) (any, error) {
	v := &erasureView{Live: &page.Live{}}
	err := r.Read(erasureCalls+"/"+url.PathEscape(r.PathParameter("erasure")), nil, &v.erasure)
	switch v.State {
	case "waiting", "running":
		v.Live.Every = 1
	case "held":
		v.Live.Every = 60
	}
	v.Live.News = "The erasure is " + v.State + "."
	return v, err
}
