package page

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"

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
		"rows":   func(base string, list any) Rows { return Rows{base, list} },
	}
}

// Rows is a list for a template that renders it, with the service's base path.
type Rows struct {
	Base string
	List any
}

// readAsWords returns an identifier of the interface, such as policy_editor, as words.
func readAsWords(name any) string { return strings.ReplaceAll(fmt.Sprint(name), "_", " ") }

// Field is an input of a form with its label. The template "field" renders it.
type Field struct {
	Name, Label, Type, Value string
	Form                     string // value of the form's button; "" on a page with one form
	Hint                     string
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
		{Value: "record", Title: "record: also the agent, its key, and the policy decision with its rule"},
		{Value: "full", Title: "full: also the signed text, with tool and payload"},
	}
}

// newField returns the input of a field. Its value is the value in the refused form, if any, or else the given one.
// kind is an HTML input type or textarea. more contains "required" and "NAME=VALUE" for hint, autocomplete, rows, max,
// and form: the value of the form's button, on a page with several forms.
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
		}
	}
	if len(f.Form) > 0 && (field.Form == "" || field.Form == f.Form.Get("do")) {
		field.restore(f.Form)
	}
	return field
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
