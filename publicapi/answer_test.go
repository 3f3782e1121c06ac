package publicapi

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// Proofs are rendered with the same bytes as by encoding/json.
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

// The ETag of a proof represents its bytes, which this table contains. If they change, formOfProofs must change too.
func TestFormOfProofs(t *testing.T) {
	one, two := strings.Repeat("01", 32), strings.Repeat("02", 32)
	h := func(text string) id.Hash {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return id.Hash(b)
	}
	a := renderInclusion(&verify.InclusionAnswer{LogIndex: 7, TreeSize: 9, LeafHash: h(one), RootHash: h(two), Hashes: []id.Hash{h(one)}})
	c := renderConsistency(&verify.Consistency{From: 7, To: 9, FromRoot: h(one), ToRoot: h(two), Hashes: []id.Hash{h(one)}})
	for _, tt := range []struct {
		got       response
		body, tag string
	}{
		{a, `{"log_index":7,"tree_size":9,"leaf_hash":"` + one + `","root_hash":"` + two + `","hashes":["` + one + `"]}`,
			`"f7e771295d85b51fa6be522b6fb7eca2"`},
		{c, `{"from":7,"to":9,"from_root":"` + one + `","to_root":"` + two + `","hashes":["` + one + `"]}`,
			`"f7e771295d85b51fa6be522b6fb7eca2"`},
	} {
		if string(tt.got.body) != tt.body || tt.got.entityTag() != tt.tag {
			t.Errorf("got  %s %s\nwant %s %s", tt.got.body, tt.got.entityTag(), tt.body, tt.tag)
		}
	}
}
