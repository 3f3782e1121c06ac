package signedvote_test

import (
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify/signedvote"
)

func Example() {
	v := signedvote.Vote{Origin: "log.example/o/34929490-47ca-4f7c-b79e-0ac022b29856", ApprovalID: "apr_1",
		ActionDigest: id.Hash{7}, Vote: "approve"}
	at, err := id.ParseInstant("2026-11-18T14:27:01.500Z")
	if err != nil {
		fmt.Println(err)
	}
	text, err := v.Text(signedvote.Bucket(at))
	if err != nil {
		fmt.Println(err)
	}
	challenge := signedvote.Challenge(text)
	fmt.Printf("%s%s\n", text, signedvote.Bytes(challenge[:]))
	// Output:
	// agentledger/vote/v1
	// log.example/o/34929490-47ca-4f7c-b79e-0ac022b29856
	// apr_1
	// 0700000000000000000000000000000000000000000000000000000000000000
	// approve
	// 03c27b3c3b329e71e49e14b187cfc9e95fabea5ab0eda56a628886a7604ead56
	// 2026-11-18T14:25:00Z
	// 8W_H3pXec3bqBXO7Xr12WOljLu0dMK2o8aoQqhxBn7E
}
