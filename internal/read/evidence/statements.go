package evidence

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify/pack"
)

// state records the export in the log. It does not count as a change of settings.
func (x *Exporter) state(ctx context.Context, p *plan, m *pack.Manifest, manifest id.Hash) error {
	var name [16]byte
	rand.Read(name[:]) // two exports of one pack are two events
	request := m.Request
	if request.Subject != "" { // the log would name a user permanently
		request.Subject = "hidden"
	}
	payload := map[string]any{
		"export_id": "exp_" + hex.EncodeToString(name[:]), "manifest_sha256": manifest.String(), "begin": m.Begin,
		"end": m.End, "tree_size": m.TreeSize, "records": m.Counts.Records, "envelopes": m.Counts.Envelopes,
		"request": request,
	}
	made := sysevent.Change{KeepConfigVersion: true,
		Statements: []sysevent.Statement{{Kind: sysevent.EvidenceExported, Payload: payload}}}
	prepare := func(context.Context, *log.State) (sysevent.Change, error) { return made, nil }
	_, err := x.Events.Append(ctx, p.Tenant, p.Principal, prepare)
	if err != nil && x.takesNoEvents(ctx, p.Tenant, err) {
		x.Logger.WarnContext(ctx, "evidence pack sent without an event, because the log accepts no events",
			"tenant", p.Tenant, "manifest_sha256", manifest.String(), "error", err)
		return nil
	}
	return err
}

// takesNoEvents reports whether an error of an append means that the log currently accepts no events.
func (x *Exporter) takesNoEvents(ctx context.Context, t id.Tenant, err error) bool {
	if !fault.Is(err, fault.Unavailable) {
		return false
	}
	s, failed := x.Ledgers.State(ctx, t)
	return failed == nil && s.Trusted() != nil || fault.Of(err).Code == "read_only_mode"
}

// approvalLine is a line of approvals.ndjson.
type approvalLine struct {
	ApprovalID    approval.ID       `json:"approval_id"`
	Events        []pack.Statement  `json:"events"`
	ActionDigest  *id.Hash          `json:"action_digest,omitzero"`
	AgentID       id.Agent          `json:"agent_id,omitzero"`
	ToolName      id.Tool           `json:"tool_name,omitzero"`
	Payload       *string           `json:"payload"`
	OnBehalfOf    *event.OnBehalfOf `json:"on_behalf_of,omitzero"`
	TraceID       id.Trace          `json:"trace_id,omitzero"`
	PolicyID      string            `json:"policy_id,omitzero"`
	PolicyVersion uint64            `json:"policy_version,omitzero"`
	PolicyDigest  *id.Hash          `json:"policy_digest,omitzero"`
	RuleID        string            `json:"rule_id,omitzero"`
	Quorum        int               `json:"quorum,omitzero"`
	CreatedAt     *id.Instant       `json:"created_at,omitzero"`
	ExpiresAt     *id.Instant       `json:"expires_at,omitzero"`
	People        []person          `json:"people"`
}

// person is a voter, according to the operator.
type person struct {
	AccountID string `json:"account_id"`
	Email     string `json:"email"`
	Name      string `json:"name,omitzero"`
}

// writeApprovals writes the approvals that occur in the range.
func (w *packWriter) writeApprovals(ctx context.Context) error {
	for _, a := range w.plan.approvals {
		line := approvalLine{ApprovalID: a.name, People: []person{}}
		acting, represented := make(map[string]bool), make(map[string]bool)
		for _, at := range a.events {
			s, e, err := w.readStatement(ctx, at)
			if err != nil {
				return err
			}
			name, _, _ := strings.Cut(e.ActorPrincipal, "/")
			acting[name] = true
			line.Events = append(line.Events, s)
			if of := w.report.addDecision(a.name, e, w.plan.voters.key(a.signed[at], at)); of != "" {
				represented[of] = true
			}
		}
		if err := w.describeApproval(ctx, a.name, acting, represented, &line); err != nil {
			return err
		}
		text, err := jcs.Marshal(line)
		if err != nil {
			return err
		}
		if _, err := w.writeLine(text); err != nil {
			return err
		}
		if err := w.out.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// describeApproval adds the stored members of an approval that never change, and the addresses of the users in its
// statements. The names of represented members are only in the report.
func (w *packWriter) describeApproval(ctx context.Context, name approval.ID, acting, represented map[string]bool,
	line *approvalLine) error {
	a, err := w.exporter.findApproval(ctx, w.plan.Tenant, name)
	if err != nil || a == nil {
		return err
	}
	line.ActionDigest, line.AgentID, line.ToolName, line.TraceID = &a.ActionDigest, a.Agent, a.Tool, a.Trace
	line.PolicyID, line.PolicyVersion, line.PolicyDigest = a.PolicyID, a.PolicyVersion, &a.PolicyDigest
	line.RuleID, line.Quorum, line.CreatedAt, line.ExpiresAt = a.RuleID, a.Quorum, &a.CreatedAt, &a.ExpiresAt
	if w.plan.Wanted.request.Envelopes && a.Payload != nil {
		text := string(a.Payload)
		line.Payload, line.OnBehalfOf = &text, a.OnBehalfOf
	}
	for _, v := range a.Votes {
		if acting[string(v.Account)] {
			known, err := w.account(ctx, v.Account)
			if err != nil {
				return err
			}
			line.People = append(line.People, person{string(v.Account), cmp.Or(v.Email, known.Email), known.Name})
		}
	}
	people := slices.Clone(line.People)
	for who := range represented {
		known, err := w.account(ctx, account.ID(who))
		if err != nil {
			return err
		}
		if known != (person{}) { // a removed account keeps the address that its own vote has
			people = append(people, person{who, known.Email, known.Name})
		}
	}
	w.report.describeApproval(a, people)
	return nil
}

// account returns the name and the email address of an account. They are "" if it no longer exists.
func (w *packWriter) account(ctx context.Context, who account.ID) (person, error) {
	if p, known := w.accounts[who]; known {
		return p, nil
	}
	a, err := w.exporter.People.ByID(ctx, who)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return person{}, err
	}
	if w.accounts == nil {
		w.accounts = make(map[account.ID]person)
	}
	w.accounts[who] = person{Email: a.Email, Name: a.DisplayName}
	return w.accounts[who], nil
}

// readStatement reads an event of the service.
func (w *packWriter) readStatement(ctx context.Context, at id.Index) (s pack.Statement, e *event.Envelope, err error) {
	stored, err := w.exporter.Ledgers.Event(ctx, w.plan.state, at, storage.FieldRecord|storage.FieldEnvelope)
	if err != nil {
		return s, nil, err
	}
	if e, err = parseStored(&stored); err != nil {
		return s, nil, err
	}
	return pack.Statement{Envelope: string(stored.Envelope), Record: string(stored.Record)}, e, nil
}

// writeErasures writes the statements that erased envelopes of shown events.
func (w *packWriter) writeErasures(ctx context.Context) error {
	for _, at := range slices.Sorted(maps.Keys(w.plan.erasing)) {
		stored, envelope, err := w.writeProven(ctx, at)
		if err != nil {
			return err
		}
		made, err := event.ParseErasure(envelope)
		if err != nil {
			return fmt.Errorf("erasure at %d: %w", at, err)
		}
		w.report.addErasure(&stored, envelope, &made)
	}
	return nil
}

// writeProven writes a line with a statement of the service and its proof.
func (w *packWriter) writeProven(ctx context.Context, at id.Index) (stored storage.Event, e *event.Envelope, err error) {
	if stored, err = w.exporter.Ledgers.Event(ctx, w.plan.state, at, storage.FieldRecord|storage.FieldEnvelope); err != nil {
		return stored, nil, err
	}
	if e, err = parseStored(&stored); err != nil {
		return stored, nil, err
	}
	proof, err := w.exporter.Ledgers.InclusionOf(ctx, w.plan.state, stored, w.plan.checkpoint.Size)
	if err != nil {
		return stored, nil, err
	}
	text, err := jcs.Marshal(pack.Erasure{Entry: string(log.EntryOf(stored).Text()), Envelope: string(stored.Envelope),
		Proof: proof, Record: string(stored.Record)})
	if err != nil {
		return stored, nil, err
	}
	if _, err := w.writeLine(text); err != nil {
		return stored, nil, err
	}
	return stored, e, w.out.flush(ctx)
}
