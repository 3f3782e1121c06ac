package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"regexp"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// playTrouble plays the faults of a normal day: a lost answer, a forged event,
// another organization's event, an unknown key.
func playTrouble(ctx context.Context, s *stage, w *worker, other foundedOrganization, sent [][]byte) error {
	s.BeginScene("What goes wrong: lost answers, forgeries, strangers")
	before, err := w.log.fetchHead(ctx)
	if err != nil {
		return err
	}
	r, err := w.client.Send(ctx, sent[4])
	if err != nil {
		return err
	}
	s.CountCheck(r.Status == client.Replayed, "the same refund sent again: %s", r.Status)

	forged := bytes.Replace(sent[4], []byte("84.5"), []byte("9084.5"), 1)
	forged = bytes.Replace(forged, []byte(`"day-05"`), []byte(`"day-99"`), 1)
	s.checkRefused(w.sendEnvelope(ctx, forged), http.StatusUnprocessableEntity, "amount and id changed after signing")

	stranger, err := newWorker("http://unused.example", other, client.Retry{})
	if err != nil {
		return err
	}
	foreign, err := stranger.signer.SignEvent(client.Event{ActionKind: "tool_call", ActorPrincipal: "stranger",
		Decision: id.Allow})
	if err != nil {
		return err
	}
	s.checkRefused(w.sendEnvelope(ctx, foreign), http.StatusForbidden, "another organization's event under this key")

	posing, err := client.NewSigner(client.Identity{Organization: w.org.OrganizationID, Agent: w.org.Agent.AgentID,
		Key: "key_unknown"}, make([]byte, 32))
	if err != nil {
		return err
	}
	unknown, err := posing.SignEvent(client.Event{ActionKind: "tool_call", ActorPrincipal: "nobody",
		Decision: id.Allow})
	if err != nil {
		return err
	}
	s.checkRefused(w.sendEnvelope(ctx, unknown), http.StatusUnprocessableEntity,
		"signed by a key that was never registered")
	after, err := w.log.fetchHead(ctx)
	if err != nil {
		return err
	}
	s.CountCheck(before == after, "the tree did not move: %s before and after", textcheck.Count(after.Size, "leaf", "leaves"))
	s.PrintConclusion("retries are safe, and nothing of a refused request is stored")
	return nil
}

func (w *worker) sendEnvelope(ctx context.Context, envelope []byte) error {
	_, err := w.client.Send(ctx, envelope)
	return err
}

func (s *stage) checkRefused(err error, status int, what string) {
	var answer *client.Error
	ok := errors.As(err, &answer) && answer.Status == status
	if !ok {
		s.CountCheck(false, "%s: %v", what, err)
		return
	}
	s.CountCheck(true, "%s: %d %q", what, answer.Status, answer.Message)
}

// playOutsider checks from outside, with the pinned key and nothing else.
func playOutsider(ctx context.Context, s *stage, running *server, acme foundedOrganization, morning tlog.Checkpoint,
	sent [][]byte) error {
	s.BeginScene("An outsider with no account checks, trusting only the pinned key")
	l, err := newPublicLog(running.mainURL(), acme)
	if err != nil {
		return err
	}
	head, evening, err := l.log.Head(ctx)
	if err != nil {
		return err
	}
	s.CountCheck(evening.Size > morning.Size, "signed head: %s, root %.16s…", textcheck.Count(evening.Size, "leaf", "leaves"),
		head.RootHash)
	_, err = l.log.Consistency(ctx, morning, evening)
	s.CountCheck(err == nil, "the morning's head (%s) is a prefix of the evening's",
		textcheck.Count(morning.Size, "leaf", "leaves"))
	s.PrintConclusion("nothing was rewritten in between")
	for _, name := range []id.Event{"day-05", "day-06"} {
		raw, err := l.client.FetchBundle(ctx, acme.Slug, name)
		if err != nil {
			return err
		}
		if err := s.checkBundle(raw, acme.LogKey, name); err != nil {
			return err
		}
	}
	s.PrintConclusion("offline: the leaf is under the signed root, the leaf before it is the one it names, " +
		"the agent's key signed the envelope")
	document, err := l.client.AgentDID(ctx, acme.Agent.AgentID)
	if err != nil {
		return err
	}
	s.CountCheck(len(document.VerificationMethod) > 0, "the agent's DID document: %.24s…", document.ID)
	return nil
}

// decided is the effective decision in a bundle's record, which is text in JSON.
var decided = regexp.MustCompile(`\\"effective\\":\\"(deny|allow_with_obligation)\\"`)

// checkBundle verifies a bundle offline, and that a changed one is found out.
func (s *stage) checkBundle(raw []byte, vkey string, name id.Event) error {
	key, err := tlog.ParseVerifierKey(vkey)
	if err != nil {
		return err
	}
	bundle, err := verify.ParseBundle(raw)
	if err != nil {
		return err
	}
	report := verify.Check(bundle, verify.Options{Key: &key})
	s.CountCheck(report.OK && report.SignatureOK != nil && *report.SignatureOK,
		"bundle of %s: inclusion, checkpoint, chain, record, signature, envelope", name)
	bent := decided.ReplaceAll(raw, []byte(`\"effective\":\"allow\"`))
	tampered, err := verify.ParseBundle(bent)
	if err != nil {
		return err
	}
	report = verify.Check(tampered, verify.Options{Key: &key})
	s.CountCheck(!report.OK && len(report.Errors) > 0, "the same with its decision changed is found out: %s",
		firstOrEmpty(report.Errors))
	return nil
}

func firstOrEmpty(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}
