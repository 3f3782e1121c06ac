package org

import (
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// Limits of texts, in code points, and of lists.
const (
	maxName   = 200
	maxAgents = 100
)

// Maximum values of limits, far below the largest integer that a JSON number represents exactly.
const (
	maxEventsPerMonth = 1_000_000_000_000
	maxThings         = 1_000_000_000
)

// checkLimit checks an organization's own monthly limit.
func checkLimit(n uint64) error {
	if n < 1 || n > maxEventsPerMonth {
		return fault.New(fault.Invalid, "events_per_month must be 1 to 1000000000000, or null for the plan's")
	}
	return nil
}

// ParseSlug parses a slug: [a-z0-9](-?[a-z0-9])*, 3 to 63 characters, and not a UUID, which identifies organizations
// elsewhere.
func ParseSlug(s string) (id.Slug, error) {
	_, err := id.ParseOrganization(s)
	if !isValidSlug(s) || err == nil {
		return "", fault.New(fault.Invalid,
			"slug must be 3 to 63 of a-z, 0-9 and single hyphens inside, and not a UUID")
	}
	return id.Slug(s), nil
}

func isValidSlug(s string) bool {
	hyphen := true // so that a leading hyphen is rejected
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			hyphen = false
		case c == '-' && !hyphen:
			hyphen = true
		default:
			return false
		}
	}
	return len(s) >= 3 && len(s) <= 63 && !hyphen
}

func validEnvironment(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 16
}

// checkName checks the name of an organization or of an ingest key.
func checkName(s string) error {
	if !textcheck.Within(s, 1, maxName) {
		return fault.New(fault.Invalid, "name must have 1 to 200 characters")
	}
	if !textcheck.Name(s, 1, maxName) {
		return fault.New(fault.Invalid, "name must not have control characters")
	}
	return nil
}

// checkAgents checks the agents of an ingest key.
func checkAgents(agents []id.Agent) error {
	if len(agents) > maxAgents {
		return fault.New(fault.Invalid, "agents must be at most 100")
	}
	for _, a := range agents {
		if !event.ValidAgent(string(a)) || event.ReservedAgent(string(a)) {
			return fault.New(fault.Invalid, "agents must be agent ids")
		}
	}
	return nil
}
