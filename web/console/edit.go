package console

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// editView is the content of the editor.
type editView struct {
	version  // the latest
	Names    names
	Document string // the text to edit
	Line     int    // line of the error in a refused text; 0 if unknown
	Base     base   // the version that the text is based on
	Changed  bool   // the latest version is no longer Base
	Checked  *checked
	CheckURL string
	MayEvent bool // the reader may read the payloads of events
}

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

func (p *pages) showEditor(r *page.Request) (any, error) { return p.readEditor(r) }

// readEditor returns the editor with the latest version, or with the text of the form.
func (p *pages) readEditor(r *page.Request) (*editView, error) {
	v := &editView{CheckURL: r.Kit.Base + policyCalls + "/check", MayEvent: r.Person.May("read payloads")}
	var err error
	if v.version, err = readVersion(r, ""); err != nil {
		return nil, err
	}
	if v.Names, err = readNames(r); err != nil {
		return nil, err
	}
	v.Base = v.version.base()
	if r.Form.Has("document") {
		v.Document, v.Line = r.Form.Get("document"), findPlace(r.Form.Get("document"), r.Problem)
		if sent := baseOf(r); sent != v.Base {
			v.Base, v.Changed = sent, true
		}
	} else if v.Document, err = editable(v.Text); err != nil {
		return nil, err
	}
	r.Title = "Edit policy " + v.Name
	return v, nil
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
		return page.Outcome{}, refuseConflict("The policy was changed meanwhile: your text is not saved")
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
	Results []result // of all tests
}

// result is a test and its result.
type result struct {
	test
	Number int
	Why    string // why the test fails; "" if it passes
}

// checkDocument checks a document.
func checkDocument(r *page.Request, document jsontext.Value) (*checked, error) {
	v := visitOf(r)
	answer, err := v.Console.CheckPolicy(r.Context(), v.caller, document)
	if err != nil {
		return nil, err
	}
	found := checked{CheckedPolicy: answer}
	var read struct {
		Tests []test `json:"tests"`
	}
	if err := json.Unmarshal(document, &read); err != nil {
		return nil, fmt.Errorf("read tests: %w", err)
	}
	for i, t := range read.Tests {
		found.Results = append(found.Results, result{test: t, Number: i + 1})
	}
	for _, f := range found.Failures {
		if f.Test >= 0 && f.Test < len(found.Results) {
			found.Results[f.Test].Why = f.Why
		}
	}
	return &found, nil
}

// checkText shows the editor with the result of checking the text.
func (p *pages) checkText(r *page.Request) (page.Outcome, error) {
	document, err := parseObject("The policy", r.Form.Get("document"))
	if err != nil {
		return page.Outcome{}, err
	}
	found, err := checkDocument(r, document)
	if err != nil {
		return page.Outcome{}, err
	}
	v, err := p.readEditor(r)
	if err != nil {
		return page.Outcome{}, err
	}
	v.Checked = found
	return page.ShowAgain(v), nil
}

// addTest adds a test to the text that expects the decision of a stored event.
func (p *pages) addTest(r *page.Request) (page.Outcome, error) {
	document, err := parseObject("The policy", r.Form.Get("document"))
	if err != nil {
		return page.Outcome{}, err
	}
	e, err := readEvent(r, r.Value("event"))
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
	return page.ShowAgain(v), err
}

// storedEvent is a stored event with its payload.
type storedEvent struct {
	Effective string
	At        string // when it was decided
	Envelope  envelope
}

type envelope struct {
	EventID    string         `json:"event_id"`
	Tool       string         `json:"tool_name"`
	Agent      string         `json:"agent_id"`
	ActorType  string         `json:"actor_type"`
	ActionKind string         `json:"action_kind"`
	Payload    jsontext.Value `json:"payload"`
}

// readEvent reads an event with its payload.
func readEvent(r *page.Request, name string) (e storedEvent, err error) {
	if name == "" {
		return e, fault.New(fault.Invalid, "Name an event by its id")
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
	}
	err = errors.Join(json.Unmarshal([]byte(found.Record), &record),
		json.Unmarshal([]byte(*found.Envelope), &e.Envelope))
	if err == nil && e.Envelope.Tool == "" {
		err = fault.New(fault.Invalid, "The event names no tool, so no policy decides on it")
	}
	e.Effective, e.At = found.Effective, cmp.Or(record.Policy.EvaluatedAt, found.ReceivedAt.String())
	return e, err
}

// input returns the event as the input of a policy.
func (e *storedEvent) input() map[string]any {
	return map[string]any{"tool_name": e.Envelope.Tool, "agent_id": e.Envelope.Agent,
		"actor_type": e.Envelope.ActorType, "action_kind": e.Envelope.ActionKind, "payload": e.Envelope.Payload}
}
