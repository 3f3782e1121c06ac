package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The text of a schema contains the properties of tables and of their parts by name. A name is a kind and "<table>",
// "<table>.<column>" or "<part> of <table>".

// differences lists every difference from the wanted schema, in the order of the names. If a table is missing, it lists
// only the table.
func differences(found, want map[string]string) (all []string) {
	names := maps.Clone(want)
	maps.Copy(names, found)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		is, there := found[name]
		theirs, ours := want[name]
		switch _, tabled := found["table "+tableOf(name)]; {
		case !tabled && name != "table "+tableOf(name):
		case !there:
			all = append(all, fmt.Sprintf("%s is missing: want %s", name, theirs))
		case !ours:
			all = append(all, fmt.Sprintf("%s is not this program's: %s", name, is))
		case is != theirs:
			all = append(all, fmt.Sprintf("%s is %s: want %s", name, is, theirs))
		}
	}
	return all
}

// tableOf returns the table that a name belongs to.
func tableOf(name string) string {
	kind, rest, _ := strings.Cut(name, " ")
	if kind == "column" {
		rest, _, _ = strings.Cut(rest, ".")
	} else if _, table, ok := strings.Cut(rest, " of "); ok {
		return table
	}
	return rest
}

// Parse parses the output of formatSchema.
func Parse(text string) map[string]string {
	schema := make(map[string]string)
	for line := range strings.Lines(text) {
		name, properties, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		schema[name] = properties
	}
	return schema
}

// formatSchema returns a line for each name, sorted by name.
func formatSchema(schema map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		fmt.Fprintf(&b, "%s: %s\n", name, schema[name])
	}
	return b.String()
}
