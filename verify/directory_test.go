package verify

import (
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	corpus "github.com/agentledger/agentledger/internal/test/vectors"
	"github.com/agentledger/agentledger/tlog"
)

// secondProofs returns some bundles with second proofs from the published corpus, whose
// verdicts internal/vectors tests.
func secondProofs(t testing.TB) (texts [][]byte) {
	t.Helper()
	f, err := corpus.Read("..", "second-proof")
	if err != nil || len(f.Vectors) < 8 {
		t.Fatalf("got %d vectors, %v", len(f.Vectors), err)
	}
	for _, v := range f.Vectors[:8] {
		text, err := v.Text("bundle")
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, []byte(text))
	}
	return texts
}

// The pinned keys of the directory count only for the second proof, and nothing else that
// is known of the directory counts for the bundle itself.
func TestDirectoryOptions(t *testing.T) {
	b, err := ParseBundle(secondProofs(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	key, directory := parsedKey(t, b.LogKey), parsedKey(t, b.Directory.Bundle.LogKey)
	for name, c := range map[string]struct {
		options               Options
		checkpoint, directory bool
	}{
		"nothing pinned":            {Options{}, true, true},
		"both":                      {Options{Key: &key, Directory: &Options{Key: &directory}}, true, true},
		"the log's for both":        {Options{Key: &key, Directory: &Options{Key: &key}}, true, false},
		"the directory's for both":  {Options{Key: &directory, Directory: &Options{Key: &directory}}, false, true},
		"as retired of the log":     {Options{Key: &key, Retired: []LogKey{Always(directory)}, Directory: &Options{Key: &key}}, true, false},
		"as retired of its own log": {Options{Key: &key, Directory: &Options{Key: &key, Retired: []LogKey{Always(directory)}}}, true, false},
	} {
		r := Check(b, c.options)
		if r.CheckpointOK != c.checkpoint || r.DirectoryOK == nil || *r.DirectoryOK != c.directory || r.OK != (c.checkpoint && c.directory) {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

func parsedKey(t *testing.T, vkey string) tlog.VerifierKey {
	t.Helper()
	key, err := tlog.ParseVerifierKey(vkey)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// A parsed listing is in order and survives a round trip through JSON.
func FuzzParseListing(f *testing.F) {
	for _, text := range secondProofs(f)[:2] {
		b, err := ParseBundle(text)
		if err != nil {
			f.Fatal(err)
		}
		e, err := readEnvelope(*b.Directory.Bundle.Envelope)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(e.Payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		l, err := ParseListing(&event.Envelope{ActionKind: DirectoryKind, Payload: payload})
		if err != nil {
			return
		}
		for i, c := range l.Checkpoints {
			if c.Size == 0 || i > 0 && c.Origin <= l.Checkpoints[i-1].Origin {
				t.Fatalf("got %+v", l)
			}
		}
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseListing(&event.Envelope{ActionKind: DirectoryKind, Payload: text}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	})
}
