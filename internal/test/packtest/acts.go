package packtest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify/pack"
)

// acts returns the lines of acts.ndjson. It is a naive program that reads all events for each act.
func (l *Log) acts(a Selection) (lines string) {
	l.t.Helper()
	for i := a.Begin; i < a.End; i++ {
		if l.isActIn(a, i) {
			lines += l.text(l.actLine(a, i)) + "\n"
		}
	}
	return lines
}

func (a *Selection) shows(l *Log, i id.Index) bool {
	e := l.Events[i].Envelope
	isComparison := e.ActionKind == "ledger_coverage_compared" && l.Events[i].Record.Signer == event.SignerSystem
	return a.Request.Matches(e.AgentID, e.TraceID, e.Tool) && a.Request.MatchesSubject(e) ||
		a.Request.Coverage && isComparison || slices.Contains(a.Also, i)
}

// envelope returns the members of an event's envelope, or nil if it is not in the pack.
func (l *Log) envelopeIn(a Selection, i id.Index) (members map[string]any) {
	if !a.Request.Envelopes || slices.Contains(a.Erased, i) {
		return nil
	}
	l.read(l.Events[i].Envelope.Canonical, &members)
	return members
}

func textIn(members map[string]any, path ...string) string {
	for _, name := range path[:len(path)-1] {
		members, _ = members[name].(map[string]any)
	}
	text, _ := members[path[len(path)-1]].(string)
	return text
}

func (l *Log) isActIn(a Selection, i id.Index) bool {
	r := &l.Events[i].Record
	if !a.shows(l, i) || r.Signer == event.SignerSystem || !r.Policy.Evaluated || r.Policy.Intent != "" {
		return false
	}
	e := l.envelopeIn(a, i)
	return e == nil || textIn(e, "tool_name") != "" && textIn(e, "payload", "phase") != "result"
}

// ending returns ok, error, denied, unknown or "", and the index of the result or -1.
func (l *Log) ending(a Selection, i id.Index) (string, int) {
	words := map[string]string{"ok": "ok", "done": "ok", "completed": "ok", "succeeded": "ok", "success": "ok", "error": "error",
		"failed": "error", "denied": "denied", "unknown": "unknown", "skipped": "skipped"}
	for n := a.Begin; n < a.End; n++ {
		r := &l.Events[n].Record
		if !a.shows(l, n) || r.Signer == event.SignerSystem || r.Policy.Intent != l.Events[i].Record.EventID {
			continue
		}
		e := l.envelopeIn(a, n)
		status := "unknown"
		switch {
		case e == nil:
		case r.Signer == event.SignerBridge:
			status = cmp.Or(words[textIn(e, "step_status")], "unknown")
		default:
			switch s := textIn(e, "payload", "status"); s {
			case "", "ok":
				status = "ok"
			case "error", "denied":
				status = s
			}
		}
		return status, int(n)
	}
	e := l.envelopeIn(a, i)
	if l.Events[i].Record.Signer != event.SignerBridge || textIn(e, "payload", "phase") == "intent" {
		return "", -1
	}
	if own := words[textIn(e, "step_status")]; own != "" || !l.isLastOfStep(a, i) {
		return own, -1
	}
	for n := i + 1; n < a.End; n++ {
		r := l.envelopeIn(a, n)
		if a.shows(l, n) && l.Events[n].Record.Signer == event.SignerBridge && r["tool_name"] == nil && textIn(r, "action_kind") == "result" &&
			isNumber(e["attempt"]) && r["attempt"] == e["attempt"] && e["run_id"] != nil && r["run_id"] == e["run_id"] &&
			textIn(e, "step_key") != "" && textIn(r, "step_key") == textIn(e, "step_key")+".result" {
			return cmp.Or(words[textIn(r, "step_status")], "unknown"), int(n)
		}
	}
	return "", -1
}

func isNumber(v any) bool {
	_, is := v.(float64)
	return is
}

// isLastOfStep reports whether no later act without a status has the step of an act.
func (l *Log) isLastOfStep(a Selection, i id.Index) bool {
	e := l.envelopeIn(a, i)
	for n := i + 1; n < a.End; n++ {
		r := l.envelopeIn(a, n)
		if l.isActIn(a, n) && r["run_id"] == e["run_id"] && r["step_key"] == e["step_key"] && r["attempt"] == e["attempt"] && textIn(r, "step_status") == "started" {
			return false
		}
	}
	return true
}

var statusAfter = map[string]string{"requested": "waiting", "voted": "waiting", "pending": "waiting", "approved": "approved",
	"consumed": "approved", "denied": "refused", "revoked": "refused", "expired": "expired", "cancelled": "cancelled", "invalidated": "cancelled"}

// approvalFor returns the approval of an act.
func (l *Log) approvalFor(a Selection, i id.Index) (name, status string, votes []any) {
	type state struct {
		intent, status string
		last           id.Index
		votes          []any
	}
	all := make(map[string]*state)
	for n := a.Begin; n < a.End; n++ {
		e := l.Events[n].Envelope
		if e.ActionKind != "ledger_approval" || slices.Contains(a.Dropped, n) {
			continue
		}
		var payload map[string]any
		l.read(e.Payload, &payload)
		of := textIn(payload, "approval_id")
		if !event.ValidEvent(of) {
			continue
		}
		if all[of] == nil {
			all[of] = &state{}
		}
		s := all[of]
		s.intent = cmp.Or(s.intent, textIn(payload, "intent_event_id"))
		transition, vote := textIn(payload, "transition"), textIn(payload, "vote")
		if statusAfter[transition] == "" {
			continue
		}
		s.status, s.last = statusAfter[transition], n
		account := strings.Split(e.ActorPrincipal, "/")[0]
		if (vote != "" || transition == "revoked") && event.ValidEvent(account) {
			if vote != "approve" {
				vote = "deny"
			}
			given := map[string]any{"account_id": account, "vote": vote}
			if represented := textIn(payload, "deputy_for"); event.ValidEvent(represented) {
				given["deputy_for"] = represented
			}
			s.votes = append(s.votes, given)
		}
	}
	r := &l.Events[i].Record
	last := -1
	for of, s := range all {
		if s.status != "" && (s.intent == string(r.EventID) || of == r.Policy.ApprovalID) && int(s.last) > last {
			name, status, votes, last = of, s.status, s.votes, int(s.last)
		}
	}
	if name == "" && r.Policy.ApprovalID != "" {
		return r.Policy.ApprovalID, "approved", nil
	}
	return name, status, votes
}

func (l *Log) actLine(a Selection, i id.Index) map[string]any {
	r, e := &l.Events[i].Record, l.envelopeIn(a, i)
	ending, result := l.ending(a, i)
	name, status, votes := l.approvalFor(a, i)
	orNil := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	columns := make(map[string]any)
	for _, column := range a.Columns {
		var value any = e["payload"]
		for _, segment := range strings.FieldsFunc(column, func(r rune) bool { return r == '.' || r == '[' }) {
			if digits, is := strings.CutSuffix(segment, "]"); is {
				list, _ := value.([]any)
				n, err := strconv.Atoi(digits)
				if value = nil; err == nil && n < len(list) {
					value = list[n]
				}
				continue
			}
			object, _ := value.(map[string]any)
			value = object[segment]
		}
		columns[column] = nil
		switch v := value.(type) {
		case float64:
			columns[column] = v
		case string:
			if len(v) <= 128 {
				columns[column] = v
			}
		}
	}
	line := map[string]any{"agent_id": r.AgentID, "event_id": r.EventID, "received_at": r.ReceivedAt, "log_index": i,
		"decision": r.Policy.Effective, "policy_id": orNil(r.Policy.PolicyID), "policy_version": nil, "rule_id": orNil(r.Policy.RuleID),
		"tool_name": orNil(textIn(e, "tool_name")), "actor_principal": orNil(textIn(e, "actor_principal")),
		"approval_id": orNil(name), "approval_status": orNil(status), "votes": append([]any{}, votes...), "result_log_index": nil,
		"columns": columns}
	if result >= 0 {
		line["result_log_index"] = result
	}
	if r.Policy.PolicyVersion != 0 {
		line["policy_version"] = r.Policy.PolicyVersion
	}
	step := r.Signer == event.SignerBridge && textIn(e, "step_status") == "started"
	phase := textIn(e, "payload", "phase")
	switch {
	case ending == "ok":
		line["outcome"] = "done"
	case ending == "error":
		line["outcome"] = "failed"
	case status == "refused":
		line["outcome"] = "refused"
	case r.Policy.Effective == id.Deny:
		line["outcome"] = "denied"
	case status == "expired" || status == "cancelled":
		line["outcome"] = status
	case ending == "skipped":
		line["outcome"] = "cancelled"
	case ending == "denied" || ending == "unknown":
		line["outcome"] = ending
	case status == "waiting":
		line["outcome"] = "waiting"
	case e == nil:
		line["outcome"] = "unknown"
	case phase == "intent" || step || r.Policy.Effective == id.AllowWithObligation && status != "approved":
		line["outcome"] = "open"
	default:
		line["outcome"] = "done"
	}
	return line
}

// ActsSelection selects all of the log of NewActsLog.
func ActsSelection(l *Log) Selection {
	size := id.Index(len(l.Events))
	a := Selection{Size: size, End: size, Request: pack.Request{Envelopes: true}, Erasing: []id.Index{size - 1}, Acts: true,
		Columns: []string{"order.id", "amount_usd", "__proto__", "order", "order.n[1]", "order.n[2][0].x-y"}}
	for i := range l.Events[:size-1] {
		if l.erased(id.Index(i)) {
			a.Erased = append(a.Erased, id.Index(i))
		}
	}
	return a
}

// erased reports whether an event of the log of NewActsLog lost its envelope: the acts of that name, and the first result of one.
func (l *Log) erased(i id.Index) bool {
	return strings.HasPrefix(string(l.Events[i].Record.EventID), "erased_") ||
		i > 0 && l.Events[i].Record.Policy.Intent == "erased_result" && l.Events[i-1].Record.EventID == "erased_result"
}

// NewActsLog returns a log with acts of all outcomes, results and approvals, and events that are not acts.
func NewActsLog(t testing.TB) *Log {
	t.Helper()
	l := NewLog(t)
	const tool = "acme.payments.refund"
	payload := func(amount any, phase string) map[string]any {
		p := map[string]any{"amount_usd": amount, "order": map[string]any{"id": fmt.Sprintf("A-%d", len(l.Events)), "n": []any{"a", 2, []any{map[string]any{"x-y": "z"}}}}}
		if phase != "" {
			p["phase"] = phase
		}
		return p
	}
	act := func(name id.Event, decided id.Decision, phase string, amount any) {
		l.Append(EventSpec{ID: name, Tool: tool, Judged: true, Decided: decided, Payload: payload(amount, phase)})
	}
	result := func(of id.Event, status any) {
		p := map[string]any{"phase": "result"}
		if status != nil {
			p["status"] = status
		}
		l.Append(EventSpec{Tool: tool, Intent: of, Payload: p})
	}
	step := func(name id.Event, status any, decided id.Decision, approval string, p map[string]any) {
		if p == nil {
			p = payload(7, "")
		}
		l.Append(EventSpec{ID: name, Tool: tool, Judged: true, Bridge: true, Decided: decided, Approval: approval, Payload: p,
			Members: map[string]any{"step_status": status}})
	}
	state := func(approval, transition, principal string, more map[string]any) {
		p := map[string]any{"approval_id": approval, "transition": transition}
		for name, value := range more {
			p[name] = value
		}
		l.Append(EventSpec{Kind: "ledger_approval", Payload: p, Principal: principal})
	}
	requested := func(approval string, intent id.Event) {
		state(approval, "requested", "ik_1", map[string]any{"intent_event_id": intent})
	}
	approve, deny := map[string]any{"vote": "approve"}, map[string]any{"vote": "deny"}

	act("done", id.Allow, "intent", 1.5)
	result("done", "ok")
	result("done", "error") // a later result changes nothing
	act("failed", id.Allow, "intent", -2)
	result("failed", "error")
	act("recorded", id.Allow, "", 12345678901.25)
	act("denied", id.Deny, "intent", 6000)
	l.Append(EventSpec{Tool: tool, Judged: true, Decided: id.Deny, Payload: map[string]any{"phase": "result"}}) // of an act that was denied
	act("refused", id.AllowWithObligation, "intent", 642)
	requested("apr_refused", "refused")
	state("apr_refused", "voted", "acc_1/session", approve)
	state("apr_refused", "denied", "acc_2/session", deny)
	act("approved", id.AllowWithObligation, "intent", 655)
	requested("apr_approved", "approved")
	state("apr_approved", "voted", "acc_1/session", approve)
	state("apr_approved", "approved", "acc_2", approve)
	state("apr_approved", "consumed", "ik_1", nil)
	result("approved", nil)
	act("withdrawn", id.AllowWithObligation, "intent", nil)
	requested("apr_withdrawn", "withdrawn")
	state("apr_withdrawn", "approved", "acc_1", approve)
	state("apr_withdrawn", "revoked", "acc_1/session", map[string]any{"deputy_for": "acc_5"})
	act("expired", id.AllowWithObligation, "intent", "640")
	requested("apr_expired", "expired")
	state("apr_expired", "expired", "operator", nil)
	act("cancelled", id.AllowWithObligation, "intent", true)
	requested("apr_cancelled", "cancelled")
	state("apr_cancelled", "cancelled", "ik_1", nil)
	act("invalidated", id.AllowWithObligation, "intent", strings.Repeat("é", 64))
	requested("apr_invalidated", "invalidated")
	state("apr_invalidated", "invalidated", "operator", nil)
	act("interrupted", id.Allow, "intent", strings.Repeat("é", 64)+"x")
	result("interrupted", "unknown")
	act("strange", id.Allow, "intent", map[string]any{"$number": "1915883588174806058"})
	result("strange", "a \"strange\" one")
	act("number", id.Allow, "intent", 0)
	result("number", 5) // counts as absent
	act("denied_by_the_agent", id.Allow, "intent", 1)
	result("denied_by_the_agent", "denied")
	act("waiting", id.AllowWithObligation, "intent", 1e21)
	requested("apr_waiting", "waiting")
	state("apr_waiting", "reminded", "operator", nil) // has no meaning
	act("open", id.Allow, "intent", 1)
	act("unasked", id.AllowWithObligation, "", 1)
	act("repeated", id.AllowWithObligation, "intent", 700)
	requested("apr_first", "repeated")
	state("apr_first", "expired", "operator", nil)
	requested("apr_second", "repeated")
	state("apr_second", "approved", "acc_2", map[string]any{"vote": "approve", "deputy_for": "acc_5"})
	result("repeated", "ok")
	act("rogue", id.AllowWithObligation, "intent", 701)
	requested("apr_rogue", "rogue")
	state("apr_rogue", "denied", "acc_1", map[string]any{"vote": "deny", "deputy_for": "no account"}) // counts as absent
	result("rogue", "ok")
	result("nothing", "ok") // of an act that is not in the log

	step("step_ok", "succeeded", id.Allow, "", nil)
	step("step_failed", "failed", id.Allow, "", nil)
	step("step_started", "started", id.Allow, "", nil)
	step("step_skipped", "skipped", id.Allow, "", nil)
	step("step_unknown", "unknown", id.Allow, "", nil)
	step("step_number", 7, id.Allow, "", nil)
	step("step_intent", "failed", id.Allow, "", payload(1, "intent"))
	l.Append(EventSpec{Tool: tool, Bridge: true, Intent: "step_intent", Payload: map[string]any{"phase": "result", "status": "ok"},
		Members: map[string]any{"step_status": "error"}})
	state("apr_step", "requested", "ik_1", nil)
	state("apr_step", "approved", "acc_2", approve)
	step("step_approved", "queued", id.AllowWithObligation, "apr_step", nil)
	state("apr_step", "consumed", "ik_1", nil)
	step("step_before", "queued", id.AllowWithObligation, "apr_before", nil) // the approval was before the log

	run := func(name id.Event, key string, attempt, status any) {
		s := EventSpec{ID: name, Bridge: true, Kind: "result", Members: map[string]any{"run_id": "run_1", "step_key": key, "attempt": attempt, "step_status": status}}
		if !strings.HasSuffix(key, ".result") {
			s.Tool, s.Judged, s.Kind = tool, true, ""
		}
		l.Append(s)
	}
	run("", "early.result", 1, "succeeded") // before its step
	run("run_early", "early", 1, "started")
	run("run_done", "pay \"é\"", 1, "started")
	run("run_again", "pay \"é\"", 2, "started")
	run("", "pay \"é\".result", 1, "succeeded")
	run("", "pay \"é\".result", 1, "failed") // a later one
	run("", "pay \"é\".result", 2, "skipped")
	run("run_strange", "strange", 1, "queued")
	run("", "strange.result", 1, "strange")
	run("run_own", "own", 1, "failed")
	run("", "own.result", 1, "succeeded")
	run("run_twice", "twice", 1, "started")
	run("run_twice_again", "twice", 1, "started")
	run("", "twice.result", 1, "succeeded")
	run("run_text", "text", "1", "started")
	run("", "text.result", "1", "succeeded")
	run("erased_run", "erased", 1, "started")
	run("", "erased.result", 1, "succeeded")
	run("run_lost", "lost", 1, "started")
	run("erased_end", "lost.result", 1, "succeeded")
	run("run_both", "both", 1, "started")
	run("", "both.result", 1, "succeeded")
	run("run_ten", "x", 10, "started")
	run("", "0x.result", 1, "succeeded") // of another step
	l.Append(EventSpec{Tool: tool, Bridge: true, Intent: "run_both", Payload: map[string]any{"phase": "result"}, Members: map[string]any{"step_status": "error"}})

	l.Append(EventSpec{Payload: map[string]any{"text": "no tool"}})
	l.Append(EventSpec{Tool: tool}) // not decided on
	act("erased_open", id.Allow, "intent", 1)
	act("erased_done", id.Allow, "intent", 1)
	result("erased_done", "ok")
	act("erased_result", id.Allow, "intent", 1)
	result("erased_result", "ok")
	result("erased_result", "error")
	act("erased_denied", id.Deny, "intent", 1)
	step("erased_step", "failed", id.Allow, "", nil)
	act("late", id.AllowWithObligation, "intent", 1)
	requested("apr_late", "late")
	state("apr_late", "approved", "acc_1", approve)
	result("late", "ok")
	l.Append(EventSpec{Agent: "agt_2", Tool: "acme.mail.send", Trace: "other", Judged: true})
	var ranges [][]int
	for i := range l.Events {
		if l.erased(id.Index(i)) {
			ranges = append(ranges, []int{i, i + 1})
		}
	}
	l.Append(EventSpec{Kind: "ledger_envelope_erased", Payload: map[string]any{"ranges": ranges, "reason": "request"}})
	l.described = "apr_approved"
	l.approval = map[string]any{"people": []any{map[string]any{"account_id": "acc_2", "email": "ben@example.com", "name": "Ben Lindqvist"},
		map[string]any{"account_id": "acc_1", "email": "ada@example.com"}}}
	return l
}

// statements returns the indices of the statements about approvals that wanted accepts by approval_id and transition.
func (l *Log) statements(wanted func(approval, transition string) bool) (at []id.Index) {
	for i := range l.Events {
		e := l.Events[i].Envelope
		var payload map[string]any
		l.read(e.Payload, &payload)
		if e.ActionKind == "ledger_approval" && wanted(textIn(payload, "approval_id"), textIn(payload, "transition")) {
			at = append(at, id.Index(i))
		}
	}
	return at
}

// ActSamples returns valid packs with acts.ndjson.
func ActSamples(t testing.TB) []Sample {
	t.Helper()
	l := NewActsLog(t)
	text := func(n id.Index) *string { s := fmt.Sprint(n); return &s }
	find := func(name id.Event) id.Index {
		return id.Index(slices.IndexFunc(l.Events, func(e Logged) bool { return e.Record.EventID == name }))
	}
	all := ActsSelection(l)
	sample := func(name string, change func(*Selection)) Sample {
		a := all
		change(&a)
		a.Erased = slices.DeleteFunc(slices.Clone(a.Erased), func(i id.Index) bool { return i < a.Begin || i >= a.End || !a.shows(l, i) })
		if len(a.Erased) == 0 {
			a.Erasing = nil
		}
		s := Sample{Name: "acts: " + name, Parts: l.Pack(a), Begin: a.Begin, End: a.End, Erased: uint64(len(a.Erased))}
		s.Shown = s.Parts.Manifest.Counts.Records
		s.Withheld = s.Parts.Manifest.Counts.Entries - s.Shown
		return s
	}
	agent, system, trace, tool := id.Agent("agt_1"), id.Agent("system"), id.Trace("other"), "acme.mail.*"
	statements := l.statements(func(string, string) bool { return true })
	samples := []Sample{
		sample("of all outcomes", func(*Selection) {}),
		sample("without columns", func(a *Selection) { a.Columns = nil }),
		sample("without envelopes", func(a *Selection) { a.Columns, a.Request.Envelopes = nil, false }),
		sample("of an agent", func(a *Selection) { a.Request.AgentID = &agent }),
		sample("of a trace", func(a *Selection) { a.Request.TraceID = &trace }),
		sample("of tools", func(a *Selection) { a.Request.Tool = &tool }),
		sample("of the service's own events", func(a *Selection) { a.Request.AgentID, a.Dropped = &system, statements }),
		sample("without envelopes and a statement", func(a *Selection) {
			a.Columns, a.Request.Envelopes, a.Dropped = nil, false, statements[:1]
		}),
		sample("an empty range", func(a *Selection) { a.Begin, a.End, a.Request.From, a.Request.To = 5, 5, text(5), text(5) }),
	}
	for name, cut := range map[string][2]id.Index{
		"cut between an act and its result":       {0, find("done") + 1},
		"cut between votes":                       {find("refused"), find("refused") + 3},
		"cut before the acts of results":          {find("done") + 1, find("late")},
		"cut after the request of an approval":    {find("approved") + 2, find("expired")},
		"cut before a result":                     {find("late"), find("late") + 3},
		"cut before the use of an approval":       {find("step_approved"), find("step_before")},
		"cut after the statements of an approval": {find("approved"), find("approved") + 5},
	} {
		samples = append(samples, sample(name, func(a *Selection) {
			a.Begin, a.End, a.Request.From, a.Request.To = cut[0], cut[1], text(cut[0]), text(cut[1])
		}))
	}
	slices.SortStableFunc(samples[9:], func(a, b Sample) int { return cmp.Compare(a.Name, b.Name) })
	return samples
}

// WrongActs returns packs whose acts.ndjson differs from what follows from the other files.
func WrongActs(t testing.TB) (all []Wrong) {
	t.Helper()
	edit := func(change func([]string) []string) func(*Parts) {
		return func(p *Parts) {
			editLines(pack.FileActs, change)(p)
			p.Manifest.Acts.Lines = uint64(strings.Count(*p.File(pack.FileActs), "\n"))
		}
	}
	change := func(old, text string) func(*Parts) { return replace(pack.FileActs, old, text) }
	l := NewActsLog(t)
	whole, to := ActsSelection(l), "22" // the acts up to the one that expired
	whole.End, whole.Request.To, whole.Erased, whole.Erasing = 22, &to, nil, nil
	for _, c := range []struct {
		name string
		bend func(*Parts)
	}{
		{"the first line missing", edit(removed(0))},
		{"the last line missing", edit(func(l []string) []string { return l[:len(l)-1] })},
		{"a line missing", edit(removed(5))},
		{"all lines missing", edit(func([]string) []string { return nil })},
		{"a line twice", edit(doubled(3))},
		{"the last line twice", edit(func(l []string) []string { return append(l, l[len(l)-1]) })},
		{"lines in another order", edit(swapped(4))},
		{"a line of another event", edit(func(l []string) []string {
			return append(l, strings.Replace(l[0], `"log_index":0`, `"log_index":1000`, 1))
		})},
		{"another outcome", change(`"outcome":"refused"`, `"outcome":"done"`)},
		{"another outcome of a failed act", change(`"outcome":"failed"`, `"outcome":"done"`)},
		{"an unknown outcome", change(`"outcome":"done"`, `"outcome":"success"`)},
		{"another status of an approval", change(`"approval_status":"refused"`, `"approval_status":"approved"`)},
		{"another approval", change(`"approval_id":"apr_refused"`, `"approval_id":"apr_approved"`)},
		{"no approval", change(`"approval_id":"apr_refused","approval_status":"refused"`, `"approval_id":null,"approval_status":null`)},
		{"another account", change(`"account_id":"acc_2"`, `"account_id":"acc_3"`)},
		{"another represented member", change(`"deputy_for":"acc_5"`, `"deputy_for":"acc_6"`)},
		{"a represented member missing", change(`"deputy_for":"acc_5",`, ``)},
		{"a represented member more", change(`{"account_id":"acc_2","vote":"deny"}`, `{"account_id":"acc_2","deputy_for":"acc_5","vote":"deny"}`)},
		{"another vote", change(`"vote":"deny"`, `"vote":"approve"`)},
		{"a vote missing", change(`{"account_id":"acc_1","vote":"approve"},`, ``)},
		{"a vote more", change(`"votes":[]`, `"votes":[{"account_id":"acc_1","vote":"approve"}]`)},
		{"votes in another order", change(`{"account_id":"acc_1","vote":"approve"},{"account_id":"acc_2","vote":"deny"}`,
			`{"account_id":"acc_2","vote":"deny"},{"account_id":"acc_1","vote":"approve"}`)},
		{"another result", change(`"result_log_index":1,`, `"result_log_index":2,`)},
		{"no result", change(`"result_log_index":1,`, `"result_log_index":null,`)},
		{"another tool", change(`"tool_name":"acme.payments.refund"`, `"tool_name":"acme.payments.read"`)},
		{"no tool", change(`"tool_name":"acme.payments.refund"`, `"tool_name":null`)},
		{"another agent", change(`"agent_id":"agt_1"`, `"agent_id":"agt_2"`)},
		{"another principal", change(`"actor_principal":"svc"`, `"actor_principal":"ceo"`)},
		{"another decision", change(`"decision":"deny"`, `"decision":"allow"`)},
		{"another rule", change(`"rule_id":"default"`, `"rule_id":"other"`)},
		{"another policy", change(`"policy_id":"pol_1"`, `"policy_id":"pol_2"`)},
		{"another version of a policy", change(`"policy_version":1`, `"policy_version":2`)},
		{"another time", change(`"received_at":"2026`, `"received_at":"2025`)},
		{"another event", change(`"event_id":"done"`, `"event_id":"dome"`)},
		{"another number in a column", change(`"amount_usd":1.5`, `"amount_usd":1000000`)},
		{"another text in a column", change(`"order.id":"A-0"`, `"order.id":"A-1"`)},
		{"null in a column", change(`"amount_usd":1.5`, `"amount_usd":null`)},
		{"a long text in a column", change(`"amount_usd":null`, `"amount_usd":"`+strings.Repeat("é", 64)+`x"`)},
		{"a column missing", change(`"__proto__":null,`, ``)},
		{"a column more", change(`"__proto__":null,`, `"__proto__":null,"more":null,`)},
		{"a member more", change(`"outcome":`, `"note":"","outcome":`)},
		{"white space", change(`"outcome":`, `"outcome": `)},
		{"a line end missing", func(p *Parts) { cut(p.File(pack.FileActs), 1) }},
		{"an empty line", change("}\n", "}\n\n")},
		{"a byte order mark", func(p *Parts) { *p.File(pack.FileActs) = "\ufeff" + *p.File(pack.FileActs) }},
		{"another number of lines", func(p *Parts) { p.Manifest.Acts.Lines++ }},
		{"without the file", func(p *Parts) { p.remove(pack.FileActs) }},
		{"without the manifest's member", func(p *Parts) { p.Manifest.Acts = nil }},
		{"columns in the manifest missing", func(p *Parts) { p.Manifest.Acts.Columns = p.Manifest.Acts.Columns[:2] }},
		{"no list of columns", func(p *Parts) { p.Manifest.Acts.Columns = nil }},
		{"a column twice", func(p *Parts) { p.Manifest.Acts.Columns = append(p.Manifest.Acts.Columns, "__proto__") }},
		{"a column with an empty segment", func(p *Parts) { p.Manifest.Acts.Columns[0] = "order..id" }},
		{"a column of another alphabet", func(p *Parts) { p.Manifest.Acts.Columns[0] = "ordér" }},
		{"a long column", func(p *Parts) { p.Manifest.Acts.Columns[0] = strings.Repeat("a.", 64) + "a" }},
		{"an empty column", func(p *Parts) { p.Manifest.Acts.Columns[0] = "" }},
		{"a column with a place first", func(p *Parts) { p.Manifest.Acts.Columns[0] = "[0]" }},
		{"a column with a place of two digits that begins with 0", func(p *Parts) { p.Manifest.Acts.Columns[0] = "order[01]" }},
		{"a column with a large place", func(p *Parts) { p.Manifest.Acts.Columns[0] = "order[65536]" }},
		{"a column of 17 steps", func(p *Parts) { p.Manifest.Acts.Columns[0] = strings.Repeat("a.", 15) + "a[0]" }},
		{"a column with an open place", func(p *Parts) { p.Manifest.Acts.Columns[0] = "order[0" }},
		{"a column with a name behind a place", func(p *Parts) { p.Manifest.Acts.Columns[0] = "order[0]id" }},
		{"too many columns", func(p *Parts) { p.Manifest.Acts.Columns = append(p.Manifest.Acts.Columns, "a", "b", "c") }},
		{"a name that is no text", replace(pack.FileApprovals, `"name":"Ben Lindqvist"`, `"name":null`)},
		{"another member of a voter", replace(pack.FileApprovals, `"name":"Ben Lindqvist"`, `"nick":"Ben"`)},
		{"an approval missing", editLines(pack.FileApprovals, removed(0))},
	} {
		p := l.Pack(whole)
		c.bend(p)
		all = append(all, Wrong{"acts: " + c.name, Compressed(t, p), false})
	}
	system, trace := id.Agent("system"), id.Trace("trc")
	of := func(approval, transition string) []id.Index {
		return l.statements(func(a, t string) bool { return a == approval && (t == transition || transition == "") })
	}
	for _, c := range []struct {
		name    string
		request pack.Request
		dropped []id.Index
	}{
		{"of an approval as if it was not refused", pack.Request{}, of("apr_refused", "denied")},
		{"of an approval as if it was not requested", pack.Request{}, of("apr_approved", "requested")},
		{"without an approval that was refused", pack.Request{}, of("apr_refused", "")},
		{"of an approval as if it was not withdrawn, of a trace", pack.Request{TraceID: &trace}, of("apr_withdrawn", "revoked")},
		{"of an approval as if it was not withdrawn, of the service", pack.Request{AgentID: &system}, of("apr_withdrawn", "revoked")},
	} {
		a := ActsSelection(l)
		a.Request, a.Dropped = c.request, c.dropped
		a.Request.Envelopes = true
		if a.Request.AgentID != nil { // none of the shown events was erased
			a.Erased, a.Erasing = nil, nil
		}
		all = append(all, Wrong{"acts: " + c.name, Compressed(t, l.Pack(a)), false})
	}
	whole.Request.Envelopes = false
	all = append(all, Wrong{"acts: columns without envelopes", Compressed(t, l.Pack(whole)), false})
	l = NewLog(t)
	for range 2 {
		l.Append(EventSpec{ID: "same", Tool: "acme.payments.refund", Judged: true})
	}
	twice := l.Pack(Selection{Size: 2, End: 2, Request: pack.Request{Envelopes: true}, Acts: true})
	all = append(all, Wrong{"acts: of one event_id", Compressed(t, twice), false})
	long := strings.Repeat("a", 129)
	for name, spec := range map[string]EventSpec{
		"of a long event_id":    {Renamed: id.Event(long), Judged: true},
		"of a long approval_id": {Approval: long, Judged: true},
		"of a long intent":      {Intent: id.Event(long)},
		"of a strange event_id": {Renamed: "é"},
	} {
		l = NewLog(t)
		l.Append(spec)
		all = append(all, Wrong{"acts: " + name, Compressed(t, l.Pack(Selection{Size: 1, End: 1, Acts: true})), false})
	}
	slices.SortFunc(all[len(all)-4:], func(a, b Wrong) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Compressed returns the pack in a ZIP file with compression, so that the corpus stays small.
func Compressed(t testing.TB, p *Parts) []byte { return writePacked(packAll(p.Contents(t), 9), "") }
