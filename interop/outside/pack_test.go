package outside

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

// A program outside of the module checks the published packs.
func TestPacks(t *testing.T) {
	text, err := os.ReadFile("../../testdata/packs/evidence-pack.json")
	if err != nil {
		t.Fatal(err)
	}
	var corpus struct {
		Vectors []struct {
			Name    string
			Verdict string
			Input   struct {
				Pack []byte `json:"pack_b64"`
				Key  string
				Tool []string `json:"tool_keys"`
			}
		}
	}
	if err := json.Unmarshal(text, &corpus); err != nil || len(corpus.Vectors) == 0 {
		t.Fatalf("%d vectors, %v", len(corpus.Vectors), err)
	}
	for _, v := range corpus.Vectors {
		key, err := tlog.ParseVerifierKey(v.Input.Key)
		if err != nil {
			t.Fatal(err)
		}
		var tools []tlog.VerifierKey
		for _, text := range v.Input.Tool {
			tool, err := tlog.ParseVerifierKey(text)
			if err != nil {
				t.Fatal(err)
			}
			tools = append(tools, tool)
		}
		r, err := pack.Check(bytes.NewReader(v.Input.Pack), int64(len(v.Input.Pack)), pack.Options{
			OpenCheckpoint: func(note []byte) (tlog.Checkpoint, error) { return tlog.OpenCheckpoint(note, key) }, ToolKeys: tools})
		right := err == nil && (r.Acts == nil || r.Acts.Receipts == nil || r.Acts.Receipts.Wrong == 0)
		if right != (v.Verdict == "accept") {
			t.Errorf("%s: got %v, want %s", v.Name, err, v.Verdict)
		}
	}
}
