package publicapi

import (
	"encoding/json"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// What is rendered by hand is what encoding/json makes of the same value.
func TestProofsRenderedByHand(t *testing.T) {
	for n := range 65 {
		hashes := make([]id.Hash, n)
		for i := range hashes {
			hashes[i] = id.Hash{0: byte(i), 31: 0xf0 | byte(n)}
		}
		at, size := id.Index(1)<<n>>1, ^id.Index(0)>>(64-n)
		a := verify.InclusionAnswer{LogIndex: at, TreeSize: size, LeafHash: id.Hash{1}, RootHash: id.Hash{2}, Hashes: hashes}
		c := verify.Consistency{From: at, To: size, FromRoot: id.Hash{3}, ToRoot: id.Hash{4}, Hashes: hashes}
		for _, tt := range []struct {
			got  response
			from any
		}{
			{renderInclusion(&a), a},
			{renderConsistency(&c), c},
		} {
			want, err := json.Marshal(tt.from)
			if err != nil {
				t.Fatal(err)
			}
			if got := tt.got.body; string(got) != string(want) || len(got) > maxProofLength(hashes) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
	}
}
