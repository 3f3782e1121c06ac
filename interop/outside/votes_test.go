package outside

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify/signedvote"
)

// A program outside of the module checks the published registrations of passkeys.
func TestVoterKeys(t *testing.T) {
	text, err := os.ReadFile("../../testdata/vectors/signed-vote.json")
	if err != nil {
		t.Fatal(err)
	}
	var corpus struct {
		Vectors []struct {
			Name    string
			Verdict string
			Input   struct {
				Origin       id.Origin
				Registration string
				RegisteredAt id.Instant `json:"registered_at"`
			}
			Expect struct{ Thumbprint string }
		}
	}
	if err := json.Unmarshal(text, &corpus); err != nil || len(corpus.Vectors) == 0 {
		t.Fatalf("%d vectors, %v", len(corpus.Vectors), err)
	}
	for _, v := range corpus.Vectors {
		if v.Verdict != "accept" {
			continue
		}
		registered, _, err := signedvote.ParseKeyEvent([]byte(v.Input.Registration))
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		if err := registered.CheckPossession(v.Input.Origin, v.Input.RegisteredAt); err != nil ||
			registered.PublicKey.Thumbprint() != v.Expect.Thumbprint {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}
