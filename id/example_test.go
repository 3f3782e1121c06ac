package id_test

import (
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
)

// Identifiers are parsed strictly; decisions only become stricter.
func Example() {
	o, err := id.ParseOrganization("8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11")
	fmt.Println(o, err)
	_, err = id.ParseOrganization("8d0f6d0a5b1c4c559a520c8d7c6f1e11")
	fmt.Println("without dashes it is malformed:", errors.Is(err, id.ErrMalformed))
	fmt.Println(id.Allow.Tighten(id.Deny), id.Deny.Tighten(id.Allow))
	// Output:
	// 8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11 <nil>
	// without dashes it is malformed: true
	// deny deny
}
