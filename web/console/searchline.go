package console

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/agentledger/agentledger/internal/column"
)

// A search line selects acts: terms such as tool:payments.refund or amount_usd:>500, and words that are searched in texts. Spaces separate
// them. A value with spaces is in double quotes, in which \" is a quote and \\ a backslash. So are words that contain a colon.

// Bounds of a search line.
const (
	maxLine  = 1024 // bytes
	maxTerms = 24
)

// term is one condition of a search line.
type term struct {
	Key      string // a key of searchKeys, or the path of a column
	Operator string // of columns: one of column.Operators; "" for keys
	Value    string
}

// searchLine is a parsed search line.
type searchLine struct {
	Terms []term
	Words string // to search for as one text; "" if none
}

// searchKeys returns the keys of terms that are not columns.
func searchKeys() []string {
	return []string{"tool", "agent", "outcome", "approver", "confirmed", "from", "to", "trace", "for", "behalf", "issuer", "decision", "said", "kind", "signer"}
}

// payloadPrefix precedes a column whose path is also a key.
const payloadPrefix = "payload."

// parseSearch parses a search line. It returns every problem, as sentences for the reader.
func parseSearch(text string) (line searchLine, problems []string) {
	if len(text) > maxLine {
		return line, []string{fmt.Sprintf("The search has more than %d bytes.", maxLine)}
	}
	var words []string
	given := make(map[string]bool)
	for rest := strings.TrimSpace(text); rest != ""; rest = strings.TrimSpace(rest) {
		key := termKey(rest)
		if key == "" {
			var word string
			if word, rest = readQuoted(rest); word != "" {
				words = append(words, word)
			}
			continue
		}
		t := term{Key: key}
		rest = rest[len(key)+1:]
		explicit := false
		if !slices.Contains(searchKeys(), key) {
			t.Key, t.Operator = strings.TrimPrefix(key, payloadPrefix), "="
			for _, o := range column.Operators() {
				if after, found := strings.CutPrefix(rest, o); found {
					t.Operator, rest, explicit = o, after, true
					break
				}
			}
		}
		switch t.Value, rest = readQuoted(rest); {
		case t.Key == "" || t.Value == "" && !explicit:
			problems = append(problems, key+": needs a value, such as "+key+":"+exampleFor(key)+".")
			continue
		case slices.Contains(searchKeys(), key) && given[key]:
			problems = append(problems, key+": is given more than once.")
			continue
		}
		if given[key] = true; len(line.Terms) == maxTerms {
			return line, append(problems, fmt.Sprintf("The search has more than %d terms.", maxTerms))
		}
		line.Terms = append(line.Terms, t)
	}
	line.Words = strings.Join(words, " ")
	return line, problems
}

func exampleFor(key string) string {
	examples := map[string]string{"tool": "payments.refund", "agent": `"Refund bot"`, "outcome": "refused", "approver": "me", "confirmed": "yes", "from": "yesterday", "to": "2026-11-03"}
	if example := examples[key]; example != "" {
		return example
	}
	return "x"
}

// termKey returns the name before the colon with which text begins, or "" if text does not begin with a term.
func termKey(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.[]", r)
	})
	if end < 1 || text[end] != ':' {
		return ""
	}
	return text[:end]
}

// readQuoted reads the value with which text begins: up to the next space, or a text in quotes. A missing quote at the end of the line is
// added.
func readQuoted(text string) (value, rest string) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexFunc(text, unicode.IsSpace)
		if end < 0 {
			return text, ""
		}
		return text[:end], text[end:]
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), text[i+1:]
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}

// String returns a line that parses to l.
func (l searchLine) String() string {
	var parts []string
	for _, t := range l.Terms {
		parts = append(parts, t.String())
	}
	if l.Words != "" {
		words := l.Words
		if strings.Join(strings.Fields(words), " ") != words || strings.ContainsAny(words, `":`) {
			words = quoteValue(words)
		}
		parts = append(parts, words)
	}
	return strings.Join(parts, " ")
}

// String returns the term as it is in a line.
func (t term) String() string {
	key, operator, value := t.Key, t.Operator, t.Value
	if t.isColumn() && slices.Contains(searchKeys(), key) || strings.HasPrefix(key, payloadPrefix) {
		key = payloadPrefix + key
	}
	if strings.ContainsFunc(value, unicode.IsSpace) || value == "" || strings.HasPrefix(value, `"`) ||
		slices.ContainsFunc(column.Operators(), func(o string) bool { return strings.HasPrefix(value, o) }) {
		value = quoteValue(value)
	}
	if operator == "=" && t.Value != "" {
		operator = ""
	}
	return key + ":" + operator + value
}

func quoteValue(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
}

// isColumn reports whether the term is a condition on a column.
func (t term) isColumn() bool { return t.Operator != "" }

// value returns the value of the first term with a key, or "".
func (l searchLine) value(key string) string {
	for _, t := range l.Terms {
		if t.Key == key && !t.isColumn() {
			return t.Value
		}
	}
	return ""
}

// with returns the line with terms in place of those with the same key. A term without a value only removes them.
func (l searchLine) with(terms ...term) searchLine {
	changed := searchLine{Words: l.Words}
	for _, old := range l.Terms {
		if !slices.ContainsFunc(terms, func(t term) bool { return t.Key == old.Key && t.isColumn() == old.isColumn() }) {
			changed.Terms = append(changed.Terms, old)
		}
	}
	for _, t := range terms {
		if t.Value != "" {
			changed.Terms = append(changed.Terms, t)
		}
	}
	return changed
}

// without returns the line without its term n.
func (l searchLine) without(n int) searchLine {
	return searchLine{Terms: slices.Delete(slices.Clone(l.Terms), n, n+1), Words: l.Words}
}
