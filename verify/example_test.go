package verify_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// A stored bundle is verified offline under the pinned key of the log.
func Example() {
	text, err := os.ReadFile("testdata/bundle.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := tlog.ParseVerifierKey("log.example/o/ab000000-0000-0000-0000-000000000001+2ae50866+AStpikPmcZ8fYzK8rFPu9jqTLkdEOYdS5TgT6BKIkJgU")
	if err != nil {
		fmt.Println(err)
		return
	}
	bundle, err := verify.ParseBundle(text)
	if err != nil {
		fmt.Println(err)
		return
	}
	report := verify.Check(bundle, verify.Options{Key: &key})
	fmt.Println(bundle.EventID, report.OK, *report.SignatureOK)

	changed, err := verify.ParseBundle(bytes.Replace(text, []byte(`"sequence_num": 5`), []byte(`"sequence_num": 6`), 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("changed:", verify.Check(changed, verify.Options{Key: &key}).OK)

	_, err = verify.ParseBundle([]byte(`{"version": 2}`))
	fmt.Println("another version:", errors.Is(err, verify.ErrVersion))
	// Output:
	// evt_4 true true
	// changed: false
	// another version: true
}
