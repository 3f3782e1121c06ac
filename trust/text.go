package trust

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parse parses the text of a policy. Every line, including the last, must end in LF. Spaces and
// tabs separate items. Empty lines and lines that begin with # are skipped.
func Parse(text []byte) (*Policy, error) {
	if len(text) > MaxText || slices.ContainsFunc(text, isForbidden) {
		return nil, fmt.Errorf("parse policy: size or characters: %w", ErrMalformed)
	}
	b := newBuilder()
	lines := strings.Split(string(text), "\n")
	if lines[len(lines)-1] != "" {
		return nil, fmt.Errorf("parse policy: no line end at the end: %w", ErrMalformed)
	}
	for i, line := range lines {
		if err := b.parseLine(strings.FieldsFunc(line, isBlank)); err != nil {
			return nil, fmt.Errorf("parse policy: line %d: %w", i+1, err)
		}
	}
	if b.policy.Quorum == "" {
		return nil, fmt.Errorf("parse policy: no quorum: %w", ErrMalformed)
	}
	return &b.policy, nil
}

// isForbidden reports whether c is a control character other than tab and LF. Characters beyond
// ASCII are allowed everywhere.
func isForbidden(c byte) bool { return c < ' ' && c != '\t' && c != '\n' || c == 0x7f }

func isBlank(r rune) bool { return r == ' ' || r == '\t' }

// parseLine adds one line.
func (b *builder) parseLine(items []string) error {
	if len(items) == 0 || strings.HasPrefix(items[0], "#") {
		return nil
	}
	keyword, rest := items[0], items[1:]
	switch {
	case keyword == "log" && (len(rest) == 1 || len(rest) == 2):
		return b.parseLogLine(rest[0], rest[1:])
	case keyword == "witness" && (len(rest) == 2 || len(rest) == 3):
		return b.parseWitnessLine(rest[0], rest[1], rest[2:])
	case keyword == "group" && len(rest) >= 3:
		return b.parseGroupLine(rest[0], rest[1], rest[2:])
	case keyword == "quorum" && len(rest) == 1:
		return b.setQuorum(rest[0])
	}
	return fmt.Errorf("unknown keyword or number of items: %w", ErrMalformed)
}

// Text returns the policy in the form that Parse accepts. The policy MUST be valid.
func (p *Policy) Text() string {
	var b strings.Builder
	for _, l := range p.Logs {
		writeLine(&b, "log", l.Key.String(), l.URL)
	}
	for _, w := range p.Witnesses {
		writeLine(&b, "witness", w.Name, w.Key.String(), w.URL)
	}
	for _, g := range p.Groups {
		writeLine(&b, append([]string{"group", g.Name, formatThreshold(g)}, g.Members...)...)
	}
	writeLine(&b, "quorum", p.Quorum)
	return b.String()
}

// writeLine writes a line of the items that are not empty.
func writeLine(b *strings.Builder, items ...string) {
	items = slices.DeleteFunc(items, func(s string) bool { return s == "" })
	b.WriteString(strings.Join(items, " ") + "\n")
}

func formatThreshold(g Group) string {
	switch g.K {
	case len(g.Members):
		return "all"
	case 1:
		return "any"
	}
	return strconv.Itoa(g.K)
}
