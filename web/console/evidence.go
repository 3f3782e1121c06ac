package console

import (
	"net/url"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/web/page"
)

// evidenceView is the content of the page of evidence packs.
type evidenceView struct {
	MayMake  bool
	Filter   filters // values by which another page fills in the form
	CheckURL string
	VKeyURL  string // the log's key
}

func (p *pages) showEvidence(r *page.Request) (any, error) {
	return &evidenceView{MayMake: r.Person.May("read payloads"), CheckURL: r.Address("/check"),
		VKeyURL: r.Address("/log", string(r.Person.Organization.Slug)),
		Filter:  readFilters(r, "from", "to", "agent_id", "tool", "trace_id", "on_behalf_of", "issuer", "columns")}, nil
}

// makePack redirects to the pack. It first tries the parameters on a list of events, because the interface would refuse
// a pack with a message for programs.
func (p *pages) makePack(r *page.Request) (page.Outcome, error) {
	query := url.Values{}
	for _, name := range []string{"from", "to", "agent_id", "tool", "trace_id", "on_behalf_of", "issuer"} {
		if text := r.Value(name); text != "" {
			query.Set(name, text)
		}
	}
	for _, name := range []string{"from", "to"} {
		if query.Has(name) {
			query.Set(name, completeTime(query.Get(name)))
		}
	}
	tried := url.Values{"limit": {"1"}}
	for name, values := range query {
		tried[name] = values
	}
	if _, err := visitOf(r).Console.ListEvents(r.Context(), visitOf(r).caller, tried); err != nil {
		return page.Outcome{}, err
	}
	if r.Checked("envelopes") {
		query.Set("envelopes", "1")
	}
	if r.Checked("coverage") {
		if !query.Has("envelopes") {
			return page.Outcome{}, fault.New(fault.Invalid, "coverage is read from the signed texts: check the box above too")
		}
		query.Set("coverage", "1")
	}
	if columns := strings.Join(strings.FieldsFunc(r.Value("columns"), func(c rune) bool { return c == ',' || c == ' ' }), ","); columns != "" {
		if !query.Has("envelopes") {
			return page.Outcome{}, fault.New(fault.Invalid, "columns are read from the signed texts: check the box, or leave this empty")
		}
		query.Set("columns", columns)
	}
	return page.GoTo(r.Address("/v1/console/evidence.zip")+"?"+query.Encode(), ""), nil
}
