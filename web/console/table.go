package console

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// Limits of a table.
const (
	rowsPerPage = 50
	maxSearch   = 200 // of a search, in code points
	// maxEntries is the maximum number of entries that a table reads at once. Its search and its order concern these entries.
	maxEntries = "1000"
)

// tableQuery returns the query parameters of a page with a table, and others.
func tableQuery(more ...string) []string {
	return append([]string{"q", "sort", "page", "format", "new", "after"}, more...)
}

// table is a list that is searched, sorted and shown in pages of 50 rows.
type table struct {
	Label, Hint string // of the search field
	Note        string // after the number of rows; "" if none
	Search      string
	All, Found  int    // entries of the list, and entries that the search found
	First, Last int    // rows of the page among those found, counted from 1; 0 if there are none
	Previous    string // address of the previous page; "" if there is none
	Next        string
	Further     string // address of the entries after the 1,000 that the table read; "" if it read all
	CSV         string // address of all found entries as a file

	sort    string
	address func(changes ...string) string // address of the page with changed parameters: name, value, ...
}

// sortable is a column by which a table can be sorted.
type sortable[T any] struct {
	name    string
	compare func(a, b T) int
}

// newTable returns the rows of the page that r asks for, and describes their table. all are the entries in their own
// order, and text returns what the search of an entry looks through. Without sort=, rows are in the order of the first
// column. A sort that begins with "-" is descending.
func newTable[T any](r *page.Request, all []T, text func(T) string, by []sortable[T]) ([]T, *table, error) {
	t := &table{Search: strings.TrimSpace(r.Query("q")), All: len(all), sort: r.Query("sort"), address: addressOf(r)}
	if utf8.RuneCountInString(t.Search) > maxSearch {
		return nil, t, fault.New(fault.Invalid, "The search must have at most 200 characters")
	}
	if t.sort == "" {
		t.sort = by[0].name
	}
	name, descending := strings.CutPrefix(t.sort, "-")
	at := slices.IndexFunc(by, func(c sortable[T]) bool { return c.name == name })
	if at < 0 {
		return nil, t, fault.New(fault.Invalid, "The list can't be sorted like this")
	}
	words := strings.Fields(strings.ToLower(t.Search))
	var found []T
	for _, one := range all {
		if contains(strings.ToLower(text(one)), words) {
			found = append(found, one)
		}
	}
	slices.SortStableFunc(found, func(a, b T) int {
		if descending {
			return by[at].compare(b, a)
		}
		return by[at].compare(a, b)
	})
	t.Found, t.CSV = len(found), t.address("format", "csv", "page", "")
	if r.Query("format") != "" {
		return found, t, nil
	}
	number, _ := strconv.Atoi(r.Query("page")) // anything else is the first page
	begin := max(0, min(number-1, (len(found)-1)/rowsPerPage)) * rowsPerPage
	shown := found[begin:min(begin+rowsPerPage, len(found))]
	if len(shown) > 0 {
		t.First, t.Last = begin+1, begin+len(shown)
	}
	if begin > 0 {
		t.Previous = t.address("page", strconv.Itoa(begin/rowsPerPage))
	}
	if t.Last < len(found) {
		t.Next = t.address("page", strconv.Itoa(begin/rowsPerPage+2))
	}
	return shown, t, nil
}

func contains(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// addressOf returns a function that returns the address of the page with changed parameters.
func addressOf(r *page.Request) func(changes ...string) string {
	return func(changes ...string) string {
		query := url.Values{}
		for name, values := range r.URL.Query() {
			if name != "notice" && name != "new" && name != "format" && values[0] != "" {
				query[name] = values
			}
		}
		for i := 0; i+1 < len(changes); i += 2 {
			if query.Set(changes[i], changes[i+1]); changes[i+1] == "" {
				query.Del(changes[i])
			}
		}
		address := r.Kit.Base + r.URL.EscapedPath()
		if len(query) > 0 {
			address += "?" + query.Encode()
		}
		return address
	}
}

// Head is the head of a column. Its link sorts the table.
type Head struct {
	Title, URL, Class string
	Order             string // the value of aria-sort; "" if the table is sorted by another column
}

// Head returns the head of a column that has a name for sort=.
func (t *table) Head(name, title, class string) Head {
	h := Head{Title: title, Class: class}
	switch t.sort {
	case name:
		h.Order, name = "ascending", "-"+name
	case "-" + name:
		h.Order = "descending"
	}
	h.URL = t.address("sort", name, "page", "")
	return h
}

// Clear returns the address of the list without a search.
func (t *table) Clear() string { return t.address("q", "", "page", "") }

// Sort returns the value of sort= for the form of the search.
func (t *table) Sort() string { return t.sort }

// isNew reports whether the page shows the form for a new entry instead of the list: the reader followed the button, or a
// form for a new entry was refused.
func isNew(r *page.Request, forms ...string) bool {
	return r.Query("new") != "" || slices.Contains(forms, r.Form.Get("do"))
}

// csvFile returns the rows of a table as a file.
func csvFile[T any](name string, columns []string, rows []T, cells func(T) []api.Cell) *page.File {
	return &page.File{Name: name + ".csv", Media: api.FormatCSV.Media(), Body: api.EncodeCSV(columns, rows, cells)}
}

// entriesQuery returns the query for the entries of a table.
func entriesQuery(r *page.Request) url.Values {
	query := r.PageQuery()
	query.Set("limit", maxEntries)
	return query
}

// furtherEntries returns the address of the entries after those that the table read, or "" if there are none.
func furtherEntries(r *page.Request, next wire.Text) string {
	if next == "" {
		return ""
	}
	return addressOf(r)("after", string(next), "page", "")
}

// asFile reports whether a reader asks for a list as a file.
func asFile(r *page.Request) (bool, error) {
	switch r.Query("format") {
	case "":
		return false, nil
	case string(api.FormatCSV):
		return true, nil
	}
	return false, fault.New(fault.Invalid, "format must be csv")
}
