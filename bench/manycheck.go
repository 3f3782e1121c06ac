package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
)

// signedEach is how many signed events an organization has that fsck reads.
const signedEach = 2

// manyChecks measures fsck of an embedded store with many organizations that have a few signed events each. So the
// price of an organization shows, and not that of its events.
func (s *suite) manyChecks(ctx context.Context) error {
	dir, remove, err := s.folder()
	if err != nil {
		return err
	}
	defer remove()
	l, err := openLedgers(ctx, dir, s.key.key, 0)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("checkmany/organizations=%d/events=%d", s.Many, signedEach)
	if err := errors.Join(s.fillSigned(ctx, l, name), l.Close()); err != nil {
		return err
	}
	if err := s.checkStore(ctx, dir, name+"/fsck", signedEach*s.Many); err != nil {
		return err
	}
	bytes, err := s.rested(ctx, dir)
	if err != nil {
		return err
	}
	s.emit(name+"/size", s.Many, value{float64(bytes) / float64(s.Many), "B/org"})
	return nil
}

// fillSigned founds the organizations and adds the events of each in one append. All have one key, whose signatures
// take as long as others.
func (s *suite) fillSigned(ctx context.Context, l *ledgers, name string) error {
	began := time.Now()
	if err := l.found(ctx, s.Many); err != nil {
		return err
	}
	s.emit(name+"/found", s.Many, value{float64(s.Many) / time.Since(began).Seconds(), "organizations/s"})
	var seed [32]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return err
	}
	r, err := closedLoop(256, loopLimit{Time: 4 * time.Hour, Count: s.Many}, func(int) (step, error) {
		return func(n int) error { return l.addSigned(ctx, id.Tenant(1+n), seed[:]) }, nil
	})
	if err != nil {
		return err
	}
	s.emitLoad(name+"/append", r, signedEach, "events/s")
	return nil
}

// addSigned appends the signed events of an organization.
func (l *ledgers) addSigned(ctx context.Context, t id.Tenant, seed []byte) error {
	state, err := l.State(ctx, t)
	if err != nil {
		return err
	}
	drafts := make([]log.Draft, signedEach)
	for i := range drafts {
		if drafts[i], err = signedDraft(state.Identity(), fmt.Sprint("e", i), seed); err != nil {
			return err
		}
	}
	_, err = l.Append(ctx, t, func(context.Context, *log.State) (log.Submission, error) {
		return log.Submission{Drafts: drafts}, nil
	})
	return err
}

// signedDraft is an event as an agent signs it, so that fsck finds nothing wrong in it.
func signedDraft(identity *log.Identity, name string, seed []byte) (log.Draft, error) {
	who := client.Identity{Organization: identity.Organization, Agent: "agt_bench", Key: "key_bench"}
	signer, err := client.NewSigner(who, seed)
	if err != nil {
		return log.Draft{}, err
	}
	body, err := signer.SignEvent(client.Event{
		EventID: id.Event(name), TraceID: "trc_bench", ActorPrincipal: "bench", ActionKind: "tool_call",
		Tool: "acme.orders.read", Decision: id.Allow, Payload: map[string]string{"order": name},
	})
	if err != nil {
		return log.Draft{}, err
	}
	e, err := event.Parse(body, event.Options{Organization: identity.Organization})
	if err != nil {
		return log.Draft{}, err
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		return log.Draft{}, err
	}
	return log.NewDraft(identity, e, log.Attestation{
		Form: event.FormDigest, PublicKey: did.Multikey(private.Public().Bytes()), Signer: event.SignerAgent,
		Custody: event.CustodyAgent, IngestKeyID: "ik_bench", Disclosure: id.DiscloseRecord,
		Policy: event.Policy{Declared: id.Allow, Effective: id.Allow},
	}), nil
}
