package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// private is a fixed key.
func private(t testing.TB, fill byte) edkey.Private {
	t.Helper()
	key, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{fill}, edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// renamed is another key under the name of vkey.
func renamed(t testing.TB, vkey string, fill byte) string {
	t.Helper()
	name, _, _ := strings.Cut(vkey, "+")
	key, err := tlog.NewVerifierKey(name, private(t, fill).Public())
	if err != nil {
		t.Fatal(err)
	}
	return key.String()
}

// written is a file with that content.
func written(t testing.TB, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// savedKeys is a response of transparency/keys in a file.
func savedKeys(t testing.TB, vkeys ...string) string {
	t.Helper()
	var lines []string
	for _, k := range vkeys {
		lines = append(lines, fmt.Sprintf(`{"vkey":"%s","use":"log","from_size":0,"to_size":null}`, k))
	}
	return written(t, `{"keys":[`+strings.Join(lines, ",")+`]}`)
}

// cosignedAt is when the witnesses of these tests sign.
const cosignedAt = id.Instant(1_795_204_800_000)

// cosigned returns a bundle file with cosignatures of witnesses with keys from fills, and its tlog-proof.
func cosigned(t testing.TB, file string, fills ...byte) (bundle, proof string) {
	t.Helper()
	b, err := verify.ParseBundle([]byte(load(t, file)))
	if err != nil {
		t.Fatal(err)
	}
	note, err := tlog.ParseNote([]byte(b.Checkpoint))
	if err != nil {
		t.Fatal(err)
	}
	for _, fill := range fills {
		if note, err = note.Add(witness(t, fill).Cosign(note.Text, cosignedAt)); err != nil {
			t.Fatal(err)
		}
	}
	b.Checkpoint = string(note.Bytes())
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), string(b.TlogProof())
}

func witness(t testing.TB, fill byte) tlog.WitnessSigner {
	t.Helper()
	w, err := tlog.NewWitnessSigner(fmt.Sprintf("w%d.example", fill), private(t, fill))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// policyFile trusts one log and requires two of the witnesses 1, 2 and 3.
func policyFile(t testing.TB, vkey string) string {
	t.Helper()
	text := "log " + vkey + "\n"
	for _, fill := range []byte{1, 2, 3} {
		text += fmt.Sprintf("witness w%d %s\n", fill, witness(t, fill).Key())
	}
	return written(t, text+"group enough 2 w1 w2 w3\nquorum enough\n")
}

func TestVerifyByPolicy(t *testing.T) {
	dir, key, other := logs(t)
	file := filepath.Join(dir, "full.json")
	const when = "cosigned    2026-11-20T20:00:00.000Z, by w"
	for name, tc := range map[string]struct {
		by       []byte
		args     []string
		status   int
		out, err string
	}{
		"a quorum":                {[]byte{1, 3}, []string{"--policy", policyFile(t, key)}, 0, when + "1.example\n" + when + "3.example\n", ""},
		"all of them":             {[]byte{1, 2, 3}, []string{"--policy", policyFile(t, key)}, 0, "ok    quorum", ""},
		"too few":                 {[]byte{2}, []string{"--policy", policyFile(t, key)}, 2, "--    quorum      not reached", "can't tell: too few witnesses"},
		"none":                    {nil, []string{"--policy", policyFile(t, key)}, 2, "--    quorum      not reached", "can't tell: too few witnesses"},
		"one, and a stranger":     {[]byte{2, 9}, []string{"--policy", policyFile(t, key)}, 2, "--    quorum      not reached", "can't tell: too few witnesses"},
		"another log":             {[]byte{1, 2}, []string{"--policy", policyFile(t, other)}, 2, "--    checkpoint", "can't tell: signed by the key "},
		"another key":             {[]byte{1, 2}, []string{"--policy", policyFile(t, key), "--key", other}, 2, "--    checkpoint", "can't tell: signed by the key "},
		"the key instead":         {[]byte{1, 2}, []string{"--policy", policyFile(t, other), "--key", key}, 0, "ok    quorum", ""},
		"a key before":            {[]byte{1, 2}, []string{"--policy", policyFile(t, renamed(t, key, 9)), "--keys", savedKeys(t, key, renamed(t, key, 9))}, 0, "ok    quorum", ""},
		"no log in the policy":    {[]byte{1}, []string{"--policy", written(t, "witness w "+witness(t, 1).Key().String()+"\nquorum w\n")}, 2, "", ""},
		"its log by the key":      {[]byte{1}, []string{"--policy", written(t, "witness w "+witness(t, 1).Key().String()+"\nquorum w\n"), "--key", key}, 0, "ok    quorum", ""},
		"a threshold of none":     {[]byte{1, 2}, []string{"--policy", written(t, "log "+key+"\nwitness w "+witness(t, 1).Key().String()+"\ngroup g 0 w\nquorum g\n")}, 2, "", ": parse policy: line 3"},
		"a policy that is not it": {[]byte{1, 2}, []string{"--policy", file}, 2, "", "aps: --policy: "},
	} {
		bundle, proof := cosigned(t, file, tc.by...)
		for kind, got := range map[string]outcome{
			"bundle": aps(t, bundle, append([]string{"verify", "-"}, tc.args...)...),
			"proof":  aps(t, proof, append([]string{"verify", "-", "--entry", file + ".entry"}, tc.args...)...),
		} {
			if got.status != tc.status || !strings.Contains(got.out, tc.out) || !strings.Contains(got.report, tc.err) || strings.Contains(got.out, "proved") != (tc.status == 0) && tc.out != "" {
				t.Errorf("%s, %s: got %+v", name, kind, got)
			}
		}
		var r struct {
			OK     bool  `json:"ok"`
			Quorum *bool `json:"quorum_ok"`
		}
		got := aps(t, bundle, append([]string{"verify", "-", "--json"}, tc.args...)...)
		if got.out == "" {
			continue
		}
		err := json.Unmarshal([]byte(got.out), &r)
		reported, reached := !strings.Contains(tc.out, "checkpoint"), !strings.Contains(tc.out, "not reached") // nothing is reported about what the log did not sign
		if err != nil || r.OK != reported || (r.Quorum != nil) != reported || reported && *r.Quorum != reached {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// A cosignature from the future is named, and the time is the one at which the others were a quorum.
func TestVerifyFutureCosignature(t *testing.T) {
	dir, key, _ := logs(t)
	file := filepath.Join(dir, "full.json")
	later := id.Instant(4_102_444_800_000)
	const future = "cosigned    2100-01-01T00:00:00.000Z (in the future: it proves no time), by w1.example\n"
	for name, tc := range map[string]struct {
		others []byte
		time   string // "": none
	}{
		"enough others": {[]byte{2, 3}, "2026-11-20T20:00:00.000Z"},
		"too few":       {[]byte{2}, ""},
	} {
		text, _ := cosigned(t, file, tc.others...)
		b, err := verify.ParseBundle([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		note, err := tlog.ParseNote([]byte(b.Checkpoint))
		if err != nil {
			t.Fatal(err)
		}
		if note, err = note.Add(witness(t, 1).Cosign(note.Text, later)); err != nil {
			t.Fatal(err)
		}
		b.Checkpoint = string(note.Bytes())
		bundle, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		quorum, member := "have cosigned the checkpoint\n", ""
		if tc.time != "" {
			quorum, member = "have cosigned the checkpoint, by "+tc.time+"\n", `"quorum_time":"`+tc.time+`"`
		}
		for kind, args := range map[string][]string{"bundle": {"verify", "-"}, "proof": {"verify", "-", "--entry", file + ".entry"}} {
			input := string(bundle)
			if kind == "proof" {
				input = string(b.TlogProof())
			}
			got := aps(t, input, append(args, "--policy", policyFile(t, key))...)
			if got.status != 0 || !strings.Contains(got.out, future) || !strings.Contains(got.out, quorum) {
				t.Errorf("%s, %s: got %+v", name, kind, got)
			}
			got = aps(t, input, append(args, "--json", "--policy", policyFile(t, key))...)
			if !strings.Contains(got.out, `"time":"2100-01-01T00:00:00.000Z","in_future":true`) ||
				!strings.Contains(got.out, member) || member == "" && strings.Contains(got.out, "quorum_time") {
				t.Errorf("%s, %s, as JSON: got %+v", name, kind, got)
			}
		}
	}
}
