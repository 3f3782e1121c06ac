package evidence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/packacts"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

type checkpoint = tlog.Checkpoint

// Bounds of one page of the store: events, and bytes of their documents.
const (
	pageEvents = 1024
	pageBytes  = 256 << 10
)

// maxBytes bounds the documents of a pack. It reserves capacity for reports and approvals.
const maxBytes = 4_000_000_000

// maxAttempts bounds how often a plan is computed again because something changed.
const maxAttempts = 3

// plan contains everything about a pack except its documents.
type plan struct {
	Asked
	state      *log.State
	settings   *org.Settings
	checkpoint checkpoint
	note       []byte
	begin, end id.Index
	counts     pack.Counts
	bytes      int64
	shown      []bool // by index in the range, of the events whose documents are in the pack

	agents    map[id.Agent]bool
	policies  map[id.Hash]policyVersion
	erasing   map[id.Index]bool // statements that erased envelopes of shown events
	approvals []*approvalPlan   // in the order of their first statements
	byName    map[approval.ID]*approvalPlan
	acts      *packacts.Table
	coverage  []string   // lines about comparisons, at most pack.MaxCoverage
	first     id.Instant // received_at of the first shown event, and of the last one
	last      id.Instant
	voters    voters
	confirmed uint64 // acts that tools confirm by the index; 0 if it does not reach up to end, or can't be read

	agentsFile []byte
	agentNames map[id.Agent]string // display names
	policyFile string
}

// policyVersion identifies a version of a policy.
type policyVersion struct {
	id      string
	version uint64
}

// approvalPlan is an approval that occurs in the range.
type approvalPlan struct {
	name   approval.ID
	events []id.Index
	signed map[id.Index]voterName // who signed the votes in them
}

// plan checks everything that can reject the request, and computes all counts.
func (x *Exporter) plan(ctx context.Context, a Asked, out Output) (*plan, error) {
	newest := false
	for range maxAttempts {
		p, err := x.beginPlan(ctx, a, newest)
		if err != nil {
			return nil, err
		}
		if err := x.scan(ctx, p, out); err != nil {
			return nil, err
		}
		if newest = newest || p.erasedAfter(); p.erasedAfter() {
			continue
		}
		if err := x.describe(ctx, p); err != nil {
			return nil, err
		}
		if err := p.joinActs(); err != nil {
			return nil, err
		}
		if err := x.findVoters(ctx, p); err != nil {
			return nil, err
		}
		if err := x.countConfirmed(ctx, p); err != nil {
			return nil, err
		}
		now, err := x.Ledgers.State(ctx, a.Tenant)
		if err != nil {
			return nil, err
		}
		if now.ConfigVersion() == p.state.ConfigVersion() {
			return p, nil
		}
	}
	return nil, &fault.Error{Kind: fault.Unavailable, Code: "busy", RetryAfter: 5 * time.Second,
		Message: "The organization's settings change too often for a pack at the moment; ask again"}
}

// beginPlan selects the range and the checkpoint.
func (x *Exporter) beginPlan(ctx context.Context, a Asked, newest bool) (p *plan, err error) {
	p = &plan{Asked: a, agents: make(map[id.Agent]bool), policies: make(map[id.Hash]policyVersion),
		erasing: make(map[id.Index]bool), byName: make(map[approval.ID]*approvalPlan)}
	if p.state, err = x.Ledgers.State(ctx, a.Tenant); err != nil {
		return nil, err
	}
	if err := p.state.Provable(); err != nil {
		return nil, err
	}
	if p.settings, err = x.Organizations.CurrentSettings(ctx, a.Tenant); err != nil {
		return nil, err
	}
	p.acts = packacts.New(p.columns())
	return p, x.findRange(ctx, p, a.Wanted, newest)
}

// columns returns the columns of acts. Their values are in envelopes.
func (p *plan) columns() []string {
	if p.Wanted.columns != nil {
		return p.Wanted.columns
	}
	paths := []string{}
	if p.Wanted.request.Envelopes {
		for _, c := range p.settings.Columns {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// erasedAfter reports whether an envelope was erased by an event that the checkpoint does not contain.
func (p *plan) erasedAfter() bool {
	for at := range p.erasing {
		if at >= p.checkpoint.Size {
			return true
		}
	}
	return false
}

// readPages calls visit for each event of the range. Between two pages it calls turn, while nothing of the store is
// open. visit returns the bytes of the documents that it used.
func (x *Exporter) readPages(ctx context.Context, p *plan, parts storage.Fields, turn func() error,
	visit func(*storage.Event) (int, error)) error {
	for at := p.begin; at < p.end; {
		taken := 0
		for e, err := range x.Ledgers.Events(ctx, p.state, at, min(at+pageEvents, p.end), parts) {
			if err != nil {
				return err
			}
			if e.Index != at {
				return fmt.Errorf("read range: event %d in place of %d", e.Index, at)
			}
			n, err := visit(&e)
			if err != nil {
				return err
			}
			at++
			if taken += n; taken >= pageBytes {
				break
			}
		}
		if err := turn(); err != nil {
			return err
		}
	}
	return nil
}

// scan reads the range once.
func (x *Exporter) scan(ctx context.Context, p *plan, out Output) error {
	give, err := out.TakeTurn(ctx)
	if err != nil {
		return err
	}
	defer func() { give() }()
	turn := func() error {
		give()
		if give, err = out.TakeTurn(ctx); err != nil {
			give = func() {}
		}
		return err
	}
	return x.readPages(ctx, p, storage.FieldRecord|storage.FieldEnvelope, turn, func(e *storage.Event) (int, error) {
		return len(e.Record) + len(e.Envelope), p.scanEvent(e)
	})
}

// shows reports whether the documents of an event are in the pack. It must be called after the scan.
func (p *plan) shows(e *storage.Event) bool { return p.shown[e.Index-p.begin] }

// matches reports whether an event matches the request, or is added to it. The subject of an erased event is unknown, so it
// matches none.
func (p *plan) matches(e *storage.Event) (bool, error) {
	r := &p.Wanted.request
	if r.Adds(event.SignerSystem, e.ActionKind) { // ledger_ is reserved for the service
		return true, nil
	}
	if !r.Matches(e.Agent, e.Trace, e.Tool) || r.Subject != "" && e.Envelope == nil {
		return false, nil
	}
	if r.Subject == "" {
		return true, nil
	}
	envelope, err := parseStored(e)
	return err == nil && r.MatchesSubject(envelope), err
}

func (p *plan) scanEvent(e *storage.Event) error {
	p.counts.Entries++
	if e.ActionKind == string(sysevent.Approval) && e.Envelope != nil {
		if err := p.addApproval(e); err != nil {
			return err
		}
	}
	matches, err := p.matches(e)
	p.shown = append(p.shown, matches)
	if !matches || err != nil {
		return err
	}
	r, err := event.ParseRecord(e.Record)
	if err != nil {
		return fmt.Errorf("record of event %d: %w", e.Index, err)
	}
	p.counts.Records++
	p.bytes += int64(len(e.Record)) + 1
	var envelope *event.Envelope
	if e.ErasedBy != 0 {
		p.counts.Erased++
		p.erasing[e.ErasedBy] = true
	} else if p.Wanted.request.Envelopes {
		if e.Envelope == nil {
			return fmt.Errorf("event %d has no envelope, and no statement that it was erased", e.Index)
		}
		if envelope, err = parseStored(e); err != nil {
			return err
		}
		p.counts.Envelopes++
		p.bytes += int64(len(e.Envelope)) + 1
	}
	if envelope != nil && r.Signer == event.SignerSystem && len(p.coverage) < pack.MaxCoverage {
		if stated, is := pack.ParseCoverage(envelope, e.Index); is {
			p.coverage = append(p.coverage, stated.String())
		}
	}
	if r.Signer != event.SignerSystem {
		p.agents[r.AgentID] = true
	}
	if r.Policy.PolicyDigest != (id.Hash{}) {
		p.policies[r.Policy.PolicyDigest] = policyVersion{r.Policy.PolicyID, r.Policy.PolicyVersion}
	}
	p.acts.AddEvent(e.Index, &r, envelope)
	if p.counts.Records == 1 {
		p.first = r.ReceivedAt
	}
	p.last = r.ReceivedAt
	return p.checkBounds()
}

func (p *plan) checkBounds() error {
	if len(p.agents) > pack.MaxAgents || len(p.policies) > pack.MaxPolicies || len(p.erasing) > pack.MaxLines ||
		len(p.byName) > pack.MaxLines || p.bytes > maxBytes {
		return errTooLarge()
	}
	return nil
}

// joinActs completes the table of acts, and counts its file.
func (p *plan) joinActs() error {
	if !p.acts.Join() {
		return errors.New("two events of the log have the same ID")
	}
	p.bytes += int64(p.acts.Size())
	return p.checkBounds()
}

// countConfirmed counts the acts of the pack that tools confirm, for the report. A pack does not wait for the index.
func (x *Exporter) countConfirmed(ctx context.Context, p *plan) error {
	f := index.Filter{Receipts: index.OnlyConfirmed, From: index.Bound{Given: true, Index: p.begin}, To: index.Bound{Given: true, Index: p.end}}
	asked := &p.Wanted.request
	if asked.AgentID != nil {
		f.Agent = *asked.AgentID
	}
	if asked.TraceID != nil {
		f.Trace = *asked.TraceID
	}
	if asked.Tool != nil {
		f.Tool = *asked.Tool
	}
	counted, err := x.Index.Stats(ctx, p.Tenant, f)
	if fault.Is(err, fault.Unavailable) {
		return nil
	}
	if err == nil && counted.End >= p.end {
		p.confirmed = counted.Acts
	}
	return err
}

// addApproval records a statement about an approval.
func (p *plan) addApproval(e *storage.Event) error {
	envelope, err := parseStored(e)
	if err != nil {
		return err
	}
	var read struct {
		ApprovalID approval.ID `json:"approval_id"`
	}
	if err := json.Unmarshal(envelope.Payload, &read); err != nil {
		return fmt.Errorf("statement at %d: %w", e.Index, err)
	}
	a := p.byName[read.ApprovalID]
	if a == nil {
		a = &approvalPlan{name: read.ApprovalID}
		p.byName[read.ApprovalID] = a
		p.approvals = append(p.approvals, a)
	}
	a.events = append(a.events, e.Index)
	if !p.acts.AddStatement(string(read.ApprovalID), e.Index, envelope) {
		return errTooLarge()
	}
	by, err := signedBy(envelope)
	if err != nil {
		return fmt.Errorf("statement at %d: %w", e.Index, err)
	}
	if by != (voterName{}) {
		if a.signed == nil {
			a.signed = make(map[id.Index]voterName)
		}
		a.signed[e.Index] = by
	}
	return p.checkBounds()
}

// parseStored parses the envelope of a stored event.
func parseStored(e *storage.Event) (*event.Envelope, error) {
	envelope, err := event.Parse(e.Envelope, event.Options{MaxBytes: len(e.Envelope), Server: true})
	if err != nil {
		return nil, fmt.Errorf("envelope of event %d: %w", e.Index, err)
	}
	return envelope, nil
}
