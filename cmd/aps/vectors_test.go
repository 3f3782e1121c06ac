package main

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/test/vectors"
)

// The exit code for the published corpus: 0 for what must be accepted, and 1 or 2 for everything else.
func TestVectors(t *testing.T) {
	for kind, args := range map[string]func(t *testing.T, v vectors.Vector) (stdin string, args []string){
		"bundle": func(t *testing.T, v vectors.Vector) (string, []string) {
			args := []string{"--key", member(t, v, "key")}
			if _, there := v.Input["keys"]; there {
				args = append(args, "--keys", written(t, member(t, v, "keys")))
			}
			return member(t, v, "bundle"), args
		},
		"second-proof": func(t *testing.T, v vectors.Vector) (string, []string) {
			args := []string{"--key", member(t, v, "key")}
			for _, name := range []string{"directory_key", "directory_keys", "directory_policy"} {
				flag := "--" + strings.ReplaceAll(name, "_", "-")
				switch _, there := v.Input[name]; {
				case there && name == "directory_key":
					args = append(args, flag, member(t, v, name))
				case there:
					args = append(args, flag, written(t, member(t, v, name)))
				}
			}
			return member(t, v, "bundle"), args
		},
		"tlog-proof": func(t *testing.T, v vectors.Vector) (string, []string) {
			return member(t, v, "proof"), []string{"--key", member(t, v, "key"), "--entry", written(t, member(t, v, "entry")+"\n")} // as files end
		},
	} {
		f, err := vectors.Read("../..", kind)
		if err != nil || len(f.Vectors) < 50 {
			t.Fatalf("%s: %d vectors, %v", kind, len(f.Vectors), err)
		}
		for _, v := range f.Vectors {
			stdin, args := args(t, v)
			got := aps(t, stdin, append([]string{"verify", "-"}, args...)...)
			if (got.status == 0) != (v.Verdict == vectors.Accept) {
				t.Errorf("%s: %s: got %+v, want %s", kind, v.Name, got, v.Verdict)
			}
			if want := status(v); v.Expect != nil && got.status != want {
				t.Errorf("%s: %s: got %+v, want status %d", kind, v.Name, got, want)
			}
		}
	}
}

// status is the expected status of a readable vector: 1 for an invalid one, 2 for unknown keys and for too few
// cosignatures, which the verdicts do not cover.
func status(v vectors.Vector) int {
	if v.Verdict == vectors.Accept {
		return 0
	}
	if v.Expect["unknown_keys"] != nil {
		return 2
	}
	for _, verdict := range v.Expect {
		if verdict == false {
			return 1
		}
	}
	return 2
}

func member(t *testing.T, v vectors.Vector, name string) string {
	t.Helper()
	s, err := v.Text(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
