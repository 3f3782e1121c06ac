package textcheck

import "strings"

// The segments with a meaning of their own.
const (
	OneToolSegment   = "*"  // exactly one segment
	ManyToolSegments = "**" // one or more segments, at the end only
)

// MaxToolGlob is the length of the longest tool name and of the longest pattern.
const MaxToolGlob = 256

// ValidToolGlob reports whether s is a well-formed pattern.
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

// MatchTool reports whether a tool name fits a pattern that is Valid.
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
