// Command judgeloop judges bundles for the comparison of verifiers. Each line of standard input is a JSON object with
// kind, path, key and keys. For each, it prints the status and the verdicts. The status is also 1 if other keys signed.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/agentledger/agentledger/interop/frompage"
)

type judgement struct {
	Status   int                `json:"status"`
	Verdicts []frompage.Verdict `json:"verdicts,omitempty"`
	Reason   string             `json:"reason,omitempty"`
}

func judge(line []byte) (judgement, error) {
	var query struct{ Path, Key, Keys string }
	if err := json.Unmarshal(line, &query); err != nil {
		return judgement{}, err
	}
	bundle, err := os.ReadFile(query.Path)
	if err != nil {
		return judgement{}, err
	}
	var keys []byte
	if query.Keys != "" {
		if keys, err = os.ReadFile(query.Keys); err != nil {
			return judgement{}, err
		}
	}
	v, err := frompage.Verify(bundle, query.Key, keys)
	if err != nil {
		return judgement{Status: 1, Reason: err.Error()}, nil
	}
	s := judgement{Verdicts: []frompage.Verdict{v.Inclusion, v.Checkpoint, v.Chain, v.Record, v.Signature, v.Envelope}}
	if !v.Right() {
		s.Status = 1
	}
	return s, nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		s, err := judge(lines.Bytes())
		if err != nil {
			s = judgement{Status: 99, Reason: err.Error()}
		}
		if err := out.Encode(s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
