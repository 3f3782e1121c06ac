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
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

//go:embed report.html
var reportPage string

// maxText bounds the characters of a user's text in the report.
const maxText = 300

// report collects the rows of the report that come from statements, at most maxRows of each kind.
type report struct {
	approvals []*approvalRow
	byName    map[approval.ID]*approvalRow
	erasures  []erasureRow
}

// approvalRow is an approval in the report.
type approvalRow struct {
	ID          approval.ID
	Agent       id.Agent
	Tool        id.Tool
	Rule        string
	Quorum      int
	Steps       []stepRow
	accountName map[string]string
}

// stepRow is a statement about an approval.
type stepRow struct {
	At      string
	What    string
	By      string
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

// addDecision adds a statement about an approval. key is the passkey that signed it, or nil.
func (r *report) addDecision(name approval.ID, e *event.Envelope, key *pack.VoterKey) {
	if r.byName == nil {
		r.byName = make(map[approval.ID]*approvalRow)
	}
	row := r.byName[name]
	if row == nil {
		if len(r.approvals) >= maxRows {
			return
		}
		row = &approvalRow{ID: name, accountName: make(map[string]string)}
		r.byName[name], r.approvals = row, append(r.approvals, row)
	}
	var read struct {
		Transition string `json:"transition"`
		Vote       string `json:"vote"`
		Reason     string `json:"reason"`
	}
	if err := json.Unmarshal(e.Payload, &read); err != nil || len(row.Steps) >= maxRows {
		return
	}
	if read.Vote != "" {
		read.Transition += ": " + read.Vote
	}
	if key != nil {
		read.Transition += ", signed by the approver's passkey " + key.String()
	}
	row.Steps = append(row.Steps, stepRow{At: id.InstantOf(e.EmittedAt).String(), What: shorten(read.Transition),
		By: shorten(e.ActorPrincipal), Comment: shorten(read.Reason)})
}

// describeApproval adds the stored members of an approval.
func (r *report) describeApproval(a *approval.Approval, people []person) {
	row := r.byName[a.ID]
	if row == nil {
		return
	}
	row.Agent, row.Tool, row.Rule, row.Quorum = a.Agent, a.Tool, a.RuleID, a.Quorum
	for _, p := range people {
		row.accountName[p.AccountID] = p.Email
	}
	for i := range row.Steps {
		account, _, _ := strings.Cut(row.Steps[i].By, "/")
		if email := row.accountName[account]; email != "" {
			row.Steps[i].By = shorten(email + " (" + row.Steps[i].By + ")")
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
	Organization, Origin    string
	Slug                    id.Slug
	Request                 pack.Request
	Filtered                bool
	Begin, End              id.Index
	TreeSize                id.Index
	Root                    string
	Keys                    []string
	Cosigners               []string
	Counts                  pack.Counts
	Withheld                uint64
	First, Last             string
	All                     group
	Tables                  []table
	Approvals               []*approvalRow
	HiddenApprovals         int
	Erasures                []erasureRow
	HiddenErasures          int
	Policies                []policyRow
	HiddenPolicies, Version int
}

// policyRow is a policy in the report.
type policyRow struct {
	ID      string
	Version uint64
	Digest  string
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
	p := w.plan
	d := &page{Organization: p.settings.Name, Slug: p.settings.Slug, Origin: string(p.state.Identity().Origin),
		Request: p.Wanted.request, Filtered: p.Wanted.request.Filters(), Begin: p.begin, End: p.end,
		TreeSize: p.checkpoint.Size, Root: hex.EncodeToString(p.checkpoint.Root[:]), Counts: p.counts,
		Withheld: p.counts.Entries - p.counts.Records, All: p.tables.all, Version: pack.Version,
		Approvals: w.report.approvals, HiddenApprovals: len(p.approvals) - len(w.report.approvals),
		Erasures: w.report.erasures, HiddenErasures: len(p.erasing) - len(w.report.erasures),
		Tables: []table{newTable("By agent", "Agent", p.tables.agents, false),
			newTable("By tool", "Tool", p.tables.tools, false), newTable("By day", "Day (UTC)", p.tables.days, true)},
	}
	if p.counts.Records > 0 {
		d.First, d.Last = p.tables.first.String(), p.tables.last.String()
	}
	for _, k := range p.state.SignersOf(p.checkpoint.Size) {
		d.Keys = append(d.Keys, k.String())
	}
	d.Cosigners = cosigners(p)
	d.Policies, d.HiddenPolicies = policyRows(p)
	return d
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

// policyRows returns the policies that decided shown events, by name and version.
func policyRows(p *plan) (rows []policyRow, hidden int) {
	for digest, v := range p.policies {
		rows = append(rows, policyRow{v.id, v.version, digest.String()})
	}
	slices.SortFunc(rows, func(a, b policyRow) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Digest, b.Digest))
	})
	shown := min(len(rows), maxRows)
	return rows[:shown], len(rows) - shown
}
