package edge

import (
	"net/url"
	"strconv"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/wire"
)

// Bounds of a page.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// Page selects a part of a list.
type Page struct {
	After string // the last item of the previous page, or "" for the first page
	Limit int
}

// ParsePage reads the parameters after and limit.
func ParsePage(query url.Values) (Page, error) {
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

// CutPage returns a page of items, which must be one more than the page has if there are more,
// and the parameter after of the next page, or "" if this is the last one.
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
