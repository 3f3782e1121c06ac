package agent

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// Limits of texts, in code points.
const (
	maxDisplayName = 256
	maxReason      = 1024
)

// newAgentID and newKeyID return names with more than 128 random bits.
func newAgentID() id.Agent { return id.Agent("agt_" + strings.ToLower(rand.Text())) }
func newKeyID() id.Key     { return id.Key("key_" + strings.ToLower(rand.Text())) }

// checkAgentID validates a requested agent ID.
func checkAgentID(a id.Agent) error {
	if !isNameFree(string(a)) {
		return fault.New(fault.Invalid, "agent_id must be 3 to 64 of a-z 0-9 . _ - and begin with a letter or a digit")
	}
	reserved := func(prefix string) bool { return strings.HasPrefix(string(a), prefix) }
	if slices.ContainsFunc([]string{"agt_", "bridge_", "system", "ledger"}, reserved) {
		return fault.New(fault.Invalid, "agent_id must not begin with agt_, bridge_, system or ledger")
	}
	return nil
}

// isNameFree reports whether s has the form [a-z0-9][a-z0-9._-]{2,63}.
func isNameFree(s string) bool {
	if len(s) < 3 || len(s) > 64 || strings.IndexByte("._-", s[0]) >= 0 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && strings.IndexByte("._-", c) < 0 {
			return false
		}
	}
	return true
}

// checkKeyID validates a key ID that a client requested.
func checkKeyID(k id.Key) error {
	if !event.ValidKey(string(k)) {
		return fault.New(fault.Invalid, "key_id must be 1 to 256 of A-Z a-z 0-9 . _ : # -")
	}
	if strings.HasPrefix(string(k), "system_") || strings.HasPrefix(string(k), "bridge_") {
		return fault.New(fault.Invalid, "key_id must not begin with system_ or bridge_")
	}
	return nil
}

func checkDisplayName(s string) error {
	if !textcheck.Name(s, 0, maxDisplayName) {
		return fault.New(fault.Invalid,
			"display_name must have at most 256 characters, none of them a control character")
	}
	return nil
}

func checkReason(s string) error {
	if !textcheck.Plain(s, 0, maxReason) {
		return fault.New(fault.Invalid, "reason must have at most 1024 characters, none of them a control character")
	}
	return nil
}
