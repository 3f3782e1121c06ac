package simulate

import (
	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
)

// counters are the counters of limits during a simulation: all that was added in a
// window that ends with the event at hand.
type counters struct {
	added map[id.Hash][]addition
}

type addition struct {
	at     id.Instant
	amount decimal.Decimal
}

func newCounters() *counters { return &counters{added: make(map[id.Hash][]addition)} }

// exceedsLimit reports whether a claim exceeds its limit at a time.
func (c *counters) exceedsLimit(claim *policy.Claim, now id.Instant) bool {
	counter := claim.Counter()
	begin := now - id.Instant(claim.Limit.WindowSeconds*1000)
	kept := c.added[counter]
	for i := len(kept) - 1; i >= 0 && kept[i].at > now; i-- { // its ledger came back from a clock that was ahead
		kept[i].at = now
	}
	for len(kept) > 0 && kept[0].at <= begin {
		kept = kept[1:]
	}
	c.added[counter] = kept
	var sum decimal.Decimal
	for _, a := range kept {
		var err error
		if sum, err = sum.Add(a.amount); err != nil {
			return true
		}
	}
	return claim.Exceeds(sum)
}

// addClaims counts the claims of an event that is not refused.
func (c *counters) addClaims(claims []policy.Claim, now id.Instant) {
	for i := range claims {
		counter := claims[i].Counter()
		c.added[counter] = append(c.added[counter], addition{now, claims[i].Added})
	}
}
