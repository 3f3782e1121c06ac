package streamexport

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Export is the public part of an organization's export.
type Export struct {
	URL         string
	HeaderNames []string
	Format      Format
	Encoding    Encoding
	Payloads    bool
	Active      bool
	ChangedAt   id.Instant
	ChangedBy   string

	Position follow.Position
	Lag      follow.Lag

	LagSeconds float64 // age of the oldest event that was not sent
	Sent       uint64  // accepted events, including repeated ones
	Rejected   uint64
	Success    id.Instant // of the latest accepted request; 0 if none
	Last       Try

	TestAskedAt id.Instant // when the latest test delivery was requested; 0 if none
	Test        Try        // the latest test delivery that was sent
}

func errNoExport() error {
	return fault.New(fault.NotFound, "The organization has no stream export")
}

// Export returns an organization's export. It returns fault.NotFound if there is none.
func (x *Exporter) Export(ctx context.Context, t id.Tenant, organization id.Organization) (Export, error) {
	stored, err := x.exports.Get(ctx, t, "")
	if err != nil {
		return Export{}, err
	}
	if !stored.Exists() {
		return Export{}, errNoExport()
	}
	r := &stored.Value
	address, err := x.Keyring.Open(sealContext(organization), r.URL)
	if err != nil {
		return Export{}, records.Unreadable(unreadableMessage, "open address", err)
	}
	e := Export{
		URL: string(address), HeaderNames: r.HeaderNames, Format: r.Format, Encoding: r.Encoding, Payloads: r.Payloads,
		Active: r.Active, ChangedAt: r.ChangedAt, ChangedBy: r.ChangedBy,
	}
	err = x.addProgress(ctx, t, &e)
	return e, err
}

// addProgress adds the position of an export and the results of its attempts.
func (x *Exporter) addProgress(ctx context.Context, t id.Tenant, e *Export) error {
	position, err := x.follower.Position(ctx, t, follower)
	if err != nil {
		return err
	}
	e.Position = position.Value
	if e.Lag, err = x.follower.LagOf(ctx, t, e.Position); errors.Is(err, log.ErrNotOwner) {
		return err
	}
	if err != nil {
		return records.Unreadable(unreadableMessage, "count events to come", err)
	}
	if e.Lag.Received > 0 {
		e.LagSeconds = max(float64(x.currentTime()-e.Lag.Received), 0) / 1000
	}
	test, err := x.tests.Get(ctx, t, "")
	if err != nil {
		return err
	}
	status, err := x.statuses.Get(ctx, t, "")
	s := &status.Value
	e.Sent, e.Rejected, e.Success, e.Last, e.Test = s.Sent, s.Rejected, s.SuccessAt, s.Last, s.Test
	e.TestAskedAt = test.Value.AskedAt
	return err
}

// Put creates or replaces an organization's export and records it (ledger_stream_export_changed). Its position is kept,
// unless the request sets another one. A request that changes nothing has no effect.
func (x *Exporter) Put(ctx context.Context, t id.Tenant, principal string, r Request) error {
	if err := x.checkRequest(&r); err != nil {
		return err
	}
	_, err := x.Events.Append(ctx, t, principal, func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		stored, err := x.exports.Get(ctx, t, "")
		if err != nil {
			return sysevent.Change{}, err
		}
		names, err := x.applyRequest(s.Identity().Organization, &stored.Value, &r)
		if err != nil {
			return sysevent.Change{}, err
		}
		move, at, err := x.movePosition(ctx, t, s, r.From)
		if err != nil || len(names) == 0 && at == nil {
			return sysevent.Change{}, err
		}
		stored.Value.ChangedAt, stored.Value.ChangedBy = x.currentTime(), principal
		return x.stateChange(ctx, t, stored, names, at, move)
	})
	if err == nil {
		x.follower.Wake(t, follower)
	}
	return err
}

// stateChange returns the change of an export with its statement.
func (x *Exporter) stateChange(
	ctx context.Context, t id.Tenant, stored records.Versioned[exportRecord], names []string, at *id.Index,
	move storage.Change,
) (sysevent.Change, error) {
	put, err := x.exports.Put(stored)
	if err != nil {
		return sysevent.Change{}, err
	}
	paced, err := x.countStatement(ctx, t)
	if err != nil {
		return sysevent.Change{}, err
	}
	payload := map[string]any{"names": names, "format": stored.Value.Format, "payloads": stored.Value.Payloads}
	if at != nil {
		payload["from"] = uint64(*at)
	}
	return sysevent.Change{
		Statements: []sysevent.Statement{{Kind: sysevent.StreamExportChanged, Payload: payload}},
		Changes:    append(paced, put, move),
	}, nil
}

// applyRequest changes an export and returns the names of the members that changed.
func (x *Exporter) applyRequest(o id.Organization, e *exportRecord, r *Request) (names []string, err error) {
	before, _ := x.Keyring.Open(sealContext(o), e.URL) // a new export has none
	names = []string{}
	if string(before) != r.URL {
		if r.Headers == nil && len(e.HeaderNames) > 0 && !sameHost(string(before), r.URL) {
			return nil, fault.New(fault.Invalid, "headers are required when url goes to another host")
		}
		if e.URL, err = x.Keyring.Seal(sealContext(o), []byte(r.URL)); err != nil {
			return nil, fmt.Errorf("seal address: %w", err)
		}
		names = append(names, "url")
	}
	if r.Headers != nil || e.Headers == nil {
		changed, err := x.applyHeaders(o, e, r.Headers)
		if err != nil {
			return nil, err
		}
		if changed {
			names = append(names, "headers")
		}
	}
	if e.Format != r.Format {
		e.Format, names = r.Format, append(names, "format")
	}
	if e.Encoding != r.Encoding {
		e.Encoding, names = r.Encoding, append(names, "encoding")
	}
	if e.Payloads != r.Payloads {
		e.Payloads, names = r.Payloads, append(names, "payloads")
	}
	if e.Active == r.Paused {
		e.Active, names = !r.Paused, append(names, "active")
	}
	return names, nil
}

// applyHeaders seals new headers. It reports whether they differ from the previous ones.
func (x *Exporter) applyHeaders(o id.Organization, e *exportRecord, all map[string]string) (changed bool, err error) {
	text, err := json.Marshal(all, json.Deterministic(true), json.FormatNilMapAsNull(false))
	if err != nil {
		return false, fmt.Errorf("write headers: %w", err)
	}
	before, _ := x.Keyring.Open(sealContext(o), e.Headers) // a new export has none
	if string(before) == string(text) {
		return false, nil
	}
	if e.Headers, err = x.Keyring.Seal(sealContext(o), text); err != nil {
		return false, fmt.Errorf("seal headers: %w", err)
	}
	e.HeaderNames = slices.Sorted(maps.Keys(all))
	return len(before) > 0 || len(all) > 0, nil
}

// movePosition returns the change that makes the follower continue immediately. at is nil if its position is kept.
func (x *Exporter) movePosition(
	ctx context.Context, t id.Tenant, s *log.State, from From,
) (move storage.Change, at *id.Index, err error) {
	stored, err := x.follower.Position(ctx, t, follower)
	if err != nil {
		return storage.Change{}, nil, err
	}
	cursor := stored.Value.Cursor
	switch {
	case from.Index != nil && *from.Index > s.Size():
		return storage.Change{}, nil, fault.New(fault.Invalid,
			fmt.Sprintf("from must not be larger than the ledger, which has %s", textcheck.Count(s.Size(), "event")))
	case from.Index != nil:
		cursor = follow.Cursor{Origin: s.Identity().Origin, Next: *from.Index}
	case from.Newest || !stored.Exists():
		cursor = follow.End(s)
	}
	if cursor != stored.Value.Cursor || !stored.Exists() {
		at = &cursor.Next
	}
	move, err = x.follower.Begin(ctx, t, stored, cursor)
	return move, at, err
}

// Delete deletes an organization's export and records it (ledger_stream_export_deleted). It returns fault.NotFound if
// there is none.
func (x *Exporter) Delete(ctx context.Context, t id.Tenant, principal string) error {
	_, err := x.Events.Append(ctx, t, principal, func(ctx context.Context, _ *log.State) (sysevent.Change, error) {
		stored, err := x.exports.Get(ctx, t, "")
		if err != nil {
			return sysevent.Change{}, err
		}
		if !stored.Exists() {
			return sysevent.Change{}, errNoExport()
		}
		return sysevent.Change{
			Statements: []sysevent.Statement{{Kind: sysevent.StreamExportDeleted, Payload: map[string]any{}}},
			Changes: []storage.Change{
				{Kind: kindExport, If: stored.Version}, {Kind: kindStatus, If: storage.AnyVersion},
				{Kind: kindTest, If: storage.AnyVersion}, x.follower.Remove(follower),
			},
		}, nil
	})
	if err == nil {
		x.metrics.forget(t)
	}
	return err
}

// Test requests a test delivery: one log record without an event, sent once. Its result is Export.Test. It returns
// fault.NotFound if the organization has no export.
func (x *Exporter) Test(ctx context.Context, t id.Tenant) error {
	stored, err := x.exports.Get(ctx, t, "")
	if err != nil {
		return err
	}
	if !stored.Exists() {
		return errNoExport()
	}
	test, err := x.tests.Put(records.Versioned[testRecord]{
		Value: testRecord{AskedAt: x.currentTime()}, Version: storage.AnyVersion,
	})
	if err != nil {
		return err
	}
	paced, err := x.countStatement(ctx, t)
	if err != nil {
		return err
	}
	if err := x.Records.Write(ctx, t, append(paced, test)); err != nil {
		return records.Unreadable(unreadableMessage, "ask for a test", err)
	}
	x.follower.WakeNow(t, follower)
	return nil
}

func (x *Exporter) countStatement(ctx context.Context, t id.Tenant) ([]storage.Change, error) {
	if x.Pace == nil {
		return nil, nil
	}
	return x.Pace.CountStatement(ctx, t)
}
