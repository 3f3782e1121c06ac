package textcheck

import "strings"

// Wildcard segments of a pattern.
const (
	OneToolSegment   = "*"  // exactly one segment
	ManyToolSegments = "**" // one or more segments, at the end only
)

// MaxToolGlob is the maximum length of a tool name and of a pattern.
const MaxToolGlob = 256

// ValidToolGlob reports whether s is a well-formed pattern of tool names, as policies and filters use them. A pattern is a
// sequence of segments separated by dots. A segment is a segment of a tool name, * for exactly one segment, or ** for one
// or more segments, which must be the last one. For example, "mail.*" matches mail.send but not mail.draft.send.
func ValidToolGlob(s string) bool {
	if len(s) > MaxToolGlob {
		return false
	}
	for more := true; more; {
		var segment string
		segment, s, more = strings.Cut(s, ".")
		switch {
		case segment == ManyToolSegments && more:
			return false
		case segment != OneToolSegment && segment != ManyToolSegments && !ValidToolSegment(segment):
			return false
		}
	}
	return true
}

// ValidToolSegment reports whether s is a well-formed segment of a tool name.
func ValidToolSegment(s string) bool {
	for i := range len(s) {
		c := s[i]
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alphanumeric && strings.IndexByte("_:/-", c) < 0 {
			return false
		}
	}
	return 0 < len(s) && len(s) <= MaxToolGlob
}

// MatchTool reports whether a tool name matches a pattern for which ValidToolGlob is true, in one pass over both.
func MatchTool(glob, tool string) bool {
	for {
		want, restWanted, moreWanted := strings.Cut(glob, ".")
		got, rest, more := strings.Cut(tool, ".")
		switch {
		case got == "" && !more:
			return false
		case want == ManyToolSegments:
			return true
		case want != OneToolSegment && want != got, moreWanted != more:
			return false
		case !more:
			return true
		}
		glob, tool = restWanted, rest
	}
}
