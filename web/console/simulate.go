package console

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/web/screen"
)

// simulateView is the content of the page on which people try a version.
type simulateView struct {
	version
	Input    inputFields
	History  *history
	Trial    *trial
	MayEvent bool
}

// inputFields are the fields of an input before a person changes them.
type inputFields struct{ Tool, Agent, Payload, Now string }

// history has the decisions that a version would have made on stored events.
type history struct {
	Summary      string         `json:"summary"`
	FromSequence uint64         `json:"from_sequence"`
	ToSequence   uint64         `json:"to_sequence"`
	Complete     bool           `json:"complete"`
	Evaluated    int            `json:"evaluated"`
	WithoutTool  int            `json:"without_tool"`
	Erased       int            `json:"erased"`
	Results      int            `json:"results"`
	Shadow       map[string]int `json:"shadow"`
	Changed      int            `json:"changed"`
	Tightened    int            `json:"tightened"`
	Loosened     int            `json:"loosened"`
	Changes      []change       `json:"changes"`
	Shadows      []shadow       `json:"-"` // of all shadow rules
}

// change is an event that would be decided otherwise.
type change struct {
	SequenceNum uint64  `json:"sequence_num"`
	EventID     string  `json:"event_id"`
	AgentID     string  `json:"agent_id"`
	ToolName    string  `json:"tool_name"`
	ReceivedAt  string  `json:"received_at"`
	Recorded    outcome `json:"recorded"`
	Simulated   outcome `json:"simulated"`
	Reason      string  `json:"reason"`
}

type outcome struct {
	Decision string `json:"decision"`
	PolicyID string `json:"policy_id"`
	RuleID   string `json:"rule_id"`
}

// shadow is a shadow rule with the number of events that it would have matched.
type shadow struct {
	rule
	Matches int
}

// trial is the decision of a version on one input, with its reasons.
type trial struct {
	Decision    string       `json:"decision"`
	RuleID      string       `json:"rule_id"`
	Reason      string       `json:"reason"`
	Obligations []obligation `json:"obligations"`
	Shadow      []string     `json:"shadow"`
	EvaluatedAt string       `json:"evaluated_at"`
	Rules       []ruleAnswer `json:"rules"`
	Limits      []struct {
		LimitID  string `json:"limit_id"`
		RuleID   string `json:"rule_id"`
		Before   string `json:"before"`
		Added    string `json:"added"`
		Max      string `json:"max"`
		Exceeded bool   `json:"exceeded"`
	} `json:"limits"`
}

// ruleAnswer is the answer of one rule to an input.
type ruleAnswer struct {
	RuleID string `json:"rule_id"`
	Mode   string `json:"mode"`
	Result string `json:"result"`
	Why    string `json:"why"`
	Steps  []struct {
		Expression string `json:"expression"`
		Value      string `json:"value"`
	} `json:"steps"`
}

func (p *pages) showSimulation(r *screen.Request) (any, error) {
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
	v.Input = inputFields{e.Envelope.Tool, e.Envelope.Agent, indent(e.Envelope.Payload), e.At}
	return v, nil
}

// readSimulation returns the page without a result.
func (p *pages) readSimulation(r *screen.Request) (*simulateView, error) {
	v := &simulateView{MayEvent: r.Person.May("read payloads"), Input: inputFields{Payload: "{}"}}
	var err error
	if v.version, err = readVersion(r, r.Query("version")); err != nil {
		return nil, err
	}
	r.Title = "Simulate policy " + v.Name
	return v, nil
}

// simulateHistory decides stored events again by the version.
func (p *pages) simulateHistory(r *screen.Request) (screen.Outcome, error) {
	v, err := p.readSimulation(r)
	if err != nil {
		return screen.Outcome{}, err
	}
	last, err := strconv.Atoi(r.Value("last"))
	if err != nil {
		return screen.Outcome{}, fault.New(fault.Invalid, "The number of events must be from 1 to 10000")
	}
	body := map[string]any{"version": v.Version, "last": last}
	if to := r.Value("to"); to != "" {
		if body["to"], err = parseNumber("The number of the newest event", to); err != nil {
			return screen.Outcome{}, err
		}
	}
	if err := r.Change(http.MethodPost, policyCall(r, "/simulate"), body, &v.History); err != nil {
		return screen.Outcome{}, err
	}
	for _, one := range v.Rules {
		if one.IsShadow() {
			v.History.Shadows = append(v.History.Shadows, shadow{one, v.History.Shadow[one.RuleID]})
		}
	}
	return screen.ShowAgain(v), nil
}

// simulateInput explains the decision of the version on an input.
func (p *pages) simulateInput(r *screen.Request) (screen.Outcome, error) {
	v, err := p.readSimulation(r)
	if err != nil {
		return screen.Outcome{}, err
	}
	input := map[string]any{"tool_name": r.Value("tool_name")}
	if agent := r.Value("agent_id"); agent != "" {
		input["agent_id"] = agent
	}
	if input["payload"], err = parseField("The payload", r.Form.Get("payload")); err != nil {
		return screen.Outcome{}, err
	}
	body := map[string]any{"version": v.Version, "input": input}
	if at := r.Value("now"); at != "" {
		body["now"] = at
	}
	limits, err := parseField("The amounts of limits", r.Form.Get("limits"))
	if err != nil {
		return screen.Outcome{}, err
	}
	if string(limits) != "{}" {
		body["limits"] = limits
	}
	if err := r.Change(http.MethodPost, policyCall(r, "/simulate"), body, &v.Trial); err != nil {
		return screen.Outcome{}, err
	}
	return screen.ShowAgain(v), nil
}

// parseField reads a field with a JSON object, {} for an empty one.
func parseField(name, text string) (jsontext.Value, error) {
	if strings.TrimSpace(text) == "" {
		return jsontext.Value("{}"), nil
	}
	return parseObject(name, text)
}
