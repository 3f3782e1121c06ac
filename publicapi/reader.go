package publicapi

import (
	"context"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
	"github.com/agentledger/agentledger/verify"
)

// Reader returns the documents of this surface to other surfaces: the same values, read by the same
// steps, that the public gets as JSON.
type Reader struct{ server *Server }

// Reader returns a reader of the documents of the surface.
func (s *Server) Reader() Reader { return Reader{s} }

// EventBundle returns the bundle of an event in the log with an origin or, if origin is "", in the
// organization's newest log that contains it. It returns fault.NotFound if the event is unknown.
func (r Reader) EventBundle(ctx context.Context, t id.Tenant, slug id.Slug, name string,
	origin id.Origin) (*verify.Bundle, error) {
	state, err := r.server.ledgers.State(ctx, t)
	if err != nil {
		return nil, err
	}
	if state, err = r.server.findByOrigin(ctx, state, origin); err != nil {
		return nil, err
	}
	if err := state.Provable(); err != nil {
		return nil, err
	}
	_, b, err := r.server.makeNewestBundle(ctx, slug, state, name, origin)
	return b, err
}

// EventAt returns the ID of the event at an index of the organization's newest log. It returns fault.NotFound if the
// index is not below the size of the log.
func (r Reader) EventAt(ctx context.Context, t id.Tenant, at id.Index) (id.Event, error) {
	state, err := r.server.ledgers.State(ctx, t)
	if err == nil {
		err = state.Provable()
	}
	if err != nil {
		return "", err
	}
	if at >= state.Size() {
		return "", errNotFound()
	}
	e, err := r.server.ledgers.Event(ctx, state, at, storage.FieldColumns)
	return e.ID, err
}

// DisclosedEvents returns a range of events of the organization's newest log, cut to its size, with the fields that each
// event discloses: the index and the ID; from id.DiscloseRecord on the columns except the tool and the kind; with
// id.DiscloseFull these too, if the envelope is not erased. Disclosure is how much that is.
func (r Reader) DisclosedEvents(ctx context.Context, t id.Tenant, events id.Range) (all []storage.Event, err error) {
	state, err := r.server.ledgers.State(ctx, t)
	if err == nil {
		err = state.Provable()
	}
	if err != nil {
		return nil, err
	}
	const fields = storage.FieldColumns | storage.FieldEnvelope | storage.FieldLocal | storage.FieldLent
	for e, err := range r.server.ledgers.Events(ctx, state, events.Begin, min(events.End, state.Size()), fields) {
		if err != nil {
			return nil, err
		}
		all = append(all, disclosedOf(e))
	}
	return all, nil
}

// systemAgent is the agent of the service's own events. Agents of organizations cannot have this name.
const systemAgent = "system"

func disclosedOf(e storage.Event) storage.Event {
	signer := event.SignerAgent
	if e.Agent == systemAgent {
		signer = event.SignerSystem
	}
	shown := storage.Event{Index: e.Index, ID: e.ID, ErasedBy: e.ErasedBy}
	disclosure := verify.Disclosed(e.Disclosure, signer, e.ActionKind)
	if disclosure >= id.DiscloseRecord {
		shown.Columns = e.Columns
		if disclosure < id.DiscloseFull || e.ErasedBy != 0 {
			shown.Tool, shown.ActionKind, shown.Trace = "", "", ""
		}
	}
	shown.Disclosure = disclosure
	return shown
}

// LogHead returns the head of the organization's newest log.
func (r Reader) LogHead(ctx context.Context, t id.Tenant, slug id.Slug) (verify.Head, error) {
	state, err := r.server.ledgers.State(ctx, t)
	if err != nil {
		return verify.Head{}, err
	}
	note, err := r.server.witnesses.Checkpoint(ctx, state)
	if err != nil {
		return verify.Head{}, err
	}
	of := headSubject{slug: slug, state: state}
	if err := r.server.nameNeighbours(ctx, &of); err != nil {
		return verify.Head{}, err
	}
	return of.describeHead(note), nil
}

// LogCosigned returns the latest checkpoint with a quorum of the organization's newest log, or nil.
func (r Reader) LogCosigned(ctx context.Context, t id.Tenant) ([]byte, error) {
	state, err := r.server.ledgers.State(ctx, t)
	if err != nil {
		return nil, err
	}
	note, err := r.server.witnesses.Cosigned(ctx, state)
	if err != nil && fault.Of(err).Code == "not_cosigned" {
		return nil, nil
	}
	return note, err
}

// LogKeys returns the keys of the organization's newest log, newest last. The To of an active key is
// tlog.MaxSize.
func (r Reader) LogKeys(ctx context.Context, t id.Tenant) ([]verify.LogKey, error) {
	state, err := r.server.ledgers.State(ctx, t)
	if err != nil {
		return nil, err
	}
	var keys []verify.LogKey
	for _, k := range state.LogKeys() {
		keys = append(keys, verify.LogKey{Key: k.Verifier, From: k.From, To: min(k.To, tlog.MaxSize)})
	}
	return keys, nil
}

// LogPolicy returns the trust policy of the organization's newest log, without its log lines.
func (r Reader) LogPolicy(ctx context.Context, t id.Tenant) (*trust.Policy, error) {
	state, err := r.server.ledgers.State(ctx, t)
	if err != nil {
		return nil, err
	}
	return r.server.witnesses.Policy(ctx, state)
}

// AgentKeys returns the keys of an agent of the organization, newest last. It returns fault.NotFound for an agent of
// another organization.
func (r Reader) AgentKeys(ctx context.Context, t id.Tenant, agent id.Agent) ([]did.Key, error) {
	owner, err := r.server.agents.Owner(ctx, agent)
	if err != nil {
		return nil, err
	}
	if owner != t {
		return nil, errNotFound()
	}
	state, err := r.server.ledgers.State(ctx, t)
	if err == nil {
		err = state.Trusted()
	}
	if err != nil {
		return nil, err
	}
	return r.server.agents.DIDKeys(ctx, t, agent)
}
