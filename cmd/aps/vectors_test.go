package main

import (
	"testing"

	"github.com/agentledger/agentledger/internal/vectors"
)

// The program says of the published corpus what is written there: 0 for what is to
// be accepted, 1 or 2 for all else.
func TestVectors(t *testing.T) {
	for kind, args := range map[string]func(t *testing.T, v vectors.Vector) (stdin string, args []string){
		"bundle": func(t *testing.T, v vectors.Vector) (string, []string) {
			args := []string{"--key", member(t, v, "key")}
			if _, there := v.Input["keys"]; there {
				args = append(args, "--keys", written(t, member(t, v, "keys")))
			}
			return member(t, v, "bundle"), args
		},
		"tlog-proof": func(t *testing.T, v vectors.Vector) (string, []string) {
			return member(t, v, "proof"), []string{"--key", member(t, v, "key"), "--entry", written(t, member(t, v, "entry")+"\n")} // files end so
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
			if v.Expect != nil && v.Verdict == vectors.Refuse && got.status != 1 {
				t.Errorf("%s: %s: got %+v, want status 1", kind, v.Name, got)
			}
		}
	}
}

func member(t *testing.T, v vectors.Vector, name string) string {
	t.Helper()
	s, err := v.Text(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
