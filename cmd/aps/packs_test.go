package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/vectors"
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
		got := aps(t, "", "--json", "verify", written(t, text), "--key", member(t, v, "key"))
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
		if lines, _ := v.Expect["vote_lines"].([]any); lines != nil {
			people := aps(t, "", "verify", written(t, text), "--key", member(t, v, "key")).out
			for _, line := range lines {
				if !strings.Contains(people, "\n"+line.(string)+"\n") {
					t.Errorf("%s: the line %s is missing in\n%s", v.Name, line, people)
				}
			}
		}
		for name, value := range v.Expect {
			if name != "vote_lines" && fmt.Sprint(report[name]) != value {
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
	if got := aps(t, "", "verify", file, "--policy", policy); !strings.Contains(got.report, "witnesses") {
		t.Errorf("too few cosignatures: got %+v", got)
	}
	if got := aps(t, "", "verify", file, "--key", key); !strings.Contains(got.out, "complete for [0, 13): 13 events shown, 0 withheld, 2 erased") {
		t.Errorf("got %+v", got)
	}
}
