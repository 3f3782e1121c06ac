package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/id"
)

// A limit counts a guarded action once: its results are distinguished from its intents, and an auditor can verify that
// with the bundles of both.
func TestGuardedActionsCountOnce(t *testing.T) {
	p := startProcess(t, t.TempDir())
	org := p.found(t.Context(), "red", map[string]any{"disclosure": "full"})
	r := newRefunder(t, p, org)
	rules := strings.Replace(limitPolicy, `"max":50`, `"max":3`, 1)
	if err := r.person.callConsole(t.Context(), "POST", "/policies", rawJSON(rules), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.person.callConsole(t.Context(), "POST", "/policies/caps/activate", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
	journal, err := guard.OpenJournal(t.TempDir(), guard.JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	actions, err := guard.New(guard.Config{Client: r.client, Signer: r.signer, Journal: journal, Principal: "ops@red.example"})
	if err != nil {
		t.Fatal(err)
	}
	var intent id.Event
	for i := range 4 {
		ran, err := actions.Run(t.Context(), guard.Action{Key: fmt.Sprint("k", i), Tool: "acme.pay"}, func(context.Context, guard.Permit) (any, error) { return 1, nil })
		var denied *client.DeniedError
		if (i < 3) != (err == nil) || i == 3 && !errors.As(err, &denied) {
			t.Errorf("action %d: got %v", i, err)
		}
		if i == 0 {
			intent = ran.EventID
		}
	}
	name := r.signer.Secret("aps/guard/event_id", []byte("result\nk0"))
	result := id.Event("evt_" + hex.EncodeToString(name[:16]))
	dir := t.TempDir()
	write := func(name string, of id.Event) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, r.bundle(t, of), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	of, by := write("result", result), write("intent", intent)
	for _, c := range []struct {
		args []string
		exit int
		want string
	}{
		{[]string{"--bundle", of, "--intent", by}, 0, "as its intent " + string(intent)},
		{[]string{"--bundle", of, "--intent", by, "--json"}, 0, `"intent": "` + string(intent)},
		{[]string{"--bundle", of}, 2, "pass the bundle of the intent with --intent"},
		{[]string{"--bundle", of, "--intent", of}, 1, "policy.intent: the record says"},
	} {
		got, exit := command(t, "agentledger", append([]string{"policy", "replay"}, c.args...)...)
		if exit != c.exit || !strings.Contains(got, c.want) {
			t.Errorf("replay %v: got %d, %s; want %d, %s", c.args, exit, got, c.exit, c.want)
		}
	}
	if out, exit := command(t, "aps", "verify", of, "--key", org.LogKey); exit != 0 {
		t.Errorf("verify: got %d, %s", exit, out)
	}
}
