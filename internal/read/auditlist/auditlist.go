// Package auditlist tells what people, programs and the service itself did to an organization: the
// server's own events of its log, as sentences and as data.
//
// Invariants:
//
//   - Each kind of server event has its sentences in one table (sentences.go).
//   - A sentence says what the signed payload says. Names of people are those of now, and where a call
//     came from is kept beside the event: both are the operator's word.
//   - Each act names its event and the public path of its proof.
//   - The work for a page is bounded as that of lists of events is.
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
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// People tells the names of accounts (package account).
type People interface {
	ByID(ctx context.Context, who account.ID) (account.Account, error)
}

// Reader answers questions about acts. All members are required.
type Reader struct {
	Index         *index.Index
	Ledgers       *log.Ledgers
	Sources       sysevent.Sources
	People        People
	Organizations *org.Orgs
}

// Act is one of the server's own events.
type Act struct {
	LogIndex   id.Index         `json:"log_index"`
	EventID    id.Event         `json:"event_id"`
	EventHash  id.Hash          `json:"event_hash"`
	ReceivedAt id.Instant       `json:"received_at"`
	Kind       string           `json:"kind"`
	Sentence   string           `json:"sentence"`
	Actor      Actor            `json:"actor"`
	Source     *sysevent.Source `json:"source"`  // null when none was kept
	Payload    jsontext.Value   `json:"payload"` // as it was signed; null when the envelope is erased
	Proof      string           `json:"proof"`   // path of the public verification bundle
}

// Acts is a page of acts.
type Acts struct {
	Acts      []Act    `json:"acts"`
	Next      *string  `json:"next"`
	IndexedTo id.Index `json:"indexed_to"` // the list reaches up to the event before this one
}

// List answers a page of acts. The parameters are actor, kind, from, to and order.
func (r *Reader) List(ctx context.Context, a eventlist.Asked) (Acts, error) {
	q, err := parseQuery(a)
	if err != nil {
		return Acts{}, err
	}
	page, err := r.Index.List(ctx, a.Tenant, q)
	if err != nil {
		return Acts{}, err
	}
	d, err := r.newDescriber(ctx, a.Tenant)
	if err != nil {
		return Acts{}, err
	}
	shown := Acts{Acts: make([]Act, len(page.Rows)), Next: eventlist.Cursor(page.Next), IndexedTo: page.End}
	i := 0
	for stored, err := range r.Ledgers.EventsAt(ctx, d.state, eventlist.Indices(page.Rows), storage.FieldEnvelope) {
		if err == nil {
			shown.Acts[i], err = d.describe(ctx, &page.Rows[i], stored.Envelope)
		}
		if err != nil {
			return Acts{}, err
		}
		i++
	}
	return shown, nil
}

// parseQuery reads a question about acts.
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

// describer describes the acts of one page.
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

// signed is the members of an envelope that an act needs.
type signed struct {
	Principal string         `json:"actor_principal"`
	Payload   jsontext.Value `json:"payload"`
}

// describe describes an act by its row and its envelope, nil for one that is erased.
func (d *describer) describe(ctx context.Context, row *index.Row, envelope []byte) (Act, error) {
	act := Act{LogIndex: row.Index, EventID: row.Event, EventHash: row.Hash, ReceivedAt: row.ReceivedAt, Kind: row.Kind,
		Proof: "/v1/public/orgs/" + string(d.slug) + "/verify/" + url.PathEscape(string(row.Event))}
	var said signed
	if envelope != nil {
		if err := json.Unmarshal(envelope, &said); err != nil {
			return Act{}, err
		}
	}
	act.Payload = said.Payload
	var err error
	if act.Actor, err = d.describeActor(ctx, said.Principal); err != nil {
		return Act{}, err
	}
	if act.Source, err = d.Sources.Source(ctx, d.tenant, row.Event); err != nil {
		return Act{}, err
	}
	act.Sentence, err = d.write(ctx, &act)
	return act, err
}
