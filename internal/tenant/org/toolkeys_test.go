package org_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// toolKey returns the verifier key of a tool with a fixed seed.
func toolKey(name string, seed byte) string {
	private, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{seed}, edkey.SeedSize))
	if err != nil {
		panic(err)
	}
	k, err := tlog.NewVerifierKey(name, private.Public())
	if err != nil {
		panic(err)
	}
	return k.String()
}

func (w *world) toolKeys() []string {
	w.t.Helper()
	keys, err := w.open().ToolKeys(w.t.Context(), red)
	if err != nil {
		w.t.Fatal(err)
	}
	texts := []string{}
	for _, k := range keys {
		texts = append(texts, k.Key)
	}
	return texts
}

// Each change is stated with all keys, and does not change the configuration. Keys that stay keep who registered them.
func TestToolKeys(t *testing.T) {
	w := newWorld(t)
	configured := w.State(t, red).ConfigVersion()
	pay, mail, rotated := toolKey("did:web:payments.example", 1), toolKey("mail", 2), toolKey("did:web:payments.example", 3)
	for _, c := range []struct {
		step string
		keys []string
	}{
		{"first", []string{pay}}, {"unchanged", []string{pay}}, {"second", []string{pay, mail}}, {"rotated", []string{rotated, mail}},
		{"other order", []string{mail, rotated}}, {"none", []string{}},
	} {
		if err := w.orgs.SetToolKeys(t.Context(), red, ann, c.keys); err != nil || !reflect.DeepEqual(w.toolKeys(), c.keys) {
			t.Errorf("%s: got %v %v, want %v", c.step, err, w.toolKeys(), c.keys)
		}
	}
	var got []string
	for _, s := range w.Audit(t, red) {
		got = append(got, fmt.Sprint(s.Kind, " ", s.Payload))
	}
	text := func(n int, added, keys, removed string) string {
		quoted := strings.NewReplacer("P", `"`+pay+`"`, "M", `"`+mail+`"`, "R", `"`+rotated+`"`)
		return fmt.Sprintf(`ledger_tool_keys_changed {"added":[%s],"keys":[%s],"number":%d,"removed":[%s]}`, quoted.Replace(added), quoted.Replace(keys), n, quoted.Replace(removed))
	}
	want := []string{text(1, "P", "P", ""), text(2, "M", "P,M", ""), text(3, "R", "R,M", "P"), text(4, "", "M,R", ""), text(5, "", "", "M,R")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := w.State(t, red).ConfigVersion(); n != configured || len(w.Audit(t, blue)) != 0 {
		t.Errorf("configuration %d, before %d; the other organization has %d statements", n, configured, len(w.Audit(t, blue)))
	}
	if keys, err := w.orgs.InheritedToolKeys(t.Context(), w.State(t, red)); err != nil || len(keys) != 0 {
		t.Errorf("the first log inherited %v %v", keys, err)
	}
}

func TestToolKeyBounds(t *testing.T) {
	w := newWorld(t)
	many := make([]string, org.MaxToolKeys)
	for i := range many {
		many[i] = toolKey(strings.Repeat("n", 126)+fmt.Sprintf("%02d", i), 1)
	}
	if err := w.orgs.SetToolKeys(t.Context(), red, ann, many); err != nil || len(w.toolKeys()) != 64 {
		t.Fatalf("got %v, %d keys", err, len(w.toolKeys()))
	}
	pay := toolKey("did:web:payments.example", 1)
	for _, c := range []struct {
		name string
		keys []string
		want string
	}{
		{"too many", append(many, pay), "keys must be at most 64"},
		{"no key", []string{pay, "did:web:payments.example"}, "keys[1] must be a C2SP verifier key such as did:web:payments.example+0a1b2c3d+AQ…"},
		{"another hash", []string{strings.Replace(pay, "+", "+0", 1)}, "keys[0] must be a C2SP verifier key such as did:web:payments.example+0a1b2c3d+AQ…"},
		{"long name", []string{toolKey(strings.Repeat("n", 129), 1)}, "keys[0] must have a name of at most 128 printable characters"},
		{"reversed name", []string{toolKey("did:web:\u202eexample", 1)}, "keys[0] must have a name of at most 128 printable characters"},
		{"twice", []string{pay, many[0], pay}, "keys[2] repeats an earlier one"},
	} {
		err := w.orgs.SetToolKeys(t.Context(), red, ann, c.keys)
		if !fault.Is(err, fault.Invalid) || fault.Of(err).Message != c.want {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
	if got := len(w.Audit(t, red)); got != 1 {
		t.Errorf("got %d statements, want 1", got)
	}
}

// A successor log begins with the keys of its predecessor, and keeps them as such when they change.
func TestToolKeysOfPredecessor(t *testing.T) {
	w := newWorld(t)
	pay, mail := toolKey("did:web:payments.example", 1), toolKey("mail", 2)
	copied := fmt.Sprintf(`{"keys":[{"key":%q,"registered_by":"acc_ann","registered_at":"2026-01-31T12:00:00.000Z"}],"log":"log.example/o/before","changes":1}`, pay)
	if err := w.Engine.Write(t.Context(), red, []storage.Change{{Kind: "tool_keys", Value: []byte(copied), If: storage.AnyVersion}}); err != nil {
		t.Fatal(err)
	}
	inherited := func(want ...string) {
		t.Helper()
		got, err := w.orgs.InheritedToolKeys(t.Context(), w.State(t, red))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %v %v, want %v", got, err, want)
		}
	}
	inherited(pay)
	for _, keys := range [][]string{{mail}, {}} {
		if err := w.orgs.SetToolKeys(t.Context(), red, ann, keys); err != nil {
			t.Fatal(err)
		}
		inherited(pay)
	}
	if got, err := w.orgs.InheritedToolKeys(t.Context(), w.State(t, blue)); err != nil || len(got) != 0 {
		t.Errorf("the other organization: %v %v", got, err)
	}
}
