package page

import (
	"html/template"
	"strings"
	"time"
)

// functions are those that every template has.
func functions() template.FuncMap {
	return template.FuncMap{
		"word":  word,
		"local": localInput,
	}
}

// word returns an identifier of the interface, such as policy_editor, as words.
func word(name string) string { return strings.ReplaceAll(name, "_", " ") }

// localInput returns a time as the value of an input of type datetime-local, in UTC; "" for none.
func localInput(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04")
}
