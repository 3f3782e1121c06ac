package condition

import (
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/agentledger/agentledger/internal/jcs"
)

// Path is a place in a payload, relative to its root: member names and array indices.
type Path []pathStep

type pathStep struct {
	name  string
	place int // array index if >= 0; name is then unset
}

// maxPath is the maximum length of a path's text, maxSteps its maximum number of steps; no payload
// is deeper.
const (
	maxPath  = 256
	maxSteps = jcs.MaxDepth
)

// String returns the one text of a path: names joined by dots, quoted as JSON unless they match
// [A-Za-z0-9_-]+, and indices in brackets. Example: `order.items[0]."net sum"`. A first name
// `payload` is quoted too, see ParsePath.
func (p Path) String() string {
	var b []byte
	for i, s := range p {
		switch {
		case s.place >= 0:
			b = append(strconv.AppendInt(append(b, '['), int64(s.place), 10), ']')
			continue
		case i > 0:
			b = append(b, '.')
		}
		if isPlainName(s.name) && (i > 0 || s.name != varPayload) {
			b = append(b, s.name...)
		} else {
			b = jcs.AppendString(b, s.name)
		}
	}
	return string(b)
}

// ParsePath parses the output of String, which must have at least one step and begin with a name.
// It ignores a leading `payload.`, because people write paths either from the payload on or as in
// conditions.
func ParsePath(s string) (Path, bool) {
	s = strings.TrimPrefix(s, varPayload+".")
	if s == "" || len(s) > maxPath {
		return nil, false
	}
	var p Path
	for rest := s; rest != ""; {
		var next pathStep
		var ok bool
		if rest[0] == '[' {
			next, rest, ok = cutArrayIndex(rest)
		} else {
			if len(p) > 0 {
				if rest[0] != '.' {
					return nil, false
				}
				rest = rest[1:]
			}
			next, rest, ok = cutMemberName(rest)
		}
		if p = append(p, next); !ok || len(p) > maxSteps {
			return nil, false
		}
	}
	return p, p[0].place < 0 && p.String() == s
}

func cutArrayIndex(s string) (pathStep, string, bool) {
	digits, rest, ok := strings.Cut(s[1:], "]")
	n, err := strconv.ParseUint(digits, 10, 31)
	return pathStep{place: int(n)}, rest, ok && err == nil
}

func cutMemberName(s string) (pathStep, string, bool) {
	n := 0
	if s != "" && s[0] == '"' {
		n = skipString([]byte(s), 0)
		canonical, err := jcs.Canonicalize([]byte(s[:n]), 1)
		if err != nil {
			return pathStep{}, "", false
		}
		name, _ := jcs.AppendDecoded(nil, canonical)
		return pathStep{name: string(name), place: -1}, s[n:], true
	}
	for n < len(s) && s[n] != '.' && s[n] != '[' {
		n++
	}
	return pathStep{name: s[:n], place: -1}, s[n:], n > 0
}

// isPlainName reports whether String writes a name without quotes.
func isPlainName(s string) bool {
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}
	return s != "" && len(s) <= maxPath && !strings.ContainsFunc(s, other)
}

// isWithin reports whether p equals begin or is below it.
func (p Path) isWithin(begin Path) bool {
	if len(p) < len(begin) {
		return false
	}
	for i := range begin {
		if p[i] != begin[i] {
			return false
		}
	}
	return true
}

// ValueIn returns the value at p in root, or nil if there is none.
func (p Path) ValueIn(root *Object) ref.Val {
	var v ref.Val = root
	for _, s := range p {
		switch at := v.(type) {
		case *Object:
			if s.place >= 0 {
				return nil
			}
			v = at.LookUp(s.name)
		case *list:
			if s.place < 0 || types.Int(s.place) >= at.Size().(types.Int) {
				return nil
			}
			v = traits.Indexer(at).Get(types.Int(s.place))
		default:
			return nil
		}
	}
	return v
}

// MissingIn returns why there is no value at p in root, or "" if there is one.
func (p Path) MissingIn(root *Object) string {
	switch p.ValueIn(root) {
	case nil:
		return "payload." + p.String() + " is missing"
	case types.NullValue:
		return "payload." + p.String() + " is null"
	}
	return ""
}
