package console

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// editView is the content of the editor.
type editView struct {
	version         // the latest
	Document string // the text to edit
	Line     int    // line of the error in a refused text; 0 if unknown
	Slip     string // why the text was refused, if the line is known
	Base     base   // the version that the text is based on
	Changed  bool   // the latest version is no longer Base
	Checked  *checked
	MayEvent bool // the reader may read the payloads of events
	MayTry   bool
	Known    []string // names to insert into the text: tools and members of payloads that the log has
}

// editorRows is the minimum height of the editor in lines.
const editorRows = 28

// Numbers returns the numbers of the lines of the text.
func (v *editView) Numbers() []int {
	numbers := make([]int, 1+strings.Count(v.Document, "\n"))
	for i := range numbers {
		numbers[i] = i + 1
	}
	return numbers
}

// Rows returns the height of the editor in lines.
func (v *editView) Rows() int { return max(editorRows, 2+strings.Count(v.Document, "\n")) }

// base identifies the version that a text is based on, with the time of its last change, because the digest does not
// cover tests.
type base struct{ Version, Digest, WrittenAt string }

func (v *version) base() base {
	return base{strconv.FormatUint(v.Version, 10), v.Digest.String(), v.WrittenAt.String()}
}

// baseOf returns the base in a form.
func baseOf(r *page.Request) base {
	return base{r.Value("base_version"), r.Value("base_digest"), r.Value("base_written_at")}
}

// showEditor shows the editor. A text that was not refused is checked.
func (p *pages) showEditor(r *page.Request) (any, error) {
	v, err := p.readEditor(r)
	if err != nil {
		return nil, err
	}
	v.readKnown(r)
	if !v.MayTry || r.Form.Has("document") {
		return v, nil
	}
	if v.Checked, err = checkDocument(r, []byte(v.Document), false); fault.Is(err, fault.Invalid) {
		err = nil // an old document may break a newer rule: the user sees the text
	}
	return v, err
}

// Bounds of the names that the editor offers.
const (
	maxKnown   = 200
	knownSince = 24 * time.Hour // of tools
)

// readKnown reads the names that the editor offers: tools of recent acts, and members of payloads. It returns members only to readers
// of payloads: the organization's columns, and those of the acts that a check has decided again.
func (v *editView) readKnown(r *page.Request) {
	query := url.Values{"by": {"tool"}, "from": {time.Now().UTC().Add(-knownSince).Format("2006-01-02T15:04:05.000Z")}}
	counted, _ := visitOf(r).Console.CountActs(r.Context(), visitOf(r).caller, query) // without them there is less to choose from
	for _, c := range counted.Counts {
		v.addKnown(textOf(c.Tool))
	}
	if !v.MayEvent {
		return
	}
	found, _ := visitOf(r).Console.ShowColumns(r.Context(), visitOf(r).caller)
	for _, c := range found.Columns {
		v.addKnown("payload." + c.Path)
	}
	if v.Checked == nil || v.Checked.Past == nil {
		return
	}
	for _, tool := range slices.Sorted(maps.Keys(v.Checked.Past.Seen)) {
		v.addKnown(string(tool))
		for _, member := range slices.Sorted(maps.Keys(v.Checked.Past.Seen[tool])) {
			v.addKnown("payload." + member)
		}
	}
}

// addKnown adds a name that needs no quotes in a policy, once.
func (v *editView) addKnown(name string) {
	plain := !strings.ContainsFunc(name, func(c rune) bool {
		return c != '_' && c != '.' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
	if plain && name != "" && len(v.Known) < maxKnown && !slices.Contains(v.Known, name) {
		v.Known = append(v.Known, name)
	}
}

// readEditor returns the editor with the latest version, or with the text of the form.
func (p *pages) readEditor(r *page.Request) (*editView, error) {
	v := &editView{MayEvent: r.Person.May("read payloads"), MayTry: r.Person.May("try policies")}
	var err error
	if v.version, err = readVersion(r, ""); err != nil {
		return nil, err
	}
	v.Base = v.version.base()
	if r.Form.Has("document") {
		v.Document = strings.ReplaceAll(r.Form.Get("document"), "\r\n", "\n") // browsers send both
		v.findSlip(r)
		if sent := baseOf(r); sent != v.Base {
			v.Base, v.Changed = sent, true
		}
	} else if v.Document, err = editable(v.Text); err != nil {
		return nil, err
	}
	r.Title = v.Name
	return v, nil
}

// findSlip moves the reason of a refusal to the line of the text that caused it.
func (v *editView) findSlip(r *page.Request) {
	if r.Problem == "" {
		return
	}
	if _, wrong := readValue(v.Document); wrong != nil {
		v.Line, v.Slip = wrong.line, "the text is not JSON from here on: "+wrong.cause
	} else if v.Line = findPlace(v.Document, r.Problem); v.Line > 0 {
		v.Slip = r.Problem
	}
	if v.Slip != "" {
		r.Problem = ""
	}
}

// saveDraft makes the text the latest version of the policy, if its base is still the latest version.
func (p *pages) saveDraft(r *page.Request) (page.Outcome, error) {
	document, err := parseObject("The policy", r.Form.Get("document"))
	if err != nil {
		return page.Outcome{}, err
	}
	draft, err := draftOf(document)
	if err != nil {
		return page.Outcome{}, err
	}
	newest, err := readVersion(r, "")
	if err != nil {
		return page.Outcome{}, err
	}
	if newest.base() != baseOf(r) && !r.Checked("overwrite") {
		return page.Outcome{}, refuseConflict("The policy was changed in the meantime: your text is not saved")
	}
	for name, value := range map[string]any{"version": newest.Version, "policy_digest": newest.Digest} {
		if draft[name], err = json.Marshal(value); err != nil {
			return page.Outcome{}, err
		}
	}
	text, err := json.Marshal(draft)
	if err != nil {
		return page.Outcome{}, err
	}
	v := visitOf(r)
	if _, err := v.Console.DraftPolicy(r.Context(), v.caller, r.PathParameter("policy"), text); err != nil {
		return page.Outcome{}, err
	}
	return page.GoTo(policyAddress(r, ""), "draft-saved"), nil
}

// checked is the result of checking a valid policy.
type checked struct {
	wire.CheckedPolicy
	Says    says
	Results []result      // of all tests, failures first
	Past    *decidedAgain // nil if no acts were decided again
	Unseen  []unseen      // members that conditions read and acts did not have
}

// unseen is a member of the payload that a rule reads and that none of the acts of its tools that were decided again had.
type unseen struct {
	Line         int    // of the edited text; 0 if no text is edited
	place        string // in the document that requires the member
	Tool, Member string
	Meant        string // the member that is probably meant; "" if none is close
}

// maxUnseen is the maximum number of unseen members that a page lists.
const maxUnseen = 5

// findUnseen compares the members that rules require with those of the acts that were decided again.
func findUnseen(rules []rule, places map[string]string, seen map[id.Tool]map[string]bool) (all []unseen) {
	for _, r := range rules {
		for _, path := range r.Requires {
			member, _, _ := strings.Cut(path, ".")
			member, _, _ = strings.Cut(member, "[")
			if strings.HasPrefix(member, `"`) || len(all) == maxUnseen {
				continue
			}
			meant, missing := closestSeen(r.Tool, member, seen)
			if !missing {
				continue
			}
			one := unseen{place: places[r.RuleID], Tool: r.Tool, Member: member, Meant: meant}
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return all
}

// closestSeen reports whether acts of the tools that a pattern matches were seen, all of them without a member, and returns the
// member of these acts that is probably meant.
func closestSeen(pattern, member string, seen map[id.Tool]map[string]bool) (meant string, missing bool) {
	if _, one := seen[id.Tool(pattern)]; !one && len(seen) >= simulate.MaxSeenTools {
		return "", false // another tool that the pattern matches may be left out
	}
	others := make(map[string]bool)
	for tool, names := range seen {
		if !textcheck.MatchTool(pattern, string(tool)) {
			continue
		}
		if names == nil || names[member] { // names is nil if they are too many to know
			return "", false
		}
		missing = true
		maps.Copy(others, names)
	}
	return textcheck.Closest(member, slices.Sorted(maps.Keys(others))), missing
}

// placedRule is a rule of a document.
type placedRule struct {
	RuleID   string         `json:"rule_id"`
	Requires jsontext.Value `json:"requires"`
}

// placesOf returns where each rule of a document requires members, by the ID of the rule.
func placesOf(rules []placedRule) map[string]string {
	places := make(map[string]string)
	for i, r := range rules {
		places[r.RuleID] = fmt.Sprintf("rules[%d].when:", i)
		if r.Requires != nil && r.Requires.Kind() != 'n' {
			places[r.RuleID] = fmt.Sprintf("rules[%d].requires:", i)
		}
	}
	return places
}

// says is what a policy says.
type says struct {
	Default string `json:"default"`
	Rules   []rule `json:"rules"`
}

// decidedAgain is what a policy would have done with the acts of the last week.
type decidedAgain struct{ *simulate.Report }

// Same returns the number of acts with the same decision.
func (p decidedAgain) Same() int { return p.Evaluated - p.Changed }

// listedChanges is the maximum number of changed decisions that a page lists.
const listedChanges = 8

// FewChanges returns the first changed decisions.
func (p decidedAgain) FewChanges() []simulate.Change {
	return p.Changes[:min(listedChanges, len(p.Changes))]
}

// Consequence returns what the activation of the policy would have done, for its button.
func (p decidedAgain) Consequence() string {
	switch {
	case !p.Complete: // the numbers are too small
		return ""
	case p.NowDenied > 0:
		return fmt.Sprintf(" and deny %d of last week's", p.NowDenied)
	case p.NowAsked > 0:
		return fmt.Sprintf(" and ask a person about %d of last week's", p.NowAsked)
	case p.NowAllowed > 0:
		return fmt.Sprintf(" and allow %d more of last week's", p.NowAllowed)
	}
	return ""
}

// result is a test and its result.
type result struct {
	test
	Number int
	Why    string // why the test fails; "" if it passes
}

// Failing returns the tests that fail.
func (c *checked) Failing() []result { return c.Results[:min(len(c.Failures), len(c.Results))] }

// Passing returns the tests that pass.
func (c *checked) Passing() []result { return c.Results[len(c.Failing()):] }

// lastWeek selects the acts that a check decides again.
func lastWeek() *simulate.Range {
	return &simulate.Range{Last: simulate.MaxEvents, Since: id.InstantOf(time.Now().Add(-7 * 24 * time.Hour))}
}

// checkDocument checks a document. If again, it also decides the acts of the last week again.
func checkDocument(r *page.Request, document jsontext.Value, again bool) (*checked, error) {
	var of *simulate.Range
	if again {
		of = lastWeek()
	}
	v := visitOf(r)
	answer, err := v.Console.PreviewPolicy(r.Context(), v.caller, document, of)
	if err != nil {
		return nil, err
	}
	found := checked{CheckedPolicy: answer.CheckedPolicy}
	var read struct {
		Rules []placedRule `json:"rules"`
		Tests []test       `json:"tests"`
	}
	if err := errors.Join(decode(answer.Document, &found.Says), decode(document, &read)); err != nil {
		return nil, err
	}
	if answer.Past != nil {
		found.Past = &decidedAgain{answer.Past}
		found.Unseen = findUnseen(found.Says.Rules, placesOf(read.Rules), answer.Past.Seen)
		for i := range found.Unseen {
			if !r.Person.May("read payloads") { // the names of members are a part of payloads
				found.Unseen[i].Meant = ""
			}
		}
	}
	for i, t := range read.Tests {
		found.Results = append(found.Results, result{test: t, Number: i + 1})
	}
	for _, f := range found.Failures {
		if f.Test >= 0 && f.Test < len(found.Results) {
			found.Results[f.Test].Why = f.Why
		}
	}
	slices.SortStableFunc(found.Results, func(a, b result) int { return cmp.Compare(passes(a), passes(b)) })
	return &found, nil
}

func passes(r result) int {
	if r.Why == "" {
		return 1
	}
	return 0
}

// checkText shows the editor with the result of checking the text.
func (p *pages) checkText(r *page.Request) (page.Outcome, error) { return p.check(r, true) }

// glanceText is checkText without deciding acts again. The page's script sends it while the user types.
func (p *pages) glanceText(r *page.Request) (page.Outcome, error) { return p.check(r, false) }

func (p *pages) check(r *page.Request, again bool) (page.Outcome, error) {
	document, err := parseObject("The policy", r.Form.Get("document"))
	if err != nil {
		return page.Outcome{}, err
	}
	found, err := checkDocument(r, document, again)
	if err != nil {
		return page.Outcome{}, err
	}
	v, err := p.readEditor(r)
	if err != nil {
		return page.Outcome{}, err
	}
	for i := range found.Unseen {
		found.Unseen[i].Line = findPlace(v.Document, found.Unseen[i].place)
	}
	v.Checked = found
	if again { // the page's script keeps the names
		v.readKnown(r)
	}
	return page.ShowAgain(v), nil
}

// addTest adds a test of the event in the form's field.
func (p *pages) addTest(r *page.Request) (page.Outcome, error) {
	return p.addTestOf(r, r.Value("event"))
}

// addTestOfAct adds a test of the act whose button was pressed. The address names it, so it must not be read by addTest: it remains
// in the address of the page that follows.
func (p *pages) addTestOfAct(r *page.Request) (page.Outcome, error) {
	return p.addTestOf(r, r.Query("test"))
}

// addTestOf adds a test to the text that expects the decision of a stored event.
func (p *pages) addTestOf(r *page.Request, event string) (page.Outcome, error) {
	document, err := parseObject("The policy", r.Form.Get("document"))
	if err != nil {
		return page.Outcome{}, err
	}
	e, err := readEvent(r, event)
	if err != nil {
		return page.Outcome{}, err
	}
	text, err := withTest(document, map[string]any{"name": "event " + e.Envelope.EventID, "input": e.input(),
		"now": e.At, "expect": map[string]string{"decision": e.Effective}})
	if err != nil {
		return page.Outcome{}, err
	}
	r.Form.Set("document", text)
	r.Form.Del("event")
	v, err := p.readEditor(r)
	if err != nil {
		return page.Outcome{}, err
	}
	v.readKnown(r)
	return page.ShowAgain(v), nil
}

// storedEvent is a stored event with its payload.
type storedEvent struct {
	Effective string
	At        string // when it was decided
	Envelope  envelope
	Verified  bool // on_behalf_of of the envelope
}

type envelope struct {
	EventID    string         `json:"event_id"`
	Tool       string         `json:"tool_name"`
	Agent      string         `json:"agent_id"`
	ActorType  string         `json:"actor_type"`
	ActionKind string         `json:"action_kind"`
	Payload    jsontext.Value `json:"payload"`
	OnBehalfOf jsontext.Value `json:"on_behalf_of"`
}

// readEvent reads an event with its payload.
func readEvent(r *page.Request, name string) (e storedEvent, err error) {
	if name == "" {
		return e, fault.New(fault.Invalid, "Name an event by its ID")
	}
	found, err := visitOf(r).Console.ShowEvent(r.Context(), visitOf(r).caller, name, nil)
	switch {
	case isMissing(err):
		return e, fault.New(fault.Invalid, "The organization has no such event")
	case err != nil:
		return e, err
	case found.Envelope == nil:
		return e, fault.New(fault.Invalid, "The payload of the event is erased, or your role may not read it")
	}
	var record struct {
		Policy struct {
			EvaluatedAt string `json:"evaluated_at"`
		} `json:"policy"`
		OnBehalfOf event.Standing `json:"on_behalf_of"`
	}
	err = errors.Join(json.Unmarshal([]byte(found.Record), &record),
		json.Unmarshal([]byte(*found.Envelope), &e.Envelope))
	if err == nil && e.Envelope.Tool == "" {
		err = fault.New(fault.Invalid, "The event names no tool, so no policy decides on it")
	}
	if _, wrong := event.ParseOnBehalfOf(e.Envelope.OnBehalfOf); wrong != nil { // absent, or malformed and stored earlier
		e.Envelope.OnBehalfOf = nil
	}
	e.Verified = record.OnBehalfOf == event.Verified
	e.Effective, e.At = found.Effective, cmp.Or(record.Policy.EvaluatedAt, found.ReceivedAt.String())
	return e, err
}

// input returns the event as the input of a policy.
func (e *storedEvent) input() map[string]any {
	input := map[string]any{"tool_name": e.Envelope.Tool, "agent_id": e.Envelope.Agent,
		"actor_type": e.Envelope.ActorType, "action_kind": e.Envelope.ActionKind, "payload": e.Envelope.Payload}
	if e.Envelope.OnBehalfOf != nil {
		input["on_behalf_of"], input["on_behalf_of_verified"] = e.Envelope.OnBehalfOf, e.Verified
	}
	return input
}
