package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire/issued"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
)

// floor is the handler of peerFloor.
type floor struct {
	identity log.Identity
	token    [32]byte // its hash
	agent    id.Agent
	key      id.Key
	verifier event.Verifier // the same as in the service
	multikey string
	policy   *policy.Compiled
}

// peerFloor returns a server for one organization with the policy of the benchmarks. It answers POST /v1/ingest/events as the service does up to the record, with the same
// packages: ingest key by hash, strict JSON, key, signature, policy, record. It stores nothing, does no other bookkeeping,
// and uses the router of net/http, so its time is the minimum that the service needs.
func peerFloor(o issued.CreatedOrganization) (http.Handler, error) {
	raw, err := base64.StdEncoding.DecodeString(o.Agent.PublicB64)
	if err != nil {
		return nil, fmt.Errorf("floor: public key: %w", err)
	}
	public, err := edkey.ParsePublic(raw)
	if err != nil {
		return nil, fmt.Errorf("floor: public key: %w", err)
	}
	table, err := edkey.NewBase().NewWideTable(public)
	if err != nil {
		return nil, fmt.Errorf("floor: public key: %w", err)
	}
	p, err := policy.Parse([]byte(policyDocument))
	if err != nil {
		return nil, fmt.Errorf("floor: policy: %w", err)
	}
	p.Version = 1
	compiled, err := policy.Compile(p)
	if err != nil {
		return nil, fmt.Errorf("floor: policy: %w", err)
	}
	f := &floor{
		identity: log.Identity{Tenant: 1, Organization: o.OrganizationID, Origin: o.Origin},
		token:    sha256.Sum256([]byte(o.IngestKey.Secret)),
		agent:    o.Agent.AgentID, key: o.Agent.KeyID, verifier: table, multikey: did.Multikey(public.Bytes()),
		policy: compiled,
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/ingest/events", f.post)
	return mux, nil
}

func (f *floor) post(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if sha256.Sum256([]byte(token)) != f.token {
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	body, err := readBody(r)
	if err != nil {
		http.Error(w, "unreadable body", http.StatusBadRequest)
		return
	}
	answer, err := f.take(body)
	if err != nil {
		http.Error(w, "refused", http.StatusUnprocessableEntity)
		return
	}
	write(w, http.StatusCreated, "application/json", answer)
}

// take processes one event up to the point where it would be stored.
func (f *floor) take(body []byte) (answer []byte, err error) {
	e, err := event.Parse(body, event.Options{Organization: f.identity.Organization})
	if err != nil {
		return nil, err
	}
	form, ok := e.Verify(f.verifier)
	if !ok || e.AgentID != f.agent || e.KeyID != f.key {
		return nil, errors.New("unknown key or wrong signature")
	}
	now := id.InstantOf(time.Now())
	draft := log.NewDraft(&f.identity, e, log.Attestation{
		Form: form, PublicKey: f.multikey, Signer: event.SignerAgent, Custody: event.CustodyServer,
		IngestKeyID: "ik_floor", Policy: f.decide(e, now), Disclosure: id.DiscloseRecord,
	})
	record := draft.Record.AppendTo(make([]byte, 0, draft.Record.Len()), now, 1)
	hash := event.RecordHash(record)
	return fmt.Appendf(nil, `{"event_id":"%s","sequence_num":1,"event_hash":"%s","chain_valid":true,"status":"created"}`,
		e.EventID, hex.EncodeToString(hash[:])), nil
}

func (f *floor) decide(e *event.Envelope, now id.Instant) event.Policy {
	in := policy.Input{
		Tool: e.Tool, Agent: e.AgentID, ActorType: e.ActorType, ActionKind: e.ActionKind, Payload: e.Payload, Now: now,
	}
	evaluation := f.policy.Evaluate(in)
	out := evaluation.Settle(nil)
	return event.Policy{
		Evaluated: true, Declared: e.Decision, Effective: out.Effective(e.Decision),
		PolicyID: out.PolicyID, PolicyVersion: out.PolicyVersion, PolicyDigest: out.PolicyDigest,
		RuleID: out.RuleID, Engine: out.Engine, InputDigest: policy.InputDigest(in), EvaluatedAt: now,
	}
}
