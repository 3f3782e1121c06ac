package verify

import (
	"reflect"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// testWitness returns a witness that cosigns everything.
func testWitness(t *testing.T, name string, fill byte) tlog.WitnessSigner {
	t.Helper()
	w, err := tlog.NewWitnessSigner(name, testKey(t, fill))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The report lists the valid cosignatures by witnesses that the caller knows. Every other
// line of the checkpoint is listed as unchecked. No cosignature changes a verdict.
func TestCosignatures(t *testing.T) {
	l := newTestLog(t, 1, 3)
	a, b, impostor := testWitness(t, "a.example", 60), testWitness(t, "b.example", 61), testWitness(t, "a.example", 62)
	const at = id.Instant(1_700_000_000_000)
	other := checkpointBody(l.checkpoint(2))
	for _, row := range []struct {
		name      string
		lines     func(text string) []tlog.Signature
		known     []tlog.WitnessKey
		want      []Cosignature
		unchecked []string
	}{
		{"none", func(string) []tlog.Signature { return nil }, []tlog.WitnessKey{a.Key()}, []Cosignature{}, nil},
		{"both, in the order of the caller", func(text string) []tlog.Signature {
			return []tlog.Signature{a.Cosign(text, at), b.Cosign(text, at+1000)}
		}, []tlog.WitnessKey{b.Key(), a.Key()}, []Cosignature{{Name: "b.example", Time: at + 1000}, {Name: "a.example", Time: at}}, nil},
		{"an unknown witness", func(text string) []tlog.Signature {
			return []tlog.Signature{a.Cosign(text, at), b.Cosign(text, at)}
		}, []tlog.WitnessKey{a.Key()}, []Cosignature{{Name: "a.example", Time: at}}, []string{"checkpoint: b.example"}},
		{"no witness is known", func(text string) []tlog.Signature { return []tlog.Signature{a.Cosign(text, at)} },
			nil, []Cosignature{}, []string{"checkpoint: a.example"}},
		{"of another checkpoint", func(string) []tlog.Signature { return []tlog.Signature{a.Cosign(other, at)} },
			[]tlog.WitnessKey{a.Key()}, []Cosignature{}, []string{"checkpoint: a.example"}},
		{"another key of the name", func(text string) []tlog.Signature { return []tlog.Signature{impostor.Cosign(text, at)} },
			[]tlog.WitnessKey{a.Key()}, []Cosignature{}, []string{"checkpoint: a.example"}},
		{"both keys of the name", func(text string) []tlog.Signature {
			return []tlog.Signature{impostor.Cosign(text, at), a.Cosign(text, at)}
		}, []tlog.WitnessKey{a.Key()}, []Cosignature{{Name: "a.example", Time: at}}, []string{"checkpoint: a.example"}},
	} {
		bundle := l.bundle(1, 3, id.DiscloseRecord)
		n, err := tlog.ParseNote([]byte(bundle.Checkpoint))
		if err != nil {
			t.Fatal(err)
		}
		if n, err = n.Add(row.lines(n.Text)...); err != nil {
			t.Fatal(err)
		}
		bundle.Checkpoint = string(n.Bytes())
		o := l.options()
		o.Witnesses = row.known
		r := Check(bundle, o)
		if !r.OK || !reflect.DeepEqual(r.Cosignatures, row.want) {
			t.Errorf("%s: got %v, %v, want %v", row.name, r.Cosignatures, r.Errors, row.want)
		}
		got := slices.DeleteFunc(slices.Clone(r.Unchecked), func(s string) bool { return len(s) < 11 || s[:11] != "checkpoint:" })
		if !slices.Equal(got, row.unchecked) {
			t.Errorf("%s: got %q unchecked, want %q", row.name, got, row.unchecked)
		}
	}
}
