package console

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// search is the search line of a page, with the query of acts that it means.
type search struct {
	Text     string // as the reader typed it, or as the terms say it
	Line     searchLine
	Problems []string
	Columns  []string // paths of the organization's columns, those of the search first; nil if the reader may not read payloads

	query    url.Values // of the interface
	from, to time.Time  // the range in time; zero if it has no begin or end in time
	now      time.Time
}

// searchParameters returns the parameters of a page's address that select acts: the line, and keys of terms, which replace those of the line.
func searchParameters() []string { return append([]string{"q", "log"}, searchKeys()...) }

// readSearch reads the search of a page. Names become identifiers. If the line is wrong, Problems says why, and the query is not used.
func readSearch(r *page.Request) (*search, error) {
	s := &search{Text: strings.TrimSpace(r.Query("q")), query: url.Values{}, now: time.Now().UTC()}
	s.Line, s.Problems = parseSearch(s.Text)
	given := r.URL.Query()
	for _, key := range searchKeys() {
		if given.Has(key) {
			s.Line = s.Line.with(term{Key: key, Value: strings.TrimSpace(given.Get(key))})
			s.Text = s.Line.String()
		}
	}
	if log := r.Query("log"); log != "" {
		s.query.Set("log", log)
	}
	if err := s.readColumns(r); err != nil {
		return nil, err
	}
	for _, t := range s.Line.Terms {
		if err := s.apply(r, t); err != nil {
			return nil, err
		}
	}
	if !s.from.IsZero() && !s.to.IsZero() && !s.from.Before(s.to) {
		s.Problems = append(s.Problems, "from: must be before to:.")
	}
	if s.Line.Words != "" {
		s.query.Set("q", s.Line.Words)
	}
	return s, nil
}

// readColumns reads the organization's columns.
func (s *search) readColumns(r *page.Request) error {
	if !r.Person.May("read payloads") {
		return nil
	}
	found, err := visitOf(r).Console.ShowColumns(r.Context(), visitOf(r).caller)
	for _, c := range found.Columns {
		s.Columns = append(s.Columns, c.Path)
	}
	wanted := func(path string) int {
		n := slices.IndexFunc(s.Line.Terms, func(t term) bool { return t.isColumn() && t.Key == path })
		if n < 0 {
			return maxTerms
		}
		return n
	}
	slices.SortStableFunc(s.Columns, func(a, b string) int { return cmp.Compare(wanted(a), wanted(b)) })
	return err
}

// apply adds a term to the query.
func (s *search) apply(r *page.Request, t term) (err error) {
	problem := ""
	switch {
	case t.isColumn():
		problem = s.applyColumn(r, t)
	case t.Key == "agent":
		var who string
		who, problem, err = findAgent(r, t.Value)
		s.query.Set("agent_id", who)
	case t.Key == "approver":
		var who string
		who, problem, err = findApprover(r, t.Value)
		s.query.Set("approver", who)
	case t.Key == "from" || t.Key == "to":
		problem = s.applyBound(t)
	case t.Key == "decision" || t.Key == "said":
		value := strings.ToLower(t.Value)
		if value == "needs-approval" {
			value = "allow_with_obligation"
		}
		if !slices.Contains([]string{"allow", "deny", "allow_with_obligation"}, value) {
			problem = t.Key + ": must be allow, deny or needs-approval."
		}
		s.query.Set(map[string]string{"decision": "decision", "said": "declared"}[t.Key], value)
	case t.Key == "outcome":
		if value := strings.ToLower(t.Value); slices.Contains(wire.Outcomes(), value) {
			s.query.Set("outcome", value)
		} else {
			problem = "outcome: must be " + strings.Join(wire.Outcomes(), ", ") + "."
		}
	case t.Key == "confirmed":
		value := strings.ToLower(t.Value)
		if value != "yes" && value != "no" {
			problem = "confirmed: must be yes or no."
		}
		s.query.Set("confirmed", value)
	default:
		s.query.Set(map[string]string{"tool": "tool", "trace": "trace_id", "for": "principal", "behalf": "on_behalf_of", "issuer": "issuer", "kind": "action_kind", "signer": "signer"}[t.Key], t.Value)
	}
	if problem != "" {
		s.Problems = append(s.Problems, problem)
	}
	return err
}

func (s *search) applyColumn(r *page.Request, t term) (problem string) {
	if !r.Person.May("read payloads") {
		return t.Key + " is not a filter. Your role does not read payloads, so it can't search their members. Ask an owner, an admin or an auditor."
	}
	if !slices.Contains(s.Columns, t.Key) {
		known := "The organization has named no columns of payloads."
		if len(s.Columns) > 0 {
			known = "Columns of payloads: " + strings.Join(s.Columns, ", ") + "."
		}
		return t.Key + " is neither a filter nor a column. Filters: " + strings.Join(searchKeys(), ", ") + ". " + known + " To search for the words, put them in quotes."
	}
	s.query.Add("column", t.Key+t.Operator+t.Value)
	return ""
}

// applyBound adds a bound: from the begin of the period that a word names, or to its end. A number is a log index.
func (s *search) applyBound(t term) (problem string) {
	p, ok := parsePeriod(t.Value, s.now)
	if !ok {
		if n, err := strconv.ParseUint(strings.TrimPrefix(t.Value, "#"), 10, 53); err == nil {
			s.query.Set(t.Key, strconv.FormatUint(n, 10))
			return ""
		}
		return t.Key + ": must be a day or a time in UTC, such as yesterday, -7d, nov, 2026-11-03 or 2026-11-03T12:00, or an entry, such as #893860."
	}
	at := p.Begin
	if t.Key == "from" {
		s.from = at
	} else {
		at = p.End
		s.to = at
	}
	s.query.Set(t.Key, at.Format("2006-01-02T15:04:05.000Z"))
	return ""
}

// named is an object by which a reader searches.
type named struct{ ID, Name, Other string } // Other is another unique name; "" if none

// findNamed returns the object with an ID, or with a name in either case, or the only one whose name contains a text.
func findNamed(all []named, text string) (found []named) {
	lower := strings.ToLower(text)
	for _, matches := range []func(n named) bool{
		func(n named) bool { return n.ID == text || n.Other != "" && strings.ToLower(n.Other) == lower },
		func(n named) bool { return strings.ToLower(n.Name) == lower },
		func(n named) bool { return strings.HasPrefix(strings.ToLower(n.Name), lower) },
		func(n named) bool { return strings.Contains(strings.ToLower(n.Name), lower) },
	} {
		for _, n := range all {
			if matches(n) {
				found = append(found, n)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

// maxNames is the maximum number of names in a message.
const maxNames = 5

// oneOf returns the only object of found, or why there is no such one.
func oneOf(key, text string, found []named) (string, string) {
	switch {
	case len(found) == 0:
		return "", key + ": nobody is named “" + text + "”. Enter a name, or an ID."
	case len(found) > 1:
		var names []string
		for _, n := range found[:min(len(found), maxNames)] {
			names = append(names, "“"+n.Name+"”")
		}
		return "", key + ": “" + text + "” fits " + strconv.Itoa(len(found)) + ": " + strings.Join(names, ", ") + ". Enter more of the name, or the ID."
	}
	return found[0].ID, ""
}

// maxAgentsSearched is how many agents are found by their names. Others are found by their IDs.
const maxAgentsSearched = "1000"

func findAgent(r *page.Request, text string) (who, problem string, err error) {
	if found, err := visitOf(r).Console.ShowAgent(r.Context(), visitOf(r).caller, text); err == nil {
		return string(found.AgentID), "", nil
	}
	found, err := visitOf(r).Console.ListAgents(r.Context(), visitOf(r).caller, url.Values{"limit": {maxAgentsSearched}})
	if err != nil {
		return "", "", err
	}
	var all []named
	for _, a := range found.Agents {
		all = append(all, named{ID: string(a.AgentID), Name: a.Name()})
	}
	matching := findNamed(all, text)
	if len(matching) == 0 && strings.HasPrefix(text, "agt_") { // of events from before it was removed
		return text, "", nil
	}
	who, problem = oneOf("agent", text, matching)
	return who, problem, nil
}

// findApprover returns the account of a member. An account or an address that is none of a member's is searched as it is, because the
// person may have left.
func findApprover(r *page.Request, text string) (who, problem string, err error) {
	if text == "me" {
		return string(r.Person.Account.ID), "", nil
	}
	people, err := readPeople(r)
	if err != nil {
		return "", "", err
	}
	var all []named
	for _, m := range people {
		all = append(all, named{ID: m.AccountID, Name: m.Name(), Other: m.Email})
	}
	matching := findNamed(all, text)
	if len(matching) == 0 && (strings.Contains(text, "@") || strings.HasPrefix(text, "acc_")) {
		return text, "", nil
	}
	who, problem = oneOf("approver", text, matching)
	return who, problem, nil
}

// readPeople reads the organization's members.
func readPeople(r *page.Request) ([]wire.Member, error) {
	found, err := visitOf(r).Identity.ListMembers(r.Context(), visitOf(r).person, url.Values{"limit": {maxMembers}})
	return found.Members, err
}

// chip is a part of the search with a link.
type chip struct {
	Key, Text string // Key is "" for words and ranges
	URL       string
	Current   bool
}

// searchURL returns the address of the acts that a line selects.
func searchURL(r *page.Request, line searchLine) string {
	query := url.Values{}
	if text := line.String(); text != "" {
		query.Set("q", text)
	}
	if log := r.Query("log"); log != "" {
		query.Set("log", log)
	}
	if len(query) == 0 {
		return r.Address(activityPage)
	}
	return r.Address(activityPage) + "?" + query.Encode()
}

// chips returns the terms of the search, each with the address without it.
func (s *search) chips(r *page.Request) (all []chip) {
	for n, t := range s.Line.Terms {
		c := chip{Key: t.Key, Text: t.Value, URL: searchURL(r, s.Line.without(n))}
		if t.isColumn() {
			c.Text = strings.NewReplacer("!=", "≠", ">=", "≥", "<=", "≤", "~", "contains").Replace(t.Operator) + " " + t.Value
		}
		all = append(all, c)
	}
	if s.Line.Words != "" {
		all = append(all, chip{Key: "text", Text: s.Line.Words, URL: searchURL(r, searchLine{Terms: s.Line.Terms})})
	}
	return all
}

// ranges returns links to usual ranges of the search.
func (s *search) ranges(r *page.Request) (all []chip) {
	for _, usual := range [][3]string{{"Today", "today", ""}, {"7 days", "-6d", ""}, {"Month", "this-month", ""}, {"Last month", "last-month", "last-month"}} {
		all = append(all, chip{Text: usual[0], URL: searchURL(r, s.Line.with(term{Key: "from", Value: usual[1]}, term{Key: "to", Value: usual[2]})),
			Current: s.Line.value("from") == usual[1] && s.Line.value("to") == usual[2]})
	}
	return all
}

// Bounds of the completion.
const (
	maxCompleted  = 20 // names of a kind
	maxCompletion = 80 // texts
)

// completion returns lines that complete the search by one term.
func (s *search) completion(r *page.Request, tools []string) []string {
	var terms []term
	for _, tool := range tools[:min(len(tools), maxCompleted)] {
		terms = append(terms, term{Key: "tool", Value: tool})
	}
	agents, _ := visitOf(r).Console.ListAgents(r.Context(), visitOf(r).caller, url.Values{"limit": {strconv.Itoa(maxCompleted)}})
	for _, a := range agents.Agents {
		terms = append(terms, term{Key: "agent", Value: a.Name()})
	}
	for _, o := range wire.Outcomes() {
		terms = append(terms, term{Key: "outcome", Value: o})
	}
	people, _ := readPeople(r)
	for _, m := range people {
		if slices.Contains([]string{"owner", "admin", "approver"}, m.Role) && len(terms) < maxCompletion-20 {
			terms = append(terms, term{Key: "approver", Value: m.Name()})
		}
	}
	for _, path := range s.Columns {
		terms = append(terms, term{Key: path, Operator: ">", Value: "100"})
	}
	for _, word := range []string{"today", "yesterday", "-7d", "this-month", "last-month"} {
		terms = append(terms, term{Key: "from", Value: word})
	}
	var lines []string
	for _, t := range terms[:min(len(terms), maxCompletion)] {
		lines = append(lines, s.Line.with(t).String())
	}
	return lines
}
