package policy

import "strings"

const (
	one  = "*"  // exactly one segment
	many = "**" // one or more segments, at the end only
)

// isValidGlob reports whether s is a well-formed glob.
func isValidGlob(s string) bool {
	if len(s) > MaxTool {
		return false
	}
	for more := true; more; {
		var segment string
		segment, s, more = strings.Cut(s, ".")
		switch {
		case segment == many && more:
			return false
		case segment != one && segment != many && !isValidSegment(segment):
			return false
		}
	}
	return true
}

// isValidSegment is the grammar of one segment of a tool name.
func isValidSegment(s string) bool { return consistsOf(s, 1, MaxTool, "_:/-") }

// isValidToolName is the grammar of tool names.
func isValidToolName(s string) bool {
	for _, segment := range strings.Split(s, ".") {
		if !isValidSegment(segment) {
			return false
		}
	}
	return len(s) <= MaxTool
}

// isValidToken is the grammar of actor types and action kinds.
func isValidToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (i == 0 || (c < '0' || c > '9') && c != '_') {
			return false
		}
	}
	return len(s) > 0 && len(s) <= 64
}

// isValidID is the grammar of policy and rule ids.
func isValidID(s string) bool { return consistsOf(s, 1, 128, "._:-") }

// isValidAgentID is the grammar of agent ids.
func isValidAgentID(s string) bool { return consistsOf(s, 1, 128, "._-") }

// consistsOf reports whether s has [least, most] bytes, each an ASCII letter or
// digit or one of others.
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
