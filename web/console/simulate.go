package console

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// simulateView is the content of the page that tries a version.
type simulateView struct {
	version
	Input    inputFields
	History  *history
	Trial    *trial
	MayEvent bool
}

// inputFields are the fields of an input before the user edits them.
type inputFields struct {
	Tool, Agent, Payload, Now string

	OnBehalfOf string // as JSON; "" for none
	Verified   bool
}

// history contains the decisions that a version would have made on stored events.
type history struct {
	wire.Simulation
	Shadows []shadow // of all shadow rules
}

// shadow is a shadow rule with the number of events that it would have matched.
type shadow struct {
	rule
	Matches int
}

// trial is the decision of a version on one input, with its reasons.
type trial struct {
	wire.Trial
	Obligations []obligation
}

func (p *pages) showSimulation(r *page.Request) (any, error) {
	v, err := p.readSimulation(r)
	if err != nil || !v.MayEvent || r.Query("event") == "" {
		return v, err
	}
	e, err := readEvent(r, r.Query("event"))
	if fault.Is(err, fault.Invalid) {
		r.Problem = fault.Of(err).Message
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	v.Input = inputFields{Tool: e.Envelope.Tool, Agent: e.Envelope.Agent, Payload: indent(e.Envelope.Payload), Now: e.At,
		OnBehalfOf: string(e.Envelope.OnBehalfOf), Verified: e.Verified}
	return v, nil
}

// readSimulation returns the page without a result.
func (p *pages) readSimulation(r *page.Request) (*simulateView, error) {
	v := &simulateView{MayEvent: r.Person.May("read payloads"), Input: inputFields{Payload: "{}"}}
	var err error
	if v.version, err = readVersion(r, r.Query("version")); err != nil {
		return nil, err
	}
	r.Title = "Simulate policy " + v.Name
	return v, nil
}

// simulateHistory evaluates the version on stored events.
func (p *pages) simulateHistory(r *page.Request) (page.Outcome, error) {
	v, err := p.readSimulation(r)
	if err != nil {
		return page.Outcome{}, err
	}
	last, err := strconv.Atoi(r.Value("last"))
	if err != nil {
		return page.Outcome{}, fault.New(fault.Invalid, "The number of events must be from 1 to 10000")
	}
	of := simulate.Range{Last: last}
	if to := r.Value("to"); to != "" {
		number, err := parseNumber("The number of the latest event", to)
		if err != nil {
			return page.Outcome{}, err
		}
		of.To = id.Index(number)
	}
	found, err := visitOf(r).Console.SimulatePolicy(r.Context(), visitOf(r).caller, v.PolicyID, v.Version, of)
	if err != nil {
		return page.Outcome{}, err
	}
	v.History = &history{Simulation: found}
	for _, one := range v.Rules {
		if one.IsShadow() {
			v.History.Shadows = append(v.History.Shadows, shadow{one, v.History.Shadow[one.RuleID]})
		}
	}
	return page.ShowAgain(v), nil
}

// simulateInput explains the decision of the version on an input.
func (p *pages) simulateInput(r *page.Request) (page.Outcome, error) {
	v, err := p.readSimulation(r)
	if err != nil {
		return page.Outcome{}, err
	}
	input := map[string]any{"tool_name": r.Value("tool_name")}
	if agent := r.Value("agent_id"); agent != "" {
		input["agent_id"] = agent
	}
	if input["payload"], err = parseField("The payload", r.Form.Get("payload")); err != nil {
		return page.Outcome{}, err
	}
	if of := r.Form.Get("on_behalf_of"); strings.TrimSpace(of) != "" {
		if input["on_behalf_of"], err = parseObject("On behalf of", of); err != nil {
			return page.Outcome{}, err
		}
	}
	input["on_behalf_of_verified"] = r.Checked("on_behalf_of_verified")
	var wanted api.Trial
	if wanted.Input, err = json.Marshal(input); err != nil {
		return page.Outcome{}, err
	}
	if at := r.Value("now"); at != "" {
		if wanted.Now, err = json.Marshal(at); err != nil {
			return page.Outcome{}, err
		}
	}
	limits, err := parseField("The amounts of limits", r.Form.Get("limits"))
	if err != nil {
		return page.Outcome{}, err
	}
	if string(limits) != "{}" {
		wanted.Limits = limits
	}
	found, err := visitOf(r).Console.TryPolicy(r.Context(), visitOf(r).caller, v.PolicyID, v.Version, wanted)
	if err != nil {
		return page.Outcome{}, err
	}
	v.Trial = &trial{Trial: found}
	for _, one := range found.Obligations {
		v.Trial.Obligations = append(v.Trial.Obligations, obligation{one})
	}
	return page.ShowAgain(v), nil
}

// parseField parses a field with a JSON object; an empty field means {}.
func parseField(name, text string) (jsontext.Value, error) {
	if strings.TrimSpace(text) == "" {
		return jsontext.Value("{}"), nil
	}
	return parseObject(name, text)
}
