package web_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/chromium"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/tlog"
)

// rotate gives red's log another key. The previous key no longer signs.
func (w *world) rotate(t *testing.T) tlog.VerifierKey {
	t.Helper()
	orgs, err := org.New(org.Options{Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Clock: w.Clock})
	if err != nil {
		t.Fatal(err)
	}
	key, err := orgs.RotateLogKey(t.Context(), ledgertest.Red, sysevent.Operator)
	if err == nil {
		_, err = orgs.RetireLogKey(t.Context(), ledgertest.Red, sysevent.Operator)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key.Verifier
}

// remembered returns what the browser stores about red's log.
func remembered(t *testing.T, b *chromium.Browser) (stored struct {
	Keys []struct {
		VKey   string    `json:"vkey"`
		From   id.Index  `json:"from_size"`
		To     *id.Index `json:"to_size"`
		Source string    `json:"source"`
	} `json:"keys"`
	Policy, Checkpoint string
}) {
	t.Helper()
	var text string
	err := b.Run(`return localStorage.getItem("agentledger:log:" + args[0])`, &text, ledgertest.Origin(ledgertest.Red))
	if err == nil {
		err = json.Unmarshal([]byte(text), &stored)
	}
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// A browser accepts a key that the log states under a key that the browser knows, over several rotations, and shows the
// key that signed.
func TestRotatedKeyInChromium(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	server := httptest.NewServer(w.handler)
	defer server.Close()
	b, home, page := chromium.New(t), server.URL+"/log/red", server.URL+redEvent
	first := w.State(t, ledgertest.Red).VerifierKey()
	proved := "ok: Proved, as far as the checks below state, under the key "
	wantMarks(t, "first visit", visit(t, b, home), map[string]string{"outcome": proved + first.Hash().String() + " that this service shows"})
	wantMarks(t, "second visit", visit(t, b, home), map[string]string{"outcome": proved + first.Hash().String() + " that this browser remembers"})
	second := w.rotate(t)
	third := w.rotate(t)
	w.append(ledgertest.Red, id.DiscloseFull, "two", nil)
	wantMarks(t, "two rotations later", visit(t, b, page+"two"), map[string]string{
		"outcome": fmt.Sprintf("%s%s that an entry of the log states; the key %s signed", proved, third.Hash(), second.Hash()), "consistency": "ok: extends"})
	wantMarks(t, "the head", visit(t, b, home), map[string]string{"checkpoint": "ok: proved", "outcome": proved + third.Hash().String()})
	kept := remembered(t, b).Keys
	if len(kept) != 3 || kept[0].VKey != first.String() || kept[1].VKey != second.String() || kept[2].VKey != third.String() ||
		kept[0].To == nil || kept[1].To == nil || kept[2].To != nil || kept[1].From != 2 || kept[2].From != 4 {
		t.Errorf("got keys %+v", kept)
	}
}

// A browser that visited an earlier version of the page keeps its key.
func TestOldMemoryInChromium(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	service := &tamper{next: w.handler}
	server := httptest.NewServer(service)
	defer server.Close()
	b, home := chromium.New(t), server.URL+"/log/red"
	state := w.State(t, ledgertest.Red)
	b.Open(home)
	old, _ := json.Marshal(map[string]any{"key": state.VerifierKey().String(), "checkpoint": string(state.Checkpoint())})
	if err := b.Run(`localStorage.setItem("agentledger:log:" + args[0], args[1])`, nil, ledgertest.Origin(ledgertest.Red), string(old)); err != nil {
		t.Fatal(err)
	}
	w.append(ledgertest.Red, id.DiscloseFull, "two", nil)
	wantMarks(t, "next visit", visit(t, b, home), map[string]string{"consistency": "ok: extends", "outcome": "ok: Proved"})
	if kept := remembered(t, b); len(kept.Keys) != 1 || kept.Policy != "quorum none\n" {
		t.Errorf("got %+v", kept)
	}
	if err := b.Run(`localStorage.setItem("agentledger:log:" + args[0], args[1])`, nil, ledgertest.Origin(ledgertest.Red), string(old)); err != nil {
		t.Fatal(err)
	}
	service.next = newWorld(t).handler
	wantMarks(t, "another key", visit(t, b, home), map[string]string{"outcome": "fail: Not proved: "})
}

// A head smaller than the tree that was seen is wrong. A bundle may use an older checkpoint of the same history.
func TestRollbackInChromium(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"one", "two"} {
		w.append(ledgertest.Red, id.DiscloseFull, name, nil)
	}
	service := &tamper{next: w.handler}
	server := httptest.NewServer(service)
	defer server.Close()
	b, home, page := chromium.New(t), server.URL+"/log/red", server.URL+redEvent
	head := w.ask("GET", "/v1/public/orgs/red/transparency/head").Body.String()
	bundle := w.ask("GET", redEvent+"one?format=json").Body.String()
	w.append(ledgertest.Red, id.DiscloseFull, "three", nil)
	visit(t, b, home)
	asked := 0
	service.change = func(path string, body []byte) []byte {
		switch {
		case strings.HasSuffix(path, "/head"):
			asked++
			return []byte(head)
		case strings.HasSuffix(path, "/verify/one"):
			return []byte(bundle)
		}
		return body
	}
	wantMarks(t, "older head", visit(t, b, home), map[string]string{"checkpoint": "ok: proved",
		"consistency": "fail: rollback: the service shows a tree of 2 entries, and this browser has seen one of 3 that the log's key signed",
		"outcome":     "fail: Not proved: rollback: "})
	if asked != 3 {
		t.Errorf("the head was read %d times, want 3", asked)
	}
	wantMarks(t, "older bundle", visit(t, b, page+"one"), map[string]string{
		"consistency": "ok: in the history of the larger tree that this browser saw", "outcome": "ok: Proved"})
	asked, service.change = 0, func(path string, body []byte) []byte {
		if strings.HasSuffix(path, "/head") && asked == 0 {
			asked++
			return []byte(head)
		}
		return body
	}
	wantMarks(t, "a moment apart", visit(t, b, home), map[string]string{"consistency": "ok: extends", "outcome": "ok: Proved"})
}

// The witness policy of the first visit applies until the reader accepts another one.
func TestRememberedPolicyInChromium(t *testing.T) {
	w := newWorld(t)
	w.append(ledgertest.Red, id.DiscloseFull, "one", nil)
	service := &tamper{next: w.handler}
	server := httptest.NewServer(service)
	defer server.Close()
	b, home := chromium.New(t), server.URL+"/log/red"
	witness, err := tlog.NewWitnessSigner("witness.example", edkey.NewPrivate())
	if err != nil {
		t.Fatal(err)
	}
	witnessed := "witness w " + witness.Key().String() + "\nquorum w\n"
	service.change = replaceText("/policy", "quorum none\n", witnessed)
	few := map[string]string{"witnesses": "fail: too few witnesses", "outcome": "fail: Not proved: too few witnesses"}
	notice := func() (shown bool) {
		if err := b.Run(`return !document.getElementById("otherpolicy").hidden`, &shown); err != nil {
			t.Fatal(err)
		}
		return shown
	}
	wantMarks(t, "first visit without a quorum", visit(t, b, home), few)
	service.change = nil
	wantMarks(t, "first proof", visit(t, b, home), map[string]string{"witnesses": "none: ", "outcome": "ok: Proved"})
	if notice() {
		t.Error("the page speaks of another policy, and there is one")
	}
	service.change = replaceText("/policy", "quorum none\n", witnessed)
	wantMarks(t, "another policy", visit(t, b, home), map[string]string{"witnesses": "none: ", "outcome": "ok: Proved"})
	if !notice() {
		t.Error("the page does not say that the service shows another policy")
	}
	var marks map[string]string
	if err := b.Run(`
		document.getElementById("usepolicy").click();
		while (document.getElementById("outcome").dataset.state === "ok") await new Promise((next) => setTimeout(next, 5));
		while (document.getElementById("outcome").dataset.state === "waiting") await new Promise((next) => setTimeout(next, 5));`+waitForMarks, &marks); err != nil {
		t.Fatal(err)
	}
	wantMarks(t, "accepted policy", marks, few)
	service.change = nil // the service removes its witnesses
	wantMarks(t, "no witnesses", visit(t, b, home), few)
}
