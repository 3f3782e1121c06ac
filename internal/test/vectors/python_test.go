package vectors

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// runPython runs the verifier of the Python client on a directory of vectors.
func runPython(dir string) (string, error) {
	program := filepath.Join(root, "clients", "python", "tests", "corpus.py")
	out, err := exec.Command(filepath.Join(root, "clients", "python", "interpreter"), "-B", program, dir).CombinedOutput()
	return string(out), err
}

// Neither package verify nor the Python client passes a wrong corpus: for each kind, one vector of either verdict has
// the other one, and an expectation is changed.
func TestWrongVectorsFail(t *testing.T) {
	dir, wrong := t.TempDir(), 0
	for _, f := range kinds(t) {
		bent := File{Kind: f.Kind, About: "wrong"}
		for verdict, other := range map[string]string{Accept: Refuse, Refuse: Accept} {
			v := roundTrip(t, f.Vectors[slices.IndexFunc(f.Vectors, func(v Vector) bool { return v.Verdict == verdict })])
			v.Verdict = other
			bent.Vectors = append(bent.Vectors, v)
		}
		if at := slices.IndexFunc(f.Vectors, func(v Vector) bool { return v.Expect != nil }); at >= 0 {
			v := roundTrip(t, f.Vectors[at])
			for name := range v.Expect {
				v.Expect[name] = "something else"
			}
			bent.Vectors = append(bent.Vectors, v)
		}
		for _, v := range bent.Vectors {
			r := reader{v: v}
			if got, err := r.check(f.Kind); r.right(got, err) {
				t.Errorf("%s: %s: ours accepts a wrong expectation", f.Kind, v.Name)
			}
		}
		wrong += len(bent.Vectors)
		if err := os.WriteFile(filepath.Join(dir, f.Kind+".json"), text(t, bent), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := runPython(dir); err == nil || !strings.Contains(out, fmt.Sprintf("0 passed, %d failed\n", wrong)) {
		t.Errorf("got %v, %.4000s", err, out)
	}
}

// The Python client judges valid inputs with one random change as package verify does. Its own tests run the corpus.
func TestPythonOnRandomChanges(t *testing.T) {
	random := rand.New(rand.NewPCG(20, 26))
	dir := t.TempDir()
	refused := 0
	for _, f := range kinds(t) {
		var good []Vector
		for _, v := range f.Vectors {
			if v.Verdict == Accept {
				good = append(good, v)
			}
		}
		changed := File{Kind: f.Kind, About: "random changes"}
		for len(changed.Vectors) < 150 {
			v := changedAt(random, good[random.IntN(len(good))])
			r := reader{v: v}
			got, err := r.check(f.Kind)
			if r.err != nil {
				continue // the key or policy of the input is malformed, which is not compared here
			}
			v.Verdict, v.Expect, v.AcceptedBy = Accept, got, nil
			if err != nil {
				v.Verdict, v.Expect = Refuse, nil
				refused++
			}
			changed.Vectors = append(changed.Vectors, v)
		}
		if err := os.WriteFile(filepath.Join(dir, f.Kind+".json"), text(t, changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if refused < 1000 {
		t.Errorf("only %d changes are refused", refused)
	}
	out, err := runPython(dir)
	if err != nil || !strings.Contains(out, " passed, 0 failed\n") {
		t.Errorf("%v (it needs python3 with the package cryptography: scripts/python)\n%.4000s", err, out)
	}
}

// changedAt returns a vector with a random change in one text of its input.
func changedAt(random *rand.Rand, v Vector) Vector {
	input := in{}
	names := []string{}
	for name, value := range ordered(v.Input) {
		input[name] = value
		if _, ok := value.(string); ok {
			names = append(names, name)
		}
	}
	name := names[random.IntN(len(names))]
	s := changedText(random, input[name].(string))
	for !utf8.ValidString(s) {
		s = changedText(random, input[name].(string))
	}
	v.Input = input.with(name, s)
	return v
}

// changedText removes, inserts or doubles a part of a text.
func changedText(random *rand.Rand, s string) string {
	pieces := []string{"0", "1", "9", "a", "A", "=", "+", " ", "\n", "\r\n", "\t", "-", "e", ".", ",", `"`, `\"`, `\`, "{", "}", "null", "\u00a0", "\ufeff", "é", "_", "/"}
	at := random.IntN(len(s) + 1)
	end := min(len(s), at+1+random.IntN(3))
	switch random.IntN(4) {
	case 0:
		return s[:at] + s[end:]
	case 1:
		return s[:end] + s[at:]
	case 2:
		return s[:at] + pieces[random.IntN(len(pieces))] + s[at:]
	}
	return s[:at] + pieces[random.IntN(len(pieces))] + s[end:]
}
