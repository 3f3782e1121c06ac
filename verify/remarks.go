package verify

import (
	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// remarks decodes the two members of a bundle that no verdict rests on. What a
// server says there in a form that this version can't read is no reason to refuse
// the bundle, whose proofs stand without it.
func remarks() *json.Unmarshalers {
	return json.JoinUnmarshalers(
		json.UnmarshalFunc(func(value []byte, r *Report) error {
			if json.Unmarshal(value, r) != nil {
				*r = Report{}
			}
			return nil
		}),
		json.UnmarshalFunc(func(value []byte, o *OperatorStatement) error {
			if json.Unmarshal(value, o) != nil {
				*o = OperatorStatement{}
			}
			return nil
		}),
	)
}

// inRange reports whether the bundle's numbers are 0..chain.MaxSeq, the integers
// that JSON carries exactly.
func (b *Bundle) inRange() bool {
	return b.SequenceNum <= event.MaxSeq && b.LogIndex <= event.MaxSeq && b.Inclusion.inRange() &&
		(b.PreviousInclusion == nil || b.PreviousInclusion.inRange())
}

func (p Inclusion) inRange() bool { return max(p.LogIndex, p.TreeSize) <= id.Index(event.MaxSeq) }
