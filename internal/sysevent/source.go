package sysevent

import (
	"context"
	"errors"
	"fmt"
	"github.com/agentledger/agentledger/internal/records"
	"net/netip"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Credential is the kind of credential with which a call was made.
type Credential string

// The credentials of calls that record statements.
const (
	BySession        Credential = "session"
	ByToken          Credential = "token"
	ByPlatformSecret Credential = "platform_secret"
	ByCommand        Credential = "command" // of a user of the machine
	ByShare          Credential = "share"   // a link to a view (package share)
	BySlack          Credential = "slack"   // a signed request of Slack
)

// Source is where a call came from. It is stored in a record and never in the event, because entries and records are
// public, envelopes may be, and nothing in a ledger can be retracted.
type Source struct {
	Credential Credential `json:"credential"`
	ID         string     `json:"id,omitzero"`      // public name of the session, token or user of Slack
	Address    netip.Addr `json:"address,omitzero"` // of the client; zero if unknown
}

// kindSource has the sources of events, by event ID. They belong to one log, as their events do.
const kindSource storage.Kind = "event_source"

// OfLog reports whether records of a kind belong to one log.
func OfLog(kind storage.Kind) bool { return kind == kindSource }

// sourceKey is the key of WithSource's value.
type sourceKey struct{}

// WithSource returns a context for a call. The source is stored with the statements of the call.
func WithSource(ctx context.Context, o Source) context.Context {
	return context.WithValue(ctx, sourceKey{}, o)
}

// sourceChanges returns the records of a call's source, one for each of its own events. A statement of another
// principal is made by the service itself and has no source.
func sourceChanges(ctx context.Context, statements []Statement, events []id.Event) ([]storage.Change, error) {
	o, known := ctx.Value(sourceKey{}).(Source)
	if !known {
		return nil, nil
	}
	value, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("keep source: %w", err)
	}
	var changes []storage.Change
	for i, s := range statements {
		if s.Principal == "" {
			changes = append(changes, storage.Change{Kind: kindSource, Key: string(events[i]), Value: value})
		}
	}
	return changes, nil
}

// Sources reads the sources that appenders have stored.
type Sources struct{ Records storage.RecordStore }

// Source returns the source of an event, or nil if there is none.
func (n Sources) Source(ctx context.Context, t id.Tenant, e id.Event) (*Source, error) {
	r, err := n.Records.Get(ctx, t, kindSource, string(e))
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read source: %w", err)
	}
	var o Source
	if err := json.Unmarshal(r.Value, &o); err != nil {
		return nil, fmt.Errorf("read source: %w", err)
	}
	return &o, nil
}

// RecordChecks returns functions, by kind, that report whether a record of this package can be decoded. An import calls
// them before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindSource:    records.Check[Source],
		kindSystemKey: records.Check[systemKeyRecord],
	}
}
