package verify

import (
	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// remarkDecoders decodes the two members of a bundle that no verdict needs. If this version cannot
// read them, it does not reject the bundle, because the proofs do not depend on them.
func remarkDecoders() *json.Unmarshalers {
	return json.JoinUnmarshalers(
		json.UnmarshalFunc(func(value []byte, r *Report) error {
			if json.Unmarshal(value, r) != nil {
				*r = Report{}
			}
			return nil
		}),
		json.UnmarshalFunc(func(value []byte, o *OperatorStatement) error {
			if json.Unmarshal(value, o) == nil {
				return nil
			}
			var claim struct {
				KeyClaim string `json:"key_claim"`
			}
			if json.Unmarshal(value, &claim) != nil {
				claim.KeyClaim = ""
			}
			*o = OperatorStatement{KeyClaim: claim.KeyClaim} // keep the warning
			return nil
		}),
	)
}

// hasValidNumbers reports whether the bundle's numbers are in 0..event.MaxSeq, the integers that
// JSON represents exactly.
func (b *Bundle) hasValidNumbers() bool {
	return b.SequenceNum <= event.MaxSeq && b.LogIndex <= event.MaxSeq && b.Inclusion.hasValidNumbers() &&
		(b.PreviousInclusion == nil || b.PreviousInclusion.hasValidNumbers())
}

func (p Inclusion) hasValidNumbers() bool {
	return max(p.LogIndex, p.TreeSize) <= id.Index(event.MaxSeq)
}
