package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
)

// copied returns a copy of a data directory, without its anchors.
func copied(t *testing.T, data string) string {
	t.Helper()
	to := copyData(t, data)
	err := os.Chmod(filepath.Join(to, "platform.secret"), 0o600)
	if err = errors.Join(err, os.RemoveAll(filepath.Join(to, "anchors"))); err != nil {
		t.Fatal(err)
	}
	return to
}

// try sends an event and returns why it was rejected.
func try(t *testing.T, s *server, org foundedOrganization) error {
	t.Helper()
	w, err := newWorker(s.mainURL(), org, client.Retry{Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	body, err := w.signer.SignEvent(client.Event{TraceID: "t", ActorPrincipal: "p", ActionKind: "tool_call", Decision: id.Allow})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.client.Send(t.Context(), body)
	return err
}

// Data directories without anchors. If nothing was lost, both organizations continue once the witness has confirmed
// that it knows nothing newer, and not before. On an older copy, the organization of which the witness knows more is
// frozen, and the other continues.
func TestWitnessAsAnchor(t *testing.T) {
	x := witnesstest.New(t, "x.example")
	witnessed, data := witnessedBy(t, x.PolicyLine("x")+"quorum x\n"), t.TempDir()
	set := func(c *config.Serve) { witnessed(c); c.WitnessAnchor = "quorum" }
	s, stop := runOn(t, data, set)
	red, blue := foundHere(t, s, "red"), foundHere(t, s, "blue")
	for _, w := range []*worker{red, blue} {
		know(t, x, w.org.LogKey)
		sendOne(t, w)
		until(t, "cosigned", func() bool { return x.LatestCheckpoint(w.org.Origin).Size == 1 })
	}
	stop()
	older := copied(t, data)
	s, stop = runOn(t, data, set)
	if err := try(t, s, red.org); err != nil {
		t.Fatal(err)
	}
	until(t, "cosigned", func() bool { return x.LatestCheckpoint(red.org.Origin).Size == 2 })
	stop()

	blues, reds := x.LatestCheckpoint(blue.org.Origin), x.LatestCheckpoint(red.org.Origin)

	t.Run("nothing is lost but the anchors", func(t *testing.T) {
		held := make(chan struct{})
		x.AnswerWith(func(http.ResponseWriter, *http.Request) { <-held; panic(http.ErrAbortHandler) })
		s, stop := runOn(t, copied(t, data), set) // it starts while the witness does not answer
		defer stop()
		for _, w := range []*worker{red, blue} {
			if err := try(t, s, w.org); err == nil || !strings.Contains(err.Error(), "read_only") {
				t.Errorf("%s, unconfirmed: got %v", w.org.Slug, err)
			}
		}
		x.AnswerWith(nil)
		close(held)
		for _, w := range []*worker{red, blue} {
			until(t, "it goes on", func() bool { return try(t, s, w.org) == nil })
		}
	})
	t.Run("an older copy", func(t *testing.T) {
		x.SetLatest(blues) // before the part above
		x.SetLatest(reds)
		s, stop := runOn(t, older, set)
		defer stop()
		until(t, "red is frozen", func() bool {
			return strings.Contains(getText(t, s.mainURL()+"/v1/public/orgs/red/transparency/head"), `"fault":"frozen"`)
		})
		until(t, "blue goes on", func() bool { return try(t, s, blue.org) == nil })
		if err := try(t, s, red.org); err == nil || !strings.Contains(err.Error(), "frozen") {
			t.Errorf("red: got %v", err)
		}
	})
}
