package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/id"
)

// Policy is a version of a policy: its document, with every member written out as it is enforced, and its state.
type Policy struct {
	PolicyID    string         `json:"policy_id"`
	Name        string         `json:"name"`
	Version     uint64         `json:"version"`
	State       string         `json:"state"` // draft, active or archived
	Digest      id.Hash        `json:"policy_digest"`
	Default     string         `json:"default"`
	V           int            `json:"v,omitzero"` // 2 if a rule uses on_behalf_of
	Rules       jsontext.Value `json:"rules"`
	Tests       jsontext.Value `json:"tests"`
	WrittenAt   id.Instant     `json:"written_at"`
	WrittenBy   string         `json:"written_by"`
	ActivatedAt Time           `json:"activated_at"`
	ArchivedAt  Time           `json:"archived_at"`
}

// ListedPolicy is the latest version of a policy in a list.
type ListedPolicy struct {
	PolicyID      string     `json:"policy_id"`
	Name          string     `json:"name"`
	Version       uint64     `json:"version"`
	State         string     `json:"state"`
	ActiveVersion Number     `json:"active_version"`
	UpdatedAt     id.Instant `json:"updated_at"`
	UpdatedBy     Text       `json:"updated_by"` // null if unknown
}

// Policies is a page of the list of policies.
type Policies struct {
	Policies []ListedPolicy `json:"policies"`
	Next     Text           `json:"next"`
}

// PolicyVersion is a version in the list of a policy's versions.
type PolicyVersion struct {
	Version     uint64     `json:"version"`
	Name        string     `json:"name"`
	State       string     `json:"state"` // draft, active or archived
	Digest      id.Hash    `json:"policy_digest"`
	WrittenAt   id.Instant `json:"written_at"`
	WrittenBy   string     `json:"written_by"`
	ActivatedAt Time       `json:"activated_at"`
	ArchivedAt  Time       `json:"archived_at"`
}

// PolicyVersions is a page of the versions of a policy, latest first.
type PolicyVersions struct {
	Versions []PolicyVersion `json:"versions"`
	Next     Text            `json:"next"`
}

// CheckedPolicy is whether a document could be activated.
type CheckedPolicy struct {
	PolicyID Text           `json:"policy_id"`
	Rules    int            `json:"rules"`
	Tests    int            `json:"tests"`
	Failures []FailedTest   `json:"failures"`
	Quorum   Text           `json:"quorum_unreachable"`
	Document jsontext.Value `json:"document,omitzero"` // with every member written out, as it would be enforced
}

// FailedTest is a test of a document that does not pass.
type FailedTest struct {
	Test int    `json:"test"` // its position in tests, from 0
	Name string `json:"name"`
	Why  string `json:"why"`
}

// SimulatedPolicy names the version that a simulation used.
type SimulatedPolicy struct {
	PolicyID string  `json:"policy_id"`
	Version  uint64  `json:"policy_version"`
	Digest   id.Hash `json:"policy_digest"`
}

// Trial is the decision of a policy on one input, with its reasons.
type Trial struct {
	SimulatedPolicy `json:",inline"`
	Decision        string       `json:"decision"`
	RuleID          string       `json:"rule_id"`
	Reason          string       `json:"reason"`
	Obligations     []Obligation `json:"obligations"`
	Shadow          []string     `json:"shadow"`
	EvaluatedAt     id.Instant   `json:"evaluated_at"`
	InputDigest     id.Hash      `json:"input_digest"`
	Limits          []TrialLimit `json:"limits"`
	Rules           []TrialRule  `json:"rules"`
}

// Obligation is an approval that a decision requires.
type Obligation struct {
	Type       string `json:"type"`
	Approvals  int    `json:"approvals"`
	Signed     bool   `json:"signed,omitzero"`
	TTLSeconds int    `json:"ttl_seconds"`

	RemindAfterSeconds   int    `json:"remind_after_seconds,omitzero"`
	EscalateAfterSeconds int    `json:"escalate_after_seconds,omitzero"`
	EscalateTo           string `json:"escalate_to,omitzero"`
}

// TrialLimit is what an input adds to a limit.
type TrialLimit struct {
	LimitID  string          `json:"limit_id"`
	RuleID   string          `json:"rule_id"`
	Key      string          `json:"key"`
	Before   decimal.Decimal `json:"before"`
	Added    decimal.Decimal `json:"added"`
	Max      decimal.Decimal `json:"max"`
	Exceeded bool            `json:"exceeded"`
}

// TrialRule is the result of one rule for an input.
type TrialRule struct {
	RuleID string      `json:"rule_id"`
	Mode   string      `json:"mode"`
	Result string      `json:"result"`
	Why    Text        `json:"why"`
	Steps  []TrialStep `json:"steps"`
}

// TrialStep is a part of a condition and its value.
type TrialStep struct {
	Expression string `json:"expression"`
	Value      string `json:"value"`
}

// Simulation is what a policy would have decided on stored events.
type Simulation struct {
	SimulatedPolicy `json:",inline"`
	Summary         string         `json:"summary"`
	FromSequence    uint64         `json:"from_sequence"`
	ToSequence      uint64         `json:"to_sequence"`
	Complete        bool           `json:"complete"`
	Evaluated       int            `json:"evaluated"`
	WithoutTool     int            `json:"without_tool"`
	Erased          int            `json:"erased"`
	Results         int            `json:"results"`
	Shadow          map[string]int `json:"shadow"`
	Changed         int            `json:"changed"`
	Tightened       int            `json:"tightened"`
	Loosened        int            `json:"loosened"`
	Changes         []Change       `json:"changes"`
}

// Change is an event whose decision would differ.
type Change struct {
	SequenceNum uint64     `json:"sequence_num"`
	EventID     id.Event   `json:"event_id"`
	AgentID     id.Agent   `json:"agent_id"`
	ToolName    id.Tool    `json:"tool_name"`
	ReceivedAt  id.Instant `json:"received_at"`
	Recorded    Decided    `json:"recorded"`
	Simulated   Decided    `json:"simulated"`
	Reason      string     `json:"reason"`
}

// Decided is a decision with its policy and rule, which are nil if no policy was evaluated.
type Decided struct {
	Decision string  `json:"decision"`
	PolicyID *string `json:"policy_id"`
	RuleID   *string `json:"rule_id"`
}
