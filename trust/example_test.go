package trust_test

import (
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/trust"
)

// A checkpoint counts if one of the policy's logs signed it and a quorum of its witnesses
// cosigned it.
func Example() {
	signer, err := tlog.NewSignerKey("log.example/orders", edkey.NewPrivate())
	if err != nil {
		fmt.Println(err)
		return
	}
	witness, err := tlog.NewWitnessSigner("witness.example", edkey.NewPrivate())
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := trust.Parse(fmt.Appendf(nil, "log %s\nwitness w1 %s\nquorum w1\n", signer.Verifier(), witness.Key()))
	if err != nil {
		fmt.Println(err)
		return
	}
	signed, err := signer.Sign(tlog.Checkpoint{Origin: "log.example/orders", Root: tlog.EmptyRoot()})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = policy.Open(signed)
	fmt.Println("before the witness:", errors.Is(err, trust.ErrQuorum))

	note, err := tlog.ParseNote(signed)
	if err != nil {
		fmt.Println(err)
		return
	}
	if note, err = note.Add(witness.Cosign(note.Text, id.Instant(1_800_000_000_000))); err != nil {
		fmt.Println(err)
		return
	}
	opened, err := policy.Open(note.Bytes())
	fmt.Println(opened.Checkpoint.Origin, opened.Cosignatures[0].Witness.Name, err)
	// Output:
	// before the witness: true
	// log.example/orders w1 <nil>
}
