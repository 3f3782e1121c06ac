package frompage

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"testing"
)

// vector is one example of kind bundle, by "A vector of kind `bundle`" of testdata/vectors/README.md.
type vector struct {
	Name  string
	Input struct {
		Bundle    string
		BundleB64 string `json:"bundle_b64"`
		Key       string
		Keys      *string
	}
	Verdict string
	Expect  map[string]any // nil: it is not readable
}

// text returns the bundle of a vector, in bytes.
func (v vector) text(t *testing.T) []byte {
	t.Helper()
	if v.Input.BundleB64 == "" {
		return []byte(v.Input.Bundle)
	}
	raw, err := base64.StdEncoding.DecodeString(v.Input.BundleB64)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func vectors(t *testing.T) []vector {
	t.Helper()
	raw, err := os.ReadFile("../../testdata/vectors/bundle.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Vectors []vector }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) < 155 {
		t.Fatalf("got %d vectors, want 155 or more", len(file.Vectors))
	}
	return file.Vectors
}

// The implementation of the page agrees with the project on every vector.
func TestVectors(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.Name, func(t *testing.T) {
			var keys []byte
			if v.Input.Keys != nil {
				keys = []byte(*v.Input.Keys)
			}
			got, err := Verify(v.text(t), v.Input.Key, keys)
			if (err == nil) != (v.Expect != nil) {
				t.Fatalf("read: got %v, want %v", err, v.Expect)
			}
			if accepted := err == nil && got.Right(); accepted != (v.Verdict == "accept") {
				t.Errorf("got %+v, want %s", got, v.Verdict)
			}
			checkVerdicts(t, got, v.Expect)
		})
	}
}

// checkVerdicts compares the six members, of which null is neither true nor false.
func checkVerdicts(t *testing.T, got Verdicts, want map[string]any) {
	t.Helper()
	for member, verdict := range map[string]Verdict{
		"inclusion_ok": got.Inclusion, "checkpoint_ok": got.Checkpoint, "chain_ok": got.Chain,
		"record_ok": got.Record, "signature_ok": got.Signature, "envelope_ok": got.Envelope,
	} {
		expected := map[any]Verdict{true: True, false: False, nil: Null}[want[member]]
		if want != nil && verdict != expected {
			t.Errorf("%s: got %v, want %v", member, verdict, expected)
		}
	}
}
