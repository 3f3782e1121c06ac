package policy

import (
	"strings"

	"github.com/agentledger/agentledger/internal/textcheck"
)

// isValidToolName reports whether s is a tool name.
func isValidToolName(s string) bool {
	for _, segment := range strings.Split(s, ".") {
		if !textcheck.ValidToolSegment(segment) {
			return false
		}
	}
	return len(s) <= MaxTool
}

// isValidToken reports whether s is an actor type or an action kind.
func isValidToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (i == 0 || (c < '0' || c > '9') && c != '_') {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 64
}

// isValidID reports whether s is a policy ID or a rule ID.
func isValidID(s string) bool { return consistsOf(s, 1, 128, "._:-") }

// isValidAgentID reports whether s is an agent ID.
func isValidAgentID(s string) bool { return consistsOf(s, 1, 128, "._-") }

// consistsOf reports whether s has least to most bytes, each an ASCII letter or digit or one of
// others.
func consistsOf(s string, least, most int, others string) bool {
	if len(s) < least || len(s) > most {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alphanumeric && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return true
}
