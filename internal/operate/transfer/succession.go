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

// Succession lets an organization whose ledger is frozen go on with another one, in the same store.
// No other process may use the store meanwhile. A second run continues an unfinished succession.
//
// The organization moves to the new ledger's handle in three steps. First its records are copied.
// Then the first event names the predecessor, and with it the organization exists in the new
// partition. Last its entries in the service's own partition are repointed, its names at the end.
//
//   - A succession can be killed at any moment and run again. Until it has ended, the organization is found with its
//     frozen ledger, which takes no event.
//   - The frozen ledger keeps its handle, so tiles, anchors, cosignatures and re-verification go on for both logs.
//   - The checkpoint that the first event names is the frozen ledger's anchor before that event is written: the old log
//     never shows less than its successor says.
type Succession struct {
	Place        // the anchors are closed with Run
	Reason       string
	Checkpoint   []byte // a checkpoint newer than the one that the frozen ledger shows; nil for none
	Organization string // slug or id
	Clock        func() time.Time
}

// Successor is the result of a succession.
type Successor struct {
	Organization id.Organization `json:"organization_id"`
	Predecessor  id.Origin       `json:"predecessor"`
	LastSize     id.Index        `json:"last_size"` // of the predecessor's last checkpoint that is known
	Origin       id.Origin       `json:"origin"`
	LogKey       string          `json:"log_key"`
}

// Run makes the successor. ErrRefused when the organization can't have one.
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
	heir, err := run.runSteps(ctx)
	return heir, errors.Join(err, ledgers.Close())
}

// maxReason is the length of a reason in bytes.
const maxReason = 1024

func checkReason(reason string) error {
	if reason == "" || len(reason) > maxReason || !utf8.ValidString(reason) {
		return Refusedf("a reason of 1 to %d bytes is needed: everybody will read it", maxReason)
	}
	for _, c := range reason {
		if unicode.IsControl(c) {
			return Refusedf("the reason must not have control characters")
		}
	}
	return nil
}

// transition is a Succession under way.
type transition struct {
	*Succession
	ledgers  *log.Ledgers
	old, new *log.State
	last     tlog.Checkpoint // of old, the last that is known
	note     []byte
}

func (s *transition) runSteps(ctx context.Context) (heir Successor, err error) {
	if s.old, err = s.findFrozenLedger(ctx); err != nil {
		return heir, err
	}
	for _, step := range []func(context.Context) error{s.findLastCheckpoint, s.createLedger, s.repointEntries} {
		if err := step(ctx); err != nil {
			return heir, fmt.Errorf("succeed: %s: %w", s.old.Identity().Origin, AsRefusal(err))
		}
	}
	identity := s.new.Identity()
	return Successor{
		Organization: identity.Organization, Predecessor: s.old.Identity().Origin, LastSize: s.last.Size,
		Origin: identity.Origin, LogKey: s.new.VerifierKey().String(),
	}, nil
}

// findFrozenLedger returns the ledger that the organization has now.
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

// findLastCheckpoint finds the last checkpoint of the frozen ledger: the one it shows, or a newer
// one that the operator brings, which must be its own.
func (s *transition) findLastCheckpoint(context.Context) error {
	s.last, s.note = s.old.Shown(), s.old.Checkpoint()
	if s.Checkpoint == nil {
		return nil
	}
	c, err := s.old.OpenCheckpoint(s.Checkpoint)
	if err != nil {
		return Refusedf("the checkpoint is not of this log: %w", err)
	}
	if c.Size < s.last.Size {
		return Refusedf("the checkpoint has size %d, and the log shows one of size %d: leave it out", c.Size,
			s.last.Size)
	}
	s.last, s.note = c, s.Checkpoint
	return nil
}

// createLedger brings the new ledger to its first event.
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

// readFirstEvent reads the first event that an earlier run wrote.
func (s *transition) readFirstEvent(ctx context.Context) error {
	first, err := s.ledgers.Event(ctx, s.new, 0, storage.FieldRecord|storage.FieldEnvelope)
	if err != nil {
		return err
	}
	said, err := verify.ReadSuccession(s.new.Identity().Origin, log.EntryOf(first), first.Record, first.Envelope)
	if err == nil {
		s.last, err = said.Last()
	}
	return err
}

// belongsToOrganization reports whether records of a kind are the organization's, and not about
// one of its logs.
func belongsToOrganization(kind storage.Kind) bool {
	return !kind.Derived() && !log.OfLedger(kind) && !witness.OfLog(kind) && !approval.BelongsToLog(kind) &&
		!workflow.OfLog(kind) && !directory.OfLog(kind) && !erasure.OfLog(kind) && !sysevent.OfLog(kind)
}

// copyRecords copies the records of the old partition to the new one, except the record that makes
// the organization exist: that change is returned. Leftovers of an earlier run are deleted first.
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
		return nil, Damagedf("records: the organization's own one is missing")
	}
	return founding, w.Flush(ctx)
}

// alwaysRecord is the disclosure of the first event, whose own rule makes it full.
func alwaysRecord(context.Context, *log.State) (id.Disclosure, error) {
	return id.DiscloseRecord, nil
}

// appendFirstEvent appends the first event, and with it the organization exists in the new
// partition.
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
