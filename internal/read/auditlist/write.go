package auditlist

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/tenant/account"
)

// write returns the sentence of an entry, and what comes before its end: where the call came from.
func (d *describer) write(ctx context.Context, act *act) (whole, change string, err error) {
	if act.payload == nil {
		change = subject(act.actor) + " made a change of kind " + act.kind + " whose envelope is erased."
		return change, change, nil
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(act.payload, &members); err != nil {
		return "", "", err
	}
	all := sentences()
	text, known := all[act.kind+" "+scalar(members["transition"])]
	if !known {
		text, known = all[act.kind]
	}
	if !known {
		text = sentence("{who} made a change of kind " + act.kind)
	}
	w := writer{d: d, act: act, members: members}
	written, err := w.expand(ctx, string(text))
	from := act.from()
	if from != "" && strings.Contains(strings.TrimPrefix(written, subject(act.actor)), ", ") {
		from = "," + from // otherwise it would only belong to the last part
	}
	return written + from + ".", written + ".", err
}

// writer fills the placeholders of a sentence.
type writer struct {
	d       *describer
	act     *act
	members map[string]jsontext.Value
}

// expand fills the placeholders of a text, and omits the parts in brackets that contain an empty one. Values are copied
// and not expanded again.
func (w *writer) expand(ctx context.Context, text string) (string, error) {
	var b strings.Builder
	for text != "" {
		at := strings.IndexAny(text, "{[")
		if at < 0 {
			b.WriteString(text)
			break
		}
		b.WriteString(text[:at])
		closing := "}"
		if text[at] == '[' {
			closing = "]"
		}
		inner, rest, _ := strings.Cut(text[at+1:], closing)
		part, err := w.expandPart(ctx, inner, text[at] == '[')
		if err != nil {
			return "", err
		}
		b.WriteString(part)
		text = rest
	}
	return b.String(), nil
}

// expandPart fills one placeholder, or an optional part.
func (w *writer) expandPart(ctx context.Context, inner string, optional bool) (string, error) {
	if !optional {
		value, err := w.value(ctx, inner)
		if value == "" {
			value = "(not given)"
		}
		return value, err
	}
	for rest := inner; ; {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			return w.expand(ctx, inner)
		}
		member, behind, _ := strings.Cut(after, "}")
		if value, err := w.value(ctx, member); value == "" || err != nil {
			return "", err
		}
		rest = behind
	}
}

// value returns the text of a placeholder, or "".
func (w *writer) value(ctx context.Context, member string) (string, error) {
	if member == "who" {
		return subject(w.act.actor), nil
	}
	if first, rest, more := strings.Cut(member, "|"); more {
		if text, err := w.value(ctx, first); text != "" || err != nil {
			return text, err
		}
		return w.value(ctx, rest)
	}
	text := scalar(w.members[member])
	switch member {
	case "account_id", "invited_by", "deputy", "deputy_for":
	default:
		return text, nil
	}
	if !strings.HasPrefix(text, accountPrefix) {
		return text, nil
	}
	known, err := w.d.findName(ctx, account.ID(text))
	return known.text(text), err
}

// scalar returns a value as text: a string without quotes, a list with commas, a list in a list as a range, the name of
// an object that has one, or "" for null.
func scalar(v jsontext.Value) string {
	switch v.Kind() {
	case 'n', 0:
		return ""
	case '"':
		var text string
		if json.Unmarshal(v, &text) != nil {
			return ""
		}
		return text
	case '[':
		var list []jsontext.Value
		if json.Unmarshal(v, &list) != nil {
			return ""
		}
		texts := make([]string, len(list))
		for i := range list {
			texts[i] = scalar(list[i])
			if list[i].Kind() == '[' { // a range [begin, end)
				texts[i] = strings.Replace(texts[i], ", ", " to below ", 1)
			}
		}
		return strings.Join(texts, ", ")
	case '{':
		var named struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(v, &named) == nil && named.Name != "" {
			return named.Name
		}
	}
	return string(v)
}
