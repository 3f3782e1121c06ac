package page

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/agentledger/agentledger/clients"
)

// functions returns the functions that are available in every template.
func functions() template.FuncMap {
	return template.FuncMap{
		"word":   readAsWords,
		"field":  newField,
		"choice": newChoice,
		"option": func(value, title string) Option { return Option{value, title} },
		"list":   func(options ...Option) []Option { return options },
		"path":   func(part any) string { return url.PathEscape(fmt.Sprint(part)) },
		"pieces": splitText,
		"plain":  showPlain,
		"client": func(k clients.Kind) string { return clients.Read().Find(k).File }, // package that the service has
		"rows":   func(f framed, list any) Rows { return Rows{f, list} },
		"short":  func(at any) string { return shortTime(at, time.Now()) },
		"exact":  exactTime,
		"clock":  clockTime,
		"title":  capitalize,
		"empty":  func(title, hint, url, button string) Empty { return Empty{title, hint, url, button} },

		"initials": initials,
		"initial":  func(name any) string { return firstRune(initials(name)) },
		"number":   groupDigits,
		"outcome":  outcomeOf,

		"outcomeword": outcomeWord,
	}
}

// Empty is the state of a list without entries. The template "empty" renders it.
type Empty struct {
	Title, Hint string
	URL, Button string // where to continue; "" if nowhere
}

// Rows is a list for a template that renders it, with the frame of its page.
type Rows struct {
	framed
	List any
}

// readAsWords returns an identifier of the interface, such as policy_editor, as words.
func readAsWords(name any) string {
	text := fmt.Sprint(name)
	if text == "allow_with_obligation" {
		return "needs approval"
	}
	return strings.ReplaceAll(text, "_", " ")
}

// outcomeWord returns the outcome of an act as its badge shows it.
func outcomeWord(outcome string) string {
	if outcome == "" {
		return ""
	}
	return strings.ToUpper(outcome[:1]) + outcome[1:]
}

// outcomeOf returns the badge for the status of an approval: the part of its class after "o-".
func outcomeOf(status string) string {
	switch status {
	case "pending":
		return "waiting"
	case "approved":
		return "open"
	case "consumed":
		return "done"
	case "denied":
		return "refused"
	case "expired":
		return "expired"
	}
	return "cancelled"
}

// Field is an input of a form with its label. The template "field" renders it.
type Field struct {
	Name, Label, Type, Value string
	Form                     string // value of the form's button; "" on a page with one form
	Owner                    string // ID of the form, if the input is outside of it
	Hint                     string
	Error                    string // why the field was refused
	Autocomplete             string
	Required, Checked        bool
	Rows, Max                string
	Options                  []Option // of a select
}

// ID returns the id of the input, which is unique on the page.
func (f Field) ID() string {
	if f.Form != "" {
		return "field-" + f.Form + "-" + f.Name
	}
	return "field-" + f.Name
}

// Option is a value of a select and its label.
type Option struct{ Value, Title string }

// Disclosures returns what the public log shows of each event at each disclosure level.
func Disclosures() []Option {
	return []Option{
		{Value: "commitment", Title: "commitment: the entry, which contains hashes alone"},
		{Value: "record", Title: "record: also the agent with its name and key, and the policy decision with its rule"},
		{Value: "full", Title: "full: also the signed text, with tool and payload, and what became of each act"},
	}
}

// newField returns the input of a field. Its value is the value in the refused form, if any, or else the given one.
// kind is an HTML input type or textarea. more contains "required" and "NAME=VALUE" for hint, autocomplete, rows, max,
// form: the value of the form's button, on a page with several forms, and owner: the ID of the form around another part of
// the page.
func newField(f framed, name, label, kind string, value any, more ...string) Field {
	field := Field{Name: name, Label: label, Type: kind, Autocomplete: "off"}
	if value != nil {
		field.Value = fmt.Sprint(value)
	}
	if kind == "checkbox" {
		field.Checked, field.Value = field.Value == "true", "yes"
	}
	for _, attribute := range more {
		key, text, _ := strings.Cut(attribute, "=")
		switch key {
		case "required":
			field.Required = true
		case "hint":
			field.Hint = text
		case "autocomplete":
			field.Autocomplete = text
		case "rows":
			field.Rows = text
		case "max":
			field.Max = text
		case "form":
			field.Form = text
		case "owner":
			field.Owner = text
		}
	}
	if len(f.Form) > 0 && (field.Form == "" || field.Form == f.Form.Get("do")) {
		field.restore(f.Form)
		field.Error = errorOf(name, f.Problem)
	}
	return field
}

// errorOf returns the part of a refusal that concerns a field, or "" if the refusal concerns another one. Refusals that
// concern a member of a request begin with the member's name.
func errorOf(name, problem string) string {
	rest, found := strings.CutPrefix(problem, name+" ")
	if !found || rest == "" {
		return ""
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// restore sets the field to its value in a refused form.
func (f *Field) restore(refused url.Values) {
	switch {
	case f.Type == "password":
	case f.Type == "checkbox":
		f.Checked = refused.Has(f.Name)
	default:
		f.Value = refused.Get(f.Name)
	}
}

// newChoice returns a select with a list of options.
func newChoice(f framed, name, label string, value any, options []Option, more ...string) Field {
	field := newField(f, name, label, "select", value, more...)
	field.Options = options
	return field
}

// With returns another list with the frame of the rows.
func (r Rows) With(list any) Rows { return Rows{r.framed, list} }
