package did_test

import (
	"fmt"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
)

// A did:key names an Ed25519 public key. Its document has that key and the X25519 key derived from it.
func Example() {
	key, err := edkey.PrivateFromSeed(make([]byte, edkey.SeedSize)) // a seed for examples only
	if err != nil {
		fmt.Println(err)
		return
	}
	name := did.KeyDID(key.Public().Bytes())
	fmt.Println(name)
	public, err := did.ParseKey(name)
	if err != nil {
		fmt.Println(err)
		return
	}
	document, err := did.KeyDocument(public)
	fmt.Println(document.ID == name, len(document.VerificationMethod), err)
	// Output:
	// did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp
	// true 2 <nil>
}
