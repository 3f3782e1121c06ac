package pack_test

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"github.com/agentledger/agentledger/internal/test/vectors"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

// An auditor checks a pack with the pinned key of the log.
func Example() {
	pinned, file := publishedPack()
	key, err := tlog.ParseVerifierKey(pinned)
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := pack.Check(bytes.NewReader(file), int64(len(file)), pack.Options{
		OpenCheckpoint: func(note []byte) (tlog.Checkpoint, error) { return tlog.OpenCheckpoint(note, key) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("complete for [%d, %d), %d events shown, %d withheld, %d erased\n",
		report.Begin, report.End, report.Shown, report.Withheld, report.Erased)
	// Output:
	// complete for [5, 9), 2 events shown, 2 withheld, 1 erased
}

// publishedPack returns a pack of the corpus and the key of its log.
func publishedPack() (key string, file []byte) {
	f, err := vectors.ReadFile("../../testdata/packs/evidence-pack.json")
	if err != nil {
		return "", nil
	}
	for _, v := range f.Vectors {
		if v.Name == "one agent in a range before the end of the tree" {
			text, _ := v.Input["pack_b64"].(string)
			file, _ = base64.StdEncoding.DecodeString(text)
			key, _ = v.Input["key"].(string)
		}
	}
	return key, file
}
