package jcs

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Values whose numbers canonical JSON cannot carry have two texts:
//
//   - The exact form is canonical JSON in which such a number has its canonical literal
//     (Number.String).
//   - The recorded form is canonical JSON. Such a number is {"$number":"<canonical literal>"}, and an
//     object whose only member is named $number or $object becomes the value of {"$object":…}.
//
// Tag and Untag are inverse bijections between them. A payload in which a member is in recorded form
// and differs from its exact form has the member $tagged with the value true. In every other payload
// the names $number and $object have no meaning (docs/spec/signing.md, section Exact numbers).

// TaggedMember is the name of the member that marks a payload in recorded form.
const TaggedMember = "$tagged"

const (
	numberTag = `{"$number":`
	objectTag = `{"$object":`
	marker    = `"` + TaggedMember + `":true`
)

// Exact is Canonicalize, except that it accepts every number within the limits of Number and returns
// the exact form.
func Exact(src []byte, maxDepth int) ([]byte, error) {
	s := scanner{src: src, same: true, maxDepth: maxDepth, exact: true}
	if err := s.scanDocument(); err != nil {
		return nil, err
	}
	return s.canonicalOutput(), nil
}

// MarshalExact is Marshal with the exact form in the place of the canonical form.
func MarshalExact(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("marshal exact JSON: %w", err)
	}
	exact, err := Exact(text, MaxDepth)
	if err != nil {
		return nil, fmt.Errorf("marshal exact JSON: %w", err)
	}
	return exact, nil
}

// Tag returns the recorded form of a value, given its exact form. It returns exact itself if the two
// are equal.
func Tag(exact []byte) (recorded []byte) {
	c := converter{src: exact, convert: (*converter).tag}
	c.convertValue()
	return c.output()
}

// Untag returns the exact form of a value, given its recorded form. ok is false if recorded is not
// the recorded form of a value; it must be canonical JSON.
func Untag(recorded []byte) (exact []byte, ok bool) {
	c := converter{src: recorded, convert: (*converter).untag}
	c.convertValue()
	return c.output(), !c.malformed
}

// UntagPayload returns the exact form of a canonical payload, without the marker. A payload that is
// not marked, or whose members are not in recorded form, is returned unchanged.
func UntagPayload(payload []byte) []byte {
	if !bytes.Contains(payload, []byte(marker)) {
		return payload
	}
	canonical, members, err := ParseObject(nil, payload, MaxDepth)
	if err != nil {
		return payload
	}
	marked, exact := false, []byte{'{'}
	for _, m := range members {
		if string(canonical[m.Start:m.End]) == marker {
			marked = true
			continue
		}
		value, ok := Untag(canonical[m.Value:m.End])
		if !ok {
			return payload
		}
		if len(exact) > 1 {
			exact = append(exact, ',')
		}
		exact = append(append(exact, canonical[m.Start:m.Value]...), value...)
	}
	if !marked {
		return payload
	}
	return append(exact, '}')
}

// TagMembers replaces the values of an object's members, given in exact form, by their recorded
// forms, and adds the marker if a value has changed. The object must not have the member $tagged.
func TagMembers(members map[string]jsontext.Value) {
	changed := false
	for name, exact := range members {
		recorded := Tag(exact)
		changed = changed || len(recorded) != len(exact)
		members[name] = recorded
	}
	if changed {
		members[TaggedMember] = jsontext.Value("true")
	}
}

// converter copies a value in one form while convert replaces its parts.
type converter struct {
	src       []byte
	pos       int    // next byte of src
	copied    int    // bytes of src that are in out or left out
	out       []byte // nil while nothing is replaced
	malformed bool
	// convert is called at every number and object. It reports whether it has read the value; if not, the
	// members of an object are converted.
	convert func(*converter) bool
}

func (c *converter) output() []byte {
	if c.out == nil {
		return c.src
	}
	return append(c.out, c.src[c.copied:]...)
}

// replace appends text in the place of the next n bytes.
func (c *converter) replace(n int, text string) {
	c.out = append(append(c.out, c.src[c.copied:c.pos]...), text...)
	c.pos += n
	c.copied = c.pos
}

func (c *converter) convertValue() {
	switch c.src[c.pos] {
	case '{':
		if !c.convert(c) {
			c.convertMembers()
		}
	case '[':
		for c.pos++; c.src[c.pos] != ']'; c.skip(',') {
			c.convertValue()
		}
		c.pos++
	case '"', 't', 'f', 'n':
		c.pos += valueLength(c.src[c.pos:])
	default:
		if !c.convert(c) {
			c.pos += valueLength(c.src[c.pos:])
		}
	}
}

func (c *converter) convertMembers() {
	for c.pos++; c.src[c.pos] != '}'; c.skip(',') {
		c.pos += valueLength(c.src[c.pos:]) + len(":")
		c.convertValue()
	}
	c.pos++
}

func (c *converter) skip(separator byte) {
	if c.src[c.pos] == separator {
		c.pos++
	}
}

func (c *converter) tag() bool {
	rest := c.src[c.pos:]
	if rest[0] == '{' {
		if soleMember(rest) == "" {
			return false
		}
		c.replace(0, objectTag)
		c.convertMembers()
		c.replace(0, "}")
		return true
	}
	l, n := parseNumberLiteral(rest)
	if l.isCanonicalForm() {
		return false
	}
	if value, ok := l.exactNumber(); !ok || value.IsPlain() {
		return false
	}
	c.replace(0, numberTag+`"`)
	c.pos += n
	c.replace(0, `"}`)
	return true
}

func (c *converter) untag() bool {
	rest := c.src[c.pos:]
	if rest[0] != '{' {
		return false
	}
	switch soleMember(rest) {
	case numberTag:
		value := rest[len(numberTag):]
		text := value[:valueLength(value)]
		literal := string(bytes.Trim(text, `"`))
		number, ok := ParseNumber(literal)
		c.malformed = c.malformed || !ok || len(text) != len(literal)+2 || number.String() != literal || number.IsPlain()
		c.replace(len(numberTag)+len(text)+len("}"), literal)
		return true
	case objectTag:
		inner := rest[len(objectTag):]
		c.malformed = c.malformed || inner[0] != '{' || soleMember(inner) == ""
		if c.malformed {
			c.pos += valueLength(rest)
			return true
		}
		c.replace(len(objectTag), "")
		c.convertMembers()
		c.replace(len("}"), "")
		return true
	}
	return false
}

// soleMember returns the beginning of the object at the start of b, numberTag or objectTag, if the
// object has one member and that member is named so, and "" otherwise.
func soleMember(b []byte) string {
	for _, tag := range [...]string{numberTag, objectTag} {
		if bytes.HasPrefix(b, []byte(tag)) && b[len(tag)+valueLength(b[len(tag):])] == '}' {
			return tag
		}
	}
	return ""
}

// valueLength returns the length of the canonical value at the start of b.
func valueLength(b []byte) int {
	for i, depth := 0, 0; ; {
		switch b[i] {
		case '"':
			i, _, _ = scanStringText(b, i+1)
			i++
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':':
			i++
		default:
			for i < len(b) && b[i] != ',' && b[i] != ']' && b[i] != '}' {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}
