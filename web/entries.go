package web

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// entriesOnPage is how many entries a page of the list of a log covers.
const entriesOnPage = 50

// entriesView is a page of the entries of a log, latest first.
type entriesView struct {
	Rows         []row
	Older, Newer string // addresses; "" at the ends
	Hidden       string // what strangers do not see of these entries; "" if they see all
	Outcomes     bool   // whether outcomes are known
}

// row is one line of the list: an act with its result, another event, or several consecutive changes.
type row struct {
	Index     id.Index
	URL       string
	At        string // when it was received; "" if that is not disclosed
	Day       string // of At, if the row before has another day
	Act       string // the tool, or the kind of an event without one; "" if neither is disclosed
	AgentName string // "" if it is not disclosed
	AgentURL  string
	Outcome   string // "" if it is not known, not disclosed, or if the event is no act
	Decision  string // "" if it is not disclosed
	Erased    bool
	Result    *reference  // the entry of the act's result; nil if there is none
	Of        *reference  // the act that the event states the result of, if that is on another page
	Changes   []reference // of a row of changes by people and the service: each of them
}

// reference is a link to an entry.
type reference struct {
	Index id.Index
	URL   string
}

// isChange reports whether an event is one of the service's own.
func isChange(e *storage.Event) bool { return e.Agent == systemAgent }

// systemAgent is the agent of the service's own events.
const systemAgent = "system"

// readActs returns the acts that events are about, as far as these disclose it, by index. It returns nil if they cannot be
// read now: a page without outcomes is better than none.
func (s *Server) readActs(ctx context.Context, t id.Tenant, events []storage.Event) (map[id.Index]Act, error) {
	var at []id.Index
	for i := range events {
		if e := &events[i]; e.Disclosure == id.DiscloseFull && !isChange(e) {
			at = append(at, e.Index)
		}
	}
	return s.actsOf(ctx, t, at)
}

// actsOf is readActs for events that are disclosed in full. An act whose result is not has neither an outcome nor a result.
func (s *Server) actsOf(ctx context.Context, t id.Tenant, full []id.Index) (map[id.Index]Act, error) {
	if s.options.Acts == nil {
		return nil, nil
	}
	acts, err := s.options.Acts.ActsOf(ctx, t, full)
	if err != nil {
		return nil, ctx.Err()
	}
	for at, act := range acts {
		if act.Result == 0 || slices.Contains(full, act.Result) {
			continue
		}
		events, err := s.log.DisclosedEvents(ctx, t, id.Range{Begin: act.Result, End: act.Result + 1})
		if err != nil {
			return nil, err
		}
		if len(events) == 0 || events[0].Disclosure != id.DiscloseFull {
			act.Outcome, act.Result = "", 0
			acts[at] = act
		}
	}
	return acts, nil
}

// entries are the entries of a page of the list, latest first, with the acts that they are about.
type entries struct {
	events []storage.Event
	acts   map[id.Index]Act // nil if they can't be read now
}

// readEntries returns the entries below an index that a page covers.
func (s *Server) readEntries(r *request, before id.Index) (e entries, err error) {
	begin := before - min(before, entriesOnPage)
	if e.events, err = s.log.DisclosedEvents(r.Context(), r.tenant, id.Range{Begin: begin, End: before}); err != nil {
		return e, err
	}
	slices.Reverse(e.events)
	e.acts, err = s.readActs(r.Context(), r.tenant, e.events)
	return e, err
}

// drawEntries returns what a drawing shows of entries.
func (s *Server) drawEntries(r *request, of entries) map[id.Index]*leaf {
	leaves := make(map[id.Index]*leaf, len(of.events))
	for i := range of.events {
		e := &of.events[i]
		leaves[e.Index] = newLeaf(e, of.acts, s.eventURL(r.slug, string(e.ID)))
	}
	return leaves
}

// describeEntries returns the list of entries.
func (s *Server) describeEntries(r *request, of entries) (*entriesView, error) {
	v := &entriesView{Outcomes: of.acts != nil, Hidden: s.describeHidden(r, of.events)}
	names, known := make(map[id.Agent]string), make(map[id.Index]id.Event, len(of.events))
	for i := range of.events {
		known[of.events[i].Index] = of.events[i].ID
	}
	refer := func(at id.Index) (*reference, error) {
		if name, is := known[at]; is {
			return &reference{at, s.eventURL(r.slug, string(name))}, nil
		}
		return s.referTo(r, at)
	}
	day := ""
	for i := range of.events {
		e := &of.events[i]
		act, isAbout := of.acts[e.Index]
		isResult := isAbout && act.Index != e.Index
		if isResult && of.acts[act.Index].Result == e.Index { // in the row of its act
			continue
		}
		if isChange(e) {
			to := reference{e.Index, s.eventURL(r.slug, string(e.ID))}
			if last := len(v.Rows) - 1; last >= 0 && v.Rows[last].Changes != nil {
				v.Rows[last].Changes = append(v.Rows[last].Changes, to)
				continue
			}
			v.Rows = append(v.Rows, row{Changes: []reference{to}})
		} else {
			v.Rows = append(v.Rows, row{})
		}
		one := &v.Rows[len(v.Rows)-1]
		if err := s.describeRow(r, one, e, names); err != nil {
			return nil, err
		}
		if e.ReceivedAt != 0 {
			if d := e.ReceivedAt.Time().UTC().Format("Monday 2 January 2006"); d != day {
				one.Day, day = d, d
			}
		}
		var err error
		switch {
		case isResult:
			one.Of, err = refer(act.Index)
		case isAbout:
			one.Outcome = act.Outcome
			if act.Result != 0 {
				one.Result, err = refer(act.Result)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (s *Server) describeRow(r *request, one *row, e *storage.Event, names map[id.Agent]string) error {
	one.Index, one.URL = e.Index, s.eventURL(r.slug, string(e.ID))
	if e.Disclosure < id.DiscloseRecord {
		return nil
	}
	one.At, one.Erased = e.ReceivedAt.String(), e.ErasedBy != 0
	one.Act, one.Decision = cmp.Or(string(e.Tool), e.ActionKind), e.Effective.String()
	if !isChange(e) {
		one.AgentName, one.AgentURL = string(e.Agent), s.agentURL(r.slug, e.Agent)
		if e.Disclosure < id.DiscloseFull { // names are not in the log, so the records don't disclose them
			return nil
		}
		name, err := s.nameAgent(r, e.Agent, names)
		one.AgentName = name
		return err
	}
	return nil
}

// nameAgent returns the name of an agent. names has those that were read before.
func (s *Server) nameAgent(r *request, agent id.Agent, names map[id.Agent]string) (string, error) {
	if s.options.Names == nil {
		return string(agent), nil
	}
	if name, known := names[agent]; known {
		return name, nil
	}
	name, err := s.options.Names.AgentName(r.Context(), r.tenant, agent)
	if fault.Is(err, fault.NotFound) {
		name, err = "", nil
	}
	name = cmp.Or(name, string(agent))
	if names != nil {
		names[agent] = name
	}
	return name, err
}

// nameOrganization returns the name of the organization of a request.
func (s *Server) nameOrganization(r *request) (string, error) {
	if s.options.Names == nil {
		return string(r.slug), nil
	}
	name, err := s.options.Names.OrganizationName(r.Context(), r.tenant)
	return cmp.Or(name, string(r.slug)), err
}

func (s *Server) referTo(r *request, at id.Index) (*reference, error) {
	name, err := s.log.EventAt(r.Context(), r.tenant, at)
	return &reference{at, s.eventURL(r.slug, string(name))}, err
}

// Words of a drawing and of its legend for the outcomes, and the class of their colour.
var outcomeColours = map[string]string{"done": "f-done", "failed": "f-bad", "refused": "f-bad", "denied": "f-bad", "waiting": "f-wait"}

func newLeaf(e *storage.Event, acts map[id.Index]Act, address string) *leaf {
	l := &leaf{URL: address, Class: "crown", Words: fmt.Sprintf("Entry %d", e.Index)}
	act, known := acts[e.Index]
	known = known && act.Outcome != ""
	switch {
	case isChange(e):
		l.Class, l.Words = "dot", l.Words+": a change by people or the service"
	case known && act.Index == e.Index:
		l.Class, l.Words = cmp.Or(outcomeColours[act.Outcome], "f-open"), l.Words+": "+act.Outcome
	case known:
		l.Class, l.Words = cmp.Or(outcomeColours[act.Outcome], "f-open"), fmt.Sprintf("%s: the result of entry %d, %s", l.Words, act.Index, act.Outcome)
	case e.Disclosure >= id.DiscloseRecord && e.Effective == id.Deny:
		l.Class, l.Words = "f-bad", l.Words+": denied by the policy"
	}
	return l
}

// describeHidden says what strangers do not see of events of agents, "" if they see all.
func (s *Server) describeHidden(r *request, events []storage.Event) string {
	least := id.DiscloseFull
	for i := range events {
		if e := &events[i]; !isChange(e) {
			least = min(least, e.Disclosure)
		}
	}
	switch {
	case least < id.DiscloseRecord:
		return "shows strangers only that an entry exists, with its fingerprint: not which agent acted, what it did, what was decided, or when."
	case least < id.DiscloseFull:
		return "shows strangers which agent acted, when, and what the policy decided: not which tool it used, with what, or what became of it."
	}
	return ""
}

// readBefore returns the parameter before: the entries below it are listed. It is at most size.
func readBefore(r *request, size id.Index) (id.Index, error) {
	text := r.formValue("before")
	if text == "" {
		return size, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id.Index(n) > tlog.MaxSize {
		return 0, fault.New(fault.Invalid, "before must be the index of an entry")
	}
	return min(id.Index(n), size), nil
}

// addPages adds the addresses of the neighbouring pages.
func (v *entriesView) addPages(home string, before, size id.Index) {
	address := func(before id.Index) string {
		if before >= size {
			return home + "#entries"
		}
		return home + "?before=" + url.QueryEscape(strconv.FormatUint(uint64(before), 10)) + "#entries"
	}
	if before > entriesOnPage {
		v.Older = address(before - entriesOnPage)
	}
	if before < size {
		v.Newer = address(before + entriesOnPage)
	}
}
