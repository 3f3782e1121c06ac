package edge

import (
	"net/http"
	"strconv"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/wire"
)

// Bounds of a page.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// Page is the part of a list that is wanted.
type Page struct {
	After string // the last item of the page before, "" for the first page
	Limit int
}

// ParsePage reads ?after= and ?limit=.
func ParsePage(r *http.Request) (Page, error) {
	query := r.URL.Query()
	p := Page{After: query.Get("after"), Limit: defaultLimit}
	if !query.Has("limit") {
		return p, nil
	}
	var err error
	if p.Limit, err = strconv.Atoi(query.Get("limit")); err != nil || p.Limit < 1 || p.Limit > maxLimit {
		return Page{}, fault.New(fault.Invalid, "limit must be from 1 to 1000")
	}
	return p, nil
}

// CutPage shows one page of items that were found with one more than the page holds,
// and returns the parameter after of the next page, "" on the last one.
func CutPage[T, S any](p Page, found []T, name func(T) string, show func(T) S) (shown []S, next wire.Text) {
	if len(found) > p.Limit {
		found = found[:p.Limit]
		next = wire.Text(name(found[p.Limit-1]))
	}
	shown = make([]S, len(found))
	for i := range found {
		shown[i] = show(found[i])
	}
	return shown, next
}
