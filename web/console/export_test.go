package console

import (
	"cmp"
	"strings"

	"github.com/agentledger/agentledger/web/page"
)

// LineOfPlace returns the line that the server finds: negative if a text is not JSON, 0 if there is none.
func LineOfPlace(text, message string) int {
	if _, wrong := readValue(text); wrong != nil {
		return -wrong.line
	}
	return findPlace(text, message)
}

// CutTable returns the rows of texts that a page with an address shows, and where they stand in the list.
func CutTable(r *page.Request, texts []string) (shown []string, first, last, found int, err error) {
	shown, t, err := newTable(r, texts, func(s string) string { return s },
		[]sortable[string]{{"name", strings.Compare}, {"length", func(a, b string) int { return cmp.Compare(len(a), len(b)) }}})
	return shown, t.First, t.Last, t.Found, err
}
