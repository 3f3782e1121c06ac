package transfer

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/operate/directory"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/operate/witness"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// Succession replaces the frozen ledger of an organization by a new one in the same store. No other process may use
// the store at the same time. A second run continues an unfinished succession.
//
// The organization moves to the new ledger's handle in three steps. First its records are copied. Then the first
// event names the predecessor, and with it the organization exists in the new partition. Last its entries in the
// service's own partition are repointed, with its names at the end.
//
//   - A succession can be killed at any moment and run again. Until it ends, the organization still has its frozen
//     ledger, which accepts no events.
//   - The frozen ledger keeps its handle, so tiles, anchors, cosignatures and re-verification continue for both logs.
//   - The checkpoint in the first event becomes the frozen ledger's anchor before that event is written: the old log
//     never publishes less than its successor states.
type Succession struct {
	Place        // Run closes the anchors
	Reason       string
	Checkpoint   []byte // a newer checkpoint than the one that the frozen ledger publishes; may be nil
	Organization string // slug or ID
	Clock        func() time.Time
}

// Successor is the result of a succession.
type Successor struct {
	Organization id.Organization `json:"organization_id"`
	Predecessor  id.Origin       `json:"predecessor"`
	LastSize     id.Index        `json:"last_size"` // of the predecessor's last known checkpoint
	Origin       id.Origin       `json:"origin"`
	LogKey       string          `json:"log_key"`
}

// Run creates the successor. It returns ErrRefused if the organization cannot have one.
func (s *Succession) Run(ctx context.Context) (Successor, error) {
	if err := checkReason(s.Reason); err != nil {
		return Successor{}, errors.Join(err, s.Anchors.Close())
	}
	if s.Clock == nil {
		s.Clock = time.Now
	}
	ledgers, err := log.Open(ctx, log.Options{
		Store:   s.Store,
		Keyring: s.Keyring,
		Anchors: s.Anchors,
		Logger:  s.Logger,
		Clock:   s.Clock,
	})
	if err != nil {
		return Successor{}, err
	}
	run := &transition{Succession: s, ledgers: ledgers}
	successor, err := run.runSteps(ctx)
	return successor, errors.Join(err, ledgers.Close())
}

// maxReason is the maximum length of a reason in bytes.
const maxReason = 1024

func checkReason(reason string) error {
	if reason == "" || len(reason) > maxReason || !utf8.ValidString(reason) {
		return Refusedf("the reason must have 1 to %d bytes; it will be public", maxReason)
	}
	for _, c := range reason {
		if unicode.IsControl(c) {
			return Refusedf("the reason must not contain control characters")
		}
	}
	return nil
}

// transition is a Succession in progress.
type transition struct {
	*Succession
	ledgers  *log.Ledgers
	old, new *log.State
	last     tlog.Checkpoint // of old, the last known one
	note     []byte
}

func (s *transition) runSteps(ctx context.Context) (successor Successor, err error) {
	if s.old, err = s.findFrozenLedger(ctx); err != nil {
		return successor, err
	}
	for _, step := range []func(context.Context) error{s.findLastCheckpoint, s.createLedger, s.repointEntries} {
		if err := step(ctx); err != nil {
			return successor, fmt.Errorf("succeed: %s: %w", s.old.Identity().Origin, AsRefusal(err))
		}
	}
	identity := s.new.Identity()
	return Successor{
		Organization: identity.Organization, Predecessor: s.old.Identity().Origin, LastSize: s.last.Size,
		Origin: identity.Origin, LogKey: s.new.VerifierKey().String(),
	}, nil
}

// findFrozenLedger returns the current ledger of the organization.
func (s *transition) findFrozenLedger(ctx context.Context) (*log.State, error) {
	orgs, err := org.New(org.Options{Records: s.Store, Ledgers: s.ledgers})
	if err != nil {
		return nil, err
	}
	var t id.Tenant
	if o, malformed := id.ParseOrganization(s.Organization); malformed == nil {
		t, err = orgs.ByID(ctx, o)
	} else {
		t, err = orgs.BySlug(ctx, id.Slug(s.Organization))
	}
	if fault.Is(err, fault.NotFound) {
		return nil, Refusedf("there is no organization %s here", s.Organization)
	}
	if err != nil {
		return nil, err
	}
	return s.ledgers.State(ctx, t)
}

// findLastCheckpoint finds the last checkpoint of the frozen ledger: the one it publishes, or a newer one from the
// operator, which must belong to this ledger.
func (s *transition) findLastCheckpoint(context.Context) error {
	s.last, s.note = s.old.Shown(), s.old.Checkpoint()
	if s.Checkpoint == nil {
		return nil
	}
	c, err := s.old.OpenCheckpoint(s.Checkpoint)
	if err != nil {
		return Refusedf("the checkpoint does not belong to this log: %w", err)
	}
	if c.Size < s.last.Size {
		return Refusedf("the checkpoint has size %d, but the log publishes one of size %d: omit it", c.Size,
			s.last.Size)
	}
	s.last, s.note = c, s.Checkpoint
	return nil
}

// createLedger creates the new ledger and appends its first event.
func (s *transition) createLedger(ctx context.Context) (err error) {
	if s.new, err = s.ledgers.Succeed(ctx, s.old); err != nil {
		return err
	}
	if s.new.Size() > 0 {
		return s.readFirstEvent(ctx)
	}
	if err := s.ledgers.AnchorLast(ctx, s.old, s.note); err != nil {
		return err
	}
	founding, err := s.copyRecords(ctx)
	if err != nil {
		return err
	}
	if err := s.appendFirstEvent(ctx, founding); err != nil {
		return err
	}
	s.new, err = s.ledgers.State(ctx, s.new.Identity().Tenant)
	return err
}

// readFirstEvent reads the first event that an earlier run appended.
func (s *transition) readFirstEvent(ctx context.Context) error {
	first, err := s.ledgers.Event(ctx, s.new, 0, storage.FieldRecord|storage.FieldEnvelope)
	if err != nil {
		return err
	}
	statement, err := verify.ReadSuccession(s.new.Identity().Origin, log.EntryOf(first), first.Record, first.Envelope)
	if err == nil {
		s.last, err = statement.Last()
	}
	return err
}

// belongsToOrganization reports whether records of a kind belong to the organization, and not to one of its logs.
func belongsToOrganization(kind storage.Kind) bool {
	return !kind.Derived() && !log.OfLedger(kind) && !witness.OfLog(kind) && !approval.BelongsToLog(kind) &&
		!workflow.OfLog(kind) && !directory.OfLog(kind) && !erasure.OfLog(kind) && !sysevent.OfLog(kind)
}

// copyRecords copies the records of the old partition to the new one, except the record that makes the organization
// exist, whose change it returns. It deletes leftovers of an earlier run first.
func (s *transition) copyRecords(ctx context.Context) (founding []storage.Change, err error) {
	w := &records.Writer{Store: s.Store, Tenant: s.new.Identity().Tenant}
	for r, err := range storage.PartitionOf(ctx, s.Store, w.Tenant) {
		if err == nil && belongsToOrganization(r.Kind) {
			err = w.Put(ctx, storage.Change{Kind: r.Kind, Key: r.Key, If: storage.AnyVersion})
		}
		if err != nil {
			return nil, err
		}
	}
	if err := w.Flush(ctx); err != nil {
		return nil, err
	}
	for r, err := range storage.PartitionOf(ctx, s.Store, s.old.Identity().Tenant) {
		if err != nil {
			return nil, err
		}
		c := storage.Change{Kind: r.Kind, Key: r.Key, Value: r.Value, Version: r.Version}
		switch {
		case org.IsFounding(r):
			founding = []storage.Change{c}
		case belongsToOrganization(r.Kind):
			err = w.Put(ctx, c)
		}
		if err != nil {
			return nil, err
		}
	}
	if founding == nil {
		return nil, Damagedf("records: the organization's own record is missing")
	}
	return founding, w.Flush(ctx)
}

// alwaysRecord is the disclosure setting for the first event, whose own rule discloses it fully.
func alwaysRecord(context.Context, *log.State) (id.Disclosure, error) {
	return id.DiscloseRecord, nil
}

// appendFirstEvent appends the first event, with which the organization exists in the new partition.
func (s *transition) appendFirstEvent(ctx context.Context, founding []storage.Change) error {
	n := &sysevent.Appender{
		Ledgers:    s.ledgers,
		Records:    s.Store,
		Keyring:    s.Keyring,
		Disclosure: alwaysRecord,
		Clock:      s.Clock,
	}
	statement := sysevent.Statement{Kind: sysevent.Successor, Payload: map[string]any{
		"predecessor": s.old.Identity().Origin, "checkpoint": string(s.note), "reason": s.Reason,
	}}
	ctx = sysevent.WithSource(ctx, sysevent.Source{Credential: sysevent.ByCommand})
	_, err := n.Append(ctx, s.new.Identity().Tenant, sysevent.Operator,
		func(context.Context, *log.State) (sysevent.Change, error) {
			return sysevent.Change{Statements: []sysevent.Statement{statement}, Changes: founding}, nil
		})
	return err
}
