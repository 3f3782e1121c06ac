// Command judgeloop judges bundles for the comparison of verifiers: a line of standard input is a JSON object of kind, path,
// key and keys. It prints the status of each, and the verdicts. Where other keys signed, the status is 1 as well.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/agentledger/agentledger/interop/frompage"
)

type said struct {
	Status   int                `json:"status"`
	Verdicts []frompage.Verdict `json:"verdicts,omitempty"`
	Reason   string             `json:"reason,omitempty"`
}

func judge(line []byte) (said, error) {
	var asked struct{ Path, Key, Keys string }
	if err := json.Unmarshal(line, &asked); err != nil {
		return said{}, err
	}
	bundle, err := os.ReadFile(asked.Path)
	if err != nil {
		return said{}, err
	}
	var keys []byte
	if asked.Keys != "" {
		if keys, err = os.ReadFile(asked.Keys); err != nil {
			return said{}, err
		}
	}
	v, err := frompage.Verify(bundle, asked.Key, keys)
	if err != nil {
		return said{Status: 1, Reason: err.Error()}, nil
	}
	s := said{Verdicts: []frompage.Verdict{v.Inclusion, v.Checkpoint, v.Chain, v.Record, v.Signature, v.Envelope}}
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
			s = said{Status: 99, Reason: err.Error()}
		}
		if err := out.Encode(s); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
