package verify

import (
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

func TestCheckpointRules(t *testing.T) {
	l := newTestLog(t, 1, 3)
	c := l.checkpoint(3)
	body, name := checkpointBody(c), string(l.origin)
	sign := func(body string) string { return signNote(name, l.key, body) }
	for _, row := range []struct {
		name, note string
		want       string
	}{
		{"nothing", sign(body), "+++"},
		{"extension line", sign(body + "extension\n"), "---"},
		{"timestamp line", sign(body + "timestamp 1795176000\n"), "---"},
		{"two lines", sign(body[:strings.LastIndex(body[:len(body)-1], "\n")+1]), "---"},
		{"another origin", sign(checkpointBody(tlog.Checkpoint{Origin: l.origin + "/2", Size: c.Size, Root: c.Root})), "+-+"},
		{"origin with another host", sign("x" + body), "+-+"},
		{"size with leading zero", sign(strings.Replace(body, "\n3\n", "\n03\n", 1)), "---"},
		{"size in hex", sign(strings.Replace(body, "\n3\n", "\n0x3\n", 1)), "---"},
		{"size negative", sign(strings.Replace(body, "\n3\n", "\n-3\n", 1)), "---"},
		{"size beyond 64 bits", sign(strings.Replace(body, "\n3\n", "\n18446744073709551619\n", 1)), "---"},
		{"size that is not the proof's", sign(strings.Replace(body, "\n3\n", "\n4\n", 1)), "-+-"},
		{"another root", sign(checkpointBody(tlog.Checkpoint{Origin: l.origin, Size: 3, Root: id.Hash{1}})), "-+-"},
		{"line ends of two bytes", sign(strings.ReplaceAll(body, "\n", "\r\n")), "---"},
		{"trailing line feed", sign(body) + "\n", "---"},
		{"cut", strings.TrimSuffix(sign(body), "\n"), "---"},
		{"no signature", body + "\n", "---"},
		{"key of another name signs", signNote("log.example/o/other", l.key, body), "+-+"},
		{"another key of the name signs", signNote(name, testKey(t, 50), body), "+-+"},
		{"signature of another text", sign("x" + body)[1:], "+-+"},
		{"signature line twice", sign(body) + signatureLine(name, l.key, body), "---"},
		{"witness after the log", sign(body) + signatureLine("witness.example", testKey(t, 51), body), "+++"},
		{"witness before the log", signNote("witness.example", testKey(t, 51), body) + signatureLine(name, l.key, body), "+++"},
		{"empty", "", "---"},
	} {
		b := l.bundle(1, 3, id.DiscloseCommitment)
		b.Checkpoint = row.note
		r := Check(b, l.options())
		if got := verdicts(r)[:3]; got != row.want {
			t.Errorf("%s: got %s, %v, want %s", row.name, got, r.Errors, row.want)
		}
		if got, want := slices.Contains(r.Unchecked, "checkpoint: witness.example"), strings.HasPrefix(row.name, "witness"); got != want {
			t.Errorf("%s: got %q in unchecked", row.name, r.Unchecked)
		}
	}
}

func TestLogKeyRules(t *testing.T) {
	l := newTestLog(t, 1, 3)
	pinned, name := l.verifier(l.key), string(l.origin)
	attacker := testKey(t, 50)
	old := testKey(t, 51)
	oldKey, attackerKey := l.verifier(old), l.verifier(attacker)
	identity := edwardsIdentity()
	foreign := newTestLog(t, 2, 0)
	foreignKey := foreign.verifier(foreign.key)

	honest := l.bundle(1, 3, id.DiscloseCommitment)
	signedBy := func(b Bundle, signer, named string) *Bundle {
		b.Checkpoint, b.LogKey = signer, named
		return &b
	}
	c := l.checkpoint(3)
	byAttacker, byOld := l.note(attacker, c), l.note(old, c)
	upper := strings.Replace(honest.LogKey, pinned.Hash().String(), strings.ToUpper(pinned.Hash().String()), 1)
	for _, row := range []struct {
		name    string
		bundle  *Bundle
		key     *tlog.VerifierKey
		retired []LogKey
		source  KeySource
		want    bool
	}{
		{"the key given", honest, &pinned, nil, KeyFromArgument, true},
		{"no key given", honest, nil, nil, KeyFromBundle, true},
		{"an attacker's log, key given", signedBy(*honest, byAttacker, attackerKey.String()), &pinned, nil, KeyFromArgument, false},
		{"an attacker's log, no key given", signedBy(*honest, byAttacker, attackerKey.String()), nil, nil, KeyFromBundle, true},
		{"an attacker's signature under the key's name", signedBy(*honest, byAttacker, pinned.String()), &pinned, nil, KeyFromArgument, false},
		{"names another key, signed by the key given", signedBy(*honest, honest.Checkpoint, attackerKey.String()), &pinned, nil, KeyFromArgument, false},
		{"names no key, signed by the key given", signedBy(*honest, honest.Checkpoint, ""), &pinned, nil, KeyFromArgument, false},
		{"key hash in upper case", signedBy(*honest, honest.Checkpoint, upper), &pinned, nil, KeyFromArgument, false},
		{"key hash in upper case, no key given", signedBy(*honest, honest.Checkpoint, upper), nil, nil, KeyFromBundle, upper == honest.LogKey},
		{"retired key", signedBy(*honest, byOld, oldKey.String()), &pinned, []LogKey{Always(attackerKey), Always(oldKey)}, KeyFromArgument, true},
		{"retired key of these sizes", signedBy(*honest, byOld, oldKey.String()), &pinned, []LogKey{{oldKey, c.Size, c.Size + 1}}, KeyFromArgument, true},
		{"retired key of smaller trees", signedBy(*honest, byOld, oldKey.String()), &pinned, []LogKey{{oldKey, 0, c.Size}}, KeyFromArgument, false},
		{"retired key of larger trees", signedBy(*honest, byOld, oldKey.String()), &pinned, []LogKey{{oldKey, c.Size + 1, c.Size + 9}}, KeyFromArgument, false},
		{"retired key of another origin", signedBy(*honest, signNote(foreignKey.Name(), foreign.key, checkpointBody(c)), foreignKey.String()), &pinned, []LogKey{Always(foreignKey)}, KeyFromArgument, false},
		{"retired key not given", signedBy(*honest, byOld, oldKey.String()), &pinned, nil, KeyFromArgument, false},
		{"retired key named, signed by the key given", signedBy(*honest, honest.Checkpoint, oldKey.String()), &pinned, []LogKey{Always(oldKey)}, KeyFromArgument, false},
		{"key given named, signed by the retired one", signedBy(*honest, byOld, pinned.String()), &pinned, []LogKey{Always(oldKey)}, KeyFromArgument, false},
		{"only retired keys given, which don't count", signedBy(*honest, byOld, oldKey.String()), nil, []LogKey{Always(attackerKey)}, KeyFromBundle, true},
		{"key of another origin given", honest, &foreignKey, nil, KeyFromArgument, false},
		{"key of another origin named", signedBy(*honest, signNote(foreignKey.Name(), foreign.key, checkpointBody(c)), foreignKey.String()), nil, nil, KeyFromBundle, false},
		{"key of another origin named and given", signedBy(*honest, signNote(foreignKey.Name(), foreign.key, checkpointBody(c)), foreignKey.String()), &foreignKey, nil, KeyFromArgument, false},
		{"key of small order", signedBy(*honest, honest.Checkpoint, vkey(name, identity[:])), nil, nil, KeyFromBundle, false},
		{"no key at all", signedBy(*honest, honest.Checkpoint, ""), nil, nil, KeyFromBundle, false},
	} {
		r := Check(row.bundle, Options{Key: row.key, Retired: row.retired})
		if r.CheckpointOK != row.want || r.LogKeySource != row.source || !r.InclusionOK || !r.ChainOK || r.OK != row.want {
			t.Errorf("%s: got %s, %s, %v, want %v, %s", row.name, verdicts(r), r.LogKeySource, r.Errors, row.want, row.source)
		}
		if got := slices.Contains(r.Unchecked, "log_key"); got != (row.source == KeyFromBundle) {
			t.Errorf("%s: got %q in unchecked", row.name, r.Unchecked)
		}
	}
}
