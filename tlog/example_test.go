package tlog_test

import (
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// A log signs the root of its tree; a reader opens the checkpoint under the pinned key and
// checks an inclusion proof against it.
func Example() {
	key, err := edkey.PrivateFromSeed(make([]byte, edkey.SeedSize)) // a seed for examples only
	if err != nil {
		fmt.Println(err)
		return
	}
	signer, err := tlog.NewSignerKey("log.example/orders", key)
	if err != nil {
		fmt.Println(err)
		return
	}
	first, second := tlog.LeafHash([]byte("first")), tlog.LeafHash([]byte("second"))
	var tree tlog.Builder
	tree.Append(nil, first, second)
	note, err := signer.Sign(tlog.Checkpoint{Origin: "log.example/orders", Size: tree.Size(), Root: tree.Root()})
	if err != nil {
		fmt.Println(err)
		return
	}

	checkpoint, err := tlog.OpenCheckpoint(note, signer.Verifier())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(checkpoint.Origin, checkpoint.Size)
	fmt.Println(tlog.CheckInclusion(1, checkpoint.Size, second, []id.Hash{first}, checkpoint.Root))
	err = tlog.CheckInclusion(0, checkpoint.Size, second, []id.Hash{first}, checkpoint.Root)
	fmt.Println("at index 0:", errors.Is(err, tlog.ErrProof))
	// Output:
	// log.example/orders 2
	// <nil>
	// at index 0: true
}
