package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const (
	activityPage = "/console/activity"
	actCalls     = "/v1/console/acts"
)

// activityView is the content of the list of acts.
type activityView struct {
	*search
	Chips, Ranges []chip
	Saved         []savedView // at most shownViews
	MoreSaved     string      // address of all views; "" if there are none
	Save          string      // address that saves this view; "" if the reader may not, or it is saved
	Completion    []string
	Fields        filters // values of the form with all filters
	Rest          string  // the terms that the form does not have
	Outcomes      []page.Option
	Numbers       *numbers // nil for a text search
	Heads         []actHead
	Days          []actDay
	ShowsSubjects bool // an act states on whose behalf it is
	Newer, Older  string
	Searched      *searched
	Live          *page.Live
	Evidence, CSV string
	LeftOut       string // how evidence differs from the view; "" if it does not
	Share         string // address of the form that shares the view; "" if it can't be shared
	MayMake       bool
	Predecessor   *predecessor
	Found         bool
	Full          string // address of all acts
}

// numbers are the counts of a view.
type numbers struct {
	Acts  uint64
	Parts []outcomePart
	Chart *outcomeChart // nil if there are no acts
}

// outcomePart is the number of acts with an outcome.
type outcomePart struct {
	Outcome, Words, URL string
}

// actHead is a column of the table.
type actHead struct {
	Path    string
	Numbers bool   // all values on the page are numbers
	Class   string // by which narrow screens hide it; "" if they show it
}

// actDay is the acts of a day, in UTC.
type actDay struct {
	Title string // "" for today
	Acts  []act
}

// act is an act on a page.
type act struct {
	wire.Act
	URL       string
	Entry     string // address of the public page
	Clock     string
	Cells     []actCell
	AgentName page.Name
	Decider   string
}

// actCell is a value of a column.
type actCell struct {
	Text, Exact string
	Number      bool
	Class       string
}

// Numbers of a list of acts.
const (
	actsOnPage  = 50
	shownViews  = 4
	shownHeads  = 2 // columns of payloads that every screen shows
	widestHeads = 3 // and that wide ones show
)

func (p *pages) listActs(r *page.Request) (any, error) {
	s, err := readSearch(r)
	if err != nil {
		return nil, err
	}
	v := &activityView{search: s, Chips: s.chips(r), Ranges: s.ranges(r), Fields: filters{"log": r.Query("log")}, Full: r.Address(activityPage),
		MayMake: r.Person.May("read payloads"), Outcomes: []page.Option{{Value: "", Title: "any"}}}
	for _, o := range wire.Outcomes() {
		v.Outcomes = append(v.Outcomes, page.Option{Value: o, Title: o})
	}
	rest := searchLine{Words: s.Line.Words}
	for _, t := range s.Line.Terms {
		if t.isColumn() {
			rest.Terms = append(rest.Terms, t)
		} else {
			v.Fields[t.Key] = t.Value
		}
	}
	v.Rest = rest.String()
	if err := v.readSaved(r); err != nil {
		return nil, err
	}
	if len(s.Problems) == 0 {
		if err := v.read(r); err != nil {
			return nil, err
		}
	}
	if len(s.Problems) > 0 {
		_ = r.Correctable(fault.New(fault.Invalid, "The search can't be made"))
		r.Problem = "" // the field has it
	}
	v.Completion = s.completion(r, v.tools(r))
	return v, nil
}

// readSaved reads the saved views.
func (v *activityView) readSaved(r *page.Request) error {
	all, err := readViews(r, v.Text)
	if len(all) > 0 {
		v.MoreSaved = r.Address(viewsPage)
	}
	shown := slices.IndexFunc(all, func(s savedView) bool { return s.Current })
	if shown < 0 && v.Text != "" && len(v.Problems) == 0 && r.Person.May("save views") {
		v.Save = r.Address(viewsPage) + "?" + url.Values{"q": {v.Text}}.Encode() + "#save"
	}
	if shown >= shownViews { // the shown one is among the first
		all[shownViews-1] = all[shown]
	}
	v.Saved = all[:min(len(all), shownViews)]
	return err
}

// read reads the page of the list and the numbers.
func (v *activityView) read(r *page.Request) error {
	found, err := v.readPage(r)
	if err != nil || len(v.Problems) > 0 {
		return err
	}
	if v.Line.Words == "" {
		if v.Numbers, err = countView(r, v.search); err != nil {
			return err
		}
	}
	v.Predecessor = linkPredecessor(r, found.Predecessor)
	v.CSV = streamsOf(r, actCalls, v.query).CSV
	v.Evidence, v.LeftOut = evidenceURL(r, v.search)
	if r.Person.May("share views") && v.Line.Words == "" {
		v.Share = shareURL(r, v.search)
	}
	if query := r.URL.Query(); query.Get("after") == "" && query.Get("before") == "" && v.Line.Words == "" && v.Line.value("to") == "" {
		v.Live = followEvents(r, url.Values{}, found.IndexedTo)
	}
	return nil
}

// readPage reads the acts after or before the one in the address. Before means newer ones.
func (v *activityView) readPage(r *page.Request) (found wire.Acts, err error) {
	before, after, limit := r.Query("before"), r.Query("after"), actsOnPage
	if text := r.Query("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > actsOnPage {
			v.Problems = append(v.Problems, "limit: must be a number from 1 to "+strconv.Itoa(actsOnPage)+".")
		}
	}
	if before != "" && v.Line.Words != "" { // a text search continues with older acts
		v.Problems = append(v.Problems, "before: is not possible with words, which are searched from the latest act on.")
	}
	if len(v.Problems) > 0 {
		return found, nil
	}
	list := func(after, order string) (wire.Acts, error) {
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		for name, values := range v.query {
			query[name] = values
		}
		if after != "" {
			query.Set("after", after)
		}
		if order != "" {
			query.Set("order", order)
		}
		found, err := visitOf(r).Console.ListActs(r.Context(), visitOf(r).caller, query)
		if err = r.Correctable(err); err == nil && r.Problem != "" {
			v.Problems, r.Problem = append(v.Problems, r.Problem), ""
		}
		return found, err
	}
	if before != "" {
		if found, err = list(before, "oldest"); err != nil || len(v.Problems) > 0 {
			return found, err
		}
		slices.Reverse(found.Acts)
		if found.Next == "" { // the list begins here
			before = ""
			found, err = list("", "")
		}
	} else {
		found, err = list(after, "")
	}
	if err != nil || len(v.Problems) > 0 {
		return found, err
	}
	v.link(r, found, before, after)
	v.group(r, found)
	v.Searched = newSearched(v.query, found.Searched, found.IndexedTo, len(found.Acts), limit)
	if v.Searched != nil {
		v.Searched.Next = v.Older
	}
	return found, nil
}

// link sets the addresses of the pages with newer and older acts.
func (v *activityView) link(r *page.Request, found wire.Acts, before, after string) {
	n := len(found.Acts)
	to := func(name, at string) string {
		query := r.URL.Query()
		for _, other := range []string{"before", "after", "notice"} {
			query.Del(other)
		}
		query.Set(name, at)
		return r.Address(activityPage) + "?" + query.Encode()
	}
	number := func(at id.Index) string { return strconv.FormatUint(uint64(at), 10) }
	if (before != "" || after != "") && n > 0 {
		v.Newer = to("before", number(found.Acts[0].Index))
	}
	switch {
	case before != "" && n > 0: // the page it comes from has older ones
		v.Older = to("after", number(found.Acts[n-1].Index))
	case before != "": // none of those that were looked at fits
		at, _ := strconv.ParseUint(before, 10, 53) // the list has checked it
		v.Newer, v.Older = to("before", string(found.Next)), to("after", number(id.Index(at+1)))
	default:
		v.Older = r.NextPage(found.Next)
	}
}

// group arranges the acts by day.
func (v *activityView) group(r *page.Request, found wire.Acts) {
	v.Found = len(found.Acts) > 0
	v.Heads = newHeads(v.Columns, found.Acts)
	v.ShowsSubjects = slices.ContainsFunc(found.Acts, func(a wire.Act) bool { return a.OnBehalfOf != nil })
	pending := readPending(r, found.Acts)
	v.Days = groupActs(found.Acts, v.now, func(a *wire.Act) act { return v.describe(r, a, pending) })
}

// newHeads returns the first columns of a table of acts.
func newHeads(columns []string, acts []wire.Act) (heads []actHead) {
	for i, path := range columns[:min(len(columns), widestHeads)] {
		head := actHead{Path: path, Numbers: len(acts) > 0}
		if i >= shownHeads {
			head.Class = "s3"
		}
		for _, a := range acts {
			if k := a.Columns[path].Kind(); k != '0' && k != 'n' {
				head.Numbers = false
			}
		}
		heads = append(heads, head)
	}
	return heads
}

// groupActs returns acts by day.
func groupActs(acts []wire.Act, now time.Time, describe func(*wire.Act) act) (days []actDay) {
	day := ""
	for i := range acts {
		a := describe(&acts[i])
		at := a.ReceivedAt.Time().UTC()
		if name := at.Format(time.DateOnly); name != day {
			day = name
			days = append(days, actDay{Title: dayTitle(at, now)})
		}
		last := &days[len(days)-1]
		last.Acts = append(last.Acts, a)
	}
	return days
}

// dayTitle returns the name of a day, or "" for today, because rows of today have no heading.
func dayTitle(at, now time.Time) string {
	title := at.Format("Monday 2 January")
	switch {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return ""
	case at.Year() != now.Year():
		return at.Format("Monday 2 January 2006")
	}
	return title
}

// describe returns an act as a row.
func (v *activityView) describe(r *page.Request, of *wire.Act, pending map[string]string) act {
	query := url.Values{}
	if v.Text != "" {
		query.Set("q", v.Text)
	}
	if log := r.Query("log"); log != "" {
		query.Set("log", log)
	}
	a := act{Act: *of, Clock: of.ReceivedAt.Time().UTC().Format("15:04:05"), URL: r.Address(actsPage, string(of.ID)), Entry: publicURL(r, of.ID),
		AgentName: agentName(r, of), Decider: decider(of, pending)}
	if len(query) > 0 {
		a.URL += "?" + query.Encode()
	}
	a.Cells = newCells(of, v.Heads)
	return a
}

// newCells returns the values of an act in columns.
func newCells(of *wire.Act, heads []actHead) (cells []actCell) {
	for _, h := range heads {
		c := newCell(of, h.Path)
		c.Number, c.Class = h.Numbers, h.Class
		cells = append(cells, c)
	}
	return cells
}

// agentName returns the name of the agent of an act.
func agentName(r *page.Request, of *wire.Act) page.Name {
	return page.Name{Text: cmp.Or(string(of.AgentName), string(of.Agent)), ID: string(of.Agent), URL: r.Address(agentsPage, string(of.Agent))}
}

// publicURL returns the address of the public page of an event.
func publicURL(r *page.Request, name id.Event) string {
	address := r.Address("/v1/public/orgs", string(r.Person.Organization.Slug), "verify", string(name))
	if log := r.Query("log"); log != "" {
		address += "?" + url.Values{"origin": {log}}.Encode()
	}
	return address
}

// newCell returns the value of an act in a column.
func newCell(of *wire.Act, path string) actCell {
	value := of.Columns[path]
	switch value.Kind() {
	case '0':
		return actCell{Text: groupNumber(string(value)), Exact: string(value)}
	case '"':
		var text string
		_ = json.Unmarshal(value, &text) // it is a string
		return actCell{Text: text, Exact: text}
	}
	return actCell{Exact: map[string]string{"too_long": "The text is too long for the list", "other_type": "Neither a number nor a text",
		"erased": "The payload is erased"}[of.Absent[path]]}
}

// groupNumber adds commas between groups of three digits to a number of JSON without an exponent.
func groupNumber(text string) string {
	whole, fraction, found := strings.Cut(text, ".")
	if strings.ContainsAny(text, "eE") {
		return text
	}
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if found {
		whole += "." + fraction
	}
	return sign + whole
}

// decider says who or what decided on an act. pending is of readPending.
func decider(of *wire.Act, pending map[string]string) string {
	var names []string
	for _, vote := range of.Votes {
		name := cmp.Or(string(vote.Name), string(vote.Email), vote.Account)
		if vote.DeputyFor != "" {
			name += " for " + cmp.Or(vote.DeputyForName, vote.DeputyFor)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch {
	case of.Outcome == "waiting" && len(names) == 0:
		return cmp.Or(pending[string(of.Approval)], "nobody yet")
	case len(names) > 2:
		return names[0] + " and " + strconv.Itoa(len(names)-1) + " others"
	case len(names) > 0:
		return strings.Join(names, ", ")
	case of.Outcome == "expired":
		return "nobody voted"
	case of.Outcome == "cancelled":
		return cmp.Or(pending[string(of.Approval)], "–")
	case of.Rule != "" && of.Rule != "default":
		return "rule " + string(of.Rule)
	case of.Policy != "":
		return "policy"
	}
	return "–"
}

// readPending returns, by approval, the time left of those that wait, and "the agent" for those that the agent cancelled.
func readPending(r *page.Request, acts []wire.Act) map[string]string {
	found, now := make(map[string]string), time.Now()
	for i := range acts {
		if acts[i].Outcome != "waiting" && acts[i].Outcome != "cancelled" || acts[i].Approval == "" {
			continue
		}
		name := string(acts[i].Approval)
		about, err := visitOf(r).Console.ShowApproval(r.Context(), visitOf(r).caller, name)
		switch words := leftWords(about.ExpiresAt, now); {
		case err != nil:
		case about.Status == "cancelled":
			found[name] = "the agent"
		case acts[i].Outcome == "waiting" && words != "":
			found[name] = words + " left"
		}
	}
	return found
}

// countView counts the acts of a search. It returns nil if they cannot be counted now.
func countView(r *page.Request, s *search) (*numbers, error) {
	found, chart, err := countOverTime(r, s.query, s.from, s.to, s.now)
	if err != nil {
		return nil, unlessUncountable(err)
	}
	return &numbers{Acts: found[0].Acts, Parts: outcomeParts(r, s, found[0]), Chart: chart}, nil
}

// outcomeParts returns the numbers of acts by outcome, with links to them.
func outcomeParts(r *page.Request, s *search, found wire.Stats) (parts []outcomePart) {
	for outcome, n := range found.Outcomes.All() {
		if n == 0 {
			continue
		}
		p := outcomePart{Outcome: outcome, Words: groupNumber(strconv.FormatUint(n, 10)) + " " + outcome,
			URL: searchURL(r, s.Line.with(term{Key: "outcome", Value: outcome}))}
		if outcome == "done" && found.Approvals.Done > 0 {
			p.Words += ", " + groupNumber(strconv.FormatUint(found.Approvals.Done, 10)) + " after approval"
		}
		parts = append(parts, p)
	}
	return parts
}

// evidenceURL returns the address of the form of evidence packs, filled in with the filters of a search that packs have. leftOut says how
// such a pack differs from the search, or is "".
func evidenceURL(r *page.Request, s *search) (address, leftOut string) {
	query := url.Values{}
	for _, name := range []string{"from", "to", "agent_id", "tool", "trace_id", "on_behalf_of", "issuer"} {
		if value := s.query.Get(name); value != "" {
			query.Set(name, value)
		}
	}
	if len(s.Columns) > 0 {
		query.Set("columns", strings.Join(s.Columns, ","))
	}
	if address = r.Address("/console/evidence"); len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address, leftOutOfPacks(s)
}

// leftOutOfPacks says which conditions of a search evidence packs do not have, or returns "".
func leftOutOfPacks(s *search) string {
	var names, sentences []string
	for _, t := range s.Line.Terms {
		if (t.isColumn() || !slices.Contains([]string{"from", "to", "agent", "tool", "trace", "behalf", "issuer"}, t.Key)) && !slices.Contains(names, t.Key) {
			names = append(names, t.Key)
		}
	}
	if s.Line.Words != "" {
		names = append(names, "words")
	}
	if len(names) > 0 {
		sentences = append(sentences, "Evidence cannot be limited by "+strings.Join(names, ", ")+", so it also has acts that this view leaves out.")
	}
	if s.query.Get("log") != "" {
		sentences = append(sentences, "Evidence is of the current log, and this view is of another one.")
	}
	return strings.Join(sentences, " ")
}

// toolsSince is how far back the completion looks for tools.
const toolsSince = 24 * time.Hour

// tools returns tools of recent acts and of the page.
func (v *activityView) tools(r *page.Request) (tools []string) {
	for _, d := range v.Days {
		for _, a := range d.Acts {
			if name := string(a.Tool); !slices.Contains(tools, name) {
				tools = append(tools, name)
			}
		}
	}
	query := url.Values{"by": {"tool"}, "from": {v.now.Add(-toolsSince).Format("2006-01-02T15:04:05.000Z")}}
	found, _ := visitOf(r).Console.CountActs(r.Context(), visitOf(r).caller, query)
	for _, c := range found.Counts {
		if name := textOf(c.Tool); !slices.Contains(tools, name) && len(tools) < maxCompleted {
			tools = append(tools, name)
		}
	}
	return tools
}
