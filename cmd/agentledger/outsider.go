package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// trouble is what goes wrong on a normal day: a lost answer, a forged event,
// another organization's event, a key that nobody knows.
func trouble(ctx context.Context, s *stage, w *worker, other founded, sent [][]byte) error {
	s.scene("What goes wrong: lost answers, forgeries, strangers")
	before, err := w.log.head(ctx)
	if err != nil {
		return err
	}
	r, err := w.client.Send(ctx, sent[4])
	if err != nil {
		return err
	}
	s.check(r.Status == client.Replayed, "the same refund sent again: %s", r.Status)

	forged := bytes.Replace(sent[4], []byte("84.5"), []byte("9084.5"), 1)
	forged = bytes.Replace(forged, []byte(`"day-05"`), []byte(`"day-99"`), 1)
	s.refused(w.send(ctx, forged), http.StatusUnprocessableEntity, "amount and id changed after signing")

	stranger, err := newWorker("http://unused.example", other, client.Retry{})
	if err != nil {
		return err
	}
	foreign, err := stranger.signer.SignEvent(client.Event{ActionKind: "tool_call", ActorPrincipal: "stranger", Decision: id.Allow})
	if err != nil {
		return err
	}
	s.refused(w.send(ctx, foreign), http.StatusForbidden, "another organization's event under this key")

	posing, err := client.NewSigner(client.Identity{Organization: w.org.OrganizationID, Agent: w.org.Agent.AgentID, Key: "key_unknown"}, make([]byte, 32))
	if err != nil {
		return err
	}
	unknown, err := posing.SignEvent(client.Event{ActionKind: "tool_call", ActorPrincipal: "nobody", Decision: id.Allow})
	if err != nil {
		return err
	}
	s.refused(w.send(ctx, unknown), http.StatusUnprocessableEntity, "signed by a key that was never registered")
	after, err := w.log.head(ctx)
	if err != nil {
		return err
	}
	s.check(before == after, "the tree did not move: %d leaves before and after", after.Size)
	s.proves("retries are safe, and nothing of a refused request is stored")
	return nil
}

func (w *worker) send(ctx context.Context, envelope []byte) error {
	_, err := w.client.Send(ctx, envelope)
	return err
}

func (s *stage) refused(err error, status int, what string) {
	var answer *client.Error
	ok := errors.As(err, &answer) && answer.Status == status
	if !ok {
		s.check(false, "%s: %v", what, err)
		return
	}
	s.check(true, "%s: %d %q", what, answer.Status, answer.Message)
}

// outsider checks from outside, with the pinned key and nothing else.
func outsider(ctx context.Context, s *stage, running *server, acme founded, morning tlog.Checkpoint, sent [][]byte) error {
	s.scene("An outsider with no account checks, trusting only the pinned key")
	l, err := newPublicLog(running.mainURL(), acme)
	if err != nil {
		return err
	}
	head, evening, err := l.log.Head(ctx)
	if err != nil {
		return err
	}
	s.check(evening.Size > morning.Size, "signed head: %d leaves, root %.16s…", evening.Size, head.RootHash)
	_, err = l.log.Consistency(ctx, morning, evening)
	s.check(err == nil, "the morning's head (%d leaves) is a prefix of the evening's", morning.Size)
	s.proves("nothing was rewritten in between")
	for _, name := range []id.Event{"day-05", "day-06"} {
		raw, err := l.client.FetchBundle(ctx, acme.Slug, name)
		if err != nil {
			return err
		}
		if err := s.checkBundle(raw, acme.LogKey, name); err != nil {
			return err
		}
	}
	s.proves("offline: the leaf is under the signed root, the leaf before it is the one it names, the agent's key signed the envelope")
	document, err := l.client.AgentDID(ctx, acme.Agent.AgentID)
	if err != nil {
		return err
	}
	s.check(len(document.VerificationMethod) > 0, "the agent's DID document: %.24s…", document.ID)
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
	s.check(report.OK && report.SignatureOK != nil && *report.SignatureOK, "bundle of %s: inclusion, checkpoint, chain, record, signature, envelope", name)
	bent := decided.ReplaceAll(raw, []byte(`\"effective\":\"allow\"`))
	tampered, err := verify.ParseBundle(bent)
	if err != nil {
		return err
	}
	report = verify.Check(tampered, verify.Options{Key: &key})
	s.check(!report.OK && len(report.Errors) > 0, "the same with its decision changed is found out: %s", first(report.Errors))
	return nil
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// invite says what to try while the demo goes on serving.
func (s *stage) invite(running *server) {
	public := running.mainURL() + "/v1/public"
	fmt.Fprintf(s.out, "\n%d checks passed, %d failed. Still serving; try:\n\n", s.passed, s.failed)
	for _, path := range []string{"/orgs/acme/transparency/head", "/orgs/acme/transparency/checkpoint", "/orgs/acme/verify/day-05?verify=1", "/orgs/acme/transparency/consistency?from=1"} {
		fmt.Fprintf(s.out, "   curl '%s%s'\n", public, path)
	}
	fmt.Fprintf(s.out, "\nStop with Ctrl-C.\n")
}
