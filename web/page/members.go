package page

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// Bounds of the payload table.
const (
	maxMembers    = 500  // rows
	maxMemberText = 2000 // code points of a value
)

// Payload is a JSON value for display: a table of its members, and the text.
type Payload struct {
	Members []Member
	More    bool   // there are more members than the table shows
	Raw     string // as formatted by Indent; invisible characters are escaped
	Of      string // name of the document on a page with several payloads; "" on other pages
}

// Member is a scalar, or an empty object or list, in a payload.
type Member struct {
	Path  []Step
	Kind  string // text, number, true or false, nothing, empty object or empty list
	Value string
	Cut   bool // the value was truncated
}

// Surprises reports whether the value looks like one of another kind, so that readers need to see its kind.
func (m Member) Surprises() bool {
	return m.Kind == "text" && (m.Value == "" || jsontext.Value(m.Value).IsValid())
}

// Column returns the path of the member as the columns of payloads name it: items[0].price.
func (m Member) Column() string {
	var path strings.Builder
	for i, s := range m.Path {
		switch {
		case s.Index:
			path.WriteString("[" + s.Name + "]")
		case i > 0:
			path.WriteString("." + s.Name)
		default:
			path.WriteString(s.Name)
		}
	}
	return path.String()
}

// Shorten returns the member with at most limit code points of its value.
func (m Member) Shorten(limit int) Member {
	if runes := []rune(m.Value); len(runes) > limit {
		m.Value, m.Cut = string(runes[:limit]), true
	}
	return m
}

// Step is one component of a member's path: a name or an index.
type Step struct {
	Name  string
	Index bool // Name is a list index
}

// NewPayload parses a payload. It returns nil if the value is empty, and only the text if the value cannot be parsed.
// Readers see the numbers of a tagged payload, without the tags.
func NewPayload(value []byte) *Payload {
	exact := jcs.UntagPayload(value)
	return newPayload(exact, exact)
}

// NewDocument is NewPayload for a record or an envelope. The text is the one that was signed or logged; the table shows
// the numbers of a tagged payload without the tags.
func NewDocument(of string, text []byte) *Payload {
	values := text
	if canonical, members, err := jcs.ParseObject(nil, text, jcs.MaxDepth); err == nil {
		for _, m := range members {
			if string(m.Name(canonical)) == "payload" {
				values = slices.Concat(canonical[:m.Value], jcs.UntagPayload(canonical[m.Value:m.End]), canonical[m.End:])
			}
		}
	}
	p := newPayload(values, text)
	if p != nil {
		p.Of = of
	}
	return p
}

func newPayload(values, text []byte) *Payload {
	if len(text) == 0 {
		return nil
	}
	p := &Payload{Raw: string(textcheck.EscapeJSON(Indent(text)))}
	if jsontext.Value(values).IsValid() {
		p.readMembers(jsontext.NewDecoder(bytes.NewReader(values)), nil)
	}
	return p
}

// readMembers reads one value into the table. It stops if the table is full.
func (p *Payload) readMembers(d *jsontext.Decoder, path []Step) {
	if len(p.Members) >= maxMembers {
		p.More = true
		return
	}
	token, err := d.ReadToken()
	if err != nil {
		p.More = true
		return
	}
	switch token.Kind() {
	case '{', '[':
		p.readWithin(d, path, token.Kind() == '[')
	case '"':
		p.addMember(path, "text", token.String())
	case '0':
		p.addMember(path, "number", token.String())
	case 'n':
		p.addMember(path, "nothing", "–")
	default:
		p.addMember(path, "true or false", token.String())
	}
}

// readWithin reads the values of an object or a list, after its opening token.
func (p *Payload) readWithin(d *jsontext.Decoder, path []Step, list bool) {
	n := 0
	for ; d.PeekKind() != '}' && d.PeekKind() != ']'; n++ {
		step := Step{Name: strconv.Itoa(n), Index: true}
		if !list {
			name, err := d.ReadToken()
			if err != nil {
				p.More = true
				return
			}
			step = Step{Name: name.String()}
		}
		if p.readMembers(d, append(path[:len(path):len(path)], step)); p.More {
			return
		}
	}
	if _, err := d.ReadToken(); err != nil {
		p.More = true
		return
	}
	if n > 0 {
		return
	}
	if list {
		p.addMember(path, "empty list", "[]")
	} else {
		p.addMember(path, "empty object", "{}")
	}
}

func (p *Payload) addMember(path []Step, kind, value string) {
	m := Member{Path: path, Kind: kind, Value: value}
	if utf8.RuneCountInString(value) > maxMemberText {
		end := 0
		for i := range value {
			if end == maxMemberText {
				m.Value, m.Cut = value[:i], true
				break
			}
			end++
		}
	}
	p.Members = append(p.Members, m)
}
