package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/vectors"
	"github.com/agentledger/agentledger/verify/pack"
)

// The exit code for the published packs: 0 for a valid one with its numbers, 1 for an invalid one, and 2 for a pack
// that was signed by another key than the pinned one or whose files can't be read.
func TestPackVectors(t *testing.T) {
	f, err := vectors.ReadFile("../../testdata/packs/evidence-pack.json")
	if err != nil || len(f.Vectors) < 100 {
		t.Fatalf("%d vectors, %v", len(f.Vectors), err)
	}
	for _, v := range f.Vectors {
		text := member(t, v, "pack")
		args := []string{"verify", written(t, text), "--key", member(t, v, "key")}
		tools, err := v.List("tool_keys")
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range tools {
			args = append(args, "--tool-key", k)
		}
		got := aps(t, "", append(args, "--json")...)
		want := 1
		switch {
		case v.Verdict == vectors.Accept:
			want = 0
		case v.Name == "another log's key" || v.Expect["cant_tell"] == true:
			want = 2
		}
		if got.status != want {
			t.Errorf("%s: got %+v, want status %d", v.Name, got, want)
		}
		if want != 0 {
			continue
		}
		var report map[string]any
		if err := json.Unmarshal([]byte(got.out), &report); err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		for _, name := range []string{"vote_lines", "act_lines", "coverage_lines"} {
			lines, _ := v.Expect[name].([]any)
			if delete(v.Expect, name); lines == nil {
				continue
			}
			people := aps(t, "", args...).out
			for _, line := range lines {
				if !strings.Contains(people, "\n"+line.(string)+"\n") {
					t.Errorf("%s: the line %s is missing in\n%s", v.Name, line, people)
				}
			}
		}
		for name, value := range v.Expect {
			if fmt.Sprint(report[name]) != value {
				t.Errorf("%s: %s: got %v, want %v", v.Name, name, report[name], value)
			}
		}
	}
}

// Requirements in addition to a valid pack change the status.
func TestPackStatus(t *testing.T) {
	f, err := vectors.ReadFile("../../testdata/packs/evidence-pack.json")
	if err != nil {
		t.Fatal(err)
	}
	file, key := written(t, member(t, f.Vectors[1], "pack")), member(t, f.Vectors[1], "key")
	witnesses, err := vectors.Read("../..", "witness-key")
	if err != nil || witnesses.Vectors[0].Verdict != vectors.Accept {
		t.Fatalf("got %+v, %v", witnesses.Vectors[0], err)
	}
	policy := written(t, "log "+key+"\nwitness w "+member(t, witnesses.Vectors[0], "vkey")+"\nquorum w\n")
	for args, want := range map[string]int{
		"": 2, "--key " + key: 0, "--key " + key + " --require record": 0, "--key " + key + " --require full": 2,
		"--key " + key + " --manifest " + strings.Repeat("0", 64): 1, "--policy " + policy: 2,
	} {
		if got := aps(t, "", append([]string{"verify", file}, strings.Fields(args)...)...); got.status != want {
			t.Errorf("%q: got %+v, want %d", args, got, want)
		}
	}
	if got := aps(t, "", "verify", file, "--key", key, "--coverage", file); got.status != 2 || !strings.Contains(got.report, "no event that the pack shows compares this record") {
		t.Errorf("a record that no event is about: got %+v", got)
	}
	if got := aps(t, "", "verify", file, "--policy", policy); !strings.Contains(got.report, "witnesses") {
		t.Errorf("too few cosignatures: got %+v", got)
	}
	if got := aps(t, "", "verify", file, "--key", key); !strings.Contains(got.out, "complete for [0, 13): 13 events shown, 0 withheld, 2 erased") {
		t.Errorf("got %+v", got)
	}
}

func TestActRowsAreBounded(t *testing.T) {
	row := newActRow(&pack.Act{Votes: make([]pack.ActVote, maxRowVotes+5)})
	if len(row.Votes) != maxRowVotes || cap(row.Votes) >= 2*maxRowVotes || row.MoreVotes != 5 {
		t.Errorf("got %d votes and %d more", len(row.Votes), row.MoreVotes)
	}
	if words := describeAct(&row, &pack.Report{Acts: &pack.Acts{}}); !strings.HasSuffix(words, ", and 5 more votes)") {
		t.Errorf("got %q", words)
	}
}

// An auditor asks a pack which acts satisfy a condition, and who decided on them.
func TestPackActs(t *testing.T) {
	f, err := vectors.ReadFile("../../testdata/packs/evidence-pack.json")
	if err != nil {
		t.Fatal(err)
	}
	find := func(name string) (file, key string) {
		for _, v := range f.Vectors {
			if v.Name == name {
				return written(t, member(t, v, "pack")), member(t, v, "key")
			}
		}
		t.Fatal(name)
		return "", ""
	}
	file, key := find("acts: of all outcomes")
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{nil, 0, "\nacts        47 acts: "},
		{[]string{"--where", "amount_usd>500", "--acts"}, 0, "\ncounted     acts with amount_usd > 500\nacts        7 acts: 4 done, 1 refused, 1 denied, 1 waiting; 2 approved and done; 1 done without the approval\n" +
			"approver    acc_1 (ada@example.com, as the operator states): 1 approved, 1 refused\n" +
			"approver    acc_2 (Ben Lindqvist, ben@example.com, as the operator states): 2 approved, 1 refused\n"},
		{[]string{"--where", "amount_usd>500", "--acts"}, 0, "\nact         8  2026-11-18 11:06:49  acme.payments.refund  order.id=A-8  amount_usd=642  order.n[1]=2  " +
			"order.n[2][0].x-y=z  refused  (approve by ada@example.com, deny by Ben Lindqvist)\n"},
		{[]string{"--where", "amount_usd>500", "--where", "order.id~a-8"}, 0, "\nacts        1 act: 1 refused\n"},
		{[]string{"--where", "order.id=A-8"}, 0, "\nacts        1 act: 1 refused\n"},
		{[]string{"--where", "amount_usd=640"}, 0, "\nacts        1 act: 1 expired\n"},
		{[]string{"--where", "amount_usd<=-2"}, 0, "\nacts        1 act: 1 failed\n"},
		{[]string{"--where", "price>500"}, 2, ""},
		{[]string{"--where", "amount_usd>much"}, 2, ""},
		{[]string{"--where", "amount_usd"}, 2, ""},
	} {
		got := aps(t, "", append([]string{"verify", file, "--key", key}, c.args...)...)
		if got.status != c.status || !strings.Contains(got.out, c.want) {
			t.Errorf("%q: got %+v, want status %d and %q", c.args, got, c.status, c.want)
		}
	}
	old, key := find("everything")
	if got := aps(t, "", "verify", old, "--key", key, "--acts"); got.status != 2 || !strings.Contains(got.report, "no table of acts") {
		t.Errorf("a pack without acts: got %+v", got)
	}
	if got := aps(t, "", "verify", old, "--key", key, "--acts", "--manifest", strings.Repeat("0", 64)); got.status != 1 {
		t.Errorf("another manifest: got %+v, want status 1", got)
	}
	file, key = find("acts: a line missing")
	if got := aps(t, "", "verify", file, "--key", key, "--acts", "--json"); got.status != 1 || strings.Contains(got.out, "act_rows") {
		t.Errorf("a pack that is refused: got %+v, want no rows", got)
	}
}
