package publicapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/http/header"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

const (
	formatProof = "tlog-proof"
	formatCOSE  = "cose"
	formatJSON  = "json"
)

// mediaCOSE is the media type of a COSE receipt.
const mediaCOSE = "application/cose"

// answerBundle serves verify/:eventId: the bundle of an event, its tlog-proof or its COSE receipt.
func (s *Server) answerBundle(r *request) (response, error) {
	state, err := s.provableBySlug(r)
	if err != nil {
		return response{}, err
	}
	format, err := wantedFormat(r)
	if err != nil {
		return response{}, err
	}
	switch format {
	case formatCOSE:
		return s.answerReceipt(r, state)
	case formatProof:
		return s.answerTlogProof(r, state)
	}
	state, b, err := s.makeNewestBundle(r.Context(), r.slug, state, edge.PathParameter(r.Request, "event"),
		r.origin())
	if err != nil {
		return response{}, err
	}
	if r.query.Get("directory") == "1" {
		if err := s.addDirectory(r.Context(), state, b); err != nil {
			return response{}, err
		}
	}
	if r.query.Get("verify") == "1" {
		if err := s.verifyBundle(r.Context(), state, b); err != nil {
			return response{}, err
		}
	}
	p, err := newJSONResponse(b, never)
	p.vary = "Accept"
	return p, err
}

// answerTlogProof returns the C2SP tlog-proof of an event. It reads neither record nor envelope.
func (s *Server) answerTlogProof(r *request, state *log.State) (response, error) {
	state, at, err := s.findProvable(r.Context(), state, edge.PathParameter(r.Request, "event"), r.origin())
	if err != nil {
		return response{}, err
	}
	checkpoint, note, err := s.witnesses.Covering(r.Context(), state, at)
	if err != nil {
		return response{}, err
	}
	e, err := s.ledgers.Event(r.Context(), state, at, 0)
	if err != nil {
		return response{}, err
	}
	hashes, err := s.ledgers.InclusionOf(r.Context(), state, e, checkpoint.Size)
	if err != nil {
		return response{}, err
	}
	proof := tlog.Proof{Index: at, Hashes: hashes, Checkpoint: note}
	return response{media: mediaText, cache: never, vary: "Accept", body: proof.Text()}, nil
}

// verifyBundle checks a bundle against the policies of its log and of the directory, as every
// holder of the bundle can, and adds the report.
func (s *Server) verifyBundle(ctx context.Context, state *log.State, b *verify.Bundle) error {
	o := verify.Options{CheckedAt: id.InstantOf(s.clock())}
	shown := []*log.State{state}
	if b.Directory != nil {
		directory, err := s.directoryState(ctx)
		if err != nil {
			return err
		}
		shown = append(shown, directory)
	}
	for _, l := range shown {
		policy, err := s.witnesses.Policy(ctx, l)
		if err != nil {
			return err
		}
		for _, w := range policy.Witnesses {
			if !slices.Contains(o.Witnesses, w.Key) {
				o.Witnesses = append(o.Witnesses, w.Key)
			}
		}
	}
	report := verify.Check(b, o)
	b.Verification = &report
	return nil
}

// wantedFormat returns the format that the query or Accept requests.
func wantedFormat(r *request) (string, error) {
	switch format := r.query.Get("format"); format {
	case formatProof, formatCOSE, formatJSON:
		return format, nil
	case "":
		switch header.PreferredMedia(r.Header["Accept"], edge.MediaJSON, "text/plain", mediaCOSE) {
		case "text/plain":
			return formatProof, nil
		case mediaCOSE:
			return formatCOSE, nil
		}
		return formatJSON, nil
	}
	return "", fault.New(fault.Invalid, "format must be json, tlog-proof or cose")
}

// orPage returns a handler that calls page if the client prefers HTML, and otherwise documents. A format in the
// query overrides Accept. A client that accepts every format gets JSON.
func orPage(documents, page edge.Handler) edge.Handler {
	if page == nil {
		return documents
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		if header.PreferredMedia(r.Header["Accept"], edge.MediaJSON, "text/plain", mediaCOSE, "text/html") == "text/html" &&
			!r.URL.Query().Has("format") {
			return page(w, r)
		}
		return documents(w, r)
	}
}

// makeNewestBundle builds the bundle of an event in the log of a state or, if origin is "", in an earlier log of the line.
// It returns the state of the log that contains the event.
func (s *Server) makeNewestBundle(ctx context.Context, slug id.Slug, state *log.State, name string,
	origin id.Origin) (*log.State, *verify.Bundle, error) {
	found, at, err := s.findProvable(ctx, state, name, origin)
	if err != nil {
		return nil, nil, err
	}
	b, err := s.makeBundle(ctx, slug, found, at)
	return found, b, err
}

// findProvable returns the index of an event in the log of a state or, if origin is "", in an earlier log of the line,
// and the state of the log that contains it.
func (s *Server) findProvable(ctx context.Context, state *log.State, name string, origin id.Origin) (*log.State, id.Index, error) {
	if !event.ValidEvent(name) {
		return nil, 0, errNotFound()
	}
	if origin != "" {
		at, err := s.ledgers.Find(ctx, state, id.Event(name))
		return state, at, err
	}
	found, at, err := s.findHoldingLog(ctx, state, id.Event(name))
	if err == nil {
		err = found.Provable()
	}
	return found, at, err
}

// makeEventBundle builds the bundle of an event of a log under one checkpoint.
func (s *Server) makeEventBundle(ctx context.Context, slug id.Slug, state *log.State, name string) (*verify.Bundle,
	error) {
	if !event.ValidEvent(name) {
		return nil, errNotFound()
	}
	at, err := s.ledgers.Find(ctx, state, id.Event(name))
	if err != nil {
		return nil, err
	}
	return s.makeBundle(ctx, slug, state, at)
}

func (s *Server) makeBundle(ctx context.Context, slug id.Slug, state *log.State, at id.Index) (*verify.Bundle, error) {
	parts, err := s.readBundleParts(ctx, state, at)
	if err != nil {
		return nil, err
	}
	parts.Slug = slug
	return s.makeBundleOf(ctx, state, parts)
}

// MakeBundle returns the bundle of an event with a report. It discloses what disclosure allows, instead of what the
// organization discloses to the public. The caller must have checked the permissions of its own caller.
func (s *Server) MakeBundle(ctx context.Context, slug id.Slug, state *log.State, at id.Index,
	disclosure id.Disclosure) (*verify.Bundle, error) {
	parts, err := s.readBundleParts(ctx, state, at)
	if err != nil {
		return nil, err
	}
	parts.Slug, parts.Disclosure = slug, disclosure
	b, err := s.makeBundleOf(ctx, state, parts)
	if err != nil {
		return nil, err
	}
	return b, s.verifyBundle(ctx, state, b)
}

// makeBundleOf builds a bundle from its parts and adds the operator's statement.
func (s *Server) makeBundleOf(ctx context.Context, state *log.State, parts verify.Parts) (*verify.Bundle, error) {
	b, err := verify.NewBundle(parts)
	if err != nil {
		return nil, err
	}
	if b.OperatorStatement, err = s.operatorStatement(ctx, state); err != nil {
		return nil, err
	}
	b.OperatorStatement.KeyClaim, err = s.readKeyClaim(ctx, state, b)
	return b, err
}

// readKeyClaim returns verify.KeyCompromised if the organization claims that somebody else could use the key of a
// disclosed record when the event was signed, or "".
func (s *Server) readKeyClaim(ctx context.Context, state *log.State, b *verify.Bundle) (string, error) {
	if b.Record == nil {
		return "", nil
	}
	r, err := event.ParseRecord([]byte(*b.Record))
	if err != nil || r.Signer == event.SignerSystem {
		return "", nil // a damaged record is returned unchanged, and verification reports it
	}
	from, err := s.agents.CompromisedFrom(ctx, state, r.AgentID, r.KeyID)
	if fault.Is(err, fault.NotFound) {
		return "", nil // there is no claim about an unknown agent; the event is evidence regardless
	}
	if err != nil || b.LogIndex < from {
		return "", err
	}
	return verify.KeyCompromised, nil
}

// readBundleParts reads the parts of a bundle.
func (s *Server) readBundleParts(ctx context.Context, state *log.State, at id.Index) (verify.Parts, error) {
	checkpoint, note, err := s.witnesses.Covering(ctx, state, at)
	if err != nil {
		return verify.Parts{}, err
	}
	return s.readPartsUnder(ctx, state, at, checkpoint, note)
}

// readPartsUnder reads the parts of a bundle under a checkpoint of the log that covers the event.
func (s *Server) readPartsUnder(ctx context.Context, state *log.State, at id.Index, checkpoint tlog.Checkpoint,
	note []byte) (p verify.Parts, err error) {
	e, err := s.ledgers.Event(ctx, state, at, storage.FieldRecord|storage.FieldEnvelope)
	if err != nil {
		return p, err
	}
	erasedAt, err := s.readErasedAt(ctx, state, e)
	if err != nil {
		return p, err
	}
	p = verify.Parts{
		Organization: state.Identity().Organization, Event: e.ID, Index: at, Entry: log.EntryOf(e),
		Checkpoint: checkpoint, Note: note, Key: state.VerifierKeyOf(checkpoint.Size),
		Signers:    state.SignersOf(checkpoint.Size),
		ActionKind: e.ActionKind, Disclosure: e.Disclosure, Record: e.Record, Envelope: e.Envelope,
		ErasedAt: erasedAt,
	}
	if p.Proof, err = s.ledgers.InclusionOf(ctx, state, e, checkpoint.Size); err != nil || at == 0 {
		return p, err
	}
	before, err := s.ledgers.Event(ctx, state, at-1, 0)
	if err != nil {
		return p, err
	}
	p.Previous = log.EntryOf(before)
	p.PreviousProof, err = s.ledgers.InclusionOf(ctx, state, before, checkpoint.Size)
	return p, err
}

// readErasedAt returns when the envelope of an event was erased, or nil if it was not.
func (s *Server) readErasedAt(ctx context.Context, state *log.State, e storage.Event) (*id.Instant, error) {
	if e.ErasedBy == 0 {
		return nil, nil
	}
	state, err := s.awaitErasure(ctx, state, e.ErasedBy)
	if err != nil {
		return nil, err
	}
	by, err := s.ledgers.Event(ctx, state, e.ErasedBy, storage.FieldColumns)
	if err != nil {
		return nil, err
	}
	return &by.ReceivedAt, nil
}

// The store removes an envelope before the ledger publishes the erasure. awaitErasure looks for the new state at this
// interval and at most this often.
const (
	erasureLook  = 20 * time.Millisecond
	erasureLooks = 50
)

// awaitErasure returns a state that contains the event at index by: state itself or a newer one. The error is
// fault.Unavailable if the erasure is not published in time.
func (s *Server) awaitErasure(ctx context.Context, state *log.State, by id.Index) (*log.State, error) {
	if by < state.Size() {
		return state, nil
	}
	tenant := state.Identity().Tenant
	for range erasureLooks {
		newer, err := s.ledgers.State(ctx, tenant)
		if err != nil {
			return nil, errErasing(err)
		}
		if state = newer; by < state.Size() {
			return state, nil
		}
		if err := syncs.Sleep(ctx, erasureLook); err != nil {
			return nil, errErasing(err)
		}
	}
	return nil, errErasing(nil)
}

func errErasing(cause error) error {
	return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", RetryAfter: time.Second, Err: cause,
		Message: "An erasure of the event is being written; try again"}
}

// operatorStatement returns the statement of the service about its own ledger. Of a fault it contains only
// the level.
func (s *Server) operatorStatement(ctx context.Context, state *log.State) (*verify.OperatorStatement, error) {
	done, err := s.ledgers.Reverified(ctx, state.Identity().Tenant)
	if err != nil {
		return nil, err
	}
	o := &verify.OperatorStatement{ReverifiedTo: done.To}
	if done.At != 0 {
		o.ReverifiedAt = &done.At
	}
	if level := state.Fault().Level; level != log.Healthy {
		text := string(level)
		o.Fault = &text
	}
	return o, nil
}
