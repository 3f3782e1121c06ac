package console

import (
	"net/url"
	"slices"
	"strconv"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const eventCalls = "/v1/console/events"

// eventFilters returns the names of the parameters of event lists.
func eventFilters() []string {
	return []string{"agent_id", "tool", "action_kind", "decision", "declared", "trace_id", "principal", "on_behalf_of", "issuer", "signer",
		"from", "to", "log"}
}

// eventsView is the content of the list of events.
type eventsView struct {
	Live          *page.Live // only on the first page of the latest events
	Events        []wire.ListedEvent
	ShowsSubjects bool // an event states on whose behalf it is
	Next          string
	Indexed       bool
	LastIndexed   id.Index // index of the latest event that the list can contain, if Indexed
	Filter        filters
	Filtered      bool
	Files         streams
	Predecessor   *predecessor
	LogQuery      string // of links to events of a former log
	Search        *searched
}

// searched is how far a text search looked.
type searched struct {
	To        *wire.LookedTo // nil if there was no event to search
	Passed    id.Index       // events of the log up to To in the order of the list; 0 if the list begins or ends elsewhere
	Events    id.Index       // events of the log, if Passed is set
	Ascending bool
	Limit     int  // events of a full page
	Full      bool // the page has Limit events
	Next      string
}

func (p *pages) listEvents(r *page.Request) (any, error) {
	names := append(eventFilters(), "q", "order", "limit")
	query := listQuery(r, names...)
	found, err := visitOf(r).Console.ListEvents(r.Context(), visitOf(r).caller, query)
	if err = r.Correctable(err); err != nil {
		return nil, err
	}
	v := &eventsView{Events: found.Events, Next: r.NextPage(found.Next),
		Filter: readFilters(r, names...), Files: streamsOf(r, eventCalls, query), LogQuery: logQuery(r),
		Predecessor: linkPredecessor(r, found.Predecessor)}
	v.ShowsSubjects = slices.ContainsFunc(found.Events, func(e wire.ListedEvent) bool { return e.OnBehalfOf != nil })
	v.Filtered = len(v.Filter) > 0
	if found.IndexedTo > 0 {
		v.Indexed, v.LastIndexed = true, found.IndexedTo-1
	}
	if found.Searched != nil {
		shown, err := edge.ParsePage(query)
		if err != nil {
			return nil, err
		}
		v.Search = newSearched(query, found.Searched, found.IndexedTo, len(found.Events), shown.Limit)
		v.Search.Next = v.Next
	}
	if query.Get("after") == "" && query.Get("order") != "oldest" && query.Get("to") == "" && query.Get("q") == "" && r.Problem == "" {
		v.Live = followEvents(r, query, found.IndexedTo)
	}
	return v, nil
}

// newSearched returns how far the search of a page with n rows of at most limit looked, or nil if the page is not a text search.
func newSearched(query url.Values, found *wire.Searched, indexedTo id.Index, n, limit int) *searched {
	if found == nil {
		return nil
	}
	s := &searched{To: found.LookedTo, Ascending: query.Get("order") == "oldest", Limit: limit, Full: n >= limit}
	if s.To != nil && query.Get("from") == "" && query.Get("to") == "" {
		s.Events, s.Passed = indexedTo, indexedTo-s.To.Index
		if s.Ascending {
			s.Passed = s.To.Index + 1
		}
	}
	return s
}

// followEvents returns the rules by which a list that is indexed up to an event follows new events.
func followEvents(r *page.Request, query url.Values, indexedTo id.Index) *page.Live {
	wanted := url.Values{}
	for name, values := range query {
		if name != "order" && name != "limit" {
			wanted[name] = values
		}
	}
	live := &page.Live{Follow: r.Address(eventCalls) + "?" + wanted.Encode()}
	if indexedTo > 0 {
		live.After = strconv.FormatUint(uint64(indexedTo-1), 10)
	}
	return live
}

// logQuery returns the query that selects the log in the address, or "" for the current log.
func logQuery(r *page.Request) string {
	if log := r.Query("log"); log != "" {
		return "?" + url.Values{"log": {log}}.Encode()
	}
	return ""
}
