package grant_test

import (
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// A tool checks that a grant permits exactly the action that it is about to run.
func Example() {
	const origin, now = id.Origin("log.example/o/8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"), id.Instant(1_800_000_000_000)
	signer, err := tlog.NewSignerKey(grant.KeyName(origin), edkey.NewPrivate())
	if err != nil {
		fmt.Println(err)
		return
	}
	organization, err := origin.Organization()
	if err != nil {
		fmt.Println(err)
		return
	}
	action, err := grant.NewAction(organization, "agt_support", "acme.payments.refund", []byte(`{"amount_usd": 84.5}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	note, err := grant.Sign(grant.Grant{
		Origin: origin, Approval: "apr_1", ActionDigest: action.Digest(), Agent: "agt_support",
		NotBefore: now, NotAfter: now + grant.Life,
	}, signer)
	if err != nil {
		fmt.Println(err)
		return
	}

	opened, err := grant.Open(note, signer.Verifier())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(opened.Check(action.Digest(), now))
	fmt.Println("later:", errors.Is(opened.Check(action.Digest(), now+grant.Life+1000), grant.ErrExpired))
	fmt.Println("another action:", errors.Is(opened.Check(id.Hash{}, now), grant.ErrOtherAction))
	// Output:
	// <nil>
	// later: true
	// another action: true
}
