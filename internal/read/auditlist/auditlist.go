// Package auditlist lists what users, programs and the service itself did to an organization: the service's own events
// of its log, as sentences and as data. It hides the sentences and where names and sources are stored.
//
// Invariants:
//
//   - Each kind of service event has its sentences in one table (sentences.go).
//   - A sentence contains what the signed payload contains. The names of users are the current ones, and where a call
//     came from is stored outside of the event: both are unverified operator claims.
//   - Each entry contains its event and the public path of its proof.
//   - The work for a page is bounded, as for lists of events.
package auditlist

import (
	"context"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/eventlist"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// People provides the names of accounts. account.Accounts implements it.
type People interface {
	ByID(ctx context.Context, who account.ID) (account.Account, error)
}

// Reader lists the service's own events. All members are required.
type Reader struct {
	Index         *index.Index
	Ledgers       *log.Ledgers
	Sources       sysevent.Sources
	People        People
	Organizations *org.Orgs
}

// act is one of the service's own events while its sentence is being written.
type act struct {
	kind    string
	actor   wire.Actor
	source  *sysevent.Source // nil if none was stored
	payload jsontext.Value   // nil if the envelope is erased
}

// List returns a page of entries. The parameters are actor, kind, from, to and order.
func (r *Reader) List(ctx context.Context, a eventlist.Asked) (wire.AuditEntries, error) {
	q, err := parseQuery(a)
	if err != nil {
		return wire.AuditEntries{}, err
	}
	page, err := r.Index.List(ctx, a.Tenant, q)
	if err != nil {
		return wire.AuditEntries{}, err
	}
	d, err := r.newDescriber(ctx, a.Tenant)
	if err != nil {
		return wire.AuditEntries{}, err
	}
	shown := wire.AuditEntries{Entries: make([]wire.AuditEntry, len(page.Rows)), Next: eventlist.Cursor(page.Next), IndexedTo: page.End}
	i := 0
	for stored, err := range r.Ledgers.EventsAt(ctx, d.state, eventlist.Indices(page.Rows), storage.FieldEnvelope) {
		if err == nil {
			shown.Entries[i], err = d.describe(ctx, &page.Rows[i], stored.Envelope)
		}
		if err != nil {
			return wire.AuditEntries{}, err
		}
		i++
	}
	return shown, nil
}

// parseQuery parses the parameters of List.
func parseQuery(a eventlist.Asked) (index.Query, error) {
	kind, actor := a.Values.Get("kind"), a.Values.Get("actor")
	if kind != "" && !strings.HasPrefix(kind, "ledger_") {
		return index.Query{}, fault.New(fault.Invalid, "kind must begin with ledger_")
	}
	values := url.Values{"action_kind": {kind}, "signer": {string(event.SignerSystem)}}
	for _, name := range []string{"from", "to", "order"} {
		values.Set(name, a.Values.Get(name))
	}
	if len(actor) > eventlist.MaxValue {
		return index.Query{}, fault.New(fault.Invalid, "A parameter is longer than 1024 bytes")
	}
	q, err := eventlist.ParseQuery(values, a.After, a.Limit)
	q.Actor = actor
	return q, err
}

// describer describes the entries of one page.
type describer struct {
	*Reader
	tenant id.Tenant
	state  *log.State
	slug   id.Slug
	names  map[account.ID]name
}

func (r *Reader) newDescriber(ctx context.Context, t id.Tenant) (*describer, error) {
	state, err := r.Ledgers.State(ctx, t)
	if err != nil {
		return nil, err
	}
	settings, err := r.Organizations.CurrentSettings(ctx, t)
	if err != nil {
		return nil, err
	}
	return &describer{Reader: r, tenant: t, state: state, slug: settings.Slug, names: map[account.ID]name{}}, nil
}

// signed contains the members of an envelope that an entry needs.
type signed struct {
	Principal string         `json:"actor_principal"`
	Payload   jsontext.Value `json:"payload"`
}

// describe describes an entry from its row and its envelope, which is nil if it is erased.
func (d *describer) describe(ctx context.Context, row *index.Row, envelope []byte) (wire.AuditEntry, error) {
	var read signed
	if envelope != nil {
		if err := json.Unmarshal(envelope, &read); err != nil {
			return wire.AuditEntry{}, err
		}
	}
	a := act{kind: row.Kind, payload: read.Payload}
	var err error
	if a.actor, err = d.describeActor(ctx, read.Principal); err != nil {
		return wire.AuditEntry{}, err
	}
	if a.source, err = d.Sources.Source(ctx, d.tenant, row.Event); err != nil {
		return wire.AuditEntry{}, err
	}
	sentence, change, err := d.write(ctx, &a)
	return wire.AuditEntry{Index: row.Index, ID: row.Event, Hash: row.Hash, ReceivedAt: row.ReceivedAt, Kind: row.Kind,
		Sentence: sentence, Change: change, Actor: a.actor, Source: describeSource(a.source), Payload: a.payload,
		Proof: "/v1/public/orgs/" + string(d.slug) + "/verify/" + url.PathEscape(string(row.Event))}, err
}
