package evidence

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/packacts"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

//go:embed report.html
var reportPage string

// maxText bounds the characters of a user's text in the report.
const maxText = 300

// Bounds of the tables of the report.
const (
	maxRows = 200
	maxActs = 1000
)

// report collects the rows of the report, at most maxActs acts and maxRows of each other kind.
type report struct {
	acts      []actRow // a ring: the latest act is before position next
	next      int
	counts    packacts.Summary
	approvals []*approvalRow
	byName    map[approval.ID]*approvalRow
	people    map[string]person // voters and represented members by account
	agents    map[id.Agent]string
	policies  []policyRow
	columns   []string // names, in the order of packacts.Line
	erasures  []erasureRow
}

// actRow is an act in the report.
type actRow struct {
	Time, ISO   string
	Tool        string
	Agent       string
	Columns     []cell
	Outcome     string
	Approval    string // its status; "" if there is none
	DecidedBy   []decider
	IsOutside   bool   // the approval was given, and the pack has no vote for it
	Rule        string // that decided, if no user did
	Index       string
	HasEnvelope bool
}

// decider is a user who voted.
type decider struct {
	Name string
	For  string // in whose place; "" if none
}

// cell is the value of a column.
type cell struct {
	Text     string // "" if there is none
	IsNumber bool
}

// addAct adds the next act.
func (r *report) addAct(l *packacts.Line) {
	r.counts.Add(l)
	at := l.Record.ReceivedAt.Time().UTC()
	row := actRow{Time: at.Format("2 Jan 15:04"), ISO: l.Record.ReceivedAt.String(), Agent: nameOr(r.agents[l.Record.AgentID], string(l.Record.AgentID)),
		Outcome: string(l.Outcome), Approval: string(l.Status), Index: number(uint64(l.Index)), HasEnvelope: l.Envelope != nil}
	if l.Envelope != nil {
		row.Tool = string(l.Envelope.Tool)
	}
	for _, c := range l.Columns {
		row.Columns = append(row.Columns, newCell(c.Value))
	}
	switch l.Status {
	case packacts.StatusApproved:
		row.DecidedBy = r.deciders(l.Voters(true))
		row.IsOutside = len(row.DecidedBy) == 0
	case packacts.StatusRefused:
		row.DecidedBy = r.deciders(l.Voters(false))
	}
	if row.Rule = l.Record.Policy.RuleID; l.Record.Policy.PolicyID == "none" {
		row.Rule = ""
	}
	if len(r.acts) < maxActs {
		r.acts = append(r.acts, row)
		return
	}
	r.acts[r.next] = row
	r.next = (r.next + 1) % maxActs
}

// latestActs returns the acts, the latest first.
func (r *report) latestActs() []actRow {
	rows := append(slices.Clone(r.acts[r.next:]), r.acts[:r.next]...)
	slices.Reverse(rows)
	return rows
}

func newCell(value []byte) cell {
	if text, is := jcs.AppendDecoded(nil, value); is {
		return cell{Text: string(text)}
	}
	if string(value) == "null" {
		return cell{}
	}
	return cell{string(value), true}
}

// deciders returns who voted, with the represented members.
func (r *report) deciders(votes []packacts.Vote) (all []decider) {
	for _, v := range votes {
		d := decider{Name: r.nameOf(v.Account)}
		if v.DeputyFor != "" {
			d.For = r.nameOf(v.DeputyFor)
		}
		all = append(all, d)
	}
	return all
}

// nameOf returns the name of an account, as far as it is known.
func (r *report) nameOf(account string) string {
	p := r.people[account]
	return nameOr(cmp.Or(p.Name, p.Email), account)
}

// approverRow is an approver in the report.
type approverRow struct {
	Name, Email, Account    string
	Approved, Done, Refused string
}

func (r *report) approvers() (rows []approverRow) {
	for _, p := range r.counts.Approvers[:min(len(r.counts.Approvers), maxRows)] {
		known := r.people[p.Account]
		rows = append(rows, approverRow{shorten(known.Name), shorten(known.Email), p.Account, number(p.Approved), number(p.Done), number(p.Refused)})
	}
	return rows
}

// approvalRow is an approval in the report.
type approvalRow struct {
	ID          approval.ID
	Agent       id.Agent
	AgentName   string
	Tool        id.Tool
	Rule        string
	Quorum      int
	Steps       []stepRow
	accountName map[string]string
}

// stepRow is a statement about an approval.
type stepRow struct {
	At, ISO string
	What    string
	By      string
	For     string // in whose place; "" if none
	Comment string
}

// erasureRow is a statement about erased envelopes.
type erasureRow struct {
	Index  id.Index
	At     string
	Reason string
	By     string
	Ranges string
}

// addDecision adds a statement about an approval. key is the passkey that signed it, or nil. It returns the account in
// whose place the user acted, or "".
func (r *report) addDecision(name approval.ID, e *event.Envelope, key *pack.VoterKey) (represented string) {
	var read struct {
		Transition string `json:"transition"`
		Vote       string `json:"vote"`
		DeputyFor  string `json:"deputy_for"`
		Reason     string `json:"reason"`
	}
	if err := json.Unmarshal(e.Payload, &read); err != nil {
		return ""
	}
	if r.byName == nil {
		r.byName = make(map[approval.ID]*approvalRow)
	}
	row := r.byName[name]
	if row == nil {
		if len(r.approvals) >= maxRows {
			return read.DeputyFor
		}
		row = &approvalRow{ID: name, accountName: make(map[string]string)}
		r.byName[name], r.approvals = row, append(r.approvals, row)
	}
	if len(row.Steps) >= maxRows {
		return read.DeputyFor
	}
	if read.Vote != "" {
		read.Transition += ": " + read.Vote
	}
	if key != nil {
		read.Transition += ", signed by the approver's passkey " + key.String()
	}
	row.Steps = append(row.Steps, stepRow{At: e.EmittedAt.Format("2 Jan 15:04:05"), ISO: id.InstantOf(e.EmittedAt).String(), What: shorten(read.Transition),
		By: shorten(e.ActorPrincipal), For: shorten(read.DeputyFor), Comment: shorten(read.Reason)})
	return read.DeputyFor
}

// describeApproval adds the stored members of an approval.
func (r *report) describeApproval(a *approval.Approval, people []person) {
	if r.people == nil {
		r.people = make(map[string]person)
	}
	for _, p := range people {
		r.people[p.AccountID] = p
	}
	row := r.byName[a.ID]
	if row == nil {
		return
	}
	row.AgentName = nameOr(r.agents[a.Agent], string(a.Agent))
	row.Agent, row.Tool, row.Rule, row.Quorum = a.Agent, a.Tool, a.RuleID, a.Quorum
	for _, p := range people {
		row.accountName[p.AccountID] = cmp.Or(p.Name, p.Email)
	}
	for i := range row.Steps {
		for _, who := range []*string{&row.Steps[i].By, &row.Steps[i].For} {
			account, _, _ := strings.Cut(*who, "/")
			if name := row.accountName[account]; name != "" {
				*who = shorten(name + " (" + *who + ")")
			}
		}
	}
}

// addErasure adds a statement about erased envelopes.
func (r *report) addErasure(stored *storage.Event, e *event.Envelope, read *event.Erasure) {
	if len(r.erasures) >= maxRows {
		return
	}
	var ranges []string
	for _, at := range read.Ranges {
		ranges = append(ranges, fmt.Sprintf("[%d, %d)", at.Begin, at.End))
	}
	text := strings.Join(ranges, " ")
	r.erasures = append(r.erasures, erasureRow{Index: stored.Index, At: stored.ReceivedAt.String(), Reason: read.Reason,
		By: shorten(e.ActorPrincipal), Ranges: shorten(text)})
}

func shorten(text string) string {
	runes := []rune(text)
	if len(runes) <= maxText {
		return text
	}
	return string(runes[:maxText]) + "…"
}

// page is the data of the report.
type page struct {
	Organization, Origin string
	Title                string
	Request              pack.Request
	Filtered             bool
	Begin, End           id.Index
	TreeSize             string
	Root                 string
	Keys                 []string
	Fingerprint          string // of the key that signed the checkpoint
	Cosigners            []string
	Counts               pack.Counts
	Withheld             uint64
	First, Last          string

	Acts, Done, Stopped, Others string // the four numbers
	Outcomes                    []string
	ApprovedDone, RefusedDone   uint64
	OutsideDone                 uint64 // acts whose approval has no vote in the pack
	Confirmed                   string // acts that tools confirm; "" if there are none
	Approvers                   []approverRow
	Columns                     []string
	Numeric                     map[int]bool // columns that have numbers
	Rows                        []actRow
	HiddenActs                  string // "" if there are none
	HasAgents                   bool   // the table has a column for agents

	Coverage []string // lines about comparisons of records of calls

	Approvals       []*approvalRow
	HiddenApprovals int
	Erasures        []erasureRow
	HiddenErasures  int
	Policies        []policyRow
	HiddenPolicies  int
	Version         int
}

// writeReport renders the page. It depends only on the plan and on the statements.
func (w *packWriter) writeReport(ctx context.Context) error {
	parsed, err := template.New("report").Parse(reportPage)
	if err != nil {
		return err
	}
	if err := parsed.Execute(&w.file, w.newPage()); err != nil {
		return err
	}
	return w.out.flush(ctx)
}

func (w *packWriter) newPage() *page {
	p, r := w.plan, &w.report
	d := &page{Organization: p.settings.Name, Origin: string(p.state.Identity().Origin), Title: title(&p.Wanted.request, r.agents),
		Request: p.Wanted.request, Filtered: p.Wanted.request.Filters(), Begin: p.begin, End: p.end,
		TreeSize: number(uint64(p.checkpoint.Size)), Root: hex.EncodeToString(p.checkpoint.Root[:]), Counts: p.counts,
		Withheld: p.counts.Entries - p.counts.Records, Version: pack.Version,
		Coverage: p.coverage, Approvals: r.approvals, HiddenApprovals: len(p.approvals) - len(r.approvals),
		Erasures: r.erasures, HiddenErasures: len(p.erasing) - len(r.erasures),
		Policies: r.policies, HiddenPolicies: len(p.policies) - len(r.policies)}
	if p.counts.Records > 0 {
		d.First, d.Last = describeTime(p.first), describeTime(p.last)
	}
	for _, k := range p.state.SignersOf(p.checkpoint.Size) {
		d.Keys = append(d.Keys, k.String())
		d.Fingerprint = k.Hash().String()
	}
	d.Cosigners = cosigners(p)
	d.addActs(r)
	if p.confirmed > 0 {
		d.Confirmed = number(p.confirmed)
	}
	d.HasAgents = p.Wanted.request.AgentID == nil
	return d
}

func describeTime(at id.Instant) string {
	return at.Time().UTC().Format("2 January 2006, 15:04:05 UTC")
}

// addActs adds the counts and the table of acts.
func (d *page) addActs(r *report) {
	c := &r.counts
	sum := func(outcomes ...packacts.Outcome) (n uint64) {
		for _, o := range outcomes {
			n += c.Outcomes[o]
		}
		return n
	}
	done, stopped := sum(packacts.Done), sum(packacts.Refused, packacts.Denied, packacts.Failed)
	d.Acts, d.Done, d.Stopped, d.Others = number(c.Count), number(done), number(stopped), number(c.Count-done-stopped)
	for _, o := range packacts.Outcomes() {
		if n := c.Outcomes[o]; n > 0 {
			d.Outcomes = append(d.Outcomes, number(n)+" "+string(o))
		}
	}
	d.ApprovedDone, d.OutsideDone, d.RefusedDone, d.Approvers = c.ApprovedDone, c.OutsideDone, c.RefusedDone, r.approvers()
	d.Rows, d.Numeric = r.latestActs(), make(map[int]bool)
	if hidden := c.Count - uint64(len(d.Rows)); hidden > 0 {
		d.HiddenActs = number(hidden)
	}
	for _, row := range d.Rows {
		for i, c := range row.Columns {
			d.Numeric[i] = d.Numeric[i] || c.IsNumber
		}
	}
	d.Columns = r.columns
}

// cosigners returns the names of the other signature lines of the checkpoint. They are not checked here.
func cosigners(p *plan) (names []string) {
	note, err := tlog.ParseNote(p.note)
	if err != nil {
		return nil
	}
	for _, s := range note.Signatures {
		if s.Name != string(p.checkpoint.Origin) {
			names = append(names, shorten(s.Name))
		}
	}
	return names
}
