package webhook

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// MaxEndpoints is the number of endpoints that an organization may have.
const MaxEndpoints = 20

// Bounds of one endpoint.
const (
	maxEndpointName   = 100 // code points
	maxEndpointEvents = 32
	maxEndpointTools  = 20
	maxEndpointAgents = 50
	maxAgentID        = 128 // bytes
)

// EndpointID identifies an endpoint of an organization.
type EndpointID string

// Format is the form of the bodies that an endpoint receives.
type Format string

// The formats.
const (
	FormatStandard Format = "standard" // Standard Webhooks: type, timestamp, data
	FormatSlack    Format = "slack"    // text and, for questions, blocks
)

// Reason is why an endpoint is disabled, or "" if it is active.
type Reason string

// The reasons.
const (
	ByPerson   Reason = "person"   // a user of the organization disabled it
	ByReceiver Reason = "gone"     // the receiver responded with 410
	ByFailures Reason = "failures" // no attempt succeeded for five days
)

// Endpoint is a receiver of an organization's notices.
type Endpoint struct {
	ID        EndpointID
	Name      string
	URL       string
	Events    []string   // types, and families such as approval.*
	Tools     []string   // patterns of tool names; empty: all
	Agents    []id.Agent // empty: all
	Format    Format
	KeyID     string // of the key that signs its deliveries
	PublicKey string // whpk_ and base64 of 32 bytes
	HasSecret bool
	Secret    string      // whsec_ and base64 of 32 bytes; set only by the calls that generate it
	Former    []FormerKey // former keys that still sign, oldest first

	HasSlackSecret bool // linked users of Slack may vote in the receiver's messages

	Disabled     Reason
	FailingSince id.Instant // the first failure since the last success; 0 if none
	CreatedAt    id.Instant
	CreatedBy    string
}

// FormerKey is a key that a rotation replaced. It and the secret that was replaced with it sign until Until.
type FormerKey struct {
	KeyID     string     `json:"signing_key_id"`
	PublicKey string     `json:"public_key"`
	Until     id.Instant `json:"until"`
}

// EndpointPatch is a new endpoint or a change of one. Members that are nil stay unchanged.
type EndpointPatch struct {
	Name   *string
	URL    *string
	Events *[]string
	Tools  *[]string
	Agents *[]id.Agent
	Format *Format
	Active *bool

	// SlackSecret is the signing secret of the Slack app that sends votes. "" removes it.
	SlackSecret *string
}

// noticeTypes are the types of notices for endpoints, by family.
func noticeTypes() map[string][]string {
	return map[string][]string{
		"approval": {"pending", "approved", "denied", "consumed", "expired", "cancelled", "revoked", "invalidated", "reminder"},
		"run":      {"started", "succeeded", "failed", "aborted", "abandoned"},
		"event":    {"stored"},
		"decision": {"denied", "tightened"},
		"plan":     {"threshold"},
		"ledger":   {"fault"},
	}
}

// testType is the type of test deliveries. An endpoint always receives the ones that are created for it.
const testType = "webhook.test"

func isNoticeType(s string) bool {
	family, name, _ := strings.Cut(s, ".")
	names := noticeTypes()[family]
	return slices.Contains(names, name) || name == "*" && len(names) > 0
}

// matches reports whether an endpoint selects a notice.
func (r *endpointRecord) matches(m *Message) bool {
	family, _, _ := strings.Cut(m.Type, ".")
	if !slices.Contains(r.Events, m.Type) && !slices.Contains(r.Events, family+".*") {
		return false
	}
	if family == "plan" || family == "ledger" { // without agent and tool
		return true
	}
	if len(r.Agents) > 0 && !slices.Contains(r.Agents, m.Agent) {
		return false
	}
	fits := func(glob string) bool { return textcheck.MatchTool(glob, string(m.Tool)) }
	return len(r.Tools) == 0 || slices.ContainsFunc(r.Tools, fits)
}

// checkPatch returns fault.Invalid if a member is not allowed.
func (o *Sender) checkPatch(p EndpointPatch) error {
	if p.Name != nil && !textcheck.Name(*p.Name, 0, maxEndpointName) {
		return fault.New(fault.Invalid, "name must have at most 100 characters and no control characters")
	}
	if p.URL != nil {
		if err := o.checkReceiver(*p.URL); err != nil {
			return fault.Wrap(fault.Invalid, "url must be a public https address of at most 2048 bytes", err)
		}
	}
	if p.Format != nil && *p.Format != FormatStandard && *p.Format != FormatSlack {
		return fault.New(fault.Invalid, "format must be standard or slack")
	}
	if p.SlackSecret != nil && *p.SlackSecret != "" && !validSlackSecret(*p.SlackSecret) {
		return fault.New(fault.Invalid, "slack_signing_secret must have 16 to 128 letters and digits")
	}
	return p.checkFilters()
}

// validSlackSecret reports whether s can be the signing secret of a Slack app. Slack's have 32 hexadecimal digits.
func validSlackSecret(s string) bool {
	other := func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') }
	return len(s) >= 16 && len(s) <= 128 && !strings.ContainsFunc(s, other)
}

func (p EndpointPatch) checkFilters() error {
	if p.Events != nil {
		if n := len(*p.Events); n == 0 || n > maxEndpointEvents {
			return fault.New(fault.Invalid, "events must have 1 to 32 elements")
		}
		if err := checkEach("events", *p.Events, isNoticeType, "is not a type of notices"); err != nil {
			return err
		}
	}
	if p.Tools != nil {
		if len(*p.Tools) > maxEndpointTools {
			return fault.New(fault.Invalid, "tools must have at most 20 elements")
		}
		if err := checkEach("tools", *p.Tools, textcheck.ValidToolGlob, "is not a pattern of tool names"); err != nil {
			return err
		}
	}
	if p.Agents == nil {
		return nil
	}
	if len(*p.Agents) > maxEndpointAgents {
		return fault.New(fault.Invalid, "agents must have at most 50 elements")
	}
	wellFormed := func(a id.Agent) bool { return len(a) <= maxAgentID && textcheck.Plain(string(a), 1, maxAgentID) }
	return checkEach("agents", *p.Agents, wellFormed, "is not an agent id")
}

// checkEach returns fault.Invalid for the first element that is not valid, with its index.
func checkEach[T any](member string, all []T, good func(T) bool, message string) error {
	for i, one := range all {
		if !good(one) {
			return fault.New(fault.Invalid, fmt.Sprintf("%s[%d] %s", member, i, message))
		}
	}
	return nil
}

// keyIDFor returns the ID of a public key.
func keyIDFor(public string) string {
	raw, _ := base64.StdEncoding.DecodeString(public) // a key that is not base64 gets an ID too
	sum := sha256.Sum256(raw)
	return "whk_" + hex.EncodeToString(sum[:8])
}
